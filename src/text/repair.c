/* Making UTF-8 of bytes. */
#include "text/repair.h"

#include <string.h>

#include "io/utf8.h"

void mica_written_put(mica_written *out, const void *bytes, size_t count)
{
    if (out->length <= out->size && count <= out->size - out->length && count > 0)
        memcpy(out->text + out->length, bytes, count);
    out->length += count;
}

/* Bytes of the character that this one begins; 0: none. */
static int wanted(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* Whether the byte continues what was begun: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
static int continues(const mica_partial *p, unsigned char byte)
{
    unsigned char low = 0x80, high = 0xbf;
    if (p->count == 1) {
        low = p->byte[0] == 0xe0 ? 0xa0 : p->byte[0] == 0xf0 ? 0x90 : low;
        high = p->byte[0] == 0xed ? 0x9f : p->byte[0] == 0xf4 ? 0x8f : high;
    }
    return byte >= low && byte <= high;
}

void mica_repair_end(mica_partial *partial, mica_written *out)
{
    if (partial->count > 0)
        mica_written_put(out, "\xef\xbf\xbd", 3);
    partial->count = 0;
}

void mica_repair_byte(mica_partial *partial, mica_written *out, unsigned char byte)
{
    if (partial->count > 0 && !continues(partial, byte))
        mica_repair_end(partial, out);
    partial->byte[partial->count++] = byte;
    int whole = wanted(partial->byte[0]);
    if (whole == 0) {
        mica_repair_end(partial, out);
    } else if (partial->count == whole) {
        mica_written_put(out, partial->byte, (size_t)whole);
        partial->count = 0;
    }
}

size_t mica_repair(char *out, size_t size, const char *text, size_t length)
{
    mica_written written = {.text = out, .size = out != NULL ? size : 0};
    mica_partial partial = {.count = 0};
    for (size_t at = 0; at < length;) {
        uint32_t code;
        size_t n = mica_utf8_decode(&code, text + at, length - at);
        if (n > 0 && partial.count == 0) {
            mica_written_put(&written, text + at, n);
            at += n;
        } else {
            mica_repair_byte(&partial, &written, (unsigned char)text[at++]);
        }
    }
    mica_repair_end(&partial, &written);
    return written.length;
}
