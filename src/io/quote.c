/* Names and paths in messages. */
#include "io/quote.h"

#include <stdbool.h>
#include <string.h>

#define MOST_SHOWN 92 /* characters between the quotes, the dots not counted */

static bool plain(unsigned char c) { return c >= 0x20 && c != 0x7f && c != '"' && c != '\\'; }

static size_t width(unsigned char c) { return plain(c) ? 1 : 4; }

static char *put(char *to, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    if (plain(c)) {
        *to++ = (char)c;
        return to;
    }
    *to++ = '\\';
    *to++ = 'x';
    *to++ = digits[c >> 4];
    *to++ = digits[c & 15];
    return to;
}

static bool continues(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

mica_quote mica_quote_of(const char *bytes, size_t length)
{
    const unsigned char *s = (const unsigned char *)bytes;
    size_t head = 0, shown = 0;
    while (head < length && shown + width(s[head]) <= MOST_SHOWN)
        shown += width(s[head++]);
    size_t tail = length;
    if (head < length) { /* too long: as much of its start as of its end */
        for (shown = 0, head = 0; shown + width(s[head]) <= MOST_SHOWN / 2;)
            shown += width(s[head++]);
        for (shown = 0; shown + width(s[tail - 1]) <= MOST_SHOWN / 2;)
            shown += width(s[--tail]);
        while (head > 0 && continues(bytes[head])) /* cut between characters, not in one */
            head--;
        while (tail < length && continues(bytes[tail]))
            tail++;
    }
    mica_quote quote = {{0}};
    char *to = quote.text;
    *to++ = '"';
    for (size_t i = 0; i < head; i++)
        to = put(to, s[i]);
    if (tail > head) {
        memcpy(to, "...", 3);
        to += 3;
    }
    for (size_t i = tail; i < length; i++)
        to = put(to, s[i]);
    *to++ = '"';
    *to = '\0';
    return quote;
}

mica_quote mica_quote_string(const char *string) { return mica_quote_of(string, strlen(string)); }
