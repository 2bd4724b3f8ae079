/* UTF-8. */
#include "io/utf8.h"

size_t mica_utf8_decode(uint32_t *code, const char *bytes, size_t length)
{
    const unsigned char *s = (const unsigned char *)bytes;
    if (length == 0)
        return 0;
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    size_t size = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (size == 0 || size > length)
        return 0;
    uint32_t value = s[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (s[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (value < least[size] || value >= MICA_UNICODE_END || (value >= 0xd800 && value < 0xe000))
        return 0;
    *code = value;
    return size;
}

size_t mica_utf8_encode(char bytes[MICA_UTF8_LONGEST], uint32_t code)
{
    if (code < 0x80) {
        bytes[0] = (char)code;
        return 1;
    }
    size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(first[size] | code);
    return size;
}

bool mica_utf8_printable(uint32_t code)
{
    bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    bool line = code == 0x2028 || code == 0x2029;
    bool turns = code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
                 (code >= 0x2066 && code <= 0x2069);
    return !control && !line && !turns;
}

bool mica_utf8_valid(const char *bytes, size_t length)
{
    uint32_t code;
    size_t n = 1;
    for (size_t at = 0; at < length && n > 0; at += n)
        n = mica_utf8_decode(&code, bytes + at, length - at);
    return n > 0;
}
