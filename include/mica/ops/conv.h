/* Convolution in one and two dimensions, plain and transposed, with its gradients.
 *
 * All tensors are f32, of any layout. The batch may be empty. Nothing may overlap dst.
 *
 *                     conv2d                              conv_transpose2d
 *   x                 [N, in, H, W]                       [N, in, H, W]
 *   w                 [out, in / groups, KH, KW]          [in, out / groups, KH, KW]
 *   bias              [out], or NULL                      [out], or NULL
 *   dst               [N, out, OH, OW]                    [N, out, OH, OW]
 *                     OH = (H + 2 pad -                   OH = (H - 1) stride - 2 pad +
 *                       dilation (KH - 1) - 1)                   dilation (KH - 1) + 1 +
 *                          / stride + 1                          output_pad
 *
 * In one dimension H, KH and OH are not there. Depthwise is groups == in. What is called a convolution here
 * is, as everywhere in this field, a correlation: the kernel is not mirrored.
 *
 * Kernels of three by three, and of three in a row, at stride 1 between many channels go by Winograd's transforms,
 * which take a quarter (in one dimension a half) of the multiplications; those of three rows between four channels or
 * more go by the same down the columns alone, which takes a half. On inputs of about 1 in size they are within
 * 2e-5 of the square root of the number of products of a sum, three to six times what plain sums make, and a NaN
 * or an infinity reaches all results of its tile of 4 x 4, or of four rows. mica_context_opts.no_winograd keeps to
 * plain sums. */
#ifndef MICA_OPS_CONV_H
#define MICA_OPS_CONV_H

#include <mica/ops/activation.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zeros are the defaults; NULL is all defaults. Sizes are for height, then width. */
typedef struct mica_conv2d_opts {
    mica_index stride[2];       /* 0: 1 */
    mica_index pad[2];          /* zeros on each side */
    mica_index dilation[2];     /* 0: 1 */
    mica_index groups;          /* 0: 1 */
    mica_index output_pad[2];   /* of a transposed convolution: below its stride or its dilation */
    bool accumulate;            /* adds to the destination instead of overwriting it */
    mica_activation activation; /* that a forward ends with, after all is added; not of gradients */
    float slope;                /* of MICA_LEAKY_RELU and MICA_ELU */
} mica_conv2d_opts;

typedef struct mica_conv1d_opts {
    mica_index stride;
    mica_index pad;
    mica_index dilation;
    mica_index groups;
    mica_index output_pad;
    bool accumulate;
    mica_activation activation;
    float slope;
} mica_conv1d_opts;

/* ---- Two dimensions ----------------------------------------------------------------------------------- */

MICA_API mica_status mica_conv2d(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                 const mica_tensor *w, const mica_tensor *bias, const mica_conv2d_opts *opts);
/* dst [N, out] (or [N, out, 1, 1]) = the mean over all pixels of what mica_conv2d gives, activation included: the
 * image itself is never kept as a whole. `accumulate` adds the means to dst. Sums are exact to about fifty half-ulps
 * of the mean magnitude, however large the image. */
MICA_API mica_status mica_conv2d_mean(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                      const mica_tensor *w, const mica_tensor *bias,
                                      const mica_conv2d_opts *opts);
/* dx has the shape of x, dy that of dst. */
MICA_API mica_status mica_conv2d_backward_input(mica_context *ctx, const mica_tensor *dx,
                                                const mica_tensor *dy, const mica_tensor *w,
                                                const mica_conv2d_opts *opts);
MICA_API mica_status mica_conv2d_backward_weight(mica_context *ctx, const mica_tensor *dw,
                                                 const mica_tensor *dy, const mica_tensor *x,
                                                 const mica_conv2d_opts *opts);
/* db[c] is the sum of dy over the batch and all pixels: of a transposed convolution too. Of the options only
 * `accumulate` counts. */
MICA_API mica_status mica_conv2d_backward_bias(mica_context *ctx, const mica_tensor *db,
                                               const mica_tensor *dy, const mica_conv2d_opts *opts);

MICA_API mica_status mica_conv_transpose2d(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                           const mica_tensor *w, const mica_tensor *bias,
                                           const mica_conv2d_opts *opts);
MICA_API mica_status mica_conv_transpose2d_backward_input(mica_context *ctx, const mica_tensor *dx,
                                                          const mica_tensor *dy, const mica_tensor *w,
                                                          const mica_conv2d_opts *opts);
MICA_API mica_status mica_conv_transpose2d_backward_weight(mica_context *ctx, const mica_tensor *dw,
                                                           const mica_tensor *dy, const mica_tensor *x,
                                                           const mica_conv2d_opts *opts);

/* ---- One dimension ------------------------------------------------------------------------------------ */

MICA_API mica_status mica_conv1d(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                 const mica_tensor *w, const mica_tensor *bias, const mica_conv1d_opts *opts);
/* dst [N, out], or [N, out, 1]. */
MICA_API mica_status mica_conv1d_mean(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                      const mica_tensor *w, const mica_tensor *bias,
                                      const mica_conv1d_opts *opts);
MICA_API mica_status mica_conv1d_backward_input(mica_context *ctx, const mica_tensor *dx,
                                                const mica_tensor *dy, const mica_tensor *w,
                                                const mica_conv1d_opts *opts);
MICA_API mica_status mica_conv1d_backward_weight(mica_context *ctx, const mica_tensor *dw,
                                                 const mica_tensor *dy, const mica_tensor *x,
                                                 const mica_conv1d_opts *opts);
MICA_API mica_status mica_conv1d_backward_bias(mica_context *ctx, const mica_tensor *db,
                                               const mica_tensor *dy, const mica_conv1d_opts *opts);

MICA_API mica_status mica_conv_transpose1d(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                           const mica_tensor *w, const mica_tensor *bias,
                                           const mica_conv1d_opts *opts);
MICA_API mica_status mica_conv_transpose1d_backward_input(mica_context *ctx, const mica_tensor *dx,
                                                          const mica_tensor *dy, const mica_tensor *w,
                                                          const mica_conv1d_opts *opts);
MICA_API mica_status mica_conv_transpose1d_backward_weight(mica_context *ctx, const mica_tensor *dw,
                                                           const mica_tensor *dy, const mica_tensor *x,
                                                           const mica_conv1d_opts *opts);

/* ---- Patches as columns -------------------------------------------------------------------------------- */

/* The convolutions above never build these columns; they are here for operations of your own. */
typedef struct mica_im2col_opts {
    mica_index kernel[2];   /* 0: 1 */
    mica_index stride[2];   /* 0: 1 */
    mica_index pad[2];      /* zeros on each side */
    mica_index dilation[2]; /* 0: 1 */
} mica_im2col_opts;

/* dst [N, C KH KW, OH OW] from x [N, C, H, W]: row (c, kh, kw) holds the pixel that this tap meets at each
 * output position. */
MICA_API mica_status mica_im2col(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                 const mica_im2col_opts *opts);
/* dst [N, C, H, W] from columns [N, C KH KW, OH OW]: the sum of all entries that im2col takes from a pixel. */
MICA_API mica_status mica_col2im(mica_context *ctx, const mica_tensor *dst, const mica_tensor *columns,
                                 const mica_im2col_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
