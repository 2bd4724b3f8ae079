/* Writing GGUF files, and reading them back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/build.h"
#include "io/scratch.h"
#include "oom.h"
#include "test.h"

/* ---- What is read is written again ---- */

enum { MOST = 12 };

typedef struct plan {
    mica_gguf_new_setting settings[MOST];
    size_t setting_count;
    mica_gguf_new_tensor tensors[MOST];
    size_t count;
    unsigned char *data[MOST];
    char names[2 * MOST][64];
} plan;

static void random_bytes(test_random *r, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)test_int(r, 0, 255);
}

/* A value of any kind but an array of strings; those are in the file that all of them copy. */
static mica_gguf_value random_value(test_random *r)
{
    static const size_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    static unsigned char elements[8 * 8]; /* as good as any */
    mica_gguf_value value = {.kind = (mica_gguf_kind)test_int(r, 0, MICA_GGUF_KIND_COUNT - 1)};
    if (value.kind == MICA_GGUF_STRING) {
        value.text = (mica_gguf_text){"a text with \"quotes\"", (size_t)test_int(r, 0, 20)};
    } else if (value.kind == MICA_GGUF_ARRAY) {
        do
            value.array.kind = (mica_gguf_kind)test_int(r, 0, MICA_GGUF_KIND_COUNT - 1);
        while (bytes[value.array.kind] == 0);
        value.array.count = (size_t)test_int(r, 0, 8);
        value.array.bytes = elements;
        value.array.size = value.array.count * bytes[value.array.kind];
    } else if (value.kind == MICA_GGUF_F32 || value.kind == MICA_GGUF_F64) {
        value.f = (double)(float)test_normal(r);
    } else if (value.kind == MICA_GGUF_I8 || value.kind == MICA_GGUF_I16 || value.kind == MICA_GGUF_I32 ||
               value.kind == MICA_GGUF_I64) {
        value.i = test_int(r, -128, 127);
    } else {
        value.u = (uint64_t)test_int(r, 0, 1);
    }
    return value;
}

/* The tensor's bytes are a copy's, made piece by piece; `user` is the whole of it. */
static mica_status make_rows(void *user, mica_context *ctx, const mica_tensor *piece, mica_index row)
{
    (void)ctx;
    size_t bytes = mica_tensor_bytes(piece) / (size_t)piece->dim[0];
    memcpy(piece->data, (const unsigned char *)user + (size_t)row * bytes, (size_t)piece->dim[0] * bytes);
    return MICA_OK;
}

static void random_tensor(mica_context *ctx, test_random *r, plan *p, size_t i)
{
    mica_gguf_new_tensor *t = &p->tensors[i];
    mica_dtype dtype;
    do
        dtype = (mica_dtype)test_int(r, 0, MICA_DTYPE_COUNT - 1);
    while (dtype >= MICA_U8 && dtype < MICA_Q4_0);
    int rank = test_int(r, 1, 4);
    mica_index dims[4];
    for (int k = 0; k < rank; k++)
        dims[k] = test_int(r, 1, 5);
    dims[rank - 1] *= (mica_index)mica_dtype_block(dtype);
    CHECK_OK(ctx, mica_tensor_init(ctx, &t->tensor, NULL, dtype, rank, dims));
    size_t bytes = mica_tensor_bytes(&t->tensor);
    p->data[i] = aligned_alloc(64, (bytes + 63) / 64 * 64);
    random_bytes(r, p->data[i], bytes);
    if (test_chance(r, 50)) {
        t->make = make_rows;
        t->user = p->data[i];
    } else {
        t->tensor.data = p->data[i];
    }
    t->name = p->names[MOST + i];
    (void)snprintf(p->names[MOST + i], sizeof p->names[0], "blk.%zu.weight", i);
}

static bool same_value(const mica_gguf_value *a, const mica_gguf_value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == MICA_GGUF_STRING)
        return a->text.length == b->text.length && memcmp(a->text.bytes, b->text.bytes, a->text.length) == 0;
    if (a->kind == MICA_GGUF_ARRAY)
        return a->array.kind == b->array.kind && a->array.count == b->array.count &&
               a->array.size == b->array.size && memcmp(a->array.bytes, b->array.bytes, a->array.size) == 0;
    return a->kind == MICA_GGUF_F32 || a->kind == MICA_GGUF_F64 ? a->f == b->f : a->u == b->u;
}

static void check_same(mica_context *ctx, const plan *p, const mica_gguf *file, const mica_gguf *copied)
{
    size_t left_out = 0;
    for (size_t i = 0; i < p->setting_count; i++) {
        mica_gguf_value value;
        bool wanted = p->settings[i].value.kind != MICA_GGUF_KIND_COUNT;
        CHECK(mica_gguf_find(file, &value, p->settings[i].key) == wanted);
        CHECK(!wanted || same_value(&value, &p->settings[i].value));
    }
    for (size_t i = 0; copied != NULL && i < mica_gguf_settings(copied); i++) {
        mica_gguf_text key;
        mica_gguf_value value, now;
        char name[64];
        CHECK_OK(ctx, mica_gguf_setting(copied, &key, &value, i));
        memcpy(name, key.bytes, key.length);
        name[key.length] = '\0';
        bool replaced = false;
        for (size_t k = 0; k < p->setting_count; k++)
            replaced = replaced || strcmp(p->settings[k].key, name) == 0;
        left_out += !replaced && !(mica_gguf_find(file, &now, name) && same_value(&value, &now));
    }
    CHECK(left_out == 0 && mica_gguf_tensors(file) == p->count);
    for (size_t i = 0; i < p->count; i++) {
        mica_gguf_text name;
        mica_tensor t;
        CHECK_OK(ctx, mica_gguf_tensor(file, &name, &t, i));
        CHECK(name.length == strlen(p->tensors[i].name) &&
              memcmp(name.bytes, p->tensors[i].name, name.length) == 0);
        CHECK(t.dtype == p->tensors[i].tensor.dtype && mica_tensor_same_shape(&t, &p->tensors[i].tensor));
        CHECK(memcmp(t.data, p->data[i], mica_tensor_bytes(&t)) == 0);
    }
}

TEST(gguf_writes_what_it_reads)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(5);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "x.gguf");
    gguf_bytes b = gguf_sound(3);
    mica_gguf *sound = NULL;
    CHECK_OK(ctx, mica_gguf_over(ctx, &sound, b.bytes, b.size, "sound.gguf"));
    for (int n = 0; n < test_effort(100); n++) {
        plan p = {.setting_count = (size_t)test_int(&r, 0, MOST), .count = (size_t)test_int(&r, 0, MOST)};
        for (size_t i = 0; i < p.setting_count; i++) {
            (void)snprintf(p.names[i], sizeof p.names[0], i == 3 ? "a.u8" : "key.%zu", i);
            p.settings[i] = (mica_gguf_new_setting){p.names[i], random_value(&r)};
            if (test_chance(&r, 10))
                p.settings[i].value.kind = MICA_GGUF_KIND_COUNT;
        }
        for (size_t i = 0; i < p.count; i++)
            random_tensor(ctx, &r, &p, i);
        mica_gguf_write_opts opts = {.copy = test_chance(&r, 50) ? sound : NULL,
                                     .settings = p.settings,
                                     .setting_count = p.setting_count,
                                     .piece = (size_t)test_int(&r, 0, 1) * (size_t)test_int(&r, 1, 500)};
        mica_gguf *file = NULL;
        CHECK_OK(ctx, mica_gguf_write(ctx, path, p.tensors, p.count, &opts));
        if (CHECK_OK(ctx, mica_gguf_open(ctx, &file, path)))
            check_same(ctx, &p, file, opts.copy);
        mica_gguf_close(file);
        for (size_t i = 0; i < p.count; i++)
            free(p.data[i]);
    }
    mica_gguf_close(sound);
    gguf_free(&b);
    scratch_remove(&s);
}

/* A file written over itself, with one setting changed: what was mapped stays what it was until it is closed. */
TEST(gguf_writes_over_what_it_reads)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "x.gguf");
    gguf_bytes b = gguf_sound(3);
    scratch_write(path, b.bytes, b.size);
    mica_gguf *file = NULL;
    REQUIRE(CHECK_OK(ctx, mica_gguf_open(ctx, &file, path)));
    mica_gguf_new_tensor tensors[4] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}};
    mica_gguf_text name;
    for (size_t i = 0; i < 4; i++)
        CHECK_OK(ctx, mica_gguf_tensor(file, &name, &tensors[i].tensor, i));
    mica_gguf_new_setting changed = {"general.alignment", {.kind = MICA_GGUF_U32, .u = 4096}};
    mica_gguf_write_opts opts = {.copy = file, .settings = &changed, .setting_count = 1};
    CHECK_OK(ctx, mica_gguf_write(ctx, path, tensors, 4, &opts));
    mica_gguf *again = NULL;
    REQUIRE(CHECK_OK(ctx, mica_gguf_open(ctx, &again, path)));
    for (size_t i = 0; i < 4; i++) {
        mica_tensor t;
        CHECK(mica_gguf_find_tensor(again, &t, tensors[i].name) && (uintptr_t)t.data % 4096 == 0);
        CHECK(memcmp(t.data, tensors[i].tensor.data, mica_tensor_bytes(&t)) == 0);
    }
    CHECK(mica_gguf_settings(again) == mica_gguf_settings(file) && scratch_count(&s) == 1);
    mica_gguf_close(again);
    mica_gguf_close(file);
    gguf_free(&b);
    scratch_remove(&s);
}

/* ---- What cannot be written ---- */

static mica_status refuse_rows(void *user, mica_context *ctx, const mica_tensor *piece, mica_index row)
{
    (void)piece, (void)user;
    return row == 0 ? MICA_OK : mica_tensor_init(ctx, &(mica_tensor){0}, NULL, MICA_F32, 9, NULL);
}

TEST(gguf_write_checks_before_it_writes)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "x.gguf");
    float data[4] = {0};
    mica_tensor t = mica_2d(data, 2, 2), transposed;
    CHECK_OK(ctx, mica_view_transpose(ctx, &transposed, &t, 0, 1));
    mica_tensor bytes = t, none = t, empty = mica_2d(data, 0, 2), scalar = mica_0d(data);
    bytes.dtype = MICA_U8;
    none.data = NULL;
#define N64 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl"
    static const char long_name[] = N64;
#define B                  \
    {                      \
        "b", t, NULL, NULL \
    }
#define Z          \
    {              \
        "b", { 0 } \
    }
#define S {"a", {0}}, Z
#define A "argument error: gguf_write: "
    const struct {
        mica_gguf_new_tensor tensors[2];
        mica_gguf_new_setting settings[2];
        mica_status status;
        const char *error;
    } bad[] = {
        {{{NULL, t, NULL, NULL}, B}, {S}, MICA_ERR_ARGUMENT, A "the name of a tensor is NULL"},
        {{{"", t, NULL, NULL}, B},
         {S},
         MICA_ERR_ARGUMENT,
         A "the name of a tensor \"\" has 0 bytes, expected 1 to 63"},
        {{{long_name, t, NULL, NULL}, B},
         {S},
         MICA_ERR_ARGUMENT,
         A "the name of a tensor \"" N64 "\" has 64 bytes, expected 1 to 63"},
        {{{"a", t, NULL, NULL}, {"a", t, NULL, NULL}},
         {S},
         MICA_ERR_ARGUMENT,
         A "tensor \"a\" is given twice"},
        {{{"a", transposed, NULL, NULL}, B}, {S}, MICA_ERR_ARGUMENT, A "\"a\" [2, 2] is not contiguous"},
        {{{"a", none, NULL, NULL}, B}, {S}, MICA_ERR_ARGUMENT, A "\"a\" [2, 2] has no data (NULL)"},
        {{{"a", bytes, NULL, NULL}, B},
         {S},
         MICA_ERR_DTYPE,
         "dtype error: gguf_write: \"a\" [2, 2] is u8, which the format does not support"},
        {{{"a", empty, NULL, NULL}, B},
         {S},
         MICA_ERR_SHAPE,
         "shape error: gguf_write: \"a\" is [0, 2], expected 1 to 4 sizes, none of them 0"},
        {{{"a", scalar, NULL, NULL}, B},
         {S},
         MICA_ERR_SHAPE,
         "shape error: gguf_write: \"a\" is [], expected 1 to 4 sizes, none of them 0"},
        {{{"a", t, NULL, NULL}, {"b", t, refuse_rows, NULL}}, {S}, MICA_ERR_SHAPE, NULL},
        {{{"a", t, NULL, NULL}, B}, {{"b", {0}}, Z}, MICA_ERR_ARGUMENT, A "setting \"b\" is given twice"},
        {{{"a", t, NULL, NULL}, B},
         {{"", {0}}, Z},
         MICA_ERR_ARGUMENT,
         A "the key of a setting \"\" has 0 bytes, expected 1 to 65535"},
        {{{"a", t, NULL, NULL}, B},
         {{"a", {.kind = MICA_GGUF_U8, .u = 256}}, Z},
         MICA_ERR_ARGUMENT,
         A "setting \"a\": the value does not fit u8"},
        {{{"a", t, NULL, NULL}, B},
         {{"a", {.kind = MICA_GGUF_I16, .i = -32769}}, Z},
         MICA_ERR_ARGUMENT,
         A "setting \"a\": the value does not fit i16"},
        {{{"a", t, NULL, NULL}, B},
         {{"a", {.kind = MICA_GGUF_BOOL, .u = 2}}, Z},
         MICA_ERR_ARGUMENT,
         A "setting \"a\": the value does not fit bool"},
        {{{"a", t, NULL, NULL}, B},
         {{"a", {.kind = (mica_gguf_kind)14}}, Z},
         MICA_ERR_ARGUMENT,
         A "setting \"a\" has unknown kind 14"},
        {{{"a", t, NULL, NULL}, B},
         {{"a", {.kind = MICA_GGUF_STRING, .text = {NULL, 1}}}, Z},
         MICA_ERR_ARGUMENT,
         A "setting \"a\" has no bytes (NULL)"},
        {{{"a", t, NULL, NULL}, B},
         {{"a", {.kind = MICA_GGUF_ARRAY, .array = {MICA_GGUF_ARRAY, 0, NULL, 0}}}, Z},
         MICA_ERR_ARGUMENT,
         A "setting \"a\": an array's elements cannot be of kind 9"},
        {{{"a", t, NULL, NULL}, B},
         {{"a", {.kind = MICA_GGUF_ARRAY, .array = {MICA_GGUF_U32, 1, (const unsigned char *)data, 8}}}, Z},
         MICA_ERR_FORMAT,
         "format error: \"the array\": byte 4: setting \"a\": its elements end here, the array has 8 bytes"},
        {{{"a", t, NULL, NULL}, B},
         {{"general.alignment", {.kind = MICA_GGUF_U32, .u = 4}}, Z},
         MICA_ERR_ARGUMENT,
         A "general.alignment must be a u32, a power of two from 8 to 1048576"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mica_gguf_write_opts opts = {.settings = bad[i].settings, .setting_count = 2, .piece = 8};
        mica_status status = mica_gguf_write(ctx, path, bad[i].tensors, 2, &opts);
        if (bad[i].error != NULL)
            CHECK_ERROR(ctx, status, bad[i].status, bad[i].error);
        CHECK(status != MICA_OK && scratch_count(&s) == 0);
    }
    CHECK_ERROR(ctx, mica_gguf_write(ctx, NULL, NULL, 0, NULL), MICA_ERR_ARGUMENT, A "path is NULL");
    CHECK_ERROR(ctx, mica_gguf_write(ctx, path, NULL, 1, NULL), MICA_ERR_ARGUMENT, A "tensors is NULL");
    scratch_remove(&s);
}

static mica_status write_some(const mica_allocator *allocator, void *argument)
{
    mica_context *ctx;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    static float data[4];
    mica_gguf_new_tensor tensor = {"a", mica_2d(NULL, 2, 2), make_rows, data};
    status = mica_gguf_write(ctx, argument, &tensor, 1, NULL);
    mica_context_destroy(ctx);
    return status;
}

TEST(gguf_writing_survives_out_of_memory)
{
    scratch s = scratch_make();
    char path[300];
    (void)snprintf(path, sizeof path, "%s", scratch_path(&s, "x.gguf"));
    CHECK(test_oom(write_some, path) >= 3);
    CHECK(scratch_count(&s) == 1);
    scratch_remove(&s);
}

/* ---- Files that cannot be mapped ---- */

TEST(gguf_opens_only_files)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    mica_gguf *file = NULL;
    char text[600];
    const char *path = scratch_path(&s, "empty.gguf");
    scratch_write(path, "", 0);
    (void)snprintf(text, sizeof text, "format error: \"%s\": the file is empty", path);
    CHECK_ERROR(ctx, mica_gguf_open(ctx, &file, path), MICA_ERR_FORMAT, text);
    (void)snprintf(text, sizeof text, "file error: \"%s\": not a regular file", s.folder);
    CHECK_ERROR(ctx, mica_gguf_open(ctx, &file, s.folder), MICA_ERR_IO, text);
    path = scratch_path(&s, "none.gguf");
    (void)snprintf(text, sizeof text, "file error: \"%s\": cannot open: No such file or directory", path);
    CHECK_ERROR(ctx, mica_gguf_open(ctx, &file, path), MICA_ERR_IO, text);
    CHECK(file == NULL);
    scratch_remove(&s);
}
