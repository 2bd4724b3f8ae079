/* JPEG images: written here from their pixels, by way of the cosine transform as its definition has it, so that what
 * libjpeg reads is compared with another's work; those of other programs are in tests/data/jpeg. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"
#include "test.h"

/* ---- A writer: 8 x 8 blocks, quantized by 1; codes of 4 bits for the DC coefficients, of 8 for the others ---- */

enum { SIDE_BLOCKS = 2, SIDE = 8 * SIDE_BLOCKS };

typedef struct writer {
    unsigned char bytes[32768];
    size_t count;
    unsigned held; /* bits not written yet */
    int held_bits;
} writer;

static void put(writer *w, int byte) { w->bytes[w->count++] = (unsigned char)byte; }

static void put16(writer *w, int n)
{
    put(w, n >> 8);
    put(w, n & 255);
}

static void put_bits(writer *w, unsigned value, int bits)
{
    for (int i = bits - 1; i >= 0; i--) {
        w->held = w->held << 1 | (value >> i & 1);
        if (++w->held_bits == 8) {
            put(w, (int)w->held);
            if (w->held == 255)
                put(w, 0);
            w->held = 0;
            w->held_bits = 0;
        }
    }
}

/* Codes 0, 1, 2 ... of `bits` bits stand for symbols 0, 1, 2 ... */
static void put_codes(writer *w, int table, int bits, int count)
{
    put16(w, 0xffc4);
    put16(w, 2 + 1 + 16 + count);
    put(w, table);
    for (int i = 1; i <= 16; i++)
        put(w, i == bits ? count : 0);
    for (int i = 0; i < count; i++)
        put(w, i);
}

static void put_header(writer *w, int components)
{
    put16(w, 0xffd8);
    put16(w, 0xffdb);
    put16(w, 67);
    put(w, 0);
    for (int i = 0; i < 64; i++)
        put(w, 1);
    put16(w, 0xffc0);
    put16(w, 8 + 3 * components);
    put(w, 8);
    put16(w, SIDE);
    put16(w, SIDE);
    put(w, components);
    for (int c = 0; c < components; c++) {
        put(w, c + 1);
        put(w, 0x11);
        put(w, 0);
    }
    put_codes(w, 0x00, 4, 12);
    put_codes(w, 0x10, 8, 251); /* a run of zeros and a size: up to 15, 10 */
    put16(w, 0xffda);
    put16(w, 6 + 2 * components);
    put(w, components);
    for (int c = 0; c < components; c++)
        put16(w, (c + 1) << 8);
    put(w, 0);
    put(w, 63);
    put(w, 0);
}

static int size_of(int value)
{
    int size = 0;
    for (int v = abs(value); v > 0; v >>= 1)
        size++;
    return size;
}

static void put_value(writer *w, int value, int size)
{
    put_bits(w, (unsigned)(value < 0 ? value + (1 << size) - 1 : value), size);
}

/* Coefficient (v, u) of a block of `plane` whose corner is (y, x). */
static int coefficient(const double *plane, int y, int x, int v, int u)
{
    double sum = 0, scale = (u == 0 ? sqrt(0.5) : 1) * (v == 0 ? sqrt(0.5) : 1) / 4;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++)
            sum += (plane[(y + i) * SIDE + x + k] - 128) * cos((2 * i + 1) * v * acos(-1) / 16) *
                   cos((2 * k + 1) * u * acos(-1) / 16);
    return (int)lround(scale * sum);
}

static void put_block(writer *w, const double *plane, int y, int x, int *before)
{
    int zeros = 0, v = 0, u = 0, last = *before;
    *before = coefficient(plane, y, x, 0, 0);
    put_bits(w, (unsigned)size_of(*before - last), 4);
    put_value(w, *before - last, size_of(*before - last));
    for (int i = 1; i < 64; i++) { /* along the diagonals, back and forth */
        bool up = (u + v) % 2 == 0;
        if (up && u < 7 && v > 0)
            u++, v--;
        else if (!up && v < 7 && u > 0)
            u--, v++;
        else if (up ? u == 7 : v < 7)
            v++;
        else
            u++;
        int value = coefficient(plane, y, x, v, u);
        if (value == 0) {
            zeros++;
            continue;
        }
        for (; zeros >= 16; zeros -= 16)
            put_bits(w, 0xf0, 8);
        put_bits(w, (unsigned)(zeros << 4 | size_of(value)), 8);
        put_value(w, value, size_of(value));
        zeros = 0;
    }
    if (zeros > 0)
        put_bits(w, 0, 8);
}

/* planes [components, SIDE, SIDE] */
static void write_jpeg(writer *w, const double *planes, int components)
{
    int before[3] = {0, 0, 0};
    *w = (writer){.count = 0};
    put_header(w, components);
    for (int y = 0; y < SIDE; y += 8)
        for (int x = 0; x < SIDE; x += 8)
            for (int c = 0; c < components; c++)
                put_block(w, planes + c * SIDE * SIDE, y, x, &before[c]);
    put_bits(w, 127, 7);
    put16(w, 0xffd9);
}

static bool no_jpeg(mica_context *ctx)
{
    mica_loaded got = {0};
    if (sample_read(ctx, &got, mica_jpeg_read, "\xff\xd8", 2) != MICA_ERR_IO)
        return false;
    CHECK(strcmp(mica_error(ctx), "file error: \"file\": built without JPEG: this build has no libjpeg") ==
          0);
    test_skip("built without libjpeg");
    return true;
}

/* ---- Pixels ---- */

/* How far an image is from what it should be. */
static int worst_of(const double *wanted, const mica_tensor *image)
{
    int worst = 0;
    for (size_t i = 0; i < mica_tensor_count(image); i++) {
        int off = abs((int)wanted[i] - ((const unsigned char *)image->data)[i]);
        worst = off > worst ? off : worst;
    }
    return worst;
}

TEST(jpeg_grey_pixels_are_those_written)
{
    mica_context *ctx = test_context(1);
    if (no_jpeg(ctx))
        return;
    test_random r = test_seed(1);
    for (int round = 0; round < test_effort(20); round++) {
        double plane[SIDE * SIDE];
        writer w;
        for (int i = 0; i < SIDE * SIDE; i++)
            plane[i] = test_int(&r, 0, 255);
        write_jpeg(&w, plane, 1);
        mica_loaded got = {0};
        REQUIRE(CHECK_OK(ctx, sample_read(ctx, &got, mica_jpeg_read, w.bytes, w.count)));
        CHECK(got.tensor.rank == 4 && got.tensor.dim[1] == 1 && got.tensor.dim[2] == SIDE &&
              got.tensor.dim[3] == SIDE);
        int worst = worst_of(plane, &got.tensor);
        CHECK_MSG(worst <= 2, "a pixel is off by %d", worst);
        mica_loaded_release(ctx, &got);
    }
}

TEST(jpeg_colours_are_those_written)
{
    mica_context *ctx = test_context(1);
    if (no_jpeg(ctx))
        return;
    test_random r = test_seed(2);
    static double rgb[3 * SIDE * SIDE], planes[3 * SIDE * SIDE];
    static writer w;
    for (int i = 0; i < SIDE * SIDE; i++) {
        for (int c = 0; c < 3; c++)
            rgb[c * SIDE * SIDE + i] = test_int(&r, 0, 255);
        double y = 0.299 * rgb[i] + 0.587 * rgb[SIDE * SIDE + i] + 0.114 * rgb[2 * SIDE * SIDE + i];
        planes[i] = y;
        planes[SIDE * SIDE + i] = (rgb[2 * SIDE * SIDE + i] - y) / 1.772 + 128;
        planes[2 * SIDE * SIDE + i] = (rgb[i] - y) / 1.402 + 128;
    }
    write_jpeg(&w, planes, 3);
    mica_loaded got = {0};
    REQUIRE(CHECK_OK(ctx, sample_read(ctx, &got, mica_image_read, w.bytes, w.count)));
    REQUIRE(CHECK(got.tensor.dim[1] == 3));
    int worst = worst_of(rgb, &got.tensor);
    CHECK_MSG(worst <= 4, "a pixel is off by %d", worst);
    mica_loaded_release(ctx, &got);
}

/* ---- Hostile ---- */

TEST(jpeg_truncations_and_mutations_give_clean_errors)
{
    mica_context *ctx = test_context(1);
    if (no_jpeg(ctx))
        return;
    double plane[SIDE * SIDE];
    static writer w;
    for (int i = 0; i < SIDE * SIDE; i++)
        plane[i] = i % 7 * 30;
    write_jpeg(&w, plane, 1);
    size_t live = mica_context_heap(ctx).live_bytes;
    for (size_t n = 0; n < w.count; n++) {
        mica_loaded got = {0};
        CHECK_MSG(sample_read(ctx, &got, mica_jpeg_read, w.bytes, n) == MICA_ERR_FORMAT &&
                      got.tensor.data == NULL,
                  "of %zu bytes, %zu were enough", w.count, n);
    }
    for (size_t bit = 0; bit < 8 * w.count; bit++) {
        mica_loaded got = {0};
        w.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        mica_status status = sample_read(ctx, &got, mica_jpeg_read, w.bytes, w.count);
        CHECK(status == MICA_OK || (status == MICA_ERR_FORMAT && got.tensor.data == NULL));
        mica_loaded_release(ctx, &got);
        w.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

/* Sizes of the header: byte 2 + 69 + 5 has the height, two further the width. */
TEST(jpeg_refuses_sizes_that_cannot_be)
{
    mica_context *ctx = test_context(1);
    if (no_jpeg(ctx))
        return;
    double plane[SIDE * SIDE] = {0};
    static writer w;
    mica_loaded got = {0};
    size_t most = mica_context_heap(ctx).peak_bytes;
    write_jpeg(&w, plane, 1);
    memcpy(w.bytes + 76, "\x20\x00\x20\x01", 4);
    (void)sample_read(ctx, &got, mica_jpeg_read, w.bytes, w.count);
    CHECK_MSG(strstr(mica_error(ctx),
                     "jpeg: an image of 8193 by 8192 pixels: expected at most 67108864 pixels in all") !=
                  NULL,
              "%s", mica_error(ctx));
    memcpy(w.bytes + 76, "\x1f\xff\x1f\xff", 4);
    (void)sample_read(ctx, &got, mica_jpeg_read, w.bytes, w.count);
    CHECK_MSG(strstr(mica_error(ctx), "jpeg: the image is larger than the file can hold") != NULL, "%s",
              mica_error(ctx));
    memcpy(w.bytes + 76, "\0\0\0\0", 4);
    CHECK(sample_read(ctx, &got, mica_jpeg_read, w.bytes, w.count) == MICA_ERR_FORMAT &&
          got.tensor.data == NULL);
    CHECK(mica_context_heap(ctx).peak_bytes == most);
}
