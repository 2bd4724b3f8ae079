/* PGM and PPM images: every kind, and broken in every way. */
#include <stdio.h>
#include <string.h>

#include "oom.h"
#include "sample.h"
#include "test.h"

#define READ(ctx, got, text) sample_read(ctx, got, mica_netpbm_read, text, sizeof(text) - 1)

/* The image's bytes and sizes. */
static void check_image(mica_context *ctx, mica_loaded *got, mica_index channels, mica_index height,
                        mica_index width, const unsigned char *bytes)
{
    const mica_tensor *t = &got->tensor;
    if (CHECK(t->dtype == MICA_U8 && t->rank == 4 && t->dim[0] == 1 && t->dim[1] == channels &&
              t->dim[2] == height && t->dim[3] == width))
        CHECK(memcmp(t->data, bytes, (size_t)(channels * height * width)) == 0);
    mica_loaded_release(ctx, got);
}

TEST(netpbm_reads_every_kind)
{
    mica_context *ctx = test_context(1);
    mica_loaded got = {0};
    size_t live = mica_context_heap(ctx).live_bytes;
    static const unsigned char grey[] = {0, 127, 255, 7, 8, 9};
    REQUIRE(CHECK_OK(ctx, READ(ctx, &got, "P2\n# greys\n3 2\n255\n0 127 255\n7 8 9\n")));
    check_image(ctx, &got, 1, 2, 3, grey);
    REQUIRE(CHECK_OK(ctx, READ(ctx, &got, "P5 3 2 255 \0\x7f\xff\7\x8\x9")));
    check_image(ctx, &got, 1, 2, 3, grey);
    REQUIRE(CHECK_OK(ctx, READ(ctx, &got, "P5#a\n3#b\r2\t255\n\0\x7f\xff\7\x8\x9\n")));
    check_image(ctx, &got, 1, 2, 3, grey);
    /* red, green, blue of each pixel become planes */
    static const unsigned char planes[] = {1, 4, 2, 5, 3, 6};
    REQUIRE(CHECK_OK(ctx, READ(ctx, &got, "P3 2 1 255 1 2 3 4 5 6")));
    check_image(ctx, &got, 3, 1, 2, planes);
    REQUIRE(CHECK_OK(ctx, READ(ctx, &got, "P6\n2 1\n255\n\1\2\3\4\5\6")));
    check_image(ctx, &got, 3, 1, 2, planes);
    /* other ranges, rounded: 1/3 of 255 is 85, 0x8000 / 0xffff is 127.5.. */
    REQUIRE(CHECK_OK(ctx, READ(ctx, &got, "P5 4 1 3 \0\1\2\3")));
    check_image(ctx, &got, 1, 1, 4, (const unsigned char[]){0, 85, 170, 255});
    REQUIRE(CHECK_OK(ctx, READ(ctx, &got, "P5 3 1 65535 \0\0\x80\0\xff\xff")));
    check_image(ctx, &got, 1, 1, 3, (const unsigned char[]){0, 128, 255});
    REQUIRE(CHECK_OK(ctx, READ(ctx, &got, "P2 2 1 1000 500 1000")));
    check_image(ctx, &got, 1, 1, 2, (const unsigned char[]){128, 255});
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

TEST(netpbm_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    mica_loaded got = {0};
#define E                "format error: \"file\": byte "
#define BAD(text, error) CHECK_ERROR(ctx, READ(ctx, &got, text), MICA_ERR_FORMAT, E error)
    BAD("P4 2 2 \1\1", "0: not a PGM or PPM file of greys or colours (P2, P3, P5, P6)");
    BAD("P", "1: the file ends, 1 bytes short of a netpbm header");
    BAD("P5 x 2 255 ", "3: netpbm: expected the width");
    BAD("P5 2", "4: netpbm: expected the height");
    BAD("P5 0 2 255 ", "6: netpbm: invalid width or height");
    BAD("P5 8192 8193 255 ",
        "12: netpbm: an image of 8192 by 8193 pixels: expected at most 67108864 pixels in all");
    BAD("P5 99999999999 1 255 ", "12: netpbm: expected the width");
    BAD("P5 2147483647 2147483647 255 ",
        "24: netpbm: an image of 2147483647 by 2147483647 pixels: expected at most 67108864 pixels in all");
    BAD("P5 2 2 0 abcd", "8: netpbm: the largest sample is not from 1 to 65535");
    BAD("P5 2 2 65536 abcdabcd", "12: netpbm: the largest sample is not from 1 to 65535");
    BAD("P5 2 2 255 abc", "11: netpbm: the image is larger than the file can hold");
    BAD("P5 8000 8000 255 abc", "17: netpbm: the image is larger than the file can hold");
    BAD("P5 2 2 9 \1\2\3\xa", "13: netpbm: a sample is larger than the header says");
    BAD("P5 2 2 255 abcde", "15: netpbm: trailing bytes after the image");
    BAD("P2 2 1 255 1 256", "16: netpbm: a sample is larger than the header says");
    BAD("P2 2 1 255 1 -2", "13: netpbm: expected a sample");
    BAD("P2 2 1 255 1 #  ", "16: netpbm: expected a sample");
    BAD("P2 2 1 255 1 2 3", "15: netpbm: trailing bytes after the image");
#undef BAD
#undef E
}

/* Every shorter file is an error that leaves nothing, but for a text whose last number loses a digit. */
TEST(netpbm_truncations_are_errors)
{
    mica_context *ctx = test_context(1);
    static const char files[][40] = {"P6 2 2 255 abcdefghijkl", "P5 2 2 65535 abcdefgh", "P3 1 1 255 1 2 3"};
    static const size_t bytes[] = {23, 21, 16};
    size_t live = mica_context_heap(ctx).live_bytes;
    for (size_t f = 0; f < 3; f++) {
        mica_loaded got = {0};
        CHECK_OK(ctx, sample_read(ctx, &got, mica_image_read, files[f], bytes[f]));
        mica_loaded_release(ctx, &got);
        for (size_t n = 0; n < bytes[f]; n++)
            CHECK_MSG(sample_read(ctx, &got, mica_image_read, files[f], n) == MICA_ERR_FORMAT &&
                          got.tensor.data == NULL,
                      "%s of %zu bytes", files[f], n);
    }
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

TEST(image_kind_is_told_by_content)
{
    mica_context *ctx = test_context(1);
    mica_loaded got = {0};
    CHECK_ERROR(ctx, sample_read(ctx, &got, mica_image_read, "GIF89a??", 8), MICA_ERR_FORMAT,
                "format error: \"file\": byte 0: not an image: expected PNG, JPEG, PPM or PGM");
    CHECK_ERROR(ctx, sample_read(ctx, &got, mica_image_read, "", 0), MICA_ERR_FORMAT,
                "format error: \"file\": byte 0: not an image: expected PNG, JPEG, PPM or PGM");
    CHECK_OK(ctx, sample_read(ctx, &got, mica_image_read, "P5 1 1 255 a", 12));
    mica_loaded_release(ctx, &got);
}
