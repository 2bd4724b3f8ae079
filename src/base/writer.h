/* Text built in a caller's buffer, like snprintf: always terminated, and still counted when it is full. */
#ifndef MICA_SRC_BASE_WRITER_H
#define MICA_SRC_BASE_WRITER_H

#include <stddef.h>

typedef struct mica_writer {
    char *text;
    size_t size;   /* of the buffer */
    size_t length; /* of all that was put so far, whether it fitted or not */
} mica_writer;

void mica_put(mica_writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
