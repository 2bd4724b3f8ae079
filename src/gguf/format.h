/* GGUF, as the reader and the writer know it.
 *
 *     | "GGUF" | version (u32) | tensors (u64) | settings (u64) |
 *     | setting: key (string), kind (u32), value | ...
 *     | tensor: name (string), rank (u32), sizes (u64, the row's first), type (u32), offset (u64) | ...
 *     | zeros up to a multiple of the alignment |
 *     | the tensors' bytes: each begins at a multiple of the alignment, counted from the first of them |
 *
 * A string is its length (u64) and its bytes; an array the kind of its elements (u32), their count (u64), and these.
 * All numbers are little-endian. */
#ifndef MICA_SRC_GGUF_FORMAT_H
#define MICA_SRC_GGUF_FORMAT_H

#include <mica/gguf.h>

#include "io/file.h"

#define MICA_GGUF_MAGIC         "GGUF"
#define MICA_GGUF_START         24u /* bytes in front of the first setting */
#define MICA_GGUF_VERSION       3u /* that is written; 2 is read as well, and is the same but for its number */
#define MICA_GGUF_LONGEST_KEY   65535u
#define MICA_GGUF_LONGEST_NAME  63u /* of a tensor */
#define MICA_GGUF_MOST_RANK     4
#define MICA_GGUF_ALIGNMENT     32u /* unless a setting says otherwise */
#define MICA_GGUF_ALIGNMENT_KEY "general.alignment"

/* The alignments that can be: 8 so that every element is aligned, and no more than keeps a file in proportion. */
#define MICA_GGUF_LEAST_ALIGNMENT 8u
#define MICA_GGUF_MOST_ALIGNMENT  ((uint32_t)1 << 20)

typedef struct mica_gguf_pair {
    mica_gguf_text key;
    mica_gguf_value value;
} mica_gguf_pair;

typedef struct mica_gguf_entry {
    mica_gguf_text name;
    mica_tensor tensor;
} mica_gguf_entry;

struct mica_gguf {
    mica_context *ctx;
    const char *name; /* of the file, for messages */
    mica_map map;     /* if it is mapped */
    const unsigned char *bytes;
    size_t size;
    mica_gguf_pair *settings;
    const void **sorted_settings; /* mica_gguf_pair, by key */
    size_t setting_count;
    mica_gguf_entry *tensors;
    const void **sorted_tensors; /* mica_gguf_entry, by name */
    size_t tensor_count;
    uint32_t alignment;
    size_t own_bytes; /* of the block that this struct begins */
};

/* Bytes of an element; 0 for strings and arrays. `kind` is a valid one. */
size_t mica_gguf_kind_bytes(mica_gguf_kind kind);

/* A number as files have it. */
static inline uint64_t mica_gguf_load(const unsigned char *bytes, size_t size)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++)
        number |= (uint64_t)bytes[i] << (8 * i);
    return number;
}

/* Sets value->u, i or f from a number of its kind. */
void mica_gguf_load_number(mica_gguf_value *value, const unsigned char *bytes);

/* Byte order of two texts; a beginning comes first. */
int mica_gguf_compare(mica_gguf_text a, mica_gguf_text b);

/* "q4_K" for a type of ggml's, ours or not; NULL if it is none. */
const char *mica_gguf_type_name(uint32_t type);

#endif
