/* Activations that have no backward of their own. */
#include <mica/ops/activation.h>

#include "ops/check.h"
#include "ops/walk.h"

static mica_status curve(mica_context *ctx, const char *op, mica_map_fn *fn, const float *params,
                         const mica_tensor *y, const mica_tensor *x)
{
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, MICA_ARG_IN_PLACE, 0}};
    return mica_map_op_much(ctx, op, fn, params, args, 2);
}

mica_status mica_mish(mica_context *ctx, const mica_tensor *y, const mica_tensor *x)
{
    return curve(ctx, "mish", MICA_KERNEL(ctx->kernels, map, mish), NULL, y, x);
}

mica_status mica_softsign(mica_context *ctx, const mica_tensor *y, const mica_tensor *x)
{
    return curve(ctx, "softsign", MICA_KERNEL(ctx->kernels, map, softsign), NULL, y, x);
}

mica_status mica_celu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, float alpha)
{
    return curve(ctx, "celu", MICA_KERNEL(ctx->kernels, map, celu), &alpha, y, x);
}

mica_status mica_selu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, float alpha, float gamma)
{
    return curve(ctx, "selu", MICA_KERNEL(ctx->kernels, map, selu), (float[]){alpha, gamma}, y, x);
}

mica_status mica_hard_sigmoid(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, float alpha,
                              float beta)
{
    return curve(ctx, "hard_sigmoid", MICA_KERNEL(ctx->kernels, map, hard_sigmoid), (float[]){alpha, beta}, y,
                 x);
}

mica_status mica_thresholded_relu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, float alpha)
{
    return curve(ctx, "thresholded_relu", MICA_KERNEL(ctx->kernels, map, thresholded_relu), &alpha, y, x);
}

mica_status mica_shrink(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, float bias, float from)
{
    return curve(ctx, "shrink", MICA_KERNEL(ctx->kernels, map, shrink), (float[]){bias, from}, y, x);
}

mica_status mica_swish(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, float alpha)
{
    return curve(ctx, "swish", MICA_KERNEL(ctx->kernels, map, swish), &alpha, y, x);
}

mica_status mica_prelu(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                       const mica_tensor *slope)
{
    mica_arg args[] = {
        {"y", y, MICA_ARG_OUT, 0}, {"x", x, MICA_ARG_IN_PLACE, 0}, {"slope", slope, MICA_ARG_IN_PLACE, 0}};
    return mica_map_op(ctx, "prelu", MICA_KERNEL(ctx->kernels, map, prelu), NULL, args, 3);
}
