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
 * In one dimension there is no H, KH and OH. Depthwise is groups == in. As usual in this field, this is a
 * cross-correlation: the kernel is not flipped.
 *
 * 3 x 3 kernels, and kernels of length 3 in one dimension, use Winograd's algorithm at stride 1 between many
 * channels, with a quarter (in one dimension a half) of the multiplications; kernels with three rows between four or
 * more channels use it along the columns alone, with a half. For inputs of magnitude 1 the error is at most 2e-5
 * times the square root of the number of products in a sum, three to six times that of plain sums, and a NaN or an
 * infinity spreads to its whole tile of 4 x 4 results, or four rows. mica_context_opts.no_winograd turns it off. */
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
    mica_index output_pad[2];   /* transposed convolution: less than its stride or dilation */
    bool accumulate;            /* add to the destination instead of overwriting it */
    mica_activation activation; /* applied at the end of the forward; ignored by gradients */
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
/* dst [N, out] (or [N, out, 1, 1]) = the mean over all pixels of the result of mica_conv2d, activation included: the
 * image itself is never stored as a whole. `accumulate` adds the means to dst. Sums are exact to about fifty half-ulps
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
/* db[c] is the sum of dy over the batch and all pixels: of a transposed convolution too. Only `accumulate` of the
 * options is used. */
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

/* The convolutions above never build these columns; they are for your own operations. */
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
