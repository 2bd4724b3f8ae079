/* Names and paths in messages. */
#include "io/quote.h"

#include <string.h>

#include "io/utf8.h"

#define MOST_SHOWN 92 /* characters between the quotes, the dots not counted */

/* The bytes at s that are shown as they are: a printable character; 0: the first is to be escaped. */
static size_t plain(const char *s, size_t length)
{
    uint32_t code;
    size_t size = mica_utf8_decode(&code, s, length);
    return size > 0 && mica_utf8_printable(code) && code != '"' && code != '\\' ? size : 0;
}

/* Goes over one character, or one byte that is none. *shown: how many bytes stand for it. */
static size_t step(const char *s, size_t length, size_t *shown)
{
    size_t size = plain(s, length);
    *shown = size > 0 ? size : 4;
    return size > 0 ? size : 1;
}

/* Where to stop, from `at` on, for no more than `most` bytes to be shown. */
static size_t end_within(const char *s, size_t at, size_t length, size_t most)
{
    size_t shown, size;
    for (; at < length; at += size, most -= shown) {
        size = step(s + at, length - at, &shown);
        if (shown > most)
            break;
    }
    return at;
}

static char *put(char *to, const char *s, size_t from, size_t end, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t at = from, size; at < end; at += size) {
        size = plain(s + at, length - at);
        if (size > 0) {
            memcpy(to, s + at, size);
            to += size;
            continue;
        }
        unsigned char c = (unsigned char)s[at];
        memcpy(to, (char[]){'\\', 'x', digits[c >> 4], digits[c & 15]}, 4);
        to += 4;
        size = 1;
    }
    return to;
}

mica_quote mica_quote_of(const char *bytes, size_t length)
{
    size_t head = end_within(bytes, 0, length, MOST_SHOWN), tail = length;
    if (head < length) { /* too long: as much of its start as of its end */
        head = end_within(bytes, 0, length, MOST_SHOWN / 2);
        /* Forward, by characters, to where the rest fits. No character takes more than 4 bytes. */
        tail = length - (length < 2 * MOST_SHOWN ? length : 2 * MOST_SHOWN);
        tail = tail > head ? tail : head;
        for (size_t shown; end_within(bytes, tail, length, MOST_SHOWN / 2) < length;)
            tail += step(bytes + tail, length - tail, &shown);
    }
    mica_quote quote = {{0}};
    char *to = quote.text;
    *to++ = '"';
    to = put(to, bytes, 0, head, length);
    if (tail > head) {
        memcpy(to, "...", 3);
        to += 3;
    }
    to = put(to, bytes, tail, length, length);
    *to++ = '"';
    *to = '\0';
    return quote;
}

mica_quote mica_quote_string(const char *string) { return mica_quote_of(string, strlen(string)); }
