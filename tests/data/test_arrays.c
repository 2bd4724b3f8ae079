/* idx and npy: what they hold, and every way in which they may be wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/scratch.h"
#include "oom.h"
#include "data/sample.h"

#define E "format error: \"file\": byte "

TEST(idx_element_types)
{
    mica_context *ctx = test_context(1);
    static const struct {
        unsigned char bytes[16];
        size_t count;
        mica_dtype dtype;
        double value;
    } files[] = {
        {{0, 0, 0x08, 1, 0, 0, 0, 1, 200}, 9, MICA_U8, 200},
        {{0, 0, 0x09, 1, 0, 0, 0, 1, 0xff}, 9, MICA_I8, -1},
        {{0, 0, 0x0b, 1, 0, 0, 0, 1, 1, 2}, 10, MICA_I16, 258},
        {{0, 0, 0x0c, 1, 0, 0, 0, 1, 0, 1, 0, 2}, 12, MICA_I32, 65538},
        {{0, 0, 0x0d, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0}, 12, MICA_F32, 1.5},
        {{0, 0, 0x0e, 1, 0, 0, 0, 1, 0xbf, 0xf8, 0, 0, 0, 0, 0, 0}, 16, MICA_F64, -1.5},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        mica_loaded got = {0};
        double value = 0;
        CHECK_OK(ctx, sample_read(ctx, &got, mica_idx_read, files[i].bytes, files[i].count));
        CHECK(got.tensor.dtype == files[i].dtype && got.tensor.rank == 1 && got.tensor.dim[0] == 1);
        CHECK_OK(ctx, mica_at(ctx, &value, &got.tensor, (mica_index[]){0}));
        CHECK(value == files[i].value);
        mica_loaded_release(ctx, &got);
    }
}

TEST(idx_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    static const struct {
        unsigned char bytes[16];
        size_t count;
        const char *error;
    } bad[] = {
        {{0}, 0, E "0: the file ends, 4 bytes short of an idx header"},
        {{0, 1, 8, 1}, 4, E "0: not an idx file: it starts with 00 01"},
        {{0, 0, 7, 1}, 4, E "2: unknown idx element type 07"},
        {{0, 0, 8, 9}, 4, E "3: rank 9, expected 0 to 8"},
        {{0, 0, 8, 2, 0, 0, 0, 1}, 8, E "8: the file ends, 4 bytes short of an idx header"},
        {{0, 0, 8, 1, 0xff, 0xff, 0xff, 0xff}, 8, E "4: a size of 4294967295"},
        {{0, 0, 8, 1, 0, 0, 0, 3, 1, 2},
         10,
         E "8: the array [3] of u8 takes 3 bytes, more than the file can hold"},
        {{0, 0, 8, 1, 0, 0, 0, 1, 1, 2}, 10, E "9: trailing bytes after the data"},
        {{0, 0, 0x0e, 3, 0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff},
         16,
         E "16: the array [2147483647, 2147483647, 2147483647] has more elements than memory can hold"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mica_loaded got = {0};
        CHECK_ERROR(ctx, sample_read(ctx, &got, mica_idx_read, bad[i].bytes, bad[i].count), MICA_ERR_FORMAT,
                    bad[i].error);
        CHECK(got.tensor.data == NULL);
    }
}

static const char *const npy_names[] = {"float32", "float64", "float16", "int64",   "int32",
                                        "int16",   "int8",    "uint8",   "version2"};

static const char *npy_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/npy/%s.npy", MICA_TEST_DATA, name);
    return path;
}

TEST(npy_reads_files_of_numpy)
{
    mica_context *ctx = test_context(1);
    mica_dataset set;
    for (size_t k = 0; k < sizeof npy_names / sizeof npy_names[0]; k++) {
        CHECK_OK(ctx, mica_dataset_load_npy(ctx, &set, npy_path(npy_names[k]), NULL));
        CHECK(set.count == 2 && set.inputs.rank == 2 && set.inputs.dim[1] == 3 && !set.has_targets);
        for (mica_index i = 0; i < 6; i++) {
            double value = -1;
            CHECK_OK(ctx, mica_at(ctx, &value, &set.inputs, (mica_index[]){i / 3, i % 3}));
            CHECK(value == (double)i);
        }
        mica_dataset_destroy(ctx, &set);
        mica_dataset_destroy(ctx, &set);
    }
    char labels[512];
    snprintf(labels, sizeof labels, "%s", npy_path("labels"));
    CHECK_OK(ctx, mica_dataset_load_npy(ctx, &set, npy_path("bool"), labels));
    CHECK(set.has_targets && set.targets.dtype == MICA_I64 && ((int64_t *)set.targets.data)[1] == 9);
    CHECK(set.inputs.dtype == MICA_BOOL && ((uint8_t *)set.inputs.data)[0] == 0 &&
          ((uint8_t *)set.inputs.data)[5] == 1);
    mica_dataset_destroy(ctx, &set);
    CHECK_ERROR(ctx, mica_dataset_load_npy(ctx, &set, npy_path("scalar"), NULL), MICA_ERR_SHAPE,
                "shape error: dataset: inputs is []: expected samples along axis 0");
    CHECK(mica_dataset_load_npy(ctx, &set, npy_path("fortran"), NULL) == MICA_ERR_FORMAT);
    CHECK(strstr(mica_error(ctx), "byte 44: npy header: expected False") != NULL);
    CHECK(mica_dataset_load_npy(ctx, &set, npy_path("big_endian"), NULL) == MICA_ERR_FORMAT);
    CHECK(strstr(mica_error(ctx), "byte 20: npy header: expected an element type") != NULL);
    CHECK(mica_dataset_load_npy(ctx, &set, npy_path("complex"), NULL) == MICA_ERR_FORMAT);
    CHECK(set.count == 0 && set.inputs.data == NULL);
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
}

TEST(idx_samples_have_elements)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    static const unsigned char hollow[] = {0, 0, 8, 2, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0};
    static const unsigned char none[] = {0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 3};
    mica_dataset set;
    scratch_write(scratch_path(&s, "hollow"), hollow, sizeof hollow);
    CHECK(mica_dataset_load_idx(ctx, &set, s.path, NULL) == MICA_ERR_FORMAT);
    CHECK(strstr(mica_error(ctx), "the array [2147483647, 0] has samples with no elements") != NULL);
    scratch_write(scratch_path(&s, "none"), none, sizeof none);
    CHECK_OK(ctx, mica_dataset_load_idx(ctx, &set, s.path, s.path));
    CHECK(set.count == 0 && set.has_targets);
    mica_dataset_destroy(ctx, &set);
    CHECK(mica_dataset_load_idx(ctx, &set, s.path, npy_path("labels")) == MICA_ERR_FORMAT);
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
    scratch_remove(&s);
}

TEST(npy_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
#define D "'descr': '|u1', "
#define F "'fortran_order': False, "
#define S "'shape': (1,), "
    static const struct {
        const char *header, *error;
    } bad[] = {
        {"", "10: npy header: expected {"},
        {"{}", "12: npy header: expected each of 'descr', 'fortran_order' and 'shape', once"},
        {"{" D D "}", "34: npy header: expected each of 'descr', 'fortran_order' and 'shape', once"},
        {"{" D F S "'x': 1}", "66: npy header: expected each of 'descr', 'fortran_order' and 'shape', once"},
        {"{" D F S "} x", "68: npy header: expected nothing more"},
        {"{'descr' '|u1'}", "19: npy header: expected :"},
        {"{" D F "'shape': (1)}", "62: npy header: expected a comma"},
        {"{" D F "'shape': (-1,)}", "61: npy header: expected a size"},
        {"{" D F "'shape': (1 2)}", "63: npy header: expected a comma"},
        {"{" D F "'shape': (99999999999999999999,)}", "61: npy header: expected a size"},
        {"{" D F "'shape': (1,1,1,1,1,1,1,1,1)}", "77: npy header: expected at most 8 dimensions"},
        {"{" D F "'shape': (4294967296,4294967296,4294967296)}",
         "95: the array [4294967296, 4294967296, 4294967296] has more elements than memory can hold"},
        {"{" D F "'shape': (3, 5)}",
         "67: the array [3, 5] of u8 takes 15 bytes, more than the file can hold"},
        {"{" D F "'shape': ()}", "64: trailing bytes after the data"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char bytes[300] = "\x93NUMPY\x01";
        size_t length = strlen(bad[i].header);
        bytes[8] = (char)length;
        memcpy(bytes + 10, bad[i].header, length);
        memset(bytes + 10 + length, 1, 2);
        char error[256];
        snprintf(error, sizeof error, E "%s", bad[i].error);
        mica_loaded got = {0};
        CHECK_ERROR(ctx, sample_read(ctx, &got, mica_npy_read, bytes, 12 + length), MICA_ERR_FORMAT, error);
    }
    mica_loaded got = {0};
    CHECK_ERROR(ctx, sample_read(ctx, &got, mica_npy_read, "\x93NUMPX\1\0\0\0", 10), MICA_ERR_FORMAT,
                E "0: not an npy file");
    CHECK_ERROR(ctx, sample_read(ctx, &got, mica_npy_read, "\x93NUMPY\4\0\0\0", 10), MICA_ERR_FORMAT,
                E "6: npy version 4.0, expected 1.0, 2.0 or 3.0");
    CHECK_ERROR(ctx, sample_read(ctx, &got, mica_npy_read, "\x93NUMPY\2\0\0\0\0\x80", 12), MICA_ERR_FORMAT,
                E "8: an npy header of 2147483648 bytes, expected at most 4096");
}

/* Truncations and bit flips of a whole file: an error, or an array that can be read. */
static void mutate(mica_context *ctx, mica_read_fn *read, const char *path)
{
    size_t count;
    unsigned char *bytes = scratch_read(path, &count);
    REQUIRE(bytes != NULL);
    for (size_t n = 0; n < count; n++) {
        mica_loaded got = {0};
        CHECK(sample_read(ctx, &got, read, bytes, n) == MICA_ERR_FORMAT && got.tensor.data == NULL);
    }
    for (size_t bit = 0; bit < 8 * count; bit++) {
        mica_loaded got = {0};
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        mica_status status = sample_read(ctx, &got, read, bytes, count);
        CHECK(status == MICA_OK || status == MICA_ERR_FORMAT);
        CHECK((status == MICA_OK) == (got.tensor.data != NULL));
        mica_loaded_release(ctx, &got);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free(bytes);
}

TEST(arrays_mutations_give_clean_errors)
{
    mica_context *ctx = test_context(1);
    mutate(ctx, mica_npy_read, npy_path("float32"));
    if (sample_has_zlib(ctx))
        mutate(ctx, mica_idx_read, MICA_TEST_DATA "/gzip/images.idx.gz");
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
}

TEST(gzip_files_are_unpacked)
{
    mica_context *ctx = test_context(1);
    if (!sample_has_zlib(ctx)) {
        test_skip("built without zlib");
        return;
    }
    mica_dataset set;
    CHECK_OK(ctx, mica_dataset_load_idx(ctx, &set, MICA_TEST_DATA "/gzip/images.idx.gz", NULL));
    CHECK(set.count == 5 && set.inputs.dim[1] == 3 && set.inputs.dim[2] == 2);
    for (int i = 0; i < 30; i++)
        CHECK(((uint8_t *)set.inputs.data)[i] == i);
    mica_dataset_destroy(ctx, &set);
    mica_table *table;
    CHECK_OK(ctx, mica_table_scan(ctx, &table, MICA_TEST_DATA "/gzip/numbers.csv.gz", NULL));
    CHECK(mica_table_rows(table) == 2 && mica_table_column(table, 1)->mean == 3);
    mica_table_destroy(ctx, table);
    mica_text text;
    CHECK_OK(ctx, mica_text_load(ctx, &text, MICA_TEST_DATA "/gzip/text.txt.gz", NULL));
    CHECK(text.tokens.dim[0] == 19000 && memcmp((char *)text.tokens.data + 18981, "to be or", 8) == 0);
    mica_text_destroy(ctx, &text);
    mica_text_destroy(ctx, &text);
}

static mica_status oom_work(const mica_allocator *allocator, void *argument)
{
    (void)argument;
    mica_context *ctx = NULL;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    mica_dataset set = {0};
    mica_text text = {0};
    mica_batches *batches = NULL;
    mica_table *table = NULL;
    bool zlib = sample_has_zlib(ctx);
    char labels[512];
    snprintf(labels, sizeof labels, "%s", npy_path("labels"));
    status = mica_dataset_load_npy(ctx, &set, npy_path("float32"), labels);
    if (status == MICA_OK)
        status = mica_batches_create(ctx, &batches, &set, NULL);
    mica_batches_destroy(ctx, batches);
    mica_dataset_destroy(ctx, &set);
    if (status == MICA_OK && zlib)
        status = mica_table_scan(ctx, &table, MICA_TEST_DATA "/gzip/numbers.csv.gz", NULL);
    if (status == MICA_OK && zlib)
        status = mica_table_encode(ctx, table, NULL);
    if (status == MICA_OK && zlib)
        status = mica_table_load(ctx, &set, table, MICA_TEST_DATA "/gzip/numbers.csv.gz", NULL);
    mica_table_destroy(ctx, table);
    mica_dataset_destroy(ctx, &set);
    if (status == MICA_OK && zlib)
        status = mica_text_load(ctx, &text, MICA_TEST_DATA "/gzip/text.txt.gz",
                                &(mica_text_opts){.characters = true});
    mica_text_destroy(ctx, &text);
    mica_context_destroy(ctx);
    return status;
}

TEST(data_out_of_memory) { CHECK(test_oom(oom_work, NULL) >= 5); }

TEST(data_real_mnist)
{
    mica_context *ctx = test_context(2);
    if (sample_real_data("mnist/train-images-idx3-ubyte.gz") == NULL || !sample_has_zlib(ctx)) {
        test_skip("no MNIST in $MICA_DATA or ../shared/data, or no zlib");
        return;
    }
    char images[1024];
    snprintf(images, sizeof images, "%s", sample_real_data("mnist/train-images-idx3-ubyte.gz"));
    mica_dataset set;
    CHECK_OK(ctx,
             mica_dataset_load_idx(ctx, &set, images, sample_real_data("mnist/train-labels-idx1-ubyte.gz")));
    CHECK(set.count == 60000 && set.inputs.rank == 3 && set.inputs.dim[1] == 28 && set.targets.rank == 1);
    const uint8_t *labels = set.targets.data;
    CHECK(labels[0] == 5 && labels[1] == 0 && labels[2] == 4);
    mica_batches *batches = NULL;
    CHECK_OK(ctx, mica_batches_create(ctx, &batches, &set,
                                      &(mica_batches_opts){.batch = 100, .seed = 1, .scale = 1 / 255.f}));
    float *x = malloc(100 * 784 * sizeof *x);
    int32_t y[100];
    mica_tensor inputs = mica_4d(x, 100, 1, 28, 28), targets;
    CHECK_OK(ctx, mica_tensor_init(ctx, &targets, y, MICA_I32, 1, (mica_index[]){100}));
    double sum = 0;
    int counts[10] = {0};
    test_heap before = test_heap_now();
    for (mica_index n; mica_batches_next(ctx, &inputs, &targets, &n, batches) == MICA_OK && n > 0;) {
        for (mica_index i = 0; i < n; i++)
            counts[y[i]]++;
        for (mica_index i = 0; i < n * 784; i++)
            sum += (double)x[i];
    }
    if (test_heap_counted())
        CHECK(test_heap_now().calls == before.calls);
    CHECK_MSG(sum / (60000.0 * 784) > 0.1305 && sum / (60000.0 * 784) < 0.1308, "mean %g", sum / 60000 / 784);
    CHECK(counts[0] == 5923 && counts[1] == 6742 && counts[9] == 5949);
    free(x);
    mica_batches_destroy(ctx, batches);
    mica_dataset_destroy(ctx, &set);
}
