/* Bytes with zero points: products, whose sums become results by factors of floats. The loops are those of int8. */
#include <math.h>

#include "ops/int8_pack.h"

/* Both 0: all that a byte holds. */
mica_status mica_affine_check_limits(mica_context *ctx, const char *op, int low, int high, int32_t out[2])
{
    bool all = low == 0 && high == 0;
    if (!all && (low < INT8_MIN || high > INT8_MAX || low > high))
        return mica_fail(ctx, MICA_ERR_ARGUMENT,
                         "%s: low is %d, high is %d: expected -128 <= low <= high <= 127", op, low, high);
    out[0] = all ? INT8_MIN : low;
    out[1] = all ? INT8_MAX : high;
    return MICA_OK;
}

mica_status mica_affine_check_zero(mica_context *ctx, const char *op, int zero)
{
    if (zero < INT8_MIN || zero > INT8_MAX)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: a zero point is %d: expected -128 to 127", op, zero);
    return MICA_OK;
}

mica_status mica_affine_check_weights(mica_context *ctx, const char *op, mica_arg args[MICA_INT8_ARGS],
                                      const mica_tensor *y, const mica_tensor *x,
                                      const mica_affine_weights *weights, const mica_affine_opts *opts,
                                      mica_int8_finish *finish)
{
    int32_t limit[2] = {0};
    if (weights == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: weights is NULL", op);
    if (opts->dtype != MICA_I8 && opts->dtype != MICA_F32 && opts->dtype != MICA_I32)
        return mica_fail(ctx, MICA_ERR_DTYPE, "%s: dtype is %s: expected i8, f32 or i32", op,
                         mica_dtype_name(opts->dtype));
    bool sums = opts->dtype == MICA_I32;
    args[MICA_INT8_Y] = (mica_arg){"y", y, MICA_ARG_OUT, MICA_DTYPE_BIT(opts->dtype)};
    args[MICA_INT8_X] = (mica_arg){"x", x, 0, MICA_I8_ONLY};
    args[MICA_INT8_W] = (mica_arg){"w", weights->w, 0, MICA_I8_ONLY};
    args[MICA_INT8_BIAS] = (mica_arg){"bias", weights->bias, 0, MICA_DTYPE_BIT(MICA_I32)};
    args[MICA_INT8_MULTIPLIER] = (mica_arg){"factor", sums ? NULL : weights->factor,
                                            sums ? MICA_ARG_OPTIONAL : 0, MICA_DTYPE_BIT(MICA_F32)};
    args[MICA_INT8_SHIFT] = (mica_arg){"shift", NULL, MICA_ARG_OPTIONAL, MICA_DTYPE_BIT(MICA_U8)};
    args[MICA_INT8_PACKED] = (mica_arg){"packed", weights->packed, MICA_ARG_OPTIONAL,
                                        MICA_DTYPE_BIT(MICA_U8)};
    MICA_TRY(mica_check_args(ctx, op, args, MICA_INT8_ARGS));
    MICA_TRY(mica_affine_check_zero(ctx, op, opts->x_zero));
    MICA_TRY(mica_affine_check_zero(ctx, op, opts->y_zero));
    MICA_TRY(mica_affine_check_limits(ctx, op, opts->low, opts->high, limit));
    *finish = (mica_int8_finish){.kind = sums                      ? MICA_INT8_SUMS
                                         : opts->dtype == MICA_F32 ? MICA_INT8_FLOATS
                                                                   : MICA_INT8_AFFINE,
                                 .zero = opts->y_zero,
                                 .low = limit[0],
                                 .high = limit[1]};
    return MICA_OK;
}

mica_status mica_affine_linear(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                               const mica_affine_weights *weights, const mica_affine_opts *opts)
{
    const char *op = "affine_linear";
    static const mica_affine_opts none = {0};
    mica_arg args[MICA_INT8_ARGS];
    mica_int8_finish finish;
    opts = opts != NULL ? opts : &none;
    MICA_TRY(mica_affine_check_weights(ctx, op, args, y, x, weights, opts, &finish));
    return mica_int8_linear_of(ctx, op, args, finish, opts->x_zero);
}

mica_status mica_affine_conv2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                               const mica_affine_weights *weights, const mica_affine_conv_opts *opts)
{
    const char *op = "affine_conv2d";
    static const mica_affine_conv_opts none = {.groups = 0};
    mica_arg args[MICA_INT8_ARGS];
    mica_int8_finish finish;
    opts = opts != NULL ? opts : &none;
    mica_affine_opts affine = {opts->x_zero, opts->y_zero, opts->low, opts->high, opts->dtype};
    MICA_TRY(mica_affine_check_weights(ctx, op, args, y, x, weights, &affine, &finish));
    mica_int8_conv_opts windows = {.stride = {opts->stride[0], opts->stride[1]},
                                   .pad = {opts->pad[0], opts->pad[1]},
                                   .dilation = {opts->dilation[0], opts->dilation[1]},
                                   .groups = opts->groups};
    return mica_int8_conv_of(ctx, op, args, &windows, finish, opts->x_zero);
}
