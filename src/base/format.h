/* Text from a format, as snprintf makes it.
 *
 * Where the library is built small (MICA_SMALL) it is our own: the C libraries of bare-metal systems leave out some
 * conversions (newlib-nano's ignores %zu and %td without taking their argument, so that a later %s reads another one),
 * and those that do not, bring a heap and 20 KB. */
#ifndef MICA_SRC_BASE_FORMAT_H
#define MICA_SRC_BASE_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* %d %i %u %x %c %s %p %% %f %e %g with flags (- 0 + # and space), width, precision and the lengths h hh l ll z t j.
 * Floats are right to nine digits; more are zeros. */
int mica_format_small(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int mica_vformat_small(char *text, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

#if defined(MICA_SMALL)
#define mica_format  mica_format_small
#define mica_vformat mica_vformat_small
#else
#include <stdio.h>
#define mica_format  snprintf
#define mica_vformat vsnprintf
#endif

#endif
