/* PNG: chunks of a length, a name, bytes and a checksum. IHDR gives the size of the image, the IDAT chunks hold one
 * zlib stream of its rows, each a filter type followed by the differences from the filter's prediction.
 *
 *     signature | IHDR | ... PLTE, tRNS, others ... | IDAT IDAT ... | ... | IEND
 */
#include <string.h>

#include "data/image_file.h"
#include "io/quote.h"
#include "tensor/tensor.h"

#ifdef MICA_HAVE_ZLIB
#include <zlib.h>

#include "io/zlib_memory.h"

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGB_ALPHA = 6 }; /* colour types */

typedef struct png {
    mica_context *ctx;
    mica_stream *stream;

    uint32_t width, height;
    int depth, colour;   /* bits of a sample; one of the above */
    int samples;         /* of a pixel in the file */
    int channels;        /* of a pixel as read */
    bool interlaced;     /* the image comes as seven smaller ones */
    size_t row_bytes;    /* of a whole row in the file, the filter's number aside */
    size_t filter_bytes; /* from a byte to the one it is predicted from: a pixel's, at least 1 */

    unsigned char palette[256][4];
    int palette_count;
    bool palette_alpha;
    bool has_clear;    /* grey and RGB: one colour of the file is transparent, */
    unsigned clear[3]; /* this one */

    uint32_t left, checksum; /* of the chunk being read */
    char name[5];
    z_stream zlib;
    unsigned char buffer[8192]; /* of packed bytes */
} png;

static mica_status bad(const png *p, const char *what)
{
    return mica_fail(p->ctx, MICA_ERR_FORMAT, "%s: byte %llu: png: %s", MICA_QUOTE(p->stream->file.path),
                     (unsigned long long)p->stream->position, what);
}

static uint32_t big_endian(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* ---- Chunks ---- */

static mica_status begin_chunk(png *p)
{
    unsigned char start[8];
    MICA_TRY(mica_stream_need(p->ctx, start, p->stream, sizeof start, "a chunk"));
    p->left = big_endian(start);
    memcpy(p->name, start + 4, 4);
    if (p->left > INT32_MAX)
        return bad(p, "chunk longer than 2^31 bytes");
    p->checksum = (uint32_t)crc32(0, start + 4, 4);
    return MICA_OK;
}

/* Up to `most` bytes of the chunk. */
static mica_status chunk_bytes(png *p, unsigned char *to, size_t *got, size_t most)
{
    *got = most < p->left ? most : p->left;
    MICA_TRY(mica_stream_need(p->ctx, to, p->stream, *got, "a chunk"));
    p->checksum = (uint32_t)crc32(p->checksum, to, (unsigned)*got);
    p->left -= (uint32_t)*got;
    return MICA_OK;
}

/* Steps over what is left of the chunk, and compares its checksum. */
static mica_status end_chunk(png *p)
{
    unsigned char bytes[4096];
    while (p->left > 0) {
        size_t got;
        MICA_TRY(chunk_bytes(p, bytes, &got, sizeof bytes));
    }
    MICA_TRY(mica_stream_need(p->ctx, bytes, p->stream, 4, "a checksum"));
    return big_endian(bytes) == p->checksum ? MICA_OK : bad(p, "wrong checksum");
}

static bool named(const png *p, const char *name) { return memcmp(p->name, name, 4) == 0; }

/* ---- What comes before the rows ---- */

static bool sound_depth(int colour, int depth)
{
    bool small = depth == 1 || depth == 2 || depth == 4;
    return depth == 8 || (depth == 16 && colour != PALETTE) ||
           (small && (colour == GREY || colour == PALETTE));
}

/* Of so many pixels. */
static size_t bytes_of_row(const png *p, size_t pixels)
{
    return (pixels * (size_t)p->samples * (size_t)p->depth + 7) / 8;
}

static mica_status read_header(png *p)
{
    static const unsigned char signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const int samples_of[7] = {
        [GREY] = 1, [RGB] = 3, [PALETTE] = 1, [GREY_ALPHA] = 2, [RGB_ALPHA] = 4};
    unsigned char b[13];
    size_t got;
    MICA_TRY(mica_stream_need(p->ctx, b, p->stream, sizeof signature, "a png header"));
    if (memcmp(b, signature, sizeof signature) != 0)
        return mica_fail(p->ctx, MICA_ERR_FORMAT, "%s: byte 0: not a png file",
                         MICA_QUOTE(p->stream->file.path));
    MICA_TRY(begin_chunk(p));
    if (!named(p, "IHDR") || p->left != sizeof b)
        return bad(p, "expected an IHDR chunk of 13 bytes");
    MICA_TRY(chunk_bytes(p, b, &got, sizeof b));
    p->width = big_endian(b);
    p->height = big_endian(b + 4);
    p->depth = b[8];
    p->colour = b[9];
    MICA_TRY(mica_image_check_size(p->ctx, p->stream, p->stream->position, "png", p->width, p->height));
    if (p->colour > RGB_ALPHA || samples_of[p->colour] == 0 || !sound_depth(p->colour, p->depth))
        return bad(p, "invalid colour type and bit depth");
    if (b[10] != 0 || b[11] != 0 || b[12] > 1)
        return bad(p, "invalid compression, filter or interlace method");
    p->interlaced = b[12] == 1;
    p->samples = samples_of[p->colour];
    size_t bits = (size_t)p->samples * (size_t)p->depth;
    p->row_bytes = bytes_of_row(p, p->width);
    p->filter_bytes = bits >= 8 ? bits / 8 : 1;
    return end_chunk(p);
}

static mica_status read_palette(png *p)
{
    unsigned char b[768];
    size_t got;
    if (p->palette_count > 0 || p->left == 0 || p->left % 3 != 0 || p->left > sizeof b)
        return bad(p, "invalid palette");
    MICA_TRY(chunk_bytes(p, b, &got, sizeof b));
    p->palette_count = (int)(got / 3);
    for (int i = 0; i < p->palette_count; i++) {
        memcpy(p->palette[i], b + 3 * i, 3);
        p->palette[i][3] = 255;
    }
    return MICA_OK;
}

static mica_status read_palette_alpha(png *p)
{
    unsigned char b[256];
    size_t got;
    if (p->left > (uint32_t)p->palette_count)
        return bad(p, "more transparency entries than colours");
    MICA_TRY(chunk_bytes(p, b, &got, sizeof b));
    for (size_t i = 0; i < got; i++)
        p->palette[i][3] = b[i];
    p->palette_alpha = true;
    return MICA_OK;
}

static mica_status read_clear_colour(png *p)
{
    unsigned char b[6];
    size_t got;
    if (p->left != 2 * (uint32_t)p->samples)
        return bad(p, "invalid transparent colour");
    MICA_TRY(chunk_bytes(p, b, &got, sizeof b));
    for (int i = 0; i < p->samples; i++) /* of fewer bits than 16, the lower ones */
        p->clear[i] = ((unsigned)b[2 * i] << 8 | b[2 * i + 1]) & ((1u << p->depth) - 1);
    p->has_clear = true;
    return MICA_OK;
}

/* To the start of the rows. */
static mica_status find_rows(png *p)
{
    for (;;) {
        MICA_TRY(begin_chunk(p));
        if (named(p, "IDAT"))
            break;
        if (named(p, "PLTE"))
            MICA_TRY(read_palette(p));
        else if (named(p, "tRNS") && p->colour == PALETTE)
            MICA_TRY(read_palette_alpha(p));
        else if (named(p, "tRNS") && (p->colour == GREY || p->colour == RGB))
            MICA_TRY(read_clear_colour(p));
        else if (p->name[0] >= 'A' && p->name[0] <= 'Z') /* a chunk that nobody may ignore */
            return bad(p, named(p, "IEND") ? "the image has no rows" : "unknown critical chunk");
        MICA_TRY(end_chunk(p));
    }
    if (p->colour == PALETTE && p->palette_count == 0)
        return bad(p, "the image has no palette");
    p->channels = p->colour == PALETTE ? 3 + p->palette_alpha : p->samples + p->has_clear;
    return MICA_OK;
}

/* ---- Rows ---- */

/* More packed bytes, from this IDAT chunk or the next. */
static mica_status refill(png *p)
{
    while (p->left == 0) {
        MICA_TRY(end_chunk(p));
        MICA_TRY(begin_chunk(p));
        if (!named(p, "IDAT"))
            return bad(p, "the image data ends too early");
    }
    size_t got;
    MICA_TRY(chunk_bytes(p, p->buffer, &got, sizeof p->buffer));
    p->zlib.next_in = p->buffer;
    p->zlib.avail_in = (unsigned)got;
    return MICA_OK;
}

static mica_status unpack(png *p, unsigned char *to, size_t bytes)
{
    z_stream *z = &p->zlib;
    for (z->next_out = to, z->avail_out = (unsigned)bytes; z->avail_out > 0;) {
        if (z->avail_in == 0)
            MICA_TRY(refill(p));
        int result = inflate(z, Z_NO_FLUSH);
        if (result == Z_MEM_ERROR)
            return p->ctx->status;
        if (result == Z_STREAM_END && z->avail_out > 0)
            return bad(p, "the image data ends too early");
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return bad(p, z->msg != NULL ? z->msg : "the image data cannot be decompressed");
    }
    return MICA_OK;
}

/* Of left, above and above left, the one nearest to left + above - corner. */
static int paeth(int left, int above, int corner)
{
    int guess = left + above - corner;
    int to_left = guess > left ? guess - left : left - guess;
    int to_above = guess > above ? guess - above : above - guess;
    int to_corner = guess > corner ? guess - corner : corner - guess;
    if (to_left <= to_above && to_left <= to_corner)
        return left;
    return to_above <= to_corner ? above : corner;
}

static mica_status undo_filter(const png *p, unsigned char *row, const unsigned char *above_row, size_t bytes,
                               int filter)
{
    if (filter > 4)
        return bad(p, "invalid filter type");
    for (size_t i = 0; i < bytes; i++) {
        bool first = i < p->filter_bytes; /* there is nothing to the left */
        int left = first ? 0 : row[i - p->filter_bytes], corner = first ? 0 : above_row[i - p->filter_bytes];
        int guess[5] = {0, left, above_row[i], (left + above_row[i]) / 2, 0};
        if (filter == 4)
            guess[4] = paeth(left, above_row[i], corner);
        row[i] = (unsigned char)(row[i] + guess[filter]);
    }
    return MICA_OK;
}

/* Sample i of a row, with all its bits. */
static unsigned sample_of(const png *p, const unsigned char *row, size_t i)
{
    if (p->depth == 16)
        return (unsigned)row[2 * i] << 8 | row[2 * i + 1];
    size_t bit = i * (size_t)p->depth;
    return (unsigned)row[bit / 8] >> (8 - (size_t)p->depth - bit % 8) & ((1u << p->depth) - 1);
}

/* The byte that stands for it: of 16 bits, the upper ones. */
static unsigned char byte_of(const png *p, unsigned sample)
{
    return (unsigned char)(p->depth == 16 ? sample >> 8 : sample * (255 / ((1u << p->depth) - 1)));
}

/* Every pixel of the image, or one of the seven grids of pixels that an interlaced one comes in. */
typedef struct grid {
    unsigned char left, top, right, down; /* its first pixel, and the steps from one to the next */
} grid;

/* How many of `size` pixels along an axis are of a grid. */
static size_t grid_size(size_t size, size_t first, size_t step)
{
    return size > first ? (size - first + step - 1) / step : 0;
}

/* Writes a row of `count` pixels of a grid to row y of image [channels, height, width]. */
static mica_status store_row(const png *p, unsigned char *image, const unsigned char *row, size_t count,
                             size_t y, const grid *g)
{
    size_t width = p->width, plane = width * p->height;
    unsigned char *to = image + y * width + g->left;
    for (size_t x = 0; x < count; x++, to += g->right) {
        if (p->colour != PALETTE) {
            bool clear = p->has_clear;
            for (int c = 0; c < p->samples; c++) {
                unsigned sample = sample_of(p, row, x * (size_t)p->samples + (size_t)c);
                to[(size_t)c * plane] = byte_of(p, sample);
                clear = clear && sample == p->clear[c];
            }
            if (p->has_clear)
                to[(size_t)p->samples * plane] = clear ? 0 : 255;
            continue;
        }
        unsigned colour = sample_of(p, row, x);
        if (colour >= (unsigned)p->palette_count)
            return bad(p, "colour index outside the palette");
        for (int c = 0; c < p->channels; c++)
            to[(size_t)c * plane] = p->palette[colour][c];
    }
    return MICA_OK;
}

/* rows[2][row_bytes]: this one and the one above it. */
static mica_status read_grid(png *p, unsigned char *image, unsigned char *rows, const grid *g)
{
    unsigned char *row = rows, *above = rows + p->row_bytes;
    size_t pixels = grid_size(p->width, g->left, g->right), bytes = bytes_of_row(p, pixels);
    memset(above, 0, p->row_bytes);
    for (size_t y = g->top; y < p->height && pixels > 0; y += g->down) {
        unsigned char filter;
        MICA_TRY(unpack(p, &filter, 1));
        MICA_TRY(unpack(p, row, bytes));
        MICA_TRY(undo_filter(p, row, above, bytes, filter));
        MICA_TRY(store_row(p, image, row, pixels, y, g));
        unsigned char *kept = above;
        above = row;
        row = kept;
    }
    return MICA_OK;
}

static mica_status read_rows(png *p, unsigned char *image, unsigned char *rows)
{
    static const grid whole = {0, 0, 1, 1};
    static const grid parts[7] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                  {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    if (!p->interlaced)
        return read_grid(p, image, rows, &whole);
    for (int i = 0; i < 7; i++)
        MICA_TRY(read_grid(p, image, rows, &parts[i]));
    return MICA_OK;
}

/* What follows the rows: the file must come to its IEND. */
static mica_status read_end(png *p)
{
    for (;;) {
        MICA_TRY(end_chunk(p));
        if (named(p, "IEND"))
            return MICA_OK;
        MICA_TRY(begin_chunk(p));
    }
}

static mica_status read_image(png *p, mica_loaded *out)
{
    MICA_TRY(read_header(p));
    MICA_TRY(find_rows(p));
    /* Memory is taken only for what the file can hold: no byte of deflate stands for more than 1032. */
    double packed = (double)(p->stream->most - p->stream->position);
    if ((double)p->row_bytes * p->height > packed * MICA_GZIP_RATIO || p->row_bytes > INT32_MAX)
        return bad(p, "the image is larger than the file can hold");
    mica_loaded image;
    MICA_TRY(mica_image_take(p->ctx, &image, p->channels, p->height, p->width));
    unsigned char *rows = mica_allocate(p->ctx, 2 * p->row_bytes);
    mica_status status = rows == NULL ? p->ctx->status : read_rows(p, image.tensor.data, rows);
    mica_release(p->ctx, rows, 2 * p->row_bytes);
    if (status == MICA_OK)
        status = read_end(p);
    if (status != MICA_OK) {
        mica_loaded_release(p->ctx, &image);
        return status;
    }
    *out = image;
    return MICA_OK;
}

mica_status mica_png_read(mica_context *ctx, mica_loaded *out, mica_stream *stream)
{
    png p = {.ctx = ctx, .stream = stream};
    p.zlib = (z_stream){.zalloc = mica_zlib_allocate, .zfree = mica_zlib_release, .opaque = ctx};
    if (inflateInit(&p.zlib) != Z_OK)
        return mica_fail(ctx, MICA_ERR_MEMORY, "%s: out of memory while decompressing",
                         MICA_QUOTE(stream->file.path));
    mica_status status = read_image(&p, out);
    (void)inflateEnd(&p.zlib);
    return status;
}

#else

mica_status mica_png_read(mica_context *ctx, mica_loaded *out, mica_stream *stream)
{
    (void)out;
    return mica_fail(ctx, MICA_ERR_IO, "%s: this build has no zlib, which png needs",
                     MICA_QUOTE(stream->file.path));
}

#endif
