/* Shape operations that copy: rearranging, concatenating, padding, indexing.
 *
 * Operations that only move elements take any plain dtype; those that add take f32. Tensors may have any layout.
 * dst must have the shape documented for each, and must not overlap the inputs. The views of mica/tensor.h do
 * the first group without copying. Axes may be negative, counting from the end. */
#ifndef MICA_OPS_SHAPE_H
#define MICA_OPS_SHAPE_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- One tensor, rearranged; converted to dst's dtype as mica_copy does ---------------------------------
 */

/* The same elements in row-major order; dst has any shape with as many. */
MICA_API mica_status mica_reshape(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src);

/* Elements start, start + step, ... along an axis: as many as dst has there. A negative start counts from the
 * end; every position must exist. */
typedef struct mica_slice_opts {
    int axis;
    mica_index start;
    mica_index step; /* 0: 1. Negative: backwards. */
} mica_slice_opts;
MICA_API mica_status mica_slice(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                const mica_slice_opts *opts);

MICA_API mica_status mica_transpose(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                    int axis_a, int axis_b);
/* Axis k of dst is axis axes[k] of src. */
MICA_API mica_status mica_permute(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                  const int *axes);
/* Its gradient by src is the sum of dst's over the axes that were repeated. */
MICA_API mica_status mica_broadcast_to(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src);
/* Removes an axis of size 1, or with MICA_ALL_AXES all of them. */
MICA_API mica_status mica_squeeze(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                  int axis);
/* Adds an axis of size 1, which becomes axis `axis` of dst. */
MICA_API mica_status mica_unsqueeze(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                    int axis);
/* Merges axes first to last into one. */
MICA_API mica_status mica_flatten(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                  int first, int last);
MICA_API mica_status mica_flip(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src, int axis);

/* ---- Several tensors, concatenated or split; converted as mica_copy does --------------------------------
 */

/* Concatenates along an axis, where dst's size is the sum of theirs; all other sizes are equal. The
 * gradient of concat is split, and vice versa. */
MICA_API mica_status mica_concat(mica_context *ctx, const mica_tensor *dst, const mica_tensor *const *srcs,
                                 int count, int axis);
MICA_API mica_status mica_split(mica_context *ctx, const mica_tensor *const *dsts, int count,
                                const mica_tensor *src, int axis);
/* Stacks along a new axis of size `count`, which becomes axis `axis` of dst. */
MICA_API mica_status mica_stack(mica_context *ctx, const mica_tensor *dst, const mica_tensor *const *srcs,
                                int count, int axis);

/* src repeated along each axis to fill dst, whose size must be a multiple. src may
 * have fewer axes: leading ones of size 1 are added. */
MICA_API mica_status mica_tile(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src);
/* dx: the sum of all repetitions in dy, in row-major order of them. f32. */
MICA_API mica_status mica_tile_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy);

/* ---- Padding -------------------------------------------------------------------------------------------
 */

typedef enum mica_pad_mode {
    MICA_PAD_CONSTANT, /* with `value` */
    MICA_PAD_REFLECT, /* reflected at the first and last element, which are not repeated: 3 2 | 1 2 3 4 | 3 2 */
    MICA_PAD_EDGE,    /* the first and last element, repeated: 1 1 | 1 2 3 4 | 4 4 */
    MICA_PAD_WRAP,    /* from the other end, as often as needed: 3 4 | 1 2 3 4 | 1 2 */
} mica_pad_mode;

typedef struct mica_pad_opts {
    mica_index before[MICA_MAX_RANK], after[MICA_MAX_RANK]; /* elements added at each end of each axis */
    mica_pad_mode mode;
    double value;
} mica_pad_opts;

/* dst is src with `before` and `after` elements around it; at most size - 1 each when reflecting. */
MICA_API mica_status mica_pad(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                              const mica_pad_opts *opts);
/* dx: dy without its padding; elements that were repeated there are added to their source. f32. */
MICA_API mica_status mica_pad_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                       const mica_pad_opts *opts);
/* dst is src without `before` and `after` elements at the ends of its axes. The gradient is pad with 0. */
MICA_API mica_status mica_unpad(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                const mica_pad_opts *opts);

/* ---- Indexing --------------------------------------------------------------------------------------------
 */

/* Indices are i32 or i64, from 0 to size - 1. One that is not is an error, and nothing is written. dst and
 * src have the same dtype. Additions to one element happen in the row-major order of the indices. */

/* dst[i][j][k] = src[index[i][j][k]][j][k] for axis 0, and so on. dst has index's shape; index has src's
 * rank, and is no larger along the other axes. */
MICA_API mica_status mica_gather(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                 const mica_tensor *index, int axis);
/* dst[index[i][j][k]][j][k] += src[i][j][k] for axis 0, and so on: src has index's shape. The gradient by src
 * is gather, and by dst the gradient itself. f32. */
MICA_API mica_status mica_scatter_add(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                      const mica_tensor *index, int axis);
/* dx = 0, then scatter_add(dx, dy, index). f32. */
MICA_API mica_status mica_gather_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                          const mica_tensor *index, int axis);

/* Whole slices: dst[..., t, ...] = src[..., index[t], ...], where index may have any rank. In dst, index's
 * axes replace src's `axis`: for axis 0, [B, T] of [V, C] gives [B, T, C]. src may be block-quantized, where
 * `axis` is not the last; dst is plain. */
MICA_API mica_status mica_take(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                               const mica_tensor *index, int axis);
/* The reverse: dst[..., index[t], ...] += src[..., t, ...]. f32. */
MICA_API mica_status mica_index_add(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                    const mica_tensor *index, int axis);
/* dx = 0, then index_add(dx, dy, index). f32. */
MICA_API mica_status mica_take_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                        const mica_tensor *index, int axis);

#ifdef __cplusplus
}
#endif
#endif
