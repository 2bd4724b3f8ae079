/* Tensors: a value that describes elements it does not own.
 *
 * A tensor is a pointer, an element type, a shape and strides. It owns nothing: copying the struct copies no
 * element, and a view (a slice, a transpose, a reshape, a broadcast) is another struct over the same
 * elements. */
#ifndef MICA_TENSOR_H
#define MICA_TENSOR_H

#include <mica/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every plain dtype: code, name, bytes, values per block (1), C type. Floats that C does not have are stored as their
 * bits; types of fewer than eight bits take a byte each: integers as their value, f4e2m1 as its bits. A bool is 0 or
 * 1. */
#define MICA_DTYPE_PLAIN_LIST(X)               \
    X(F32, "f32", 4, 1, float)                 \
    X(F64, "f64", 8, 1, double)                \
    X(F16, "f16", 2, 1, uint16_t)              \
    X(BF16, "bf16", 2, 1, uint16_t)            \
    X(I64, "i64", 8, 1, int64_t)               \
    X(I32, "i32", 4, 1, int32_t)               \
    X(I16, "i16", 2, 1, int16_t)               \
    X(I8, "i8", 1, 1, int8_t)                  \
    X(U8, "u8", 1, 1, uint8_t)                 \
    X(U16, "u16", 2, 1, uint16_t)              \
    X(U32, "u32", 4, 1, uint32_t)              \
    X(U64, "u64", 8, 1, uint64_t)              \
    X(I4, "i4", 1, 1, int8_t)                  \
    X(U4, "u4", 1, 1, uint8_t)                 \
    X(I2, "i2", 1, 1, int8_t)                  \
    X(U2, "u2", 1, 1, uint8_t)                 \
    X(BOOL, "bool", 1, 1, uint8_t)             \
    X(F8E4M3FN, "f8e4m3fn", 1, 1, uint8_t)     \
    X(F8E4M3FNUZ, "f8e4m3fnuz", 1, 1, uint8_t) \
    X(F8E5M2, "f8e5m2", 1, 1, uint8_t)         \
    X(F8E5M2FNUZ, "f8e5m2fnuz", 1, 1, uint8_t) \
    X(F8E8M0, "f8e8m0", 1, 1, uint8_t)         \
    X(F4E2M1, "f4e2m1", 1, 1, uint8_t)

/* The block-quantized dtypes of GGUF files: code, name, bytes per block, values per block, C type. A block is a
 * byte string of any alignment, laid out as in the file; its values are small integers times scales that are
 * part of the block.
 *
 * Blocks run along the last axis of a tensor, whose size is a multiple of the block and whose stride is 1; the
 * other strides are multiples of the block. Sizes, strides and indices still count values. mica_copy converts
 * from all of these types, and to q4_0, q4_1, q5_0, q5_1 and q8_0; mica_at reads a value; views work as long as
 * they do not split a block. Other operations reject them unless documented otherwise. */
#define MICA_DTYPE_BLOCK_LIST(X)         \
    X(Q4_0, "q4_0", 18, 32, uint8_t)     \
    X(Q4_1, "q4_1", 20, 32, uint8_t)     \
    X(Q5_0, "q5_0", 22, 32, uint8_t)     \
    X(Q5_1, "q5_1", 24, 32, uint8_t)     \
    X(Q8_0, "q8_0", 34, 32, uint8_t)     \
    X(Q2_K, "q2_k", 84, 256, uint8_t)    \
    X(Q3_K, "q3_k", 110, 256, uint8_t)   \
    X(Q4_K, "q4_k", 144, 256, uint8_t)   \
    X(Q5_K, "q5_k", 176, 256, uint8_t)   \
    X(Q6_K, "q6_k", 210, 256, uint8_t)   \
    X(IQ4_NL, "iq4_nl", 18, 32, uint8_t) \
    X(IQ4_XS, "iq4_xs", 136, 256, uint8_t)

#define MICA_DTYPE_LIST(X)   \
    MICA_DTYPE_PLAIN_LIST(X) \
    MICA_DTYPE_BLOCK_LIST(X)

typedef enum mica_dtype {
#define MICA_DTYPE_ENUM(code, name, bytes, block, type) MICA_##code,
    MICA_DTYPE_LIST(MICA_DTYPE_ENUM)
#undef MICA_DTYPE_ENUM
        MICA_DTYPE_COUNT
} mica_dtype;

/* For an invalid dtype: "invalid", 0 and 0. */
MICA_API const char *mica_dtype_name(mica_dtype dtype); /* "f32" */
MICA_API size_t mica_dtype_bytes(mica_dtype dtype);     /* of an element; of a block where there are blocks */
MICA_API size_t mica_dtype_block(mica_dtype dtype);     /* values in a block; 1 for plain types */

/* The largest value of mica_dtype_block, and a multiple of all of them. */
#define MICA_MAX_BLOCK 256

/* Sizes, strides and positions, in elements. Signed: a flipped view has negative strides. */
typedef ptrdiff_t mica_index;

#define MICA_MAX_RANK 8

typedef struct mica_tensor {
    void *data; /* the element at index 0, 0, ... */
    mica_dtype dtype;
    int rank; /* 0 to MICA_MAX_RANK; a tensor of rank 0 has one element */
    mica_index dim[MICA_MAX_RANK];
    mica_index stride[MICA_MAX_RANK]; /* in elements; row-major where contiguous: the last is 1 */
} mica_tensor;

/* How elements are converted, where there is a choice: mica_cast. */
typedef enum mica_cast_rounding { MICA_ROUND_UP, MICA_ROUND_DOWN, MICA_ROUND_NEAREST } mica_cast_rounding;

typedef struct mica_cast_opts {
    bool wrap;     /* to an integer: what does not fit loses its upper bits, as in C */
    bool overflow; /* to an 8-bit float: what does not fit becomes an infinity, or NaN where there is none */
    mica_cast_rounding round; /* to f8e8m0, in magnitude; its sign is lost */
} mica_cast_opts;

/* ---- Creation ---------------------------------------------------------------------------------------- */

/* A contiguous tensor over a buffer that holds all its elements. `data` may be NULL while measuring or
 * planning. Fails on an invalid rank, dtype or size, including a last size that splits a block. */
MICA_API mica_status mica_tensor_init(mica_context *ctx, mica_tensor *out, void *data, mica_dtype dtype,
                                      int rank, const mica_index *dims);

/* The same for f32 of small rank, where the only possible error is a negative size
 * (which every operation rejects). */
MICA_API mica_tensor mica_0d(float *data);
MICA_API mica_tensor mica_1d(float *data, mica_index d0);
MICA_API mica_tensor mica_2d(float *data, mica_index d0, mica_index d1);
MICA_API mica_tensor mica_3d(float *data, mica_index d0, mica_index d1, mica_index d2);
MICA_API mica_tensor mica_4d(float *data, mica_index d0, mica_index d1, mica_index d2, mica_index d3);

/* Contiguous, with the shape and dtype of `like`, over `data`. */
MICA_API mica_tensor mica_tensor_like(const mica_tensor *like, void *data);

/* ---- Properties -------------------------------------------------------------------------------------- */

MICA_API size_t mica_tensor_count(const mica_tensor *t); /* elements */
MICA_API size_t mica_tensor_bytes(const mica_tensor *t); /* of those elements, laid out contiguously */
MICA_API bool mica_tensor_contiguous(const mica_tensor *t);
MICA_API bool mica_tensor_same_shape(const mica_tensor *a, const mica_tensor *b);

/* How two tensors overlap in memory. */
typedef enum mica_overlap {
    MICA_OVERLAP_NONE,    /* no byte in common */
    MICA_OVERLAP_EXACT,   /* the same elements, of the same dtype, at the same indices */
    MICA_OVERLAP_PARTIAL, /* anything else, or too expensive to decide */
} mica_overlap;

MICA_API mica_overlap mica_tensor_overlap(const mica_tensor *a, const mica_tensor *b);

/* Whether two indices of t refer to the same element, as in a broadcast view. Such a tensor cannot be written. */
MICA_API bool mica_tensor_self_overlap(const mica_tensor *t);

/* ---- Elements ---------------------------------------------------------------------------------------- */

/* One element, converted. `index` has t->rank entries; negative ones count from the end. A value inside a block
 * can be read, but not set. */
MICA_API mica_status mica_at(mica_context *ctx, double *value, const mica_tensor *t, const mica_index *index);
MICA_API mica_status mica_set_at(mica_context *ctx, const mica_tensor *t, const mica_index *index,
                                 double value);

/* Iterates over the elements of any layout in row-major order. Axes in `fixed` (bit k for axis k) stay at `start`:
 *
 *     for (mica_iter it = mica_iter_begin(&t, 0, NULL); it.valid; mica_iter_next(&it))
 *             use(it.element, it.index);
 *
 * For block-quantized dtypes, `element` is the block that holds the element. */
typedef struct mica_iter {
    mica_tensor tensor;
    unsigned fixed;
    mica_index index[MICA_MAX_RANK];
    void *element;
    bool valid;
} mica_iter;

MICA_API mica_iter mica_iter_begin(const mica_tensor *t, unsigned fixed, const mica_index *start);
MICA_API void mica_iter_next(mica_iter *it);

/* ---- Views: no element is copied --------------------------------------------------------------------- */

/* Axes may be negative, counting from the end. On failure *out is unchanged. *out may be *t.
 *
 * A view of a block-quantized tensor keeps the last axis in place and consists of whole blocks: rows can be
 * selected, reordered, repeated and reshaped freely, and the last axis sliced at multiples of the block with step 1.
 * A view that would split a block is a shape error. */

/* The same elements in another shape; one size may be -1, to be inferred. Fails if the strides do not allow it
 * without a copy (use mica_reshape to copy). */
MICA_API mica_status mica_view_reshape(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int rank,
                                       const mica_index *dims);

/* Elements start, start + step, ... before stop along an axis, as in Python: negative positions count from
 * the end, out-of-range ones are clamped, and a negative step goes backwards. MICA_END as stop means
 * "through the end" for either direction. */
#define MICA_END PTRDIFF_MIN
MICA_API mica_status mica_view_slice(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis,
                                     mica_index start, mica_index stop, mica_index step);

/* The sub-tensor at one position of an axis; the axis is removed. */
MICA_API mica_status mica_view_select(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis,
                                      mica_index position);

MICA_API mica_status mica_view_transpose(mica_context *ctx, mica_tensor *out, const mica_tensor *t,
                                         int axis_a, int axis_b);
/* Axis k of out is axis axes[k] of t. */
MICA_API mica_status mica_view_permute(mica_context *ctx, mica_tensor *out, const mica_tensor *t,
                                       const int *axes);
MICA_API mica_status mica_view_broadcast(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int rank,
                                         const mica_index *dims);
/* Drops an axis of size 1; MICA_ALL_AXES drops all of them. */
#define MICA_ALL_AXES INT32_MIN
MICA_API mica_status mica_view_squeeze(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis);
/* Inserts an axis of size 1, which becomes axis `axis` of out. */
MICA_API mica_status mica_view_unsqueeze(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis);
/* Merges axes first to last into one. */
MICA_API mica_status mica_view_flatten(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int first,
                                       int last);
MICA_API mica_status mica_view_flip(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis);

/* ---- Printing ---------------------------------------------------------------------------------------- */

/* Writes into text[size], always terminated, and returns the length of the complete text (like snprintf). */
MICA_API size_t mica_tensor_print(char *text, size_t size,
                                  const mica_tensor *t); /* values, nested brackets */
MICA_API size_t mica_tensor_print_shape(char *text, size_t size, const mica_tensor *t); /* "[2, 3]" */

#ifdef __cplusplus
}
#endif
#endif
