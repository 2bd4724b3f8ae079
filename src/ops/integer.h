/* Products of integers, in i32: sums wrap. And what rounding to bytes does to floats. */
#ifndef MICA_SRC_OPS_INTEGER_H
#define MICA_SRC_OPS_INTEGER_H

#include "ops/check.h"

typedef struct mica_integer_conv_opts {
    mica_index stride[2];   /* 0: 1 */
    mica_index dilation[2]; /* 0: 1 */
    mica_index groups;      /* 0: 1 */
} mica_integer_conv_opts;

/* y i32 [N, M, OH, OW] of x i32 [N, C, H, W] and w i32 [M, C / groups, KH, KW], without padding; the shapes fit.
 * Takes scratch only for tensors that are not contiguous. */
mica_status mica_integer_conv(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                              const mica_tensor *w, const mica_integer_conv_opts *opts);

/* y f32 = what bytes of x stand for, less x. The scale is `scale`; 0: for each index of the first axis, the largest
 * of x in size there is 127 steps. Takes scratch only for tensors that are not contiguous. */
typedef struct mica_quantize_error_opts {
    float scale;
} mica_quantize_error_opts;
mica_status mica_quantize_error(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                const mica_quantize_error_opts *opts);

#endif
