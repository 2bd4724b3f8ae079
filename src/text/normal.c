/* Normal forms. */
#include "text/normal.h"

#include <string.h>

#include "base/sort.h"
#include "io/utf8.h"
#include "text/unicode.h"

static unsigned class_of(mica_ordered c) { return (unsigned)(c >> 53); }

static int by_order(const void *a, const void *b)
{
    mica_ordered x = *(const mica_ordered *)a, y = *(const mica_ordered *)b;
    return x < y ? -1 : x > y;
}

size_t mica_decompose_text(mica_ordered *out, const char *text, size_t length)
{
    size_t count = 0, starter = 0; /* marks after the last starter are sorted by class */
    for (size_t at = 0; at < length;) {
        uint32_t code = 0, part[MICA_UNICODE_PARTS];
        at += mica_utf8_decode(&code, text + at, length - at);
        int parts = mica_unicode_decompose(part, code);
        for (int i = 0; i < parts; i++) {
            unsigned class = mica_unicode_combining_class(part[i]);
            if (class == 0) {
                mica_sort(out + starter, count - starter, sizeof *out, by_order);
                starter = count + 1;
            }
            out[count] = (uint64_t) class << 53 | (uint64_t)(uint32_t)count << 21 | part[i];
            count++;
        }
    }
    if (count > starter)
        mica_sort(out + starter, count - starter, sizeof *out, by_order);
    return count;
}

/* Below U+0300 every character is its own normal form C, and composes with nothing before it. */
static int is_composed(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] >= 0xcc) /* the first byte of U+0300 */
            return 0;
    return 1;
}

size_t mica_compose_text(char *out, const char *text, size_t length, void *scratch)
{
    if (is_composed(text, length)) {
        memcpy(out, text, length);
        return length;
    }
    mica_ordered *c = scratch;
    size_t count = mica_decompose_text(c, text, length), kept = 0, starter = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        unsigned class = class_of(c[i]);
        /* Nothing of the same or a higher class may stand between. */
        int last = kept > 0 && starter != kept - 1 ? (int)class_of(c[kept - 1]) : -1;
        uint32_t both = starter != SIZE_MAX && last < (int)class ? mica_unicode_compose(
                                                                       MICA_ORDERED_CODE(c[starter]),
                                                                       MICA_ORDERED_CODE(c[i]))
                                                                 : 0;
        if (both != 0) {
            c[starter] = both;
            continue;
        }
        c[kept] = c[i];
        if (class == 0)
            starter = kept;
        kept++;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < kept; i++)
        bytes += mica_utf8_encode(out + bytes, MICA_ORDERED_CODE(c[i]));
    return bytes;
}
