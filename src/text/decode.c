/* From tokens to text, as they come. */
#include <string.h>

#include "io/utf8.h"
#include "text/repair.h"
#include "text/vocabulary.h"

typedef struct decoding {
    mica_partial partial;
    mica_written out;
    bool strip; /* the space that encoding put in front */
} decoding;

static void put_byte(decoding *d, unsigned char byte)
{
    if (d->strip && byte == ' ') {
        d->strip = false;
        return;
    }
    d->strip = false;
    mica_repair_byte(&d->partial, &d->out, byte);
}

static void put_text(decoding *d, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        put_byte(d, (unsigned char)text[i]);
}

/* Byte-level vocabularies: each character is a byte; where one is none, the text is meant as it is. */
static bool all_bytes(const mica_entry *e)
{
    for (size_t at = 0; at < e->length;) {
        uint32_t code;
        size_t n = mica_utf8_decode(&code, e->text + at, e->length - at);
        if (n == 0 || mica_character_byte(code) < 0)
            return false;
        at += n;
    }
    return true;
}

static void put_as_bytes(decoding *d, const mica_entry *e)
{
    for (size_t at = 0; at < e->length;) {
        uint32_t code = 0;
        at += mica_utf8_decode(&code, e->text + at, e->length - at);
        put_byte(d, (unsigned char)mica_character_byte(code));
    }
}

static void put_unescaped(decoding *d, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        if (length - at >= 3 && memcmp(text + at, "\xe2\x96\x81", 3) == 0) {
            put_byte(d, ' ');
            at += 3;
        } else {
            put_byte(d, (unsigned char)text[at++]);
        }
    }
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* The byte that "<0x1F>" names; -1: none. */
static int named_byte(const mica_entry *e)
{
    if (e->length != 6 || memcmp(e->text, "<0x", 3) != 0 || e->text[5] != '>' || hex(e->text[3]) < 0 ||
        hex(e->text[4]) < 0)
        return -1;
    return hex(e->text[3]) << 4 | hex(e->text[4]);
}

static void put_wordpiece(decoding *d, const mica_tokenizer *t, const mica_entry *e)
{
    size_t part = strlen(t->part_prefix);
    if (part > 0 && e->length > part && memcmp(e->text, t->part_prefix, part) == 0) {
        d->strip = false;
        put_text(d, e->text + part, e->length - part);
        return;
    }
    if (part > 0 || e->kind != MICA_TOKEN_NORMAL)
        put_byte(d, ' '); /* which is stripped at the beginning */
    put_unescaped(d, e->text, e->length);
}

static void put_token(decoding *d, const mica_tokenizer *t, const mica_entry *e)
{
    int byte = e->kind == MICA_TOKEN_BYTE ? named_byte(e) : -1;
    if (byte >= 0)
        put_byte(d, (unsigned char)byte);
    else if (t->kind == MICA_TOKENIZER_WORDPIECE)
        put_wordpiece(d, t, e);
    else if (e->kind == MICA_TOKEN_CONTROL || e->kind == MICA_TOKEN_UNKNOWN || e->kind == MICA_TOKEN_USER)
        put_text(d, e->text, e->length);
    else if (t->kind == MICA_TOKENIZER_BPE && t->byte_level && all_bytes(e))
        put_as_bytes(d, e);
    else if (t->escape_spaces)
        put_unescaped(d, e->text, e->length);
    else
        put_text(d, e->text, e->length);
}

void mica_decode_begin(mica_decoder *decoder, const mica_tokenizer *tokenizer, bool special)
{
    *decoder = (mica_decoder){.tokenizer = tokenizer, .special = special};
}

static decoding decoding_of(const mica_decoder *decoder, char *text, size_t size)
{
    decoding d = {.out = {.text = text, .size = text != NULL ? size : 0},
                  .partial.count = decoder->held_bytes};
    memcpy(d.partial.byte, decoder->held, sizeof d.partial.byte);
    return d;
}

static void keep(mica_decoder *decoder, const decoding *d)
{
    memcpy(decoder->held, d->partial.byte, sizeof d->partial.byte);
    decoder->held_bytes = d->partial.count;
}

size_t mica_decode_next(mica_decoder *decoder, char *text, size_t size, int32_t token)
{
    const mica_tokenizer *t = decoder->tokenizer;
    if (token < 0 || token >= t->info.count)
        return 0;
    const mica_entry *e = &t->entries[token];
    bool special = e->kind == MICA_TOKEN_CONTROL || e->kind == MICA_TOKEN_UNKNOWN;
    bool after = special || e->kind == MICA_TOKEN_USER; /* encoding began anew behind it */
    bool words = t->kind == MICA_TOKENIZER_WORDPIECE;
    decoding d = decoding_of(decoder, NULL, 0);
    if (!special || decoder->special) {
        bool strip = !decoder->begun && (words || (t->space_prefix && !after));
        d.strip = strip;
        put_token(&d, t, e); /* how long it is, then the text itself */
        if (d.out.length > size)
            return d.out.length;
        d = decoding_of(decoder, text, size);
        d.strip = strip;
        put_token(&d, t, e);
        keep(decoder, &d);
        decoder->begun = !after || t->prefix_first_only || words;
    } else if (!t->prefix_first_only && !words) {
        decoder->begun = false;
    }
    return d.out.length;
}

size_t mica_decode_end(mica_decoder *decoder, char *text, size_t size)
{
    decoding d = decoding_of(decoder, NULL, 0);
    mica_repair_end(&d.partial, &d.out);
    if (d.out.length > size)
        return d.out.length;
    d = decoding_of(decoder, text, size);
    mica_repair_end(&d.partial, &d.out);
    keep(decoder, &d);
    return d.out.length;
}
