/* Bytes being read one thing after the other. */
#ifndef MICA_SRC_GGUF_CURSOR_H
#define MICA_SRC_GGUF_CURSOR_H

#include "gguf/format.h"

typedef struct mica_gguf_cursor {
    mica_context *ctx;
    const char *name; /* of the file, for messages */
    const unsigned char *bytes;
    size_t size, at;
} mica_gguf_cursor;

/* "format error: "model.gguf": byte 123: ..." Includes io/quote.h where it is used. */
#define MICA_GGUF_BAD(c, where, format, ...)                                                              \
    mica_fail((c)->ctx, MICA_ERR_FORMAT, "%s: byte %zu: " format, MICA_QUOTE((c)->name), (size_t)(where), \
              __VA_ARGS__)

/* Fails unless so many bytes are left. */
mica_status mica_gguf_need(const mica_gguf_cursor *c, uint64_t bytes, const char *what);

/* A number of `bytes` bytes, not signed. */
mica_status mica_gguf_take(mica_gguf_cursor *c, uint64_t *out, size_t bytes, const char *what);

mica_status mica_gguf_take_text(mica_gguf_cursor *c, mica_gguf_text *out, const char *what);

/* A kind and a value of it, all of which is checked. `of` is the key, for messages. */
mica_status mica_gguf_take_value(mica_gguf_cursor *c, mica_gguf_value *out, const mica_gguf_text *of);

/* The same checks for the elements of an array that somebody wants to write. */
mica_status mica_gguf_check_elements(mica_context *ctx, const mica_gguf_value *value,
                                     const mica_gguf_text *of);

#endif
