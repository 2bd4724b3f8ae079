/* What plain and transposed convolutions of one and two dimensions share.
 *
 * There are two images and weights between them: the wide image is what a plain convolution reads, the
 * narrow one what it writes. A transposed convolution goes the other way, and so do gradients; so all
 * operations are one of three: make the narrow image, make the wide one, make the weights.
 *
 *                        reads            writes      is
 *   mica_conv_narrow     wide, weight     narrow      conv, gradient of conv_transpose by input
 *   mica_conv_mean       wide, weight     the narrow image's means: conv_mean
 *   mica_conv_pool       wide, weight     the largest of windows of the narrow image
 *   mica_conv_wide       narrow, weight   wide        conv_transpose, gradient of conv by input
 *   mica_conv_weight     wide, narrow     weight      gradient of both by weight
 *
 * In one dimension there is one row of pixels and one row of taps. */
#ifndef MICA_SRC_OPS_CONV_CONV_H
#define MICA_SRC_OPS_CONV_CONV_H

#include <mica/ops/conv.h>
#include <mica/ops/pool.h>

#include "ops/check.h"

/* Narrow position i meets wide position i * stride - pad + t * dilation by tap t. */
typedef struct mica_conv_dim {
    size_t wide, narrow, taps;
    ptrdiff_t stride, pad, dilation;
} mica_conv_dim;

struct mica_conv_path;

typedef struct mica_conv {
    const char *op;
    size_t batch, groups;
    size_t wide_channels, narrow_channels; /* in each group */
    mica_conv_dim rows, columns;
    mica_conv_planes wide, narrow;       /* narrow: of means, one pixel; of windows, one for each */
    mica_conv_taps weight;               /* of a narrow channel, over wide channels */
    ptrdiff_t weight_stride;             /* from one narrow channel to the next */
    const float *prepared;               /* the weights as `wanted` reads them (prepare.h), or NULL */
    const struct mica_conv_path *wanted; /* the path of the narrow image that they are for, or NULL */
    bool biased;                         /* the image that is made has a bias for each channel */
    const float *bias;
    ptrdiff_t bias_stride;
    bool accumulate;
    mica_activation activation;
    mica_map_fn *finish; /* the activation at the end, or NULL */
    float slope;         /* its parameter */
    const mica_pooling_opts *pool;
    int32_t *picks; /* where in its plane the largest of each window lies, or NULL */
} mica_conv;

/* A call as it came in. args[]: outputs first, as in the public header; the others say which is which. */
typedef struct mica_conv_call {
    const char *op;
    int dims; /* 1 or 2 */
    bool transposed;
    mica_arg args[4];
    int count;
    int wide, narrow, weight;
    int bias;                      /* 0: none */
    bool mean;                     /* of the narrow image there are only the means: [N, out] */
    const mica_pooling_opts *pool; /* of the narrow image there are only the largest of windows, or NULL */
    const mica_conv2d_opts *opts;  /* in one dimension [1] counts */
} mica_conv_call;

/* Checks a call and takes it apart. */
mica_status mica_conv_check(mica_context *ctx, mica_conv *out, const mica_conv_call *call);

/* Narrow channels of a group up to which sums of one plane at a time win. */
#if defined(MICA_SMALL)
#define MICA_CONV_DIRECT_CHANNELS SIZE_MAX /* the only path: paths.c */
#else
#define MICA_CONV_DIRECT_CHANNELS 2
#endif

/* Each takes its scratch and runs, or is only measured. */
mica_status mica_conv_narrow(mica_context *ctx, const mica_conv *conv);
mica_status mica_conv_mean(mica_context *ctx, const mica_conv *conv);
mica_status mica_conv_pool(mica_context *ctx, const mica_conv *conv);
mica_status mica_conv_wide(mica_context *ctx, const mica_conv *conv);
mica_status mica_conv_weight(mica_context *ctx, const mica_conv *conv);

/* What a convolution reads to make its narrow image. */
mica_conv_patches mica_conv_patches_of(const mica_conv *conv, const mica_kernels *kernels);

/* For the layers: dst [N, out, PH, PW] = the largest of each window of what mica_conv2d gives, then the
 * activation; the image itself is never there as a whole. indices as mica_max_pool2d has them, or NULL. Both
 * are contiguous. */
typedef struct mica_conv_pool_args {
    const mica_tensor *x, *w, *bias;
    const mica_conv2d_opts *conv;
    const mica_pooling_opts *pool;
} mica_conv_pool_args;
mica_status mica_conv2d_max_pool(mica_context *ctx, const mica_tensor *dst, const mica_tensor *indices,
                                 const mica_conv_pool_args *args);

/* Whether rows x columns pixels lie at one stride. */
bool mica_conv_pixel_stride(ptrdiff_t *stride, size_t rows, size_t columns, ptrdiff_t row_stride,
                            ptrdiff_t column_stride);

/* Wide positions, 0 included, to narrow ones. The options are checked to keep this from overflowing. */
#define MICA_CONV_MOST_OPTION ((mica_index)INT32_MAX)
mica_status mica_conv_check_option(mica_context *ctx, const char *op, const char *name, mica_index value);

#endif
