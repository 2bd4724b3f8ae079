/* Decimal numbers in text: the nearest double, independent of the locale. */
#ifndef MICA_SRC_IO_NUMBER_H
#define MICA_SRC_IO_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole of text[length] as a number: [+-] digits [. digits] [e [+-] digits], with a digit on one side of
 * the point at least; or nan, inf, infinity with an optional sign, in any case. False if it is none, or
 * longer than any sensible one. A number beyond the range of a double is an infinity, one too small is 0. */
bool mica_parse_number(double *out, const char *text, size_t length);

/* The whole of text[length], all digits, as a whole number; false if it is none, or too large. */
bool mica_parse_unsigned(uint64_t *out, const char *text, size_t length);

#endif
