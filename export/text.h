/* Text that grows. Running out of memory is remembered, and said once, when the text is taken. */
#ifndef MICA_EXPORT_TEXT_H
#define MICA_EXPORT_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct text {
    char *bytes; /* terminated; NULL: empty */
    size_t length, room;
    bool failed;
} text;

void text_put(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_put_list(text *t, const char *format, va_list list) __attribute__((format(printf, 2, 0)));
/* As it is: no format. */
void text_add(text *t, const char *words);
/* Words from outside, inside a comment: they cannot end it, nor the line. */
void text_put_comment(text *t, const char *words);
/* A C literal that is read back as the same float. */
void text_put_float(text *t, float value);
void text_free(text *t);

#endif
