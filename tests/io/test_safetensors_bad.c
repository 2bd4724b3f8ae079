/* Safetensors files that are not: every rule of the format broken on purpose, every truncation, bit flips. */
#include <stdlib.h>
#include <string.h>

#include "io/scratch.h"
#include "test.h"

/* A file of this header and so many bytes of data. */
static unsigned char *make(const char *header, size_t data, size_t *count)
{
    size_t length = strlen(header);
    unsigned char *bytes = calloc(8 + length + data + 1, 1);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)length >> (8 * i));
    memcpy(bytes + 8, header, length + 1);
    *count = 8 + length + data;
    return bytes;
}

TEST(safetensors_names_what_is_wrong)
{
    mica_context *ctx = test_context(1);
#define W   "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
#define M   "format error: \"memory\": byte "
#define OFF "\"data_offsets\":"
    static const struct {
        const char *header;
        size_t data;
        const char *error;
    } bad[] = {
        {"", 0, M "8: the header does not start with {"},
        {" {}", 0, M "8: the header does not start with {"},
        {"[]", 0, M "8: the header does not start with {"},
        {"{} x", 0, M "11: bytes after the value"},
        {"{" W ",}", 8, M "62: expected a key in quotes"},
        {"{" W "}", 7, M "55: tensor \"w\": data_offsets [0, 8] exceed the 7 bytes of data"},
        {"{" W "}", 9, M "70: the tensors end here, but the file has 71"},
        {"{" W "," W "}", 8, M "62: duplicate tensor \"w\""},
        {"{" W ",\"\\u0077\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}", 16,
         M "62: duplicate tensor \"w\""},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
         M "9: tensor \"w\" [3] of F32 takes 12 bytes, its data_offsets give 8"},
        {"{\"w\":{\"dtype\":\"F33\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
         M "22: tensor \"w\" has unknown dtype \"F33\""},
        {"{\"w\":{\"dtype\":1,\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
         M "22: dtype of \"w\" is a number, expected a string"},
        {"{\"w\":{\"shape\":[3],\"data_offsets\":[0,8]}}", 8, M "46: tensor \"w\" has no dtype"},
        {"{\"w\":{\"shape\":[3],\"shape\":[0,8]}}", 8, M "26: tensor \"w\" has a duplicate field \"shape\""},
        {"{\"w\":{\"stride\":[3]}}", 8, M "14: tensor \"w\" has an unknown field \"stride\""},
        {"{\"w\":[]}", 0, M "13: the value of \"w\" is an array, expected an object"},
        {"{\"w\":{\"shape\":[-1]}}", 0, M "23: tensor \"w\": invalid size in the shape"},
        {"{\"w\":{\"shape\":[1.0]}}", 0, M "23: tensor \"w\": invalid size in the shape"},
        {"{\"w\":{\"shape\":[[1]]}}", 0, M "23: tensor \"w\": invalid size in the shape"},
        {"{\"w\":{\"shape\":[9223372036854775808]}}", 0, M "23: tensor \"w\": invalid size in the shape"},
        {"{\"w\":{\"shape\":[1,1,1,1,1,1,1,1,1]}}", 0, M "39: tensor \"w\" has more than 8 dimensions"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         M "9: tensor \"w\" [4294967296, 4294967296] of F32 is too large for memory"},
        {"{\"w\":{" OFF "[8,0]}}", 8, M "29: tensor \"w\": data_offsets [8, 0] exceed the 8 bytes of data"},
        {"{\"w\":{" OFF "[0]}}", 8, M "31: tensor \"w\": data_offsets must be two integers"},
        {"{\"w\":{" OFF "[0,8,9]}}", 8,
         M "34: what follows the data_offsets of \"w\" is a number, expected the end of an array"},
        {"{\"w\":{" OFF "[0,18446744073709551616]}}", 8,
         M "32: tensor \"w\": data_offsets must be two integers"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}",
         5, M "116: tensor \"b\" starts here, which leaves a hole after byte 115"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         3, M "114: tensor \"b\" starts here, but the previous tensor ends at byte 115"},
        {"{\"__metadata__\":{\"a\":1}}", 0, M "29: the metadata of \"a\" is a number, expected a string"},
        {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, M "33: duplicate metadata key \"a\""},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, M "27: __metadata__ is duplicated"},
        {"{\"__metadata__\":[]}", 0, M "24: the value of \"__metadata__\" is an array, expected an object"},
        {"{\"a\\u0000b\":{}}", 0, M "9: \"a\\x00b\" holds a NUL"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t count;
        unsigned char *bytes = make(bad[i].header, bad[i].data, &count);
        mica_safetensors *file = NULL;
        CHECK_ERROR(ctx, mica_safetensors_open_memory(ctx, &file, bytes, count), MICA_ERR_FORMAT,
                    bad[i].error);
        CHECK(file == NULL);
        mica_safetensors_close(ctx, file);
        free(bytes);
    }
}

TEST(safetensors_header_lengths_are_not_believed)
{
    mica_context *ctx = test_context(1);
    mica_safetensors *file = NULL;
    unsigned char bytes[10] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    CHECK_ERROR(ctx, mica_safetensors_open_memory(ctx, &file, bytes, 10), MICA_ERR_FORMAT,
                M "0: the header has 3 bytes, expected at most 2");
    memset(bytes, 0xff, 8);
    CHECK_ERROR(ctx, mica_safetensors_open_memory(ctx, &file, bytes, 10), MICA_ERR_FORMAT,
                M "0: the header has 18446744073709551615 bytes, expected at most 2");
    CHECK_ERROR(ctx, mica_safetensors_open_memory(ctx, &file, NULL, 0), MICA_ERR_FORMAT,
                M "0: the header length takes 8 bytes, the file has 0");
    CHECK(file == NULL);
}

/* Whatever it says: either an error, or a file that can be read from end to end. */
static bool open_and_read(mica_context *ctx, const unsigned char *bytes, size_t count)
{
    /* A copy of exactly this size, so that the sanitizer sees every step beyond it. */
    unsigned char *copy = malloc(count);
    memcpy(copy, bytes, count);
    mica_safetensors *file = NULL;
    mica_status status = mica_safetensors_open_memory(ctx, &file, copy, count);
    CHECK(status == MICA_OK || (status == MICA_ERR_FORMAT && file == NULL));
    CHECK(status == MICA_OK || strstr(mica_error(ctx), "\"memory\": byte ") != NULL);
    for (size_t i = 0; status == MICA_OK && i < mica_safetensors_count(file); i++) {
        const mica_safetensors_entry *entry = mica_safetensors_at(file, i);
        char data[256];
        if (!entry->readable || entry->bytes > sizeof data)
            continue;
        mica_named_tensor in = {entry->name, {0}};
        CHECK_OK(ctx, mica_tensor_init(ctx, &in.tensor, data, entry->dtype, entry->rank, entry->dim));
        CHECK_OK(ctx, mica_safetensors_read(ctx, &in, 1, file));
    }
    mica_safetensors_close(ctx, file);
    free(copy);
    return status == MICA_OK;
}

TEST(safetensors_every_truncation_is_an_error)
{
    mica_context *ctx = test_context(1);
    size_t count;
    unsigned char *bytes = scratch_read(MICA_TEST_DATA "/safetensors/dtypes.safetensors", &count);
    REQUIRE(bytes != NULL);
    for (size_t n = 1; n < count; n++)
        CHECK_MSG(!open_and_read(ctx, bytes, n), "%zu of %zu bytes", n, count);
    CHECK(open_and_read(ctx, bytes, count));
    free(bytes);
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
}

TEST(safetensors_mutations_give_clean_errors)
{
    mica_context *ctx = test_context(1);
    size_t count, survived = 0;
    unsigned char *bytes = scratch_read(MICA_TEST_DATA "/safetensors/dtypes.safetensors", &count);
    REQUIRE(bytes != NULL);
    size_t header = 8 + (bytes[0] | (size_t)bytes[1] << 8);
    for (size_t at = 0; at < header; at++) { /* every bit of the header */
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (unsigned char)(1 << bit);
            survived += open_and_read(ctx, bytes, count);
            bytes[at] ^= (unsigned char)(1 << bit);
        }
    }
    CHECK(survived < header); /* letters of names, mostly */
    test_random r = test_seed(1);
    for (int round = 0; round < 500; round++) { /* several bytes at once, and lengths */
        unsigned char *copy = malloc(count);
        memcpy(copy, bytes, count);
        for (int k = test_int(&r, 1, 4); k > 0; k--)
            copy[test_int(&r, 0, (int)header - 1)] =
                (unsigned char)"0123456789[]{},:\"\\x"[test_int(&r, 0, 18)];
        (void)open_and_read(ctx, copy, (size_t)test_int(&r, (int)header, (int)count));
        (void)open_and_read(ctx, copy, count);
        free(copy);
    }
    free(bytes);
}
