/* PNG (ISO 15948) in base64, written as it is made. A row is one stored block of deflate. */
#include "cli/picture/png.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct stream {
    FILE *out;
    uint32_t crc;
    uint32_t held; /* up to two bytes that are not written yet */
    int count;
    uint32_t a, b; /* Adler-32 of what is in the blocks */
} stream;

static void put_base64(stream *s, uint32_t bits, int letters)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < 4; i++)
        fputc(i < letters ? alphabet[bits >> (18 - 6 * i) & 63] : '=', s->out);
}

static void put_byte(stream *s, unsigned byte)
{
    s->crc ^= byte;
    for (int i = 0; i < 8; i++)
        s->crc = s->crc >> 1 ^ (0xedb88320u & (0u - (s->crc & 1u)));
    s->held = s->held << 8 | byte;
    if (++s->count == 3) {
        put_base64(s, s->held, 4);
        s->held = 0;
        s->count = 0;
    }
}

static void put_word(stream *s, uint32_t word)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        put_byte(s, word >> shift & 255u);
}

static void begin_chunk(stream *s, uint32_t length, const char *name)
{
    put_word(s, length);
    s->crc = 0xffffffffu;
    for (int i = 0; i < 4; i++)
        put_byte(s, (unsigned char)name[i]);
}

static void end_chunk(stream *s) { put_word(s, s->crc ^ 0xffffffffu); }

static void put_data(stream *s, unsigned byte)
{
    put_byte(s, byte);
    s->a = (s->a + byte) % 65521u;
    s->b = (s->b + s->a) % 65521u;
}

static void put_row(stream *s, const unsigned char *row, unsigned bytes, bool last)
{
    unsigned length = bytes + 1;
    put_byte(s, last);
    put_byte(s, length & 255u);
    put_byte(s, length >> 8);
    put_byte(s, ~length & 255u);
    put_byte(s, (~length >> 8) & 255u);
    put_data(s, 0); /* no filter */
    for (unsigned i = 0; i < bytes; i++)
        put_data(s, row[i]);
}

void put_png(FILE *out, const unsigned char *pixels, int width, int height, int channels)
{
    static const unsigned char signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    if (width < 1 || height < 1 || (channels != 1 && channels != 3) || width > 65534 / channels ||
        height > 65535)
        return;
    stream s = {.out = out, .a = 1};
    unsigned row = (unsigned)width * (unsigned)channels;
    fputs("data:image/png;base64,", out);
    for (size_t i = 0; i < sizeof signature; i++)
        put_byte(&s, signature[i]);
    begin_chunk(&s, 13, "IHDR");
    put_word(&s, (uint32_t)width);
    put_word(&s, (uint32_t)height);
    const unsigned header[] = {8, channels == 3 ? 2 : 0, 0, 0, 0};
    for (int i = 0; i < 5; i++)
        put_byte(&s, header[i]);
    end_chunk(&s);
    begin_chunk(&s, 2u + (uint32_t)height * (row + 6u) + 4u, "IDAT");
    put_byte(&s, 0x78);
    put_byte(&s, 0x01);
    for (int y = 0; y < height; y++)
        put_row(&s, pixels + (size_t)y * row, row, y + 1 == height);
    put_word(&s, s.b << 16 | s.a);
    end_chunk(&s);
    begin_chunk(&s, 0, "IEND");
    end_chunk(&s);
    if (s.count > 0)
        put_base64(&s, s.held << (s.count == 1 ? 16 : 8), s.count + 1);
}
