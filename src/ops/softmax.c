/* Softmax and log-softmax over any axis. */
#include <mica/ops/activation.h>

#include "ops/axis.h"

mica_status mica_softmax(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, int axis)
{
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, MICA_ARG_IN_PLACE, 0}};
    return mica_axis_op(ctx, "softmax", &MICA_KERNEL(ctx->kernels, axis, softmax), 0.0f, args, 2, axis);
}

mica_status mica_log_softmax(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, int axis)
{
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, MICA_ARG_IN_PLACE, 0}};
    return mica_axis_op(ctx, "log_softmax", &MICA_KERNEL(ctx->kernels, axis, log_softmax), 0.0f, args, 2,
                        axis);
}

/* dx_i = sum_j dy_j y_j (1[i = j] - y_i) = y_i (dy_i - y.dy) */
mica_status mica_softmax_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                  const mica_tensor *y, int axis)
{
    mica_arg args[] = {
        {"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, MICA_ARG_IN_PLACE, 0}, {"y", y, MICA_ARG_IN_PLACE, 0}};
    return mica_axis_op(ctx, "softmax_backward", &MICA_KERNEL(ctx->kernels, axis, softmax_backward), 0.0f,
                        args, 3, axis);
}

/* dx_i = sum_j dy_j (1[i = j] - e^{y_i}) = dy_i - e^{y_i} sum(dy) */
mica_status mica_log_softmax_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                      const mica_tensor *y, int axis)
{
    mica_arg args[] = {
        {"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, MICA_ARG_IN_PLACE, 0}, {"y", y, MICA_ARG_IN_PLACE, 0}};
    return mica_axis_op(ctx, "log_softmax_backward", &MICA_KERNEL(ctx->kernels, axis, log_softmax_backward),
                        0.0f, args, 3, axis);
}
