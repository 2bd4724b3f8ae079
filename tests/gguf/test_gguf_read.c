/* Reading GGUF files that are sound. */
#include <stdlib.h>
#include <string.h>

#include "gguf/build.h"
#include "oom.h"
#include "test.h"

static mica_gguf_value find(const mica_gguf *file, const char *key, mica_gguf_kind kind)
{
    mica_gguf_value value = {0};
    CHECK_MSG(mica_gguf_find(file, &value, key) && value.kind == kind, "%s", key);
    return value;
}

static bool text_is(mica_gguf_text text, const char *string)
{
    return text.length == strlen(string) && memcmp(text.bytes, string, text.length) == 0;
}

static void check_numbers(const mica_gguf *file)
{
    CHECK(find(file, "a.u8", MICA_GGUF_U8).u == 200);
    CHECK(find(file, "a.i8", MICA_GGUF_I8).i == -100);
    CHECK(find(file, "a.u16", MICA_GGUF_U16).u == 60000);
    CHECK(find(file, "a.i16", MICA_GGUF_I16).i == -30000);
    CHECK(find(file, "a.u32", MICA_GGUF_U32).u == 4000000000u);
    CHECK(find(file, "a.i32", MICA_GGUF_I32).i == -2000000000);
    CHECK(find(file, "a.f32", MICA_GGUF_F32).f == 1.5);
    CHECK(find(file, "a.bool", MICA_GGUF_BOOL).u == 1);
    CHECK(find(file, "a.u64", MICA_GGUF_U64).u == UINT64_MAX);
    CHECK(find(file, "a.i64", MICA_GGUF_I64).i == INT64_MIN);
    CHECK(find(file, "a.f64", MICA_GGUF_F64).f == -2.5);
}

static void check_elements(const mica_gguf *file)
{
    double number = 0.0;
    int64_t integer = 0;
    mica_gguf_value value = find(file, "tokenizer.ggml.token_type", MICA_GGUF_ARRAY);
    CHECK(mica_gguf_integer_at(&value, &integer, 0) && integer == -1);
    CHECK(mica_gguf_number_at(&value, &number, 2) && number == 2.0);
    CHECK(!mica_gguf_number_at(&value, &number, 3) && !mica_gguf_integer_at(&value, &integer, 3));
    value = find(file, "a.windows", MICA_GGUF_ARRAY);
    CHECK(mica_gguf_integer_at(&value, &integer, 0) && integer == 1);
    CHECK(mica_gguf_integer_at(&value, &integer, 1) && integer == 0);
    value = find(file, "a.u64", MICA_GGUF_U64); /* a number counts as one of one, if it fits */
    CHECK(mica_gguf_number_at(&value, &number, 0) && number == 18446744073709551616.0);
    CHECK(!mica_gguf_integer_at(&value, &integer, 0) && !mica_gguf_number_at(&value, &number, 1));
    value = find(file, "a.f32", MICA_GGUF_F32);
    CHECK(!mica_gguf_integer_at(&value, &integer, 0));
    value = find(file, "general.architecture", MICA_GGUF_STRING);
    CHECK(text_is(value.text, "llama") && !mica_gguf_number_at(&value, &number, 0));

    mica_gguf_text text;
    size_t at = 0;
    CHECK(!mica_gguf_next_text(&value, &text, &at));
    value = find(file, "tokenizer.ggml.tokens", MICA_GGUF_ARRAY);
    CHECK(value.array.count == 3 && !mica_gguf_number_at(&value, &number, 0));
    CHECK(mica_gguf_next_text(&value, &text, &at) && text_is(text, "<s>"));
    CHECK(mica_gguf_next_text(&value, &text, &at) && text_is(text, ""));
    CHECK(mica_gguf_next_text(&value, &text, &at) && text_is(text, "\xe2\x96\x81the"));
    CHECK(!mica_gguf_next_text(&value, &text, &at));
}

static void check_tensors(mica_context *ctx, const mica_gguf *file, const unsigned char *data)
{
    static const struct {
        const char *name;
        mica_dtype dtype;
        int rank;
        mica_index dim[2];
        size_t offset;
    } wanted[] = {
        {"token_embd.weight", MICA_Q8_0, 2, {3, 32}, 0},
        {"blk.0.attn_q.weight", MICA_Q4_1, 2, {2, 32}, 256},
        {"blk.0.attn_k.weight", MICA_F16, 2, {2, 3}, 128},
        {"output_norm.weight", MICA_F32, 1, {5, 0}, 192},
    };
    CHECK(mica_gguf_tensors(file) == 4);
    for (size_t i = 0; i < 4; i++) {
        mica_gguf_text name;
        mica_tensor t = {0}, found = {0};
        CHECK_OK(ctx, mica_gguf_tensor(file, &name, &t, i));
        CHECK(text_is(name, wanted[i].name) && t.dtype == wanted[i].dtype && t.rank == wanted[i].rank);
        CHECK(memcmp(t.dim, wanted[i].dim, (size_t)t.rank * sizeof *t.dim) == 0 &&
              mica_tensor_contiguous(&t));
        CHECK(t.data == data + wanted[i].offset);
        CHECK(mica_gguf_find_tensor(file, &found, wanted[i].name) && found.data == t.data);
    }
    mica_tensor none;
    CHECK(!mica_gguf_find_tensor(file, &none, "output") && !mica_gguf_find_tensor(file, &none, ""));
}

TEST(gguf_reads_settings_and_tensors)
{
    mica_context *ctx = test_context(1);
    for (uint32_t version = 2; version <= 3; version++) {
        gguf_bytes b = gguf_sound(version);
        mica_gguf *file = NULL;
        REQUIRE(CHECK_OK(ctx, mica_gguf_over(ctx, &file, b.bytes, b.size, "test.gguf")));
        CHECK(mica_gguf_settings(file) == 16);
        check_numbers(file);
        check_elements(file);
        check_tensors(ctx, file, b.bytes + b.size - 296);
        mica_gguf_text key;
        mica_gguf_value value;
        mica_tensor t;
        CHECK_OK(ctx, mica_gguf_setting(file, &key, &value, 0));
        CHECK(text_is(key, "a.u8") && value.u == 200);
        CHECK(!mica_gguf_find(file, &value, "a") && !mica_gguf_find(file, &value, "a.u8 "));
        CHECK_ERROR(ctx, mica_gguf_setting(file, &key, &value, 16), MICA_ERR_ARGUMENT,
                    "argument error: \"test.gguf\": no setting 16: there are 16");
        CHECK_ERROR(ctx, mica_gguf_tensor(file, &key, &t, 4), MICA_ERR_ARGUMENT,
                    "argument error: \"test.gguf\": no tensor 4: there are 4");
        mica_gguf_close(file);
        gguf_free(&b);
    }
    mica_gguf_close(NULL);
}

/* What follows the last tensor is nobody's, and without tensors there need be no padding. */
TEST(gguf_ends_need_not_be_exact)
{
    mica_context *ctx = test_context(1);
    gguf_bytes b = gguf_sound(3);
    mica_gguf *file = NULL;
    gguf_string(&b, "more");
    CHECK_OK(ctx, mica_gguf_over(ctx, &file, b.bytes, b.size, "long.gguf"));
    mica_gguf_close(file);
    gguf_free(&b);
    gguf_start(&b, 3, 0, 1);
    gguf_key(&b, "general.alignment", 4);
    gguf_number(&b, 4096, 4);
    CHECK_OK(ctx, mica_gguf_over(ctx, &file, b.bytes, b.size, "short.gguf"));
    CHECK(mica_gguf_tensors(file) == 0 && mica_gguf_settings(file) == 1);
    mica_gguf_close(file);
    gguf_free(&b);
}

TEST(gguf_types_go_both_ways)
{
    int known = 0;
    for (uint32_t type = 0; type < 100; type++) {
        mica_dtype dtype = mica_gguf_dtype(type);
        known += dtype != MICA_DTYPE_COUNT;
        CHECK(dtype == MICA_DTYPE_COUNT || mica_gguf_type(dtype) == (int)type);
    }
    /* Unsigned and small types, from u8 on, have no number there. */
    CHECK(known == MICA_U8 + MICA_DTYPE_COUNT - MICA_Q4_0 && mica_gguf_type(MICA_U8) == -1);
    CHECK(mica_gguf_type(MICA_DTYPE_COUNT) == -1 && mica_gguf_dtype(UINT32_MAX) == MICA_DTYPE_COUNT);
    CHECK(mica_gguf_type(MICA_Q4_K) == 12 && mica_gguf_type(MICA_BF16) == 30);
    CHECK(strcmp(mica_gguf_kind_name(MICA_GGUF_U32), "u32") == 0);
    CHECK(strcmp(mica_gguf_kind_name(MICA_GGUF_KIND_COUNT), "invalid") == 0);
}

/* A file of many settings, in the worst of orders: looked up and checked for duplicates in no time. */
TEST(gguf_many_keys_take_no_time)
{
    mica_context *ctx = test_context(1);
    enum { MANY = 200000 };
    gguf_bytes b = {0};
    gguf_start(&b, 3, 0, MANY);
    for (unsigned i = MANY; i-- > 0;) {
        char key[16];
        for (int k = 0; k < 8; k++)
            key[k] = (char)('a' + (i >> (4 * (7 - k)) & 15));
        key[8] = '\0';
        gguf_key(&b, key, 4);
        gguf_number(&b, i, 4);
    }
    mica_gguf *file = NULL;
    REQUIRE(CHECK_OK(ctx, mica_gguf_over(ctx, &file, b.bytes, b.size, "many.gguf")));
    mica_gguf_value value;
    CHECK(mica_gguf_find(file, &value, "aaaadana") && value.u == 0x30d0);
    CHECK(!mica_gguf_find(file, &value, "aapaaaaa"));
    mica_gguf_close(file);
    gguf_free(&b);
}

static mica_status open_all(const mica_allocator *allocator, void *argument)
{
    const gguf_bytes *b = argument;
    mica_context *ctx;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    mica_gguf *file = NULL;
    status = mica_gguf_over(ctx, &file, b->bytes, b->size, "test.gguf");
    CHECK((status == MICA_OK) == (file != NULL));
    mica_gguf_close(file);
    mica_context_destroy(ctx);
    return status;
}

TEST(gguf_opening_survives_out_of_memory)
{
    gguf_bytes b = gguf_sound(3);
    CHECK(test_oom(open_all, &b) >= 2);
    gguf_free(&b);
}
