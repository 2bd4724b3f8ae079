/* UTF-8 as in RFC 3629: no surrogates, nothing above U+10FFFF, no overlong forms. */
#ifndef MICA_SRC_IO_UTF8_H
#define MICA_SRC_IO_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MICA_UTF8_LONGEST 4         /* bytes of a character */
#define MICA_UNICODE_END  0x110000u /* one more than the last code point */

/* The character that the bytes begin with, and its length; length 0 if they begin with none. */
size_t mica_utf8_decode(uint32_t *code, const char *bytes, size_t length);

/* Whether all of it is characters. */
bool mica_utf8_valid(const char *bytes, size_t length);

/* Whether a character may be printed: no control (a terminal would obey it), and none that turns the direction of
 * what stands around it. */
bool mica_utf8_printable(uint32_t code);

/* Writes a code point that is no surrogate, and returns its length. */
size_t mica_utf8_encode(char bytes[MICA_UTF8_LONGEST], uint32_t code);

#endif
