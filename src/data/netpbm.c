/* PGM and PPM: a header in text, then samples row by row, grey or red, green and blue.
 *
 *     P2 or P3 (text), P5 or P6 (bytes)    width height largest    samples
 *
 * White space separates the fields, in which # begins a comment; one byte of it ends the header of P5 and P6. */
#include <string.h>

#include "data/image_file.h"
#include "io/quote.h"

typedef struct netpbm {
    mica_context *ctx;
    mica_stream *stream;
    bool text;
    int channels;
    unsigned width, height, largest;
    size_t next, count; /* in the buffer */
    unsigned char buffer[4096];
} netpbm;

/* Of the next byte. */
static unsigned long long position(const netpbm *p)
{
    return (unsigned long long)(p->stream->position - (p->count - p->next));
}

static mica_status bad(const netpbm *p, const char *what)
{
    return mica_fail(p->ctx, MICA_ERR_FORMAT, "%s: byte %llu: netpbm: %s", MICA_QUOTE(p->stream->file.path),
                     position(p), what);
}

/* The next byte, which stays the next; -1 at the end. */
static mica_status peek(netpbm *p, int *byte)
{
    if (p->next == p->count) {
        p->next = 0;
        MICA_TRY(mica_stream_read(p->ctx, p->buffer, &p->count, p->stream, sizeof p->buffer));
    }
    *byte = p->next < p->count ? p->buffer[p->next] : -1;
    return MICA_OK;
}

static bool is_space(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Over white space and comments. */
static mica_status skip_space(netpbm *p)
{
    bool comment = false;
    for (int c;;) {
        MICA_TRY(peek(p, &c));
        comment = comment ? c != '\n' && c != '\r' && c >= 0 : c == '#';
        if (!comment && !is_space(c))
            return MICA_OK;
        p->next++;
    }
}

/* A number from 0 to 2^31 - 1. */
static mica_status read_number(netpbm *p, unsigned *out, const char *what)
{
    uint64_t value = 0;
    int c, digits = 0;
    MICA_TRY(skip_space(p));
    for (;; digits++) {
        MICA_TRY(peek(p, &c));
        if (c < '0' || c > '9')
            break;
        value = value * 10 + (uint64_t)(c - '0');
        if (value > INT32_MAX)
            return bad(p, what);
        p->next++;
    }
    if (digits == 0 || (c >= 0 && !is_space(c) && c != '#'))
        return bad(p, what);
    *out = (unsigned)value;
    return MICA_OK;
}

static mica_status read_header(netpbm *p)
{
    unsigned char magic[2];
    MICA_TRY(mica_stream_need(p->ctx, magic, p->stream, sizeof magic, "a netpbm header"));
    if (magic[0] != 'P' || (magic[1] != '2' && magic[1] != '3' && magic[1] != '5' && magic[1] != '6'))
        return mica_fail(p->ctx, MICA_ERR_FORMAT,
                         "%s: byte 0: not a PGM or PPM file of greys or colours (P2, P3, P5, P6)",
                         MICA_QUOTE(p->stream->file.path));
    p->text = magic[1] <= '3';
    p->channels = magic[1] == '3' || magic[1] == '6' ? 3 : 1;
    MICA_TRY(read_number(p, &p->width, "expected the width"));
    MICA_TRY(read_number(p, &p->height, "expected the height"));
    MICA_TRY(mica_image_check_size(p->ctx, p->stream, position(p), "netpbm", p->width, p->height));
    MICA_TRY(read_number(p, &p->largest, "expected the largest sample"));
    if (p->largest < 1 || p->largest > 65535)
        return bad(p, "the largest sample is not from 1 to 65535");
    p->next += p->text || p->next == p->count ? 0 : 1;
    return MICA_OK;
}

/* Copies exactly `bytes` bytes. */
static mica_status read_bytes(netpbm *p, unsigned char *to, size_t bytes)
{
    while (bytes > 0) {
        int c;
        MICA_TRY(peek(p, &c));
        if (c < 0)
            return bad(p, "the file ends before the last row");
        size_t held = p->count - p->next, got = held < bytes ? held : bytes;
        memcpy(to, p->buffer + p->next, got);
        p->next += got;
        to += got;
        bytes -= got;
    }
    return MICA_OK;
}

static mica_status read_sample(netpbm *p, unsigned *value)
{
    unsigned char b[2] = {0, 0};
    if (p->text) {
        MICA_TRY(read_number(p, value, "expected a sample"));
    } else {
        size_t bytes = p->largest > 255 ? 2 : 1;
        MICA_TRY(read_bytes(p, b + 2 - bytes, bytes));
        *value = (unsigned)b[0] << 8 | b[1];
    }
    return *value <= p->largest ? MICA_OK : bad(p, "a sample is larger than the header says");
}

/* Into image [channels, height, width], as bytes from 0 to 255. */
static mica_status read_samples(netpbm *p, unsigned char *image)
{
    size_t pixels = (size_t)p->width * p->height;
    for (size_t i = 0; i < pixels; i++) {
        for (int c = 0; c < p->channels; c++) {
            unsigned value = 0;
            MICA_TRY(read_sample(p, &value));
            image[(size_t)c * pixels + i] = (unsigned char)((value * 255 + p->largest / 2) / p->largest);
        }
    }
    int more;
    MICA_TRY(skip_space(p)); /* many programs end the file with a newline */
    MICA_TRY(peek(p, &more));
    return more < 0 ? MICA_OK : bad(p, "trailing bytes after the image");
}

mica_status mica_netpbm_read(mica_context *ctx, mica_loaded *out, mica_stream *stream)
{
    netpbm p = {.ctx = ctx, .stream = stream};
    mica_loaded image;
    MICA_TRY(read_header(&p));
    /* In text, a sample is a digit and, save the last, white space. */
    uint64_t samples = (uint64_t)p.width * p.height * (uint64_t)p.channels;
    uint64_t bytes = p.text ? 2 * samples - 1 : p.largest > 255 ? 2 * samples : samples;
    if (bytes > stream->most - position(&p))
        return bad(&p, "the image is larger than the file can hold");
    MICA_TRY(mica_image_take(ctx, &image, p.channels, p.height, p.width));
    mica_status status = read_samples(&p, image.tensor.data);
    if (status != MICA_OK) {
        mica_loaded_release(ctx, &image);
        return status;
    }
    *out = image;
    return MICA_OK;
}
