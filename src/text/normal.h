/* Normal forms of Unicode over texts. */
#ifndef MICA_SRC_TEXT_NORMAL_H
#define MICA_SRC_TEXT_NORMAL_H

#include <stddef.h>
#include <stdint.h>

/* One character of a decomposed text: its combining class << 53 | place << 21 | code, so that sorting keeps the order
 * of equals. */
typedef uint64_t mica_ordered;
#define MICA_ORDERED_CODE(ordered) ((uint32_t)((ordered)&0x1fffff))

/* A byte of text is two characters of its decomposition at most. */
#define MICA_COMPOSE_SCRATCH(bytes) (2 * (bytes) * sizeof(mica_ordered))

/* Normal form D of a valid text, in canonical order. Returns its characters. out: [2 length]. */
size_t mica_decompose_text(mica_ordered *out, const char *text, size_t length);

/* Normal form C. out: [3 length]; scratch: MICA_COMPOSE_SCRATCH, aligned to 8. Returns the bytes. */
size_t mica_compose_text(char *out, const char *text, size_t length, void *scratch);

#endif
