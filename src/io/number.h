/* Decimal numbers in text, independent of the locale: a program may have set one that writes 0,5. */
#ifndef MICA_SRC_IO_NUMBER_H
#define MICA_SRC_IO_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole of text[length] as the nearest double: [+-] digits [. digits] [e [+-] digits], with a digit on one side of
 * the point at least; or nan, inf, infinity with an optional sign, in any case. False if it is none, or
 * longer than any sensible one. A number beyond the range of a double is an infinity, one too small is 0. */
bool mica_parse_number(double *out, const char *text, size_t length);

/* The whole of text[length], all digits, as a whole number; false if it is none, or too large. */
bool mica_parse_unsigned(uint64_t *out, const char *text, size_t length);

/* Room for any number that is printed. */
#define MICA_NUMBER_ROOM 48

/* The number as "%.*g" of so many digits, at most 17, writes it where the point is a point: which JSON and
 * mica_parse_number take, unless it is not finite. Returns text. */
const char *mica_print_number(char text[MICA_NUMBER_ROOM], int digits, double number);

#endif
