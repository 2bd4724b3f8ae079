/* PNG images, written here with every colour type, depth and filter, and broken in every way. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oom.h"
#include "sample.h"
#include "test.h"

/* ---- A writer of PNG: rows packed as they are, in one or more IDAT chunks ---- */

typedef struct writer {
    unsigned char bytes[16384];
    size_t count;
} writer;

static void put(writer *w, const void *bytes, size_t count)
{
    memcpy(w->bytes + w->count, bytes, count);
    w->count += count;
}

static void put32(writer *w, uint32_t n)
{
    put(w,
        (unsigned char[]){(unsigned char)(n >> 24), (unsigned char)(n >> 16), (unsigned char)(n >> 8),
                          (unsigned char)n},
        4);
}

static uint32_t checksum(const unsigned char *bytes, size_t count)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static void put_chunk(writer *w, const char *name, const void *bytes, size_t count)
{
    put32(w, (uint32_t)count);
    size_t start = w->count;
    put(w, name, 4);
    put(w, bytes, count);
    put32(w, checksum(w->bytes + start, w->count - start));
}

typedef struct picture {
    int width, height, depth, colour;
    bool interlaced;
    int palette_count, palette_alpha; /* transparencies */
    bool clear;                       /* grey and RGB: the first pixel's colour is transparent */
    size_t row_bytes;
    unsigned char rows[64][256]; /* as in the file, without a filter */
    unsigned char palette[768], alpha[256];
    int filter[64];
} picture;

static int samples_of(int colour) { return (const int[]){1, 0, 3, 1, 2, 0, 4}[colour]; }

static unsigned char predict(int filter, int left, int above, int corner)
{
    int p = left + above - corner, a = abs(p - left), b = abs(p - above), c = abs(p - corner);
    int paeth = a <= b && a <= c ? left : b <= c ? above : corner;
    return (unsigned char)(const int[]){0, left, above, (left + above) / 2, paeth}[filter % 5];
}

/* The rows with their filters; returns how many bytes. */
static size_t put_rows(unsigned char *raw, const picture *p)
{
    size_t bits = (size_t)samples_of(p->colour) * (size_t)p->depth, step = bits >= 8 ? bits / 8 : 1;
    size_t count = 0;
    for (int y = 0; y < p->height; y++) {
        raw[count++] = (unsigned char)p->filter[y];
        for (size_t i = 0; i < p->row_bytes; i++) {
            int left = i >= step ? p->rows[y][i - step] : 0, above = y > 0 ? p->rows[y - 1][i] : 0;
            int corner = i >= step && y > 0 ? p->rows[y - 1][i - step] : 0;
            raw[count++] = (unsigned char)(p->rows[y][i] - predict(p->filter[y], left, above, corner));
        }
    }
    return count;
}

/* Pixels left, left + right, ... of rows top, top + down, ... as a picture: bit by bit. */
static picture grid_of(const picture *p, int left, int top, int right, int down)
{
    picture g = {.depth = p->depth, .colour = p->colour};
    int bits = samples_of(p->colour) * p->depth;
    g.width = (p->width - left + right - 1) / right;
    g.height = p->width > left ? (p->height - top + down - 1) / down : 0;
    g.row_bytes = ((size_t)g.width * (size_t)bits + 7) / 8;
    for (int y = 0; y < g.height; y++) {
        g.filter[y] = p->filter[top + y * down];
        for (int i = 0; i < g.width * bits; i++) {
            int from = (left + i / bits * right) * bits + i % bits;
            int bit = p->rows[top + y * down][from / 8] >> (7 - from % 8) & 1;
            g.rows[y][i / 8] |= (unsigned char)(bit << (7 - i % 8));
        }
    }
    return g;
}

/* The rows as a zlib stream of stored blocks; returns its size. */
static size_t pack(unsigned char *out, const picture *p)
{
    static const int grids[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                    {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    unsigned char raw[64 * 257];
    size_t count = p->interlaced ? 0 : put_rows(raw, p);
    for (int i = 0; i < 7 && p->interlaced; i++) {
        picture g = grid_of(p, grids[i][0], grids[i][1], grids[i][2], grids[i][3]);
        count += put_rows(raw + count, &g);
    }
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < count; i++) {
        a = (a + raw[i]) % 65521;
        b = (b + a) % 65521;
    }
    unsigned char head[] = {0x78,
                            1,
                            1,
                            (unsigned char)count,
                            (unsigned char)(count >> 8),
                            (unsigned char)~count,
                            (unsigned char)(~count >> 8)};
    memcpy(out, head, sizeof head);
    memcpy(out + sizeof head, raw, count);
    unsigned char tail[] = {(unsigned char)(b >> 8), (unsigned char)b, (unsigned char)(a >> 8),
                            (unsigned char)a};
    memcpy(out + sizeof head + count, tail, 4);
    return sizeof head + count + 4;
}

/* Sample i of a row, with all its bits. */
static int sample_of(const picture *p, int y, int i)
{
    const unsigned char *row = p->rows[y];
    if (p->depth == 16)
        return row[2 * i] << 8 | row[2 * i + 1];
    return row[i * p->depth / 8] >> (8 - p->depth - i * p->depth % 8) & ((1 << p->depth) - 1);
}

static bool is_clear(const picture *p, int y, int x)
{
    int samples = samples_of(p->colour), same = 0;
    for (int c = 0; c < samples; c++)
        same += sample_of(p, y, x * samples + c) == sample_of(p, 0, c);
    return same == samples;
}

static void put_clear(writer *w, const picture *p)
{
    unsigned char bytes[6];
    for (int c = 0; c < samples_of(p->colour); c++) {
        bytes[2 * c] = (unsigned char)(sample_of(p, 0, c) >> 8);
        bytes[2 * c + 1] = (unsigned char)sample_of(p, 0, c);
    }
    put_chunk(w, "tRNS", bytes, 2 * (size_t)samples_of(p->colour));
}

static void write_png(writer *w, const picture *p, int idats)
{
    unsigned char packed[64 * 257 + 32];
    size_t count = pack(packed, p);
    w->count = 0;
    put(w, "\x89PNG\r\n\x1a\n", 8);
    unsigned char header[13] = {0,
                                0,
                                0,
                                (unsigned char)p->width,
                                0,
                                0,
                                0,
                                (unsigned char)p->height,
                                (unsigned char)p->depth,
                                (unsigned char)p->colour,
                                0,
                                0,
                                p->interlaced};
    put_chunk(w, "IHDR", header, sizeof header);
    put_chunk(w, "tEXt", "Title\0a digit", 13);
    if (p->palette_count > 0)
        put_chunk(w, "PLTE", p->palette, 3 * (size_t)p->palette_count);
    if (p->palette_alpha > 0)
        put_chunk(w, "tRNS", p->alpha, (size_t)p->palette_alpha);
    if (p->clear)
        put_clear(w, p);
    for (int i = 0; i < idats; i++) {
        size_t from = count * (size_t)i / (size_t)idats, to = count * (size_t)(i + 1) / (size_t)idats;
        put_chunk(w, "IDAT", packed + from, to - from);
    }
    put_chunk(w, "IEND", "", 0);
}

static picture random_picture(test_random *r, int colour, int depth)
{
    picture p = {.width = test_int(r, 1, 13), .height = test_int(r, 1, 9), .depth = depth, .colour = colour};
    p.row_bytes = ((size_t)p.width * (size_t)samples_of(colour) * (size_t)depth + 7) / 8;
    if (colour == 3) {
        p.palette_count = 1 << depth;
        p.palette_alpha = test_int(r, 0, 1) * test_int(r, 1, p.palette_count);
        for (int i = 0; i < 3 * p.palette_count; i++)
            p.palette[i] = (unsigned char)test_int(r, 0, 255);
        for (int i = 0; i < p.palette_alpha; i++)
            p.alpha[i] = (unsigned char)test_int(r, 0, 255);
    }
    for (int y = 0; y < p.height; y++) {
        p.filter[y] = test_int(r, 0, 4);
        for (size_t i = 0; i < p.row_bytes; i++)
            p.rows[y][i] = (unsigned char)test_int(r, 0, 255);
    }
    return p;
}

/* What channel c of pixel (y, x) must be read as. */
static int expected(const picture *p, int c, int y, int x)
{
    int samples = samples_of(p->colour);
    if (p->colour == 3) {
        int value = sample_of(p, y, x);
        return c < 3 ? p->palette[3 * value + c] : value < p->palette_alpha ? p->alpha[value] : 255;
    }
    if (c == samples)
        return is_clear(p, y, x) ? 0 : 255;
    int value = sample_of(p, y, x * samples + c);
    return p->depth == 16 ? value >> 8 : value * 255 / ((1 << p->depth) - 1);
}

static bool same(const picture *p, const mica_tensor *got)
{
    int channels = p->colour == 3 ? 3 + (p->palette_alpha > 0) : samples_of(p->colour) + p->clear;
    if (got->dtype != MICA_U8 || got->rank != 4 || got->dim[0] != 1 || got->dim[1] != channels ||
        got->dim[2] != p->height || got->dim[3] != p->width)
        return false;
    const unsigned char *at = got->data;
    for (int c = 0; c < channels; c++)
        for (int y = 0; y < p->height; y++)
            for (int x = 0; x < p->width; x++)
                if (*at++ != expected(p, c, y, x))
                    return false;
    return true;
}

static bool no_zlib(mica_context *ctx)
{
    if (sample_has_zlib(ctx))
        return false;
    test_skip("built without zlib");
    return true;
}

TEST(png_every_colour_depth_and_filter)
{
    static const struct {
        int colour, depth;
    } kinds[] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                 {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
    mica_context *ctx = test_context(1);
    if (no_zlib(ctx))
        return;
    test_random r = test_seed(1);
    size_t live = mica_context_heap(ctx).live_bytes;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int i = 0; i < test_effort(20); i++) {
            picture p = random_picture(&r, kinds[k].colour, kinds[k].depth);
            p.interlaced = i % 2 == 1;
            p.clear = (p.colour == 0 || p.colour == 2) && i % 4 >= 2;
            writer w;
            write_png(&w, &p, test_int(&r, 1, 4));
            mica_loaded got = {0};
            CHECK_OK(ctx, sample_read(ctx, &got, mica_png_read, w.bytes, w.count));
            CHECK_MSG(same(&p, &got.tensor), "colour type %d, depth %d%s", kinds[k].colour, kinds[k].depth,
                      p.interlaced ? ", interlaced" : "");
            mica_loaded_release(ctx, &got);
        }
    }
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

/* Truncations and bit flips: an error, or an image. */
TEST(png_mutations_give_clean_errors)
{
    mica_context *ctx = test_context(1);
    if (no_zlib(ctx))
        return;
    test_random r = test_seed(2);
    picture p = random_picture(&r, 3, 4);
    writer w;
    write_png(&w, &p, 2);
    size_t live = mica_context_heap(ctx).live_bytes;
    for (size_t n = 0; n < w.count; n++) {
        mica_loaded got = {0};
        CHECK(sample_read(ctx, &got, mica_png_read, w.bytes, n) == MICA_ERR_FORMAT &&
              got.tensor.data == NULL);
    }
    for (size_t bit = 0; bit < 8 * w.count; bit++) {
        mica_loaded got = {0};
        w.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CHECK(sample_read(ctx, &got, mica_png_read, w.bytes, w.count) == MICA_ERR_FORMAT &&
              got.tensor.data == NULL);
        w.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

/* A file with one chunk of the header or after it replaced. */
static mica_status read_with(mica_context *ctx, const char *header, const char *chunk, const char *bytes,
                             size_t count)
{
    writer w = {.count = 0};
    put(&w, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(&w, "IHDR", header, 13);
    put_chunk(&w, chunk, bytes, count);
    mica_loaded got = {0};
    return sample_read(ctx, &got, mica_png_read, w.bytes, w.count);
}

TEST(png_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    if (no_zlib(ctx))
        return;
#define E     "format error: \"file\": byte "
#define GREY8 "\0\0\0\2\0\0\0\2\x8\0\0\0\0"
    static const struct {
        const char *header, *chunk, *bytes;
        size_t count;
        const char *error;
    } bad[] = {
        {"\0\0\0\0\0\0\0\2\x8\0\0\0\0", "IEND", "", 0, E "29: png: invalid width or height"},
        {"\0\0\0\2\xff\0\0\2\x8\0\0\0\0", "IEND", "", 0, E "29: png: invalid width or height"},
        {"\0\0\0\2\0\0\0\2\x8\1\0\0\0", "IEND", "", 0, E "29: png: invalid colour type and bit depth"},
        {"\0\0\0\2\0\0\0\2\x3\0\0\0\0", "IEND", "", 0, E "29: png: invalid colour type and bit depth"},
        {"\0\0\0\2\0\0\0\2\x4\2\0\0\0", "IEND", "", 0, E "29: png: invalid colour type and bit depth"},
        {"\0\0\0\2\0\0\0\2\x8\0\1\0\0", "IEND", "", 0,
         E "29: png: invalid compression, filter or interlace method"},
        {"\0\0\0\2\0\0\0\2\x8\0\0\0\2", "IEND", "", 0,
         E "29: png: invalid compression, filter or interlace method"},
        {GREY8, "IEND", "", 0, E "41: png: the image has no rows"},
        {GREY8, "ABCD", "", 0, E "41: png: unknown critical chunk"},
        {GREY8, "PLTE", "1234", 4, E "41: png: invalid palette"},
        {GREY8, "tEXt", "a", 1, E "46: the file ends, 8 bytes short of a chunk"},
        {GREY8, "IDAT", "", 0, E "45: the file ends, 8 bytes short of a chunk"},
        {GREY8, "IDAT", "\1\1", 2, E "43: png: incorrect header check"},
        {"\0\0\0\2\0\0\0\2\x8\3\0\0\0", "IDAT", "", 0, E "41: png: the image has no palette"},
        {"\0\0\0\2\0\0\0\2\x8\3\0\0\0", "tRNS", "ab", 2, E "41: png: more transparency entries than colours"},
        {"\0\0\0\2\0\0\0\2\x8\2\0\0\0", "tRNS", "ab", 2, E "41: png: invalid transparent colour"},
        {"\0\0\x1f\0\0\0\x1f\0\x8\0\0\0\0", "IDAT", "ab", 2,
         E "41: png: the image is larger than the file can hold"},
        {"\0\0\x20\0\0\0\x20\x1\x8\0\0\0\0", "IDAT", "ab", 2,
         E "29: png: an image of 8192 by 8193 pixels: expected at most 67108864 pixels in all"},
        {"\x7f\0\0\2\x7f\0\0\2\x8\0\0\0\0", "IDAT", "ab", 2,
         E "29: png: an image of 2130706434 by 2130706434 pixels: expected at most 67108864 pixels in all"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_ERROR(ctx, read_with(ctx, bad[i].header, bad[i].chunk, bad[i].bytes, bad[i].count),
                    MICA_ERR_FORMAT, bad[i].error);
    mica_loaded got = {0};
    CHECK_ERROR(ctx, sample_read(ctx, &got, mica_png_read, "GIF89a??", 8), MICA_ERR_FORMAT,
                E "0: not a png file");
    picture p = {.width = 2, .height = 1, .depth = 8, .row_bytes = 2, .filter = {5}};
    writer w;
    write_png(&w, &p, 1);
    CHECK_ERROR(ctx, sample_read(ctx, &got, mica_png_read, w.bytes, w.count), MICA_ERR_FORMAT,
                E "80: png: invalid filter type");
#undef E
}

static mica_status oom_work(const mica_allocator *allocator, void *argument)
{
    const writer *w = argument;
    mica_context *ctx = NULL;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    mica_loaded got = {0};
    mica_stream stream;
    status = mica_stream_open_memory(ctx, &stream, w->bytes, w->count, "input");
    if (status == MICA_OK) {
        status = mica_png_read(ctx, &got, &stream);
        mica_stream_close(ctx, &stream);
    }
    mica_loaded_release(ctx, &got);
    mica_context_destroy(ctx);
    return status;
}

TEST(png_out_of_memory)
{
    if (no_zlib(test_context(1)))
        return;
    test_random r = test_seed(3);
    picture p = random_picture(&r, 2, 8);
    writer w;
    write_png(&w, &p, 1);
    CHECK(test_oom(oom_work, &w) >= 4);
}

/* ---- Images to a size ---- */

TEST(image_fit_keeps_shrinks_and_grows)
{
    mica_context *ctx = test_context(1);
    uint8_t bytes[4 * 16];
    float out[3 * 16];
    mica_tensor image, dst;
    for (int i = 0; i < 64; i++)
        bytes[i] = (uint8_t)(3 * i);
    CHECK_OK(ctx, mica_tensor_init(ctx, &image, bytes, MICA_U8, 3, (mica_index[]){1, 4, 4}));
    dst = mica_3d(out, 1, 4, 4);
    CHECK_OK(ctx, mica_image_fit(ctx, &dst, &image));
    for (int i = 0; i < 16; i++)
        CHECK(out[i] == (float)(3 * i));
    dst = mica_3d(out, 1, 2,
                  2); /* a slope stays one: the middle of the four pixels, within what the edges bend it */
    CHECK_OK(ctx, mica_image_fit(ctx, &dst, &image));
    CHECK(fabsf(out[0] + out[3] - 45) < 0.01f && out[0] > 5 && out[0] < 12);
    memset(bytes, 77, sizeof bytes);
    for (mica_index side = 1; side <= 4; side++) {
        dst = mica_3d(out, 3, side, 3);
        CHECK_OK(ctx, mica_image_fit(ctx, &dst, &image)); /* one colour stays it, and grey becomes RGB */
        for (mica_index i = 0; i < 9 * side; i++)
            CHECK(fabsf(out[i] - 77) < 0.001f);
    }
}

TEST(image_fit_colours_and_transparency)
{
    mica_context *ctx = test_context(1);
    uint8_t red[8] = {200, 0, 0, 51};
    float out[3];
    mica_tensor image, grey = mica_3d(out, 1, 1, 1), colours = mica_3d(out, 3, 1, 1);
    CHECK_OK(ctx, mica_tensor_init(ctx, &image, red, MICA_U8, 3, (mica_index[]){3, 1, 1}));
    CHECK_OK(ctx, mica_image_fit(ctx, &grey, &image));
    CHECK(fabsf(out[0] - 59.8f) < 0.01f);
    image.dim[0] = 4;
    CHECK_OK(ctx, mica_image_fit(ctx, &colours, &image)); /* a fifth of it on white */
    CHECK(fabsf(out[0] - 244) < 0.01f && fabsf(out[1] - 204) < 0.01f && fabsf(out[2] - 204) < 0.01f);
    image.dim[0] = 5;
    CHECK_ERROR(
        ctx, mica_image_fit(ctx, &colours, &image), MICA_ERR_SHAPE,
        "shape error: image_fit: image is [5, 1, 1]: expected 1 to 4 channels and at least one pixel");
    image.dim[0] = 4;
    colours.dim[0] = 2;
    CHECK_ERROR(ctx, mica_image_fit(ctx, &colours, &image), MICA_ERR_SHAPE,
                "shape error: image_fit: dst is [2, 1, 1]: expected 1 channel (greyscale) or 3 (RGB)");
}
