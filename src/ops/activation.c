/* Activations, generated from the list of kernels. The softmaxes are in softmax.c. */
#include <mica/ops/activation.h>

#include "ops/activation.h"
#include "ops/check.h"
#include "ops/walk.h"

/* What an element takes: little, as a comparison, or much, as an exponential. */
typedef mica_status map_op(mica_context *ctx, const char *op, mica_map_fn *fn, const void *params,
                           const mica_arg *args, int count);
#define LITTLE mica_map_op
#define MUCH   mica_map_op_much

static mica_status forward(mica_context *ctx, const char *op, map_op *map, mica_map_fn *fn,
                           const float *param, const mica_tensor *y, const mica_tensor *x)
{
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, MICA_ARG_IN_PLACE, 0}};
    return map(ctx, op, fn, param, args, 2);
}

static mica_status backward(mica_context *ctx, const char *op, map_op *map, mica_map_fn *fn,
                            const float *param, const mica_tensor *dx, const mica_tensor *dy,
                            const char *saved_name, const mica_tensor *saved)
{
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0},
                       {"dy", dy, MICA_ARG_IN_PLACE, 0},
                       {saved_name, saved, MICA_ARG_IN_PLACE, 0}};
    return map(ctx, op, fn, param, args, 3);
}

/* The gradient tells the side of 0 that x was on by the sign of y. */
static mica_status check_param(mica_context *ctx, const char *op, const char *name, float value)
{
    if (value >= 0.0f)
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is %g, expected 0 or more", op, name, (double)value);
}

/* work and back: what forward and backward take. */
#define PLAIN(name, saved, work, back)                                                                  \
    mica_status mica_##name(mica_context *ctx, const mica_tensor *y, const mica_tensor *x)              \
    {                                                                                                   \
        return forward(ctx, #name, work, MICA_KERNEL(ctx->kernels, activation, name), NULL, y, x);      \
    }                                                                                                   \
    mica_status mica_##name##_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy, \
                                       const mica_tensor *saved)                                        \
    {                                                                                                   \
        return backward(ctx, #name "_backward", back,                                                   \
                        MICA_KERNEL(ctx->kernels, activation, name##_backward), NULL, dx, dy, #saved,   \
                        saved);                                                                         \
    }

#define WITH_PARAM(name, saved, param, work)                                                            \
    mica_status mica_##name(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, float param) \
    {                                                                                                   \
        MICA_TRY(check_param(ctx, #name, #param, param));                                               \
        return forward(ctx, #name, work, MICA_KERNEL(ctx->kernels, activation, name), &param, y, x);    \
    }                                                                                                   \
    mica_status mica_##name##_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy, \
                                       const mica_tensor *saved, float param)                           \
    {                                                                                                   \
        MICA_TRY(check_param(ctx, #name "_backward", #param, param));                                   \
        return backward(ctx, #name "_backward", LITTLE,                                                 \
                        MICA_KERNEL(ctx->kernels, activation, name##_backward), &param, dx, dy, #saved, \
                        saved);                                                                         \
    }

PLAIN(relu, y, LITTLE, LITTLE)
PLAIN(relu6, y, LITTLE, LITTLE)
WITH_PARAM(leaky_relu, y, slope, LITTLE)
WITH_PARAM(elu, y, alpha, MUCH)
PLAIN(sigmoid, y, MUCH, LITTLE)
PLAIN(tanh, y, MUCH, LITTLE)
PLAIN(softplus, x, MUCH, MUCH)
PLAIN(silu, x, MUCH, MUCH)
PLAIN(gelu, x, MUCH, MUCH)
PLAIN(gelu_tanh, x, MUCH, MUCH)
PLAIN(hard_swish, x, LITTLE, LITTLE)

mica_map_fn *mica_activation_kernel(const mica_context *ctx, mica_activation activation)
{
    switch (activation) {
#define ACTIVATION_KERNEL(CODE, name) \
    case MICA_##CODE:                 \
        return MICA_KERNEL(ctx->kernels, activation, name);
        MICA_ACTIVATION_LIST(ACTIVATION_KERNEL)
#undef ACTIVATION_KERNEL
    default:
        return NULL;
    }
}
