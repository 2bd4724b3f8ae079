/* Operations on int8 activations and weights, in integer arithmetic only: every processor gives the same bits.
 *
 * An activation q is i8, -127 to 127, and stands for scale * q: there is no zero point, so padding is 0. Calls do not
 * see scales, but the integer factors that follow from them:
 *
 *     r = (s * multiplier + 2^(shift - 1)) >> shift         the product and the shift in 64 bits: rounded half up
 *     y = r, clamped to [low, high]
 *
 * multiplier is 0 to 2^31 - 1, shift 1 to 62. low = 0 is relu; with high = 6 / scale it is relu6. low = high = 0 means
 * -127 and 127.
 *
 * Sums are 32 bits wide and wrap; those of up to 65536 products with a bias of up to 2^30 never do. docs/int8.md is
 * the full specification. None of these operations has a gradient. */
#ifndef MICA_OPS_INT8_H
#define MICA_OPS_INT8_H

#include <mica/ops/conv.h>
#include <mica/ops/pool.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_INT8_PRODUCTS 65536 /* the most in a sum */

/* The multiplier, 2^30 to 2^31 - 1, and the shift for a ratio of scales, which is at least 0 and less than 2^29.
 * Returns false, and sets neither, for any other ratio. Below 2^-32, the multiplier is smaller, or 0. */
MICA_API bool mica_int8_factor(double ratio, int32_t *multiplier, int *shift);

/* ---- From floats and back ---- */

typedef struct mica_int8_scale_opts {
    float scale; /* of the i8 tensor; above 0 */
} mica_int8_scale_opts;

/* y i8 = x * (1 / scale), all f32, clamped to -127 to 127, then rounded half to even. NaN becomes -127. */
MICA_API mica_status mica_quantize(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                   const mica_int8_scale_opts *opts);
/* y f32 = x * scale */
MICA_API mica_status mica_dequantize(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                     const mica_int8_scale_opts *opts);

/* ---- Element by element; y may be exactly an input ---- */

typedef struct mica_int8_rescale_opts {
    int multiplier, shift;
    int low, high;
} mica_int8_rescale_opts;
/* y i8 = x i8 at another scale, or clamped */
MICA_API mica_status mica_int8_rescale(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                       const mica_int8_rescale_opts *opts);

/* y = (a * multiplier[0] + b * multiplier[1] + 2^(shift - 1)) >> shift, clamped. All in 32 bits: multipliers are -2^21
 * to 2^21, shift is 1 to 30. Shapes are the same. */
typedef struct mica_int8_add_opts {
    int multiplier[2], shift;
    int low, high;
} mica_int8_add_opts;
MICA_API mica_status mica_int8_add(mica_context *ctx, const mica_tensor *y, const mica_tensor *a,
                                   const mica_tensor *b, const mica_int8_add_opts *opts);

/* ---- Products ---- */

/* The constants of a product. Weights are -127 to 127 (-128 counts as -127); each output channel has a multiplier and
 * a shift, or all share one. */
typedef struct mica_int8_weights {
    const mica_tensor *w;          /* i8 */
    const mica_tensor *bias;       /* i32 [M] */
    const mica_tensor *multiplier; /* i32 [M] or [1] */
    const mica_tensor *shift;      /* u8 [M] or [1] */
    const mica_tensor *packed;     /* u8: w and bias, packed by mica_int8_pack; NULL: packed at each call */
} mica_int8_weights;

/* Packs weights [M, K] or [M, C / groups, KH, KW] and their bias for the products of this context's instruction set,
 * into u8 [mica_int8_packed_bytes]. Takes scratch. */
typedef struct mica_int8_pack_opts {
    mica_index groups; /* of the convolution; 0: 1 */
    int zero;          /* the zero point of x, for products with one (below) */
    /* Also pack for tiles of 4 x 4 results, which are faster for 3 x 3 convolutions with stride 1 of many channels,
     * channels last. This copy takes eight times the memory of the weights. */
    bool tiled;
} mica_int8_pack_opts;
MICA_API mica_status mica_int8_pack(mica_context *ctx, const mica_tensor *packed, const mica_tensor *w,
                                    const mica_tensor *bias, const mica_int8_pack_opts *opts);
/* The packed size of such weights, whose data is not read; -1, with an error in the context, if they are not valid. */
MICA_API mica_index mica_int8_packed_bytes(mica_context *ctx, const mica_tensor *w,
                                           const mica_int8_pack_opts *opts);

typedef struct mica_int8_limits {
    int low, high;
} mica_int8_limits;

/* y [..., M] from x [..., K] and w [M, K], i8: s = the sum of x w, plus bias. Takes scratch. */
MICA_API mica_status mica_int8_linear(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                      const mica_int8_weights *weights, const mica_int8_limits *opts);

typedef struct mica_int8_conv_opts {
    mica_index stride[2];   /* 0: 1 */
    mica_index pad[2];      /* zeros on each side */
    mica_index dilation[2]; /* 0: 1 */
    mica_index groups;      /* 0: 1 */
    int low, high;
    int pool; /* 2: followed by 2 x 2 max pooling; 0 or 1: no pooling */
} mica_int8_conv_opts;
/* y [N, M, OH, OW], with pool = 2 [N, M, OH / 2, OW / 2], from x [N, C, H, W] and w [M, C / groups, KH, KW], i8, as in
 * mica_conv2d. Takes scratch. */
MICA_API mica_status mica_int8_conv2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                      const mica_int8_weights *weights, const mica_int8_conv_opts *opts);

/* ---- Pooling; takes scratch only for tensors that are not contiguous ---- */

/* The largest of each window, as in mica_max_pool2d: never padding. exclude_pad is ignored. */
MICA_API mica_status mica_int8_max_pool2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                          const mica_pooling_opts *opts);

/* s = the sum of a window's part inside x, at most 65536 values. For a mean, the multiplier includes 1 / (KH KW). */
typedef struct mica_int8_avg_pool_opts {
    mica_index kernel[2], stride[2], pad[2]; /* as in mica_pooling_opts */
    bool ceil_mode;
    int multiplier, shift;
    int low, high;
} mica_int8_avg_pool_opts;
MICA_API mica_status mica_int8_avg_pool2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                          const mica_int8_avg_pool_opts *opts);

/* y [N, C], or [N, C, 1, ...] of x's rank: s = the sum over all axes of x after the first two, at most 65536
 * values. */
typedef struct mica_int8_global_pool_opts {
    bool keep; /* in nets: [N, C, 1, ...] instead of [N, C] */
    int multiplier, shift;
    int low, high;
} mica_int8_global_pool_opts;
MICA_API mica_status mica_int8_global_avg_pool(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                               const mica_int8_global_pool_opts *opts);

/* ---- With zero points and float factors, as in ONNX and other frameworks ----
 *
 * A byte q, -128 to 127, stands for scale * (q - zero). (For unsigned bytes, 128 is subtracted from the byte and from
 * its zero point: mica_affine_flip.) Sums of products are as above; they are converted in f32, each operation rounded,
 * the same on every processor:
 *
 *     y = s * factor, rounded half to even, plus y's zero point; clamped to [low, high]
 *
 * low = high = 0 means -128 and 127. */

typedef struct mica_affine_scale_opts {
    float scale; /* of the i8 tensor; above 0 */
    int zero;    /* its zero point, -128 to 127 */
} mica_affine_scale_opts;

/* y i8 = x / scale, rounded half to even, plus zero, clamped to -128 to 127. NaN becomes -128. */
MICA_API mica_status mica_affine_quantize(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                          const mica_affine_scale_opts *opts);
/* y f32 = (x - zero) * scale */
MICA_API mica_status mica_affine_dequantize(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                            const mica_affine_scale_opts *opts);
/* From u8 to i8, minus 128, or from i8 to u8, plus 128. */
MICA_API mica_status mica_affine_flip(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);

/* y = (a - zero[0]) factor[0] + (b - zero[1]) factor[1], rounded half to even, plus zero[2], clamped. Shapes are the
 * same; y may be exactly an input. */
typedef struct mica_affine_add_opts {
    float factor[2];
    int zero[3];
    int low, high;
} mica_affine_add_opts;
MICA_API mica_status mica_affine_add(mica_context *ctx, const mica_tensor *y, const mica_tensor *a,
                                     const mica_tensor *b, const mica_affine_add_opts *opts);

/* The constants of a product. */
typedef struct mica_affine_weights {
    const mica_tensor *w;      /* i8, -127 to 127; the zero point is 0 */
    const mica_tensor *bias;   /* i32 [M] */
    const mica_tensor *factor; /* f32 [M] or [1]; NULL if the result is s */
    const mica_tensor *packed; /* as above, with the zero point of x; NULL: packed at each call */
} mica_affine_weights;

typedef struct mica_affine_opts {
    int x_zero, y_zero;
    int low, high;
    mica_dtype dtype; /* of y: MICA_I8; MICA_F32: s * factor; MICA_I32: s */
} mica_affine_opts;

/* y [..., M] from x [..., K] i8 and w [M, K]: s = the sum of (x - x_zero) w, plus bias. Takes scratch. */
MICA_API mica_status mica_affine_linear(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                        const mica_affine_weights *weights, const mica_affine_opts *opts);

/* y [..., M, N] = factor * (a - a_zero) (b - b_zero), the product of matrices a [..., M, K] and b [..., K, N], i8; as
 * i8, rounded, plus y_zero. Leading sizes are the same, K is at most 32768. Takes scratch. */
#define MICA_AFFINE_MATMUL_VALUES 32768
typedef struct mica_affine_matmul_opts {
    float factor; /* of sums */
    int a_zero, b_zero, y_zero;
    int low, high;
    mica_dtype dtype; /* of y: MICA_I8, or MICA_F32, which is not rounded */
} mica_affine_matmul_opts;
MICA_API mica_status mica_affine_matmul(mica_context *ctx, const mica_tensor *y, const mica_tensor *a,
                                        const mica_tensor *b, const mica_affine_matmul_opts *opts);

typedef struct mica_affine_conv_opts {
    mica_index stride[2];   /* 0: 1 */
    mica_index pad[2];      /* on each side, with x_zero, which stands for 0 */
    mica_index dilation[2]; /* 0: 1 */
    mica_index groups;      /* 0: 1 */
    int x_zero, y_zero;     /* these and what follows: as in mica_affine_opts */
    int low, high;
    mica_dtype dtype;
} mica_affine_conv_opts;
/* y [N, M, OH, OW] from x [N, C, H, W] i8 and w [M, C / groups, KH, KW]. Takes scratch. */
MICA_API mica_status mica_affine_conv2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                        const mica_affine_weights *weights,
                                        const mica_affine_conv_opts *opts);

/* y [N, C], or [N, C, 1, ...] of x's rank: the mean of x - x_zero over all axes after the first two, at most 65536
 * values, times factor, rounded, plus y_zero. */
typedef struct mica_affine_pool_opts {
    bool keep; /* in nets: [N, C, 1, ...] instead of [N, C] */
    float factor;
    int x_zero, y_zero;
    int low, high;
} mica_affine_pool_opts;
MICA_API mica_status mica_affine_global_avg_pool(mica_context *ctx, const mica_tensor *y,
                                                 const mica_tensor *x, const mica_affine_pool_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
