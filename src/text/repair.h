/* Bytes that should be UTF-8, one at a time: what is not becomes U+FFFD, one for each maximal part that begins a
 * character and does not end it, as Unicode recommends (chapter 3.9). */
#ifndef MICA_SRC_TEXT_REPAIR_H
#define MICA_SRC_TEXT_REPAIR_H

#include <stddef.h>

/* A character that is not whole yet. */
typedef struct mica_partial {
    unsigned char byte[4];
    int count;
} mica_partial;

/* Where bytes go: written if there is room, counted in any case. */
typedef struct mica_written {
    char *text;
    size_t size, length;
} mica_written;

void mica_written_put(mica_written *out, const void *bytes, size_t count);

/* Takes one byte, and writes what it completes or proves wrong. */
void mica_repair_byte(mica_partial *partial, mica_written *out, unsigned char byte);
/* The end: what is not whole is U+FFFD. */
void mica_repair_end(mica_partial *partial, mica_written *out);

/* A whole text; the length afterwards, at most three times as long. out may be NULL. */
size_t mica_repair(char *out, size_t size, const char *text, size_t length);

#endif
