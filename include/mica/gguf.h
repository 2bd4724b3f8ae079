/* GGUF files: settings and tensors of a model, read where they lie in a mapped file.
 *
 * Everything is checked when the file is opened: after that, what a function gives points into the file, lies within it
 * and is aligned as its type wants. The one fault that cannot be caught is a file that is truncated while it is
 * mapped. */
#ifndef MICA_GGUF_H
#define MICA_GGUF_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_gguf mica_gguf;

/* Maps the file and checks all of its header: versions 2 and 3, little-endian. A tensor of a type that Mica does not
 * have is an error, which names it. On failure *out is NULL. */
MICA_API mica_status mica_gguf_open(mica_context *ctx, mica_gguf **out, const char *path);
/* The same over bytes in memory, aligned to 8, which must outlive it. `name` is for messages. */
MICA_API mica_status mica_gguf_over(mica_context *ctx, mica_gguf **out, const void *bytes, size_t size,
                                    const char *name);
MICA_API void mica_gguf_close(mica_gguf *file); /* NULL is fine */

/* ---- Settings ---- */

/* As the file numbers them. */
typedef enum mica_gguf_kind {
    MICA_GGUF_U8,
    MICA_GGUF_I8,
    MICA_GGUF_U16,
    MICA_GGUF_I16,
    MICA_GGUF_U32,
    MICA_GGUF_I32,
    MICA_GGUF_F32,
    MICA_GGUF_BOOL,
    MICA_GGUF_STRING,
    MICA_GGUF_ARRAY,
    MICA_GGUF_U64,
    MICA_GGUF_I64,
    MICA_GGUF_F64,
    MICA_GGUF_KIND_COUNT
} mica_gguf_kind;

MICA_API const char *mica_gguf_kind_name(mica_gguf_kind kind); /* "u32" */

/* Bytes in the file, not terminated. */
typedef struct mica_gguf_text {
    const char *bytes;
    size_t length;
} mica_gguf_text;

typedef struct mica_gguf_array {
    mica_gguf_kind kind; /* of its elements */
    size_t count;
    const unsigned char *bytes; /* as in the file: unaligned, strings with their lengths */
    size_t size;                /* of them all */
} mica_gguf_array;

typedef struct mica_gguf_value {
    mica_gguf_kind kind;
    union {
        uint64_t u;          /* u8, u16, u32, u64, bool */
        int64_t i;           /* i8, i16, i32, i64 */
        double f;            /* f32, f64 */
        mica_gguf_text text; /* string */
        mica_gguf_array array;
    };
} mica_gguf_value;

MICA_API size_t mica_gguf_settings(const mica_gguf *file);
MICA_API mica_status mica_gguf_setting(const mica_gguf *file, mica_gguf_text *key, mica_gguf_value *out,
                                       size_t number);
/* By its key; false: there is none. */
MICA_API bool mica_gguf_find(const mica_gguf *file, mica_gguf_value *out, const char *key);

/* One element of an array of numbers as a double or int64 (false: there is none, or it is no number, or no integer that
 * fits); bools are 0 and 1, and a value that is a number itself is the first of one. */
MICA_API bool mica_gguf_number_at(const mica_gguf_value *array, double *out, size_t number);
MICA_API bool mica_gguf_integer_at(const mica_gguf_value *array, int64_t *out, size_t number);
/* The strings of an array one after the other: `at` starts at 0. False: there is no further one. */
MICA_API bool mica_gguf_next_text(const mica_gguf_value *array, mica_gguf_text *out, size_t *at);

/* ---- Tensors ---- */

MICA_API size_t mica_gguf_tensors(const mica_gguf *file);
/* Over the file's own bytes, read-only. The last size is the row, as everywhere in Mica: the file's first. */
MICA_API mica_status mica_gguf_tensor(const mica_gguf *file, mica_gguf_text *name, mica_tensor *out,
                                      size_t number);
MICA_API bool mica_gguf_find_tensor(const mica_gguf *file, mica_tensor *out, const char *name);

/* The file's number of a dtype, or -1; and the other way round, or MICA_DTYPE_COUNT. */
MICA_API int mica_gguf_type(mica_dtype dtype);
MICA_API mica_dtype mica_gguf_dtype(uint32_t type);

/* ---- Writing ---- */

/* One setting. A text's or array's bytes are the caller's; those of an array are as in a file, so that a value of an
 * open file can be written as it is. */
typedef struct mica_gguf_new_setting {
    const char *key;
    mica_gguf_value value; /* its kind MICA_GGUF_KIND_COUNT: the setting is left out */
} mica_gguf_new_setting;

/* Makes rows row, row + 1, ... of a tensor, as many as `piece` [rows, values of a row] has. A failure ends the writing
 * and is returned. */
typedef mica_status mica_gguf_make_fn(void *user, mica_context *ctx, const mica_tensor *piece,
                                      mica_index row);

/* One tensor: of rank 1 to 4, contiguous, of a dtype that GGUF has. */
typedef struct mica_gguf_new_tensor {
    const char *name;
    mica_tensor tensor; /* with `make` its data may be NULL */
    /* NULL: the tensor's own data are written. Else it is called for one piece of whole rows after the other, so that
     * no more than a piece is in memory: rows are what is left when all axes but the last are joined. */
    mica_gguf_make_fn *make;
    void *user; /* for make */
} mica_gguf_new_tensor;

typedef struct mica_gguf_write_opts {
    const mica_gguf *copy; /* its settings come first, in its order; NULL: none */
    /* Those with a key of the copied ones take their places, the others follow. */
    const mica_gguf_new_setting *settings;
    size_t setting_count;
    size_t piece; /* bytes that make is called for at most, or one row; 0: 4 MiB */
} mica_gguf_write_opts;

/* Writes version 3, tensors in the order given, to a file that replaces PATH once all of it is on disk, as
 * mica_safetensors_write does. PATH may be the file that `copy` or the tensors' data are in. A setting
 * "general.alignment" (u32) sets the alignment; without one it is 32. */
MICA_API mica_status mica_gguf_write(mica_context *ctx, const char *path, const mica_gguf_new_tensor *tensors,
                                     size_t count, const mica_gguf_write_opts *opts);

/* ---- Quantizing ---- */

/* What files are quantized to, and their numbers in the setting general.file_type. Up to Q8_0 and in Q6_K, most tensors
 * have the type of that name; the others are mixes, in which some tensors have more bits: docs/text-models.md. */
#define MICA_GGUF_MIX_LIST(X) \
    X(F32, 0)                 \
    X(F16, 1)                 \
    X(BF16, 32)               \
    X(Q4_0, 2)                \
    X(Q4_1, 3)                \
    X(Q5_0, 8)                \
    X(Q5_1, 9)                \
    X(Q8_0, 7)                \
    X(Q2_K, 10)               \
    X(Q3_K_S, 11)             \
    X(Q3_K_M, 12)             \
    X(Q3_K_L, 13)             \
    X(Q4_K_S, 14)             \
    X(Q4_K_M, 15)             \
    X(Q5_K_S, 16)             \
    X(Q5_K_M, 17)             \
    X(Q6_K, 18)               \
    X(IQ4_NL, 25)             \
    X(IQ4_XS, 30)

typedef enum mica_gguf_mix {
#define MICA_GGUF_MIX_ENUM(name, number) MICA_MIX_##name,
    MICA_GGUF_MIX_LIST(MICA_GGUF_MIX_ENUM)
#undef MICA_GGUF_MIX_ENUM
        MICA_MIX_COUNT
} mica_gguf_mix;

MICA_API const char *mica_gguf_mix_name(mica_gguf_mix mix); /* "Q4_K_M" */

/* Where quantizing is. */
typedef struct mica_gguf_quantizing {
    size_t number, tensors; /* of a tensor, from 0; and how many there are */
    const char *name;
    mica_tensor from, to;       /* `to` without data */
    size_t values, values_done; /* of it */
} mica_gguf_quantizing;

typedef struct mica_gguf_quantize_opts {
    mica_gguf_mix mix;
    /* No tensor gets more bits than the others: all that fit it have the type that the mix is named after. */
    bool pure;
    /* Called before the first and after every piece of each tensor; once per tensor if no file is written.
     * Anything but MICA_OK ends the work and is returned. NULL: no reports. */
    mica_status (*report)(void *user, mica_context *ctx, const mica_gguf_quantizing *at);
    void *user;
} mica_gguf_quantize_opts;

/* Writes the file at `path`, which it replaces once all is written: `in` with other types of tensors, as
 * llama-quantize chooses them. Norms, biases and what else is small stay as they are; a row that the block does not
 * divide falls back to a type that fits. Values go through f32, a few rows at a time: memory does not depend on the
 * file's size. A value that is not finite, or that its type cannot hold, is a format error. With `path` NULL nothing
 * is written, and report shows what would be. */
MICA_API mica_status mica_gguf_quantize(mica_context *ctx, const mica_gguf *in, const char *path,
                                        const mica_gguf_quantize_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
