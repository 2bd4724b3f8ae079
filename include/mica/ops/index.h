/* Elements and slices by indices that a net computes, orders and sums along an axis, parts of matrices.
 *
 * Operations that only move elements take any plain dtype, and dst and src have the same. Tensors may have any layout.
 * Indices are i32 or i64, from 0 to size - 1; one that is not is an error, and nothing is written. Axes may be
 * negative, counting from the end. mica/ops/shape.h has the simpler ones, gather and take. */
#ifndef MICA_OPS_INDEX_H
#define MICA_OPS_INDEX_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* dst = index, with the size added where it is negative: of an axis of `like`; with `tuples`, element j of each tuple
 * (index's last axis) is for axis `batch` + j of it. What is out of range stays so. dst may be exactly index. */
typedef struct mica_wrap_opts {
    int axis;
    bool tuples;
    int batch;
} mica_wrap_opts;
MICA_API mica_status mica_wrap_indices(mica_context *ctx, const mica_tensor *dst, const mica_tensor *index,
                                       const mica_tensor *like, const mica_wrap_opts *opts);

/* Slices by tuples of indices: dst[b..., i...] = src[b..., index[b..., i..., 0], index[b..., i..., 1], ...]. index is
 * [B..., I..., K], src [B..., K axes..., S...], dst [B..., I..., S...], where `batch` says how many axes B are. */
MICA_API mica_status mica_gather_nd(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                    const mica_tensor *index, int batch);
/* dx = 0, then dy's slices are added to where they came from, in the row-major order of the tuples. f32. */
MICA_API mica_status mica_gather_nd_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                             const mica_tensor *index, int batch);

/* What a scatter does with the element that is there, in the row-major order of the indices. All but the first take
 * f32, f64 and integers, whose sums and products wrap around. */
typedef enum mica_scatter_kind {
    MICA_SCATTER_SET, /* the last one stays */
    MICA_SCATTER_ADD,
    MICA_SCATTER_MUL,
    MICA_SCATTER_MIN, /* NaN where one of the two is */
    MICA_SCATTER_MAX,
} mica_scatter_kind;

typedef struct mica_scatter_opts {
    int axis; /* of scatter */
    mica_scatter_kind kind;
} mica_scatter_opts;

/* dst[index[i][j][k]][j][k] = src[i][j][k] for axis 0, and so on: src has index's shape; index has dst's rank, and is
 * no larger along the other axes. */
MICA_API mica_status mica_scatter(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                  const mica_tensor *index, const mica_scatter_opts *opts);
/* dst[index[i..., 0], index[i..., 1], ...] = src[i...], slices as in gather_nd without a batch. */
MICA_API mica_status mica_scatter_nd(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                     const mica_tensor *index, mica_scatter_kind kind);

/* A cache is written to: dst[b, ..., start[b] + t, ...] = src[b, ..., t, ...]. start [B] of i32 or i64; NULL: 0. */
typedef struct mica_tensor_scatter_opts {
    int axis;      /* of t, not 0; 0: the last but one */
    bool circular; /* positions are taken modulo the size of dst; otherwise all must be there */
} mica_tensor_scatter_opts;
MICA_API mica_status mica_tensor_scatter(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                         const mica_tensor *start, const mica_tensor_scatter_opts *opts);

/* The k largest along an axis, and where they were (i32 or i64), from the largest on; of equal ones the first comes
 * first. values and places have src's shape, but k elements along the axis. NaN is larger than all others. Takes
 * scratch. */
typedef struct mica_top_k_opts {
    int axis;
    mica_index k;  /* of the entry: how many; 0: 1. The C function takes it from values */
    bool smallest; /* from the smallest on */
    bool last;     /* of equal ones the last comes first */
} mica_top_k_opts;
MICA_API mica_status mica_top_k(mica_context *ctx, const mica_tensor *values, const mica_tensor *places,
                                const mica_tensor *src, const mica_top_k_opts *opts);

/* dst is values[1] at index[...] along a new axis `axis` of dst, values[0] elsewhere: values has two elements, of dst's
 * dtype. Negative indices count from the end; those out of range have no place. */
MICA_API mica_status mica_one_hot(mica_context *ctx, const mica_tensor *dst, const mica_tensor *index,
                                  const mica_tensor *values, int axis);

/* Sums of the elements up to each along an axis; dst may be exactly src. f32, f64 and integers, which wrap around. */
typedef struct mica_cumsum_opts {
    int axis;
    bool exclusive; /* without the element itself */
    bool reverse;   /* from the end */
} mica_cumsum_opts;
MICA_API mica_status mica_cumsum(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                 const mica_cumsum_opts *opts);

/* Of matrices [..., M, N] the part on and above diagonal k, where the first is 0 and those above are positive; 0
 * elsewhere. dst may be exactly src. */
typedef struct mica_trilu_opts {
    mica_index k;
    bool lower; /* on and below it */
} mica_trilu_opts;
MICA_API mica_status mica_trilu(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                const mica_trilu_opts *opts);

/* The first lengths[b] elements along an axis in reverse, for each place b of another. */
typedef struct mica_reverse_sequence_opts {
    int time, batch; /* two axes; 0 and 0: time is 1 */
} mica_reverse_sequence_opts;
MICA_API mica_status mica_reverse_sequence(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                           const mica_tensor *lengths,
                                           const mica_reverse_sequence_opts *opts);

/* Determinants [...] of matrices [..., N, N]. f32. Takes scratch. */
MICA_API mica_status mica_det(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src);
/* dx = dy times the cofactors of x. Takes scratch. */
MICA_API mica_status mica_det_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                       const mica_tensor *x);

#ifdef __cplusplus
}
#endif
#endif
