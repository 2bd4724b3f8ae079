/* Safetensors: round trips, files of Python's package, arguments, out of memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>

#include "io/scratch.h"
#include "oom.h"

/* Opens, checks the status and text, and closes if it went well after all. */
#define CHECK_OPEN_ERROR(ctx, path, status, text)                                   \
    do {                                                                            \
        mica_safetensors *opened_ = NULL;                                           \
        CHECK_ERROR(ctx, mica_safetensors_open(ctx, &opened_, path), status, text); \
        CHECK(opened_ == NULL);                                                     \
        mica_safetensors_close(ctx, opened_);                                       \
    } while (0)

/* A tensor [3, 4] of a dtype over `memory`, seen in one of several layouts. */
enum { LAYOUTS = 6 };
static mica_tensor layout(mica_context *ctx, void *memory, mica_dtype dtype, int which)
{
    mica_tensor t;
    switch (which) {
    case 0: /* contiguous */
        CHECK_OK(ctx, mica_tensor_init(ctx, &t, memory, dtype, 2, (mica_index[]){3, 4}));
        break;
    case 1: /* transposed */
        CHECK_OK(ctx, mica_tensor_init(ctx, &t, memory, dtype, 2, (mica_index[]){4, 3}));
        CHECK_OK(ctx, mica_view_transpose(ctx, &t, &t, 0, 1));
        break;
    case 2: /* every second column */
        CHECK_OK(ctx, mica_tensor_init(ctx, &t, memory, dtype, 2, (mica_index[]){3, 8}));
        CHECK_OK(ctx, mica_view_slice(ctx, &t, &t, 1, 1, MICA_END, 2));
        break;
    case 3: /* backwards */
        CHECK_OK(ctx, mica_tensor_init(ctx, &t, memory, dtype, 2, (mica_index[]){3, 4}));
        CHECK_OK(ctx, mica_view_flip(ctx, &t, &t, 0));
        CHECK_OK(ctx, mica_view_flip(ctx, &t, &t, 1));
        break;
    case 4: /* every second row of a transposed one */
        CHECK_OK(ctx, mica_tensor_init(ctx, &t, memory, dtype, 2, (mica_index[]){4, 6}));
        CHECK_OK(ctx, mica_view_transpose(ctx, &t, &t, 0, 1));
        CHECK_OK(ctx, mica_view_slice(ctx, &t, &t, 0, 0, MICA_END, 2));
        break;
    default: /* one row for all: can only be read from */
        CHECK_OK(ctx, mica_tensor_init(ctx, &t, memory, dtype, 1, (mica_index[]){4}));
        CHECK_OK(ctx, mica_view_broadcast(ctx, &t, &t, 2, (mica_index[]){3, 4}));
    }
    return t;
}

static mica_tensor filled(mica_context *ctx, void *memory, mica_dtype dtype, int which)
{
    mica_tensor t = layout(ctx, memory, dtype, which);
    int value = dtype >= MICA_U8 ? 1 : -5;
    for (mica_iter it = mica_iter_begin(&t, 0, NULL); it.valid; mica_iter_next(&it))
        CHECK_OK(ctx, mica_set_at(ctx, &t, it.index, value++));
    return t;
}

static bool same_values(mica_context *ctx, const mica_tensor *a, const mica_tensor *b)
{
    for (mica_iter it = mica_iter_begin(a, 0, NULL); it.valid; mica_iter_next(&it)) {
        double x = 0, y = 1;
        CHECK_OK(ctx, mica_at(ctx, &x, a, it.index));
        CHECK_OK(ctx, mica_at(ctx, &y, b, it.index));
        if (x != y)
            return false;
    }
    return mica_tensor_same_shape(a, b);
}

TEST(safetensors_round_trip_every_dtype_and_layout)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    static _Alignas(64) char memory[MICA_DTYPE_COUNT * LAYOUTS][512], back[512];
    static char names[MICA_DTYPE_COUNT * LAYOUTS][16];
    mica_named_tensor tensors[MICA_DTYPE_COUNT * LAYOUTS];
    size_t count = 0;
    for (int d = 0; d <= MICA_U64; d++) {
        for (int l = 0; l < LAYOUTS; l++, count++) {
            snprintf(names[count], sizeof names[0], "%s.%d", mica_dtype_name((mica_dtype)d), l);
            tensors[count] = (mica_named_tensor){names[count], filled(ctx, memory[count], (mica_dtype)d, l)};
        }
    }
    const char *path = scratch_path(&s, "all.safetensors");
    CHECK_OK(ctx, mica_safetensors_write(ctx, path, tensors, count, NULL));
    CHECK(scratch_count(&s) == 1);
    mica_safetensors *file = NULL;
    CHECK_OK(ctx, mica_safetensors_open(ctx, &file, path));
    if (file == NULL)
        return;
    CHECK(mica_safetensors_count(file) == count);
    for (size_t i = 0; i < count; i++) {
        const mica_safetensors_entry *entry = mica_safetensors_find(file, names[i]);
        CHECK(entry != NULL && entry->readable && entry->dtype == tensors[i].tensor.dtype &&
              entry->rank == 2 && entry->offset % mica_dtype_bytes(entry->dtype) == 0);
        for (int l = 0; l < LAYOUTS - 1; l++) { /* every layout into every other that can be written */
            mica_named_tensor into = {names[i], layout(ctx, back, tensors[i].tensor.dtype, l)};
            memset(back, 0x7e, sizeof back);
            CHECK_OK(ctx, mica_safetensors_read(ctx, &into, 1, file));
            CHECK(same_values(ctx, &into.tensor, &tensors[i].tensor));
        }
        mica_named_tensor f32 = {names[i], layout(ctx, back, MICA_F32, 4)};
        CHECK_OK(ctx, mica_safetensors_read(ctx, &f32, 1, file));
        CHECK(same_values(ctx, &f32.tensor, &tensors[i].tensor));
    }
    mica_safetensors_close(ctx, file);
    scratch_remove(&s);
}

TEST(safetensors_large_strided_tensors_and_no_heap_calls)
{
    mica_context *ctx = test_context(2);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "large");
    size_t n = 300 * 401;
    float *data = malloc(n * sizeof *data);
    double *back = malloc(n * sizeof *back);
    for (size_t i = 0; i < n; i++)
        data[i] = (float)i;
    mica_tensor t = mica_2d(data, 300, 401), u;
    CHECK_OK(ctx, mica_view_transpose(ctx, &t, &t, 0, 1));
    CHECK_OK(ctx, mica_tensor_init(ctx, &u, back, MICA_F64, 2, (mica_index[]){401, 300}));
    mica_named_tensor out[] = {{"t", t}, {"flat", mica_1d(data, (mica_index)n)}}, in = {"t", u};
    test_heap before = test_heap_now();
    CHECK_OK(ctx, mica_safetensors_write(ctx, path, out, 2, NULL));
    if (test_heap_counted())
        CHECK(test_heap_now().calls == before.calls);
    mica_safetensors *file = NULL;
    CHECK_OK(ctx, mica_safetensors_open(ctx, &file, path));
    before = test_heap_now();
    CHECK_OK(ctx, mica_safetensors_read(ctx, &in, 1, file));
    if (test_heap_counted())
        CHECK(test_heap_now().calls == before.calls);
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += back[i] != (double)data[(i % 300) * 401 + i / 300];
    CHECK(wrong == 0);
    mica_safetensors_close(ctx, file);
    free(data);
    free(back);
    scratch_remove(&s);
}

TEST(safetensors_metadata_and_names_survive)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "names");
    float x[2] = {1, 2};
    const mica_named_tensor tensors[] = {
        {"", mica_0d(x)}, {"a \"quoted\\\" name\n\x01", mica_0d(x + 1)}, {"\xe2\x98\x83", mica_1d(NULL, 0)}};
    const mica_metadata metadata[] = {{"step", "12"}, {"", "empty\tkey"}, {"\xf0\x9f\x98\x80", ""}};
    CHECK_OK(ctx, mica_safetensors_write(ctx, path, tensors, 3, &(mica_safetensors_write_opts){metadata, 3}));
    mica_safetensors *file = NULL;
    CHECK_OK(ctx, mica_safetensors_open(ctx, &file, path));
    if (file == NULL)
        return;
    for (size_t i = 0; i < 3; i++) {
        CHECK(mica_safetensors_find(file, tensors[i].name) != NULL);
        const char *value = mica_safetensors_metadata_find(file, metadata[i].key);
        CHECK(value != NULL && strcmp(value, metadata[i].value) == 0);
    }
    CHECK(mica_safetensors_metadata_count(file) == 3 && mica_safetensors_metadata_at(file, 3) == NULL);
    CHECK(strcmp(mica_safetensors_metadata_at(file, 1)->key, "step") == 0);
    CHECK(mica_safetensors_metadata_find(file, "none") == NULL &&
          mica_safetensors_find(file, "none") == NULL);
    CHECK(mica_safetensors_at(file, 3) == NULL && mica_safetensors_at(file, 0)->rank == 0);
    mica_safetensors_close(ctx, file);
    mica_safetensors_close(ctx, NULL);
    scratch_remove(&s);
}

TEST(safetensors_reads_files_of_the_python_package)
{
    mica_context *ctx = test_context(1);
    mica_safetensors *file = NULL;
    CHECK_OK(ctx, mica_safetensors_open(ctx, &file, MICA_TEST_DATA "/safetensors/dtypes.safetensors"));
    if (file == NULL)
        return;
    CHECK(mica_safetensors_count(file) == 12);
    CHECK(strcmp(mica_safetensors_metadata_find(file, "quote"), "a \"b\" \\ \n") == 0);
    CHECK(strcmp(mica_safetensors_metadata_find(file, "snow"), "\xe2\x98\x83 \xf0\x9f\x98\x80") == 0);
    static const char *const signed_ones[] = {"float32", "float64", "float16", "int64",
                                              "int32",   "int16",   "int8"};
    float got[6];
    mica_named_tensor in = {"", mica_2d(got, 2, 3)};
    for (int k = 0; k < 7; k++) {
        in.name = signed_ones[k];
        CHECK_OK(ctx, mica_safetensors_read(ctx, &in, 1, file));
        for (int i = 0; i < 6; i++)
            CHECK(got[i] == (float)(3 * i - 4));
    }
    in.name = "bool";
    CHECK_OK(ctx, mica_safetensors_read(ctx, &in, 1, file));
    CHECK(got[0] == 1 && got[1] == 0 && got[2] == 1);
    in = (mica_named_tensor){"scalar", mica_0d(got)};
    CHECK_OK(ctx, mica_safetensors_read(ctx, &in, 1, file));
    CHECK(got[0] == 2.5f);
    in = (mica_named_tensor){"empty", mica_3d(NULL, 3, 0, 2)};
    CHECK_OK(ctx, mica_safetensors_read(ctx, &in, 1, file));
    const mica_safetensors_entry *entry = mica_safetensors_find(file, "uint16");
    CHECK(entry != NULL && entry->readable && strcmp(entry->dtype_name, "U16") == 0 && entry->bytes == 12);
    in = (mica_named_tensor){"uint16", mica_2d(got, 2, 3)};
    CHECK_OK(ctx, mica_safetensors_read(ctx, &in, 1, file));
    mica_safetensors_close(ctx, file);
    CHECK_OK(ctx, mica_safetensors_open(ctx, &file, MICA_TEST_DATA "/safetensors/nothing.safetensors"));
    CHECK(mica_safetensors_count(file) == 0);
    mica_safetensors_close(ctx, file);
}

TEST(safetensors_lend_what_is_mapped)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    char path[300], text[600];
    (void)snprintf(path, sizeof path, "%s", scratch_path(&s, "x.safetensors"));
    float values[] = {1.0f, 2.0f, 3.0f};
    mica_named_tensor out = {"w", mica_1d(values, 3)};
    CHECK_OK(ctx, mica_safetensors_write(ctx, path, &out, 1, NULL));
    mica_safetensors *file = NULL;
    mica_tensor t = {0};
    CHECK_OK(ctx, mica_safetensors_map(ctx, &file, path));
    CHECK_OK(ctx, mica_safetensors_lend(ctx, &t, file, "w"));
    CHECK(t.dtype == MICA_F32 && t.rank == 1 && t.dim[0] == 3 && memcmp(t.data, values, sizeof values) == 0);
    (void)snprintf(text, sizeof text, "format error: \"%s\": has no tensor \"v\"", path);
    CHECK_ERROR(ctx, mica_safetensors_lend(ctx, &t, file, "v"), MICA_ERR_FORMAT, text);
    float read[3] = {0}; /* and it can still be read from */
    mica_named_tensor in = {"w", mica_1d(read, 3)};
    CHECK_OK(ctx, mica_safetensors_read(ctx, &in, 1, file));
    CHECK(memcmp(read, values, sizeof read) == 0);
    mica_safetensors_close(ctx, file);

    CHECK_OK(ctx, mica_safetensors_open(ctx, &file, path));
    (void)snprintf(
        text, sizeof text,
        "argument error: safetensors_lend: \"%s\": the file is not mapped, or the machine not little-endian",
        path);
    CHECK_ERROR(ctx, mica_safetensors_lend(ctx, &t, file, "w"), MICA_ERR_ARGUMENT, text);
    CHECK_ERROR(ctx, mica_safetensors_lend(ctx, &t, NULL, "w"), MICA_ERR_ARGUMENT,
                "argument error: safetensors_lend: file is NULL");
    CHECK_ERROR(ctx, mica_safetensors_map(ctx, NULL, path), MICA_ERR_ARGUMENT,
                "argument error: safetensors_map: out is NULL");
    mica_safetensors_close(ctx, file);

    static const char header[] =
        "{\"u\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[4,12]},"
        "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  ";
    unsigned char bytes[8 + sizeof header + 12] = {sizeof header - 1};
    memcpy(bytes + 8, header, sizeof header - 1); /* 110 bytes: what follows is not aligned */
    scratch_write(path, bytes, 8 + sizeof header - 1 + 12);
    CHECK_OK(ctx, mica_safetensors_map(ctx, &file, path));
    (void)snprintf(
        text, sizeof text,
        "format error: \"%s\": byte %zu: tensor \"w\" of F32 begins here, which is not a multiple of 4", path,
        8 + sizeof header - 1);
    CHECK_ERROR(ctx, mica_safetensors_lend(ctx, &t, file, "w"), MICA_ERR_FORMAT, text);
    (void)snprintf(text, sizeof text, "dtype error: \"%s\": tensor \"u\" is C64, which Mica does not have",
                   path);
    CHECK_ERROR(ctx, mica_safetensors_lend(ctx, &t, file, "u"), MICA_ERR_DTYPE, text);
    mica_safetensors_close(ctx, file);
    scratch_remove(&s);
}

TEST(safetensors_read_changes_all_or_nothing)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "two.safetensors");
    float a[6] = {1, 2, 3, 4, 5, 6}, b[2] = {7, 8}, x[6] = {0}, y[2] = {0};
    mica_named_tensor out[] = {{"a", mica_2d(a, 2, 3)}, {"b", mica_1d(b, 2)}};
    CHECK_OK(ctx, mica_safetensors_write(ctx, path, out, 2, NULL));
    unsigned char *bytes;
    size_t count;
    bytes = scratch_read(path, &count);
    mica_safetensors *file = NULL;
    CHECK_OK(ctx, mica_safetensors_open_memory(ctx, &file, bytes, count));
    if (file == NULL)
        return;
    mica_named_tensor in[] = {{"a", mica_2d(x, 2, 3)}, {"c", mica_1d(y, 2)}};
    CHECK_ERROR(ctx, mica_safetensors_read(ctx, in, 2, file), MICA_ERR_FORMAT,
                "format error: \"memory\": has no tensor \"c\" [2]");
    in[1] = (mica_named_tensor){"b", mica_2d(y, 2, 1)};
    CHECK_ERROR(ctx, mica_safetensors_read(ctx, in, 2, file), MICA_ERR_SHAPE,
                "shape error: \"memory\": tensor \"b\" is [2], expected [2, 1]");
    in[1] = (mica_named_tensor){"b", mica_1d(NULL, 2)};
    CHECK_ERROR(ctx, mica_safetensors_read(ctx, in, 2, file), MICA_ERR_ARGUMENT,
                "argument error: safetensors_read: \"b\" [2] has no data (NULL)");
    for (int i = 0; i < 6; i++)
        CHECK(x[i] == 0);
    in[1] = (mica_named_tensor){"b", mica_1d(y, 2)};
    CHECK_OK(ctx, mica_safetensors_read(ctx, in, 2, file));
    CHECK(memcmp(x, a, sizeof a) == 0 && memcmp(y, b, sizeof b) == 0);
    CHECK(mica_safetensors_read(ctx, NULL, 1, file) == MICA_ERR_ARGUMENT);
    mica_safetensors_close(ctx, file);
    free(bytes);
    scratch_remove(&s);
}

TEST(safetensors_read_refuses_blocks)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "x");
    static float x[32];
    static uint8_t blocks[34];
    CHECK_OK(ctx, mica_workspace_reserve(ctx, (size_t)1 << 17));
    mica_named_tensor plain = {"w", mica_1d(x, 32)}, into = {"w", {0}};
    CHECK_OK(ctx, mica_safetensors_write(ctx, path, &plain, 1, NULL));
    mica_safetensors *file = NULL;
    CHECK_OK(ctx, mica_safetensors_open(ctx, &file, path));
    CHECK_OK(ctx, mica_tensor_init(ctx, &into.tensor, blocks, MICA_Q8_0, 1, (mica_index[]){32}));
    memset(blocks, 0x5a, sizeof blocks);
    CHECK_ERROR(ctx, mica_safetensors_read(ctx, &into, 1, file), MICA_ERR_DTYPE,
                "dtype error: safetensors_read: \"w\" [32] is q8_0, expected a plain type");
    for (size_t i = 0; i < sizeof blocks; i++)
        CHECK(blocks[i] == 0x5a);
    mica_safetensors_close(ctx, file);
    scratch_remove(&s);
}

TEST(safetensors_write_refuses_bad_arguments)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "x");
    float x[2] = {1, 2};
    mica_named_tensor two[] = {{"w", mica_1d(x, 2)}, {"w", mica_1d(x, 2)}};
    CHECK_ERROR(ctx, mica_safetensors_write(ctx, path, two, 2, NULL), MICA_ERR_ARGUMENT,
                "argument error: safetensors_write: two tensors are called \"w\"");
    two[1].name = "__metadata__";
    CHECK_ERROR(ctx, mica_safetensors_write(ctx, path, two, 2, NULL), MICA_ERR_ARGUMENT,
                "argument error: safetensors_write: the name \"__metadata__\" is reserved by the format");
    two[1].name = "\xff";
    CHECK(mica_safetensors_write(ctx, path, two, 2, NULL) == MICA_ERR_ARGUMENT);
    two[1] = (mica_named_tensor){"v", mica_1d(NULL, 2)};
    CHECK_ERROR(ctx, mica_safetensors_write(ctx, path, two, 2, NULL), MICA_ERR_ARGUMENT,
                "argument error: safetensors_write: \"v\" [2] has no data (NULL)");
    static uint8_t blocks[34];
    CHECK_OK(ctx, mica_tensor_init(ctx, &two[1].tensor, blocks, MICA_Q8_0, 2, (mica_index[]){1, 32}));
    CHECK_ERROR(ctx, mica_safetensors_write(ctx, path, two, 2, NULL), MICA_ERR_DTYPE,
                "dtype error: safetensors_write: \"v\" [1, 32] is q8_0, which the format does not support");
    const mica_metadata same[] = {{"k", "1"}, {"k", "2"}};
    CHECK_ERROR(ctx, mica_safetensors_write(ctx, path, two, 1, &(mica_safetensors_write_opts){same, 2}),
                MICA_ERR_ARGUMENT, "argument error: safetensors_write: two metadata keys are called \"k\"");
    CHECK(mica_safetensors_write(ctx, NULL, two, 1, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_safetensors_write(ctx, path, NULL, 1, NULL) == MICA_ERR_ARGUMENT);
    CHECK(scratch_count(&s) == 0);
    CHECK(mica_safetensors_write(ctx, scratch_path(&s, "no/such/folder"), two, 1, NULL) == MICA_ERR_IO);
    CHECK(mica_safetensors_write(ctx, s.folder, two, 1, NULL) ==
          MICA_ERR_IO); /* a folder cannot be replaced */
    CHECK(strstr(mica_error(ctx), "cannot be replaced") != NULL);
    CHECK_OPEN_ERROR(ctx, s.folder, MICA_ERR_IO, mica_error(ctx));
    CHECK_OPEN_ERROR(ctx, "no such file", MICA_ERR_IO,
                     "file error: \"no such file\": cannot open: No such file or directory");
    CHECK(scratch_count(&s) == 0);
    scratch_remove(&s);
}

/* A limit on the size of files stands for a full disk. */
TEST(safetensors_full_disk_leaves_the_old_file)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "kept");
    static float x[10000] = {3};
    mica_named_tensor small = {"x", mica_1d(x, 10)}, large = {"x", mica_1d(x, 10000)};
    CHECK_OK(ctx, mica_safetensors_write(ctx, path, &small, 1, NULL));
    struct rlimit before, limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    limit = before;
    limit.rlim_cur = 20000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    mica_status status = mica_safetensors_write(ctx, path, &large, 1, NULL);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    (void)signal(SIGXFSZ, handler);
    CHECK(status == MICA_ERR_IO && strstr(mica_error(ctx), "cannot write: File too large") != NULL);
    CHECK(scratch_count(&s) == 1);
    mica_safetensors *file = NULL;
    CHECK_OK(ctx, mica_safetensors_open(ctx, &file, path));
    CHECK(file != NULL && mica_safetensors_at(file, 0)->dim[0] == 10);
    mica_safetensors_close(ctx, file);
    scratch_remove(&s);
}

static mica_status oom_work(const mica_allocator *allocator, void *path)
{
    mica_context *ctx = NULL;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    mica_safetensors *file = NULL;
    float x[20];
    mica_named_tensor in = {"layer.1.weight", mica_2d(x, 4, 5)};
    status = mica_safetensors_open(ctx, &file, path);
    if (status == MICA_OK)
        status = mica_safetensors_read(ctx, &in, 1, file);
    mica_safetensors_close(ctx, file);
    mica_context_destroy(ctx);
    return status;
}

TEST(safetensors_out_of_memory)
{
    char path[] = MICA_TEST_DATA "/safetensors/layers.safetensors";
    CHECK(test_oom(oom_work, path) == 4);
}
