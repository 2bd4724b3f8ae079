/* Pooling: windows of the last two axes, [..., H, W], or of the last, [..., L], reduced to one value each.
 *
 * All leading axes are independent planes, so [N, C, H, W], [C, H, W] and [H, W] all work. Tensors are f32 of
 * any layout; one that is not contiguous is copied through the workspace. An output must not overlap any
 * other argument. Empty batches work; a window larger than the padded input is an error. */
#ifndef MICA_OPS_POOL_H
#define MICA_OPS_POOL_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Along height [0] and width [1]; one-dimensional pooling reads [0] only. */
typedef struct mica_pooling_opts {
    mica_index kernel[2];   /* at least 1 */
    mica_index stride[2];   /* 0: as the kernel */
    mica_index pad[2];      /* on either side; at most half of the (dilated) kernel */
    mica_index dilation[2]; /* 0: 1. Maximum only */
    bool ceil_mode;         /* a last window may extend past the padding, if it starts before its end */
    bool exclude_pad; /* averages divide by the number of elements inside the input, not by the kernel size */
} mica_pooling_opts;

/* The output's size for an input of `size` along axis 0 (height, or length) or 1 (width) of the options; -1
 * if the window does not fit or the options make no sense. */
MICA_API mica_index mica_pooling_size(mica_index size, int axis, const mica_pooling_opts *opts);

/* y [..., OH, OW] = the largest of each window of x [..., H, W]; padding is ignored; NaN wins. `indices`
 * (i32, y's shape; NULL: not wanted) says where in its plane each maximum lies: h * W + w. Of equal values
 * the first counts. */
MICA_API mica_status mica_max_pool2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *indices,
                                     const mica_tensor *x, const mica_pooling_opts *opts);
MICA_API mica_status mica_max_pool1d(mica_context *ctx, const mica_tensor *y, const mica_tensor *indices,
                                     const mica_tensor *x, const mica_pooling_opts *opts);

/* dx [..., H, W] = the sum of dy over the windows whose maximum lay there. Needs nothing but `indices`. */
MICA_API mica_status mica_max_pool2d_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                              const mica_tensor *indices);
MICA_API mica_status mica_max_pool1d_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                              const mica_tensor *indices);

/* y [..., OH, OW] = the mean of each window of x [..., H, W], where padding counts as zeros (but see
 * exclude_pad). */
MICA_API mica_status mica_avg_pool2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                     const mica_pooling_opts *opts);
MICA_API mica_status mica_avg_pool1d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                     const mica_pooling_opts *opts);
MICA_API mica_status mica_avg_pool2d_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                              const mica_pooling_opts *opts);
MICA_API mica_status mica_avg_pool1d_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                              const mica_pooling_opts *opts);

/* y [..., OH, OW] = the means of OH x OW nearly equal parts of x [..., H, W], for any OH and OW: part i along
 * an axis covers floor(i H / OH) up to, not including, ceil((i + 1) H / OH). */
MICA_API mica_status mica_adaptive_avg_pool2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
MICA_API mica_status mica_adaptive_avg_pool1d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
MICA_API mica_status mica_adaptive_avg_pool2d_backward(mica_context *ctx, const mica_tensor *dx,
                                                       const mica_tensor *dy);
MICA_API mica_status mica_adaptive_avg_pool1d_backward(mica_context *ctx, const mica_tensor *dx,
                                                       const mica_tensor *dy);

/* ---- Windows of one to three axes, with unequal padding ------------------------------------------------ */

typedef struct mica_max_pool_opts {
    int axes;                       /* how many of the last axes: 1 to 3 */
    mica_index kernel[3];           /* 0: 1. As many as there are axes, in their order; so are those below */
    mica_index stride[3];           /* 0: 1 */
    mica_index before[3], after[3]; /* padding, which no maximum comes from; less than the dilated kernel */
    mica_index dilation[3];         /* 0: 1 */
    bool ceil_mode;                 /* as above */
    bool flat;                      /* indices count in the whole tensor, not in each plane */
    bool column_major;              /* indices count with the first of the axes fastest */
} mica_max_pool_opts;

/* The output's size for an input of `size` along one of the axes; -1 if the window does not fit or the options make no
 * sense. */
MICA_API mica_index mica_max_pool_size(mica_index size, int axis, const mica_max_pool_opts *opts);

/* y [..., OD, OH, OW] = the largest of each window of x [..., D, H, W]; NaN wins. `indices` (i64, y's shape; NULL: not
 * wanted) says where it lies; -1: the window has no element, and y is -inf. Of equal values the first counts. For
 * windows of one or two axes with equal padding, max_pool1d and max_pool2d are faster. */
MICA_API mica_status mica_max_pool(mica_context *ctx, const mica_tensor *y, const mica_tensor *indices,
                                   const mica_tensor *x, const mica_max_pool_opts *opts);
/* dx [..., D, H, W] = the sum of dy over the windows whose maximum lay there. An index out of range counts for nothing.
 * Of the options, axes, flat and column_major matter. */
MICA_API mica_status mica_max_pool_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                            const mica_tensor *indices, const mica_max_pool_opts *opts);
/* dst = 0, then dst[indices[i]] = x[i], in row-major order of both; indices (i32 or i64) have x's shape. */
MICA_API mica_status mica_max_unpool(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                     const mica_tensor *indices);

/* y [N, C] = the mean over all of x [N, C, ...] that follows the first two axes; y may also be [N, C, 1, ...]
 * of x's rank. After a convolution, mica_conv2d_mean does both. */
MICA_API mica_status mica_global_avg_pool(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);
MICA_API mica_status mica_global_avg_pool_backward(mica_context *ctx, const mica_tensor *dx,
                                                   const mica_tensor *dy);

#ifdef __cplusplus
}
#endif
#endif
