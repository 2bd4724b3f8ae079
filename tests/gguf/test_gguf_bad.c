/* GGUF files that are not: every rule of the format broken on purpose, every truncation, random changes. */
#include <stdlib.h>
#include <string.h>

#include "gguf/build.h"
#include "test.h"

#define M "format error: \"bad.gguf\": byte "

static void check_bad(mica_context *ctx, gguf_bytes *b, const char *error, int line)
{
    mica_gguf *file = (mica_gguf *)b;
    mica_status got = mica_gguf_over(ctx, &file, b->bytes, b->size, "bad.gguf");
    (void)test_error(ctx, got, MICA_ERR_FORMAT, error, __FILE__, line);
    CHECK(file == NULL);
    gguf_free(b);
}
#define BAD(b, error) check_bad(ctx, &(b), M error, __LINE__)

TEST(gguf_start_is_checked)
{
    mica_context *ctx = test_context(1);
    gguf_bytes b = {0};
    gguf_put(&b, "GGUF", 4);
    BAD(b, "0: the start of a GGUF file takes 24 bytes, 4 are left");
    gguf_start(&b, 3, 0, 0);
    memcpy(b.bytes, "GGML", 4);
    BAD(b, "0: no GGUF file: it begins with \"GGML\", expected \"GGUF\"");
    gguf_start(&b, 3, 0, 0);
    memcpy(b.bytes, "FUGG", 4);
    BAD(b, "0: a big-endian file (\"FUGG\"): only little-endian ones can be read");
    gguf_start(&b, 0x03000000, 0, 0);
    BAD(b, "4: a big-endian file (version 3 with its bytes reversed): only little-endian ones can be read");
    gguf_start(&b, 1, 0, 0);
    BAD(b, "4: version 1, expected 2 or 3");
    gguf_start(&b, 0, 0, 0);
    BAD(b, "4: version 0, expected 2 or 3");
    gguf_start(&b, 4, 0, 0);
    BAD(b, "4: version 4, expected 2 or 3");
}

/* Counts that are not believed: nothing is allocated on their word, and nothing goes round for ever. The file of 43
 * bytes is one that hangs other readers. */
TEST(gguf_counts_are_not_believed)
{
    mica_context *ctx = test_context(1);
    gguf_bytes b = {0};
    gguf_start(&b, 3, 0, UINT64_MAX);
    BAD(b, "24: the length of a string takes 8 bytes, 0 are left");
    gguf_start(&b, 3, UINT64_MAX, 0);
    BAD(b, "24: the length of a string takes 8 bytes, 0 are left");
    gguf_start(&b, 3, 0, 1);
    gguf_number(&b, UINT64_MAX, 8);
    BAD(b, "32: the key of a setting takes 18446744073709551615 bytes, 0 are left");
    gguf_start(&b, 3, 0, 1);
    gguf_key(&b, "a", 9);
    gguf_number(&b, 0, 4);
    gguf_number(&b, UINT64_MAX, 2);
    CHECK(b.size == 43);
    BAD(b, "41: the length of an array takes 8 bytes, 2 are left");
    static const struct {
        uint32_t kind;
        uint64_t count;
        const char *error;
    } arrays[] = {
        {0, UINT64_MAX,
         M "49: setting \"a\": an array of 18446744073709551615 elements (u8) does not fit the 3 bytes left"},
        {10, (uint64_t)1 << 61,
         M "49: setting \"a\": an array of 2305843009213693952 elements (u64) does not fit the 3 bytes left"},
        {8, (uint64_t)1 << 60,
         M
         "49: setting \"a\": an array of 1152921504606846976 elements (string) does not fit the 3 bytes left"},
        {4, 1, M "49: setting \"a\": an array of 1 elements (u32) does not fit the 3 bytes left"},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        gguf_start(&b, 3, 0, 1);
        gguf_key(&b, "a", 9);
        gguf_number(&b, arrays[i].kind, 4);
        gguf_number(&b, arrays[i].count, 8);
        gguf_number(&b, 0, 3);
        check_bad(ctx, &b, arrays[i].error, __LINE__);
    }
}

TEST(gguf_settings_are_checked)
{
    mica_context *ctx = test_context(1);
    gguf_bytes b = {0};
    gguf_start(&b, 3, 0, 1);
    gguf_key(&b, "", 4);
    gguf_number(&b, 0, 4);
    BAD(b, "24: the key of a setting is empty");
    gguf_start(&b, 3, 0, 1);
    gguf_number(&b, 3, 8);
    gguf_put(&b, "a\0b", 3);
    gguf_number(&b, 4, 8);
    BAD(b, "24: the key of a setting \"a\\x00b\" holds a NUL");
    gguf_start(&b, 3, 0, 1);
    gguf_number(&b, 65536, 8);
    for (int i = 0; i < 65536; i++)
        gguf_put(&b, "k", 1);
#define K46 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
    BAD(b, "24: the key of a setting \"" K46 "..." K46 "\" has 65536 bytes, expected at most 65535");
    gguf_start(&b, 3, 0, 1);
    gguf_key(&b, "a", 13);
    BAD(b, "33: setting \"a\" has unknown kind 13");
    gguf_start(&b, 3, 0, 1);
    gguf_key(&b, "a", 9);
    gguf_number(&b, 13, 4);
    BAD(b, "37: setting \"a\" has unknown kind 13");
    gguf_start(&b, 3, 0, 1);
    gguf_key(&b, "a", 9);
    gguf_number(&b, 9, 4);
    BAD(b, "37: setting \"a\" is an array of arrays, which is not supported");
    gguf_start(&b, 3, 0, 1);
    gguf_key(&b, "a", 7);
    gguf_number(&b, 2, 1);
    BAD(b, "37: setting \"a\": a bool is 2, expected 0 or 1");
    gguf_start(&b, 3, 0, 1);
    gguf_key(&b, "a", 9);
    gguf_number(&b, 7, 4);
    gguf_number(&b, 3, 8);
    gguf_number(&b, 0xff0001, 3);
    BAD(b, "51: setting \"a\": a bool is 255, expected 0 or 1");
    gguf_start(&b, 3, 0, 2);
    for (int i = 0; i < 2; i++) {
        gguf_key(&b, "a", 0);
        gguf_number(&b, (uint64_t)i, 1);
    }
    BAD(b, "46: duplicate setting \"a\"");
    gguf_start(&b, 3, 0, 1);
    gguf_key(&b, "a", 9);
    gguf_number(&b, 8, 4);
    gguf_number(&b, 1, 8);
    gguf_number(&b, 5, 8);
    gguf_put(&b, "four", 4);
    BAD(b, "57: a string of an array takes 5 bytes, 4 are left");
}

TEST(gguf_alignments_are_checked)
{
    mica_context *ctx = test_context(1);
    static const struct {
        uint64_t alignment;
        const char *error;
    } alignments[] = {
        {0, M "49: general.alignment is 0, expected a power of two from 8 to 1048576"},
        {1, M "49: general.alignment is 1, expected a power of two from 8 to 1048576"},
        {48, M "49: general.alignment is 48, expected a power of two from 8 to 1048576"},
        {(uint64_t)1 << 31,
         M "49: general.alignment is 2147483648, expected a power of two from 8 to 1048576"},
    };
    gguf_bytes b = {0};
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++) {
        gguf_start(&b, 3, 0, 1);
        gguf_key(&b, "general.alignment", 4);
        gguf_number(&b, alignments[i].alignment, 4);
        check_bad(ctx, &b, alignments[i].error, __LINE__);
    }
    gguf_start(&b, 3, 0, 1);
    gguf_key(&b, "general.alignment", 10);
    gguf_number(&b, 32, 8);
    BAD(b, "49: general.alignment is of kind u64, expected u32");
}

/* A file of one tensor of this description, with so many bytes of data. */
typedef struct one {
    const char *name;
    uint32_t rank;
    uint64_t sizes[4];
    uint32_t type;
    uint64_t offset;
    size_t data;
    const char *error;
} one;

TEST(gguf_tensors_are_checked)
{
    mica_context *ctx = test_context(1);
#define N64 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl"
    static const char long_name[] = N64;
    static const one ones[] = {
        {"", 1, {1}, 0, 0, 4, M "24: the name of a tensor is empty"},
        {long_name,
         1,
         {1},
         0,
         0,
         4,
         M "24: the name of a tensor \"" N64 "\" has 64 bytes, expected at most 63"},
        {"w", 0, {0}, 0, 0, 4, M "33: tensor \"w\" has 0 dimensions, expected 1 to 4"},
        {"w", 5, {1, 1, 1, 1}, 0, 0, 4, M "33: tensor \"w\" has 5 dimensions, expected 1 to 4"},
        {"w", UINT32_MAX, {1}, 0, 0, 4, M "33: tensor \"w\" has 4294967295 dimensions, expected 1 to 4"},
        {"w", 2, {2, 0}, 0, 0, 4, M "45: tensor \"w\": dimension 1 is 0"},
        {"w", 1, {UINT64_MAX}, 0, 0, 4, M "37: tensor \"w\" has too many elements for memory"},
        {"w",
         2,
         {(uint64_t)1 << 32, (uint64_t)1 << 31},
         0,
         0,
         4,
         M "45: tensor \"w\" has too many elements for memory"},
        {"w",
         4,
         {65536, 65536, 65536, 65536},
         0,
         0,
         4,
         M "61: tensor \"w\" has too many elements for memory"},
        {"w",
         2,
         {(uint64_t)1 << 31, (uint64_t)1 << 31},
         0,
         0,
         4,
         M "53: tensor \"w\" has too many elements for memory"},
        {"w", 1, {32}, 4, 0, 4, M "45: tensor \"w\" has type 4 (unknown), which is not supported"},
        {"w", 1, {256}, 16, 0, 4, M "45: tensor \"w\" has type 16 (IQ2_XXS), which is not supported"},
        {"w",
         1,
         {256},
         UINT32_MAX,
         0,
         4,
         M "45: tensor \"w\" has type 4294967295 (unknown), which is not supported"},
        {"w",
         1,
         {33},
         2,
         0,
         36,
         M "45: tensor \"w\": its rows have 33 values, expected a multiple of 32 (Q4_0)"},
        {"w",
         2,
         {128, 2},
         12,
         0,
         144,
         M "53: tensor \"w\": its rows have 128 values, expected a multiple of 256 (Q4_K)"},
        {"w", 1, {1}, 0, 4, 8, M "49: tensor \"w\": its offset 4 is not a multiple of the alignment 32"},
        {"w",
         1,
         {1},
         0,
         32,
         32,
         M "49: tensor \"w\" takes 4 bytes from byte 32 of the data on, but the data have 32"},
        {"w",
         1,
         {1},
         0,
         UINT64_MAX - 31,
         32,
         M
         "49: tensor \"w\" takes 4 bytes from byte 18446744073709551584 of the data on, but the data have 32"},
        {"w",
         1,
         {9},
         0,
         0,
         32,
         M "49: tensor \"w\" takes 36 bytes from byte 0 of the data on, but the data have 32"},
        {"w",
         1,
         {(uint64_t)1 << 40},
         0,
         0,
         32,
         M "49: tensor \"w\" takes 4398046511104 bytes from byte 0 of the data on, but the data have 32"},
    };
    for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++) {
        gguf_bytes b = {0};
        gguf_start(&b, 3, 1, 0);
        gguf_string(&b, ones[i].name);
        gguf_number(&b, ones[i].rank, 4);
        for (uint32_t k = 0; k < ones[i].rank && k < 4; k++)
            gguf_number(&b, ones[i].sizes[k], 8);
        gguf_number(&b, ones[i].type, 4);
        gguf_number(&b, ones[i].offset, 8);
        gguf_pad(&b, 32);
        for (size_t k = 0; k < ones[i].data; k++)
            gguf_number(&b, 0, 1);
        check_bad(ctx, &b, ones[i].error, __LINE__);
    }
}

TEST(gguf_tensors_share_neither_names_nor_bytes)
{
    mica_context *ctx = test_context(1);
    gguf_bytes b = {0};
    gguf_start(&b, 3, 2, 0);
    gguf_tensor(&b, "a", 9, 1, 0, 0); /* 36 bytes */
    gguf_tensor(&b, "b", 1, 1, 0, 32);
    gguf_pad(&b, 32);
    for (int i = 0; i < 64; i++)
        gguf_number(&b, 0, 1);
    BAD(b, "160: tensor \"b\" begins here, within tensor \"a\"");
    gguf_start(&b, 3, 2, 0);
    gguf_tensor(&b, "a", 1, 1, 0, 0);
    gguf_tensor(&b, "a", 1, 1, 0, 32);
    gguf_pad(&b, 32);
    for (int i = 0; i < 64; i++)
        gguf_number(&b, 0, 1);
    BAD(b, "73: duplicate tensor \"a\"");
}

TEST(gguf_arguments_are_checked)
{
    mica_context *ctx = test_context(1);
    _Alignas(32) static const char bytes[64];
    mica_gguf *file = NULL;
    CHECK_ERROR(ctx, mica_gguf_open(ctx, NULL, "x"), MICA_ERR_ARGUMENT,
                "argument error: gguf_open: out is NULL");
    CHECK_ERROR(ctx, mica_gguf_open(ctx, &file, NULL), MICA_ERR_ARGUMENT,
                "argument error: gguf_open: path is NULL");
    CHECK_ERROR(ctx, mica_gguf_over(ctx, NULL, bytes, 64, "x"), MICA_ERR_ARGUMENT,
                "argument error: gguf_over: out is NULL");
    CHECK_ERROR(ctx, mica_gguf_over(ctx, &file, NULL, 64, "x"), MICA_ERR_ARGUMENT,
                "argument error: gguf_over: bytes is NULL");
    CHECK_ERROR(ctx, mica_gguf_over(ctx, &file, bytes, 64, NULL), MICA_ERR_ARGUMENT,
                "argument error: gguf_over: name is NULL");
    CHECK_ERROR(ctx, mica_gguf_over(ctx, &file, bytes + 4, 60, "x"), MICA_ERR_ARGUMENT,
                "argument error: gguf_over: the bytes of \"x\" are not aligned to 8");
    CHECK_ERROR(ctx, mica_gguf_over(ctx, &file, NULL, 0, "x"), MICA_ERR_FORMAT,
                "format error: \"x\": byte 0: the start of a GGUF file takes 24 bytes, 0 are left");
}

/* Whatever the bytes are: an error that names a byte, or a file all of which can be read. */
static bool open_and_read(mica_context *ctx, const unsigned char *bytes, size_t size)
{
    /* A copy of exactly this size, so that the sanitizer sees every step beyond it. */
    unsigned char *copy = malloc(size > 0 ? size : 1);
    if (size > 0)
        memcpy(copy, bytes, size);
    mica_gguf *file = NULL;
    mica_status status = mica_gguf_over(ctx, &file, copy, size, "bad.gguf");
    CHECK((status == MICA_OK) == (file != NULL));
    CHECK_MSG(status == MICA_OK ||
                  (status == MICA_ERR_FORMAT && strstr(mica_error(ctx), M) == mica_error(ctx)),
              "%s", mica_error(ctx));
    volatile unsigned sum = 0; /* touches every byte */
    for (size_t i = 0; file != NULL && i < mica_gguf_tensors(file); i++) {
        mica_gguf_text name;
        mica_tensor t;
        CHECK_OK(ctx, mica_gguf_tensor(file, &name, &t, i));
        for (size_t k = 0; k < mica_tensor_bytes(&t); k++)
            sum += ((const unsigned char *)t.data)[k];
    }
    for (size_t i = 0; file != NULL && i < mica_gguf_settings(file); i++) {
        mica_gguf_text key, text;
        mica_gguf_value value;
        size_t at = 0;
        double number;
        CHECK_OK(ctx, mica_gguf_setting(file, &key, &value, i));
        while (mica_gguf_next_text(&value, &text, &at))
            sum += text.length > 0 ? (unsigned char)text.bytes[text.length - 1] : 0;
        for (size_t k = 0; mica_gguf_number_at(&value, &number, k); k++)
            sum += number > 0.0;
    }
    (void)sum;
    mica_gguf_close(file);
    free(copy);
    return status == MICA_OK;
}

TEST(gguf_every_truncation_is_an_error)
{
    mica_context *ctx = test_context(1);
    gguf_bytes b = gguf_sound(3);
    for (size_t n = 0; n < b.size; n++)
        CHECK_MSG(!open_and_read(ctx, b.bytes, n), "%zu of %zu bytes", n, b.size);
    CHECK(open_and_read(ctx, b.bytes, b.size));
    gguf_free(&b);
}

/* One to four changes each: bits, bytes, or eight bytes that are a size at its limits. */
TEST(gguf_mutations_give_clean_errors)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(71);
    gguf_bytes b = gguf_sound(3);
    unsigned char *changed = malloc(b.size);
    size_t header = b.size - 296;
    int opened = 0, refused = 0;
    for (int i = 0; i < test_effort(4000); i++) {
        memcpy(changed, b.bytes, b.size);
        for (int k = test_int(&r, 1, 4); k > 0; k--) {
            size_t at = (size_t)(test_next(&r) % header);
            static const uint64_t sizes[] = {0, 1, UINT64_MAX, INT64_MAX, (uint64_t)1 << 61, UINT32_MAX};
            switch (test_int(&r, 0, 2)) {
            case 0:
                changed[at] ^= (unsigned char)(1u << test_int(&r, 0, 7));
                break;
            case 1:
                changed[at] = (unsigned char)test_int(&r, 0, 255);
                break;
            default:
                if (at + 8 <= b.size)
                    memcpy(changed + at, &sizes[test_int(&r, 0, 5)], 8);
            }
        }
        if (open_and_read(ctx, changed, b.size))
            opened++;
        else
            refused++;
    }
    CHECK_MSG(opened > 0 && refused > 0, "%d opened, %d refused", opened, refused);
    free(changed);
    gguf_free(&b);
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
}
