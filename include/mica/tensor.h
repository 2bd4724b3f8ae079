/* Tensors: a value that describes elements somebody else owns.
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

/* Every element type: code, name, bytes, C type that stores it. f16 and bf16 are stored as their bits. */
#define MICA_DTYPE_LIST(X)       \
    X(F32, "f32", 4, float)      \
    X(F64, "f64", 8, double)     \
    X(F16, "f16", 2, uint16_t)   \
    X(BF16, "bf16", 2, uint16_t) \
    X(I64, "i64", 8, int64_t)    \
    X(I32, "i32", 4, int32_t)    \
    X(I16, "i16", 2, int16_t)    \
    X(I8, "i8", 1, int8_t)       \
    X(U8, "u8", 1, uint8_t)

typedef enum mica_dtype {
#define MICA_DTYPE_ENUM(code, name, bytes, type) MICA_##code,
    MICA_DTYPE_LIST(MICA_DTYPE_ENUM)
#undef MICA_DTYPE_ENUM
        MICA_DTYPE_COUNT
} mica_dtype;

MICA_API const char *mica_dtype_name(mica_dtype dtype); /* "f32"; "invalid" for a number that is none */
MICA_API size_t mica_dtype_bytes(mica_dtype dtype);     /* 0 for a number that is none */

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

/* ---- Making ------------------------------------------------------------------------------------------ */

/* A contiguous tensor over a buffer that holds all its elements. `data` may be NULL while measuring or
 * planning. Fails on a rank, a dtype or a size that cannot be. */
MICA_API mica_status mica_tensor_init(mica_context *ctx, mica_tensor *out, void *data, mica_dtype dtype,
                                      int rank, const mica_index *dims);

/* The same for f32 of small rank, where nothing can fail but a negative size
 * (which every operation refuses). */
MICA_API mica_tensor mica_0d(float *data);
MICA_API mica_tensor mica_1d(float *data, mica_index d0);
MICA_API mica_tensor mica_2d(float *data, mica_index d0, mica_index d1);
MICA_API mica_tensor mica_3d(float *data, mica_index d0, mica_index d1, mica_index d2);
MICA_API mica_tensor mica_4d(float *data, mica_index d0, mica_index d1, mica_index d2, mica_index d3);

/* Contiguous, with the shape and dtype of `like`, over `data`. */
MICA_API mica_tensor mica_tensor_like(const mica_tensor *like, void *data);

/* ---- Asking ------------------------------------------------------------------------------------------ */

MICA_API size_t mica_tensor_count(const mica_tensor *t); /* elements */
MICA_API size_t mica_tensor_bytes(const mica_tensor *t); /* of those elements, laid out contiguously */
MICA_API bool mica_tensor_contiguous(const mica_tensor *t);
MICA_API bool mica_tensor_same_shape(const mica_tensor *a, const mica_tensor *b);

/* How the memory of two tensors meets. */
typedef enum mica_overlap {
    MICA_OVERLAP_NONE,    /* no byte in common */
    MICA_OVERLAP_EXACT,   /* the same elements, of the same dtype, at the same indices */
    MICA_OVERLAP_PARTIAL, /* anything else; also where telling would take too long */
} mica_overlap;

MICA_API mica_overlap mica_tensor_overlap(const mica_tensor *a, const mica_tensor *b);

/* Whether two indices of t name the same element, as in a broadcast view. Such a tensor cannot be written to. */
MICA_API bool mica_tensor_self_overlap(const mica_tensor *t);

/* ---- Elements ---------------------------------------------------------------------------------------- */

/* One element, converted. `index` has t->rank entries; negative ones count from the end. */
MICA_API mica_status mica_at(mica_context *ctx, double *value, const mica_tensor *t, const mica_index *index);
MICA_API mica_status mica_set_at(mica_context *ctx, const mica_tensor *t, const mica_index *index,
                                 double value);

/* Visits the elements of any layout in row-major order. Axes in `fixed` (bit k for axis k) stay at `start`:
 *
 *     for (mica_iter it = mica_iter_begin(&t, 0, NULL); it.valid; mica_iter_next(&it))
 *             use(it.element, it.index);
 */
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

/* Axes may be negative, counting from the end. On failure *out is left as it was. *out may be *t. */

/* The same elements in another shape; one size may be -1, to be inferred. Fails where strides do not allow it
 * without copying (use mica_reshape to copy). */
MICA_API mica_status mica_view_reshape(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int rank,
                                       const mica_index *dims);

/* Elements start, start + step, ... before stop along an axis, as in Python: negative positions count from
 * the end, out-of-range ones are clamped, and a negative step walks backwards. MICA_END as stop means
 * "through the end" for either direction. */
#define MICA_END PTRDIFF_MIN
MICA_API mica_status mica_view_slice(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis,
                                     mica_index start, mica_index stop, mica_index step);

/* The sub-tensor at one position of an axis; the axis goes away. */
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
/* Joins axes first to last into one. */
MICA_API mica_status mica_view_flatten(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int first,
                                       int last);
MICA_API mica_status mica_view_flip(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis);

/* ---- Printing ---------------------------------------------------------------------------------------- */

/* Writes into text[size], always terminated, and returns the length that the whole would have (as snprintf
 * does). */
MICA_API size_t mica_tensor_print(char *text, size_t size,
                                  const mica_tensor *t); /* values, nested brackets */
MICA_API size_t mica_tensor_print_shape(char *text, size_t size, const mica_tensor *t); /* "[2, 3]" */

#ifdef __cplusplus
}
#endif
#endif
