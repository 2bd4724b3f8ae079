/* L2 normalize: lines of length one. */
#include <mica/ops/reduce.h>

#include "ops/axis.h"

static mica_status run(mica_context *ctx, const char *op, const mica_axis_kernel *kernel,
                       const mica_l2_normalize_opts *opts, const mica_arg *args, int count)
{
    static const mica_l2_normalize_opts defaults = {0};
    const mica_l2_normalize_opts *o = opts != NULL ? opts : &defaults;
    if (!(o->eps >= 0.0f))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: eps is %g, expected 0 or more", op, (double)o->eps);
    return mica_axis_op(ctx, op, kernel, o->eps > 0.0f ? o->eps : 1e-12f, args, count, o->axis);
}

mica_status mica_l2_normalize(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                              const mica_l2_normalize_opts *opts)
{
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, MICA_ARG_IN_PLACE, 0}};
    return run(ctx, "l2_normalize", &MICA_KERNEL(ctx->kernels, axis, l2_normalize), opts, args, 2);
}

mica_status mica_l2_normalize_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                       const mica_tensor *x, const mica_l2_normalize_opts *opts)
{
    mica_arg args[] = {
        {"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, MICA_ARG_IN_PLACE, 0}, {"x", x, MICA_ARG_IN_PLACE, 0}};
    return run(ctx, "l2_normalize_backward", &MICA_KERNEL(ctx->kernels, axis, l2_normalize_backward), opts,
               args, 3);
}
