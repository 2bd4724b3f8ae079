/* Names and paths in messages: untrusted, so they may be long or contain anything. */
#ifndef MICA_SRC_IO_QUOTE_H
#define MICA_SRC_IO_QUOTE_H

#include <stddef.h>

typedef struct mica_quote {
    char text[104];
} mica_quote;

/* "name" in quotes: quotes, backslashes and what is not printable UTF-8 as \x0a, byte by byte, and the middle of a
 * long one as "...". */
mica_quote mica_quote_of(const char *bytes, size_t length);
mica_quote mica_quote_string(const char *string);

/* As an argument of mica_fail. */
#define MICA_QUOTE(string)         (mica_quote_string(string).text)
#define MICA_QUOTE_N(bytes, count) (mica_quote_of(bytes, count).text)

#endif
