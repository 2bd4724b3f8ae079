/* GGUF files built by hand, so that they can be wrong. */
#ifndef MICA_TESTS_GGUF_BUILD_H
#define MICA_TESTS_GGUF_BUILD_H

#include <stddef.h>
#include <stdint.h>

typedef struct gguf_bytes {
    unsigned char *bytes; /* aligned to 32; gguf_free */
    size_t size, room;
} gguf_bytes;

void gguf_free(gguf_bytes *b);

void gguf_put(gguf_bytes *b, const void *bytes, size_t count);
void gguf_number(gguf_bytes *b, uint64_t number, size_t bytes); /* little-endian */
void gguf_string(gguf_bytes *b, const char *text);
void gguf_pad(gguf_bytes *b, size_t alignment);

void gguf_start(gguf_bytes *b, uint32_t version, uint64_t tensors, uint64_t settings);
void gguf_key(gguf_bytes *b, const char *key, uint32_t kind);
/* Two sizes; `row` is the file's first. */
void gguf_tensor(gguf_bytes *b, const char *name, uint64_t row, uint64_t rows, uint32_t type,
                 uint64_t offset);

/* A sound file of every kind of setting and four types of tensor, a few hundred bytes. */
gguf_bytes gguf_sound(uint32_t version);

#endif
