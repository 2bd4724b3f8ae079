/* Factors, and what the int8 operations check alike. */
#include "ops/int8.h"

#include <math.h>

bool mica_int8_factor(double ratio, int32_t *multiplier, int *shift)
{
    int exponent;
    if (!(ratio >= 0.0) || !(ratio < 0x1p29))
        return false;
    double m = floor(frexp(ratio, &exponent) * 0x1p31 + 0.5); /* 2^30 to 2^31, or 0 */
    if (m >= 0x1p31) {
        m = 0x1p30;
        exponent++;
    }
    int down = 31 - exponent;
    if (ratio == 0.0)
        down = 31;
    if (down > 62) {
        m = floor(ldexp(m, 62 - down) + 0.5);
        down = 62;
    }
    *multiplier = (int32_t)m;
    *shift = down;
    return true;
}

mica_status mica_int8_check_limits(mica_context *ctx, const char *op, int low, int high, int32_t out[2])
{
    bool all = low == 0 && high == 0;
    if (!all && (low < -127 || high > 127 || low > high))
        return mica_fail(ctx, MICA_ERR_ARGUMENT,
                         "%s: low is %d, high is %d: expected -127 <= low <= high <= 127", op, low, high);
    out[0] = all ? -127 : low;
    out[1] = all ? 127 : high;
    return MICA_OK;
}

mica_status mica_int8_check_factor(mica_context *ctx, const char *op, int multiplier, int shift)
{
    if (multiplier < 0 || shift < 1 || shift > 62)
        return mica_fail(ctx, MICA_ERR_ARGUMENT,
                         "%s: multiplier is %d, shift is %d: expected 0 or more, and 1 to 62", op, multiplier,
                         shift);
    return MICA_OK;
}

mica_status mica_int8_check_weights(mica_context *ctx, const char *op, mica_arg args[MICA_INT8_ARGS],
                                    const mica_tensor *y, const mica_tensor *x,
                                    const mica_int8_weights *weights)
{
    if (weights == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: weights is NULL", op);
    args[MICA_INT8_Y] = (mica_arg){"y", y, MICA_ARG_OUT, MICA_I8_ONLY};
    args[MICA_INT8_X] = (mica_arg){"x", x, 0, MICA_I8_ONLY};
    args[MICA_INT8_W] = (mica_arg){"w", weights->w, 0, MICA_I8_ONLY};
    args[MICA_INT8_BIAS] = (mica_arg){"bias", weights->bias, 0, MICA_DTYPE_BIT(MICA_I32)};
    args[MICA_INT8_MULTIPLIER] = (mica_arg){"multiplier", weights->multiplier, 0, MICA_DTYPE_BIT(MICA_I32)};
    args[MICA_INT8_SHIFT] = (mica_arg){"shift", weights->shift, 0, MICA_DTYPE_BIT(MICA_U8)};
    args[MICA_INT8_PACKED] = (mica_arg){"packed", weights->packed, MICA_ARG_OPTIONAL,
                                        MICA_DTYPE_BIT(MICA_U8)};
    return mica_check_args(ctx, op, args, MICA_INT8_ARGS);
}

mica_status mica_int8_check_channels(mica_context *ctx, const char *op, const mica_arg args[MICA_INT8_ARGS],
                                     mica_index channels, double products)
{
    const mica_tensor *multiplier = args[MICA_INT8_MULTIPLIER].tensor;
    bool one = multiplier != NULL && multiplier->rank == 1 && multiplier->dim[0] == 1;
    mica_index factors = one ? 1 : channels;
    for (int k = MICA_INT8_BIAS; k <= MICA_INT8_SHIFT; k++)
        if (args[k].tensor != NULL)
            MICA_TRY(mica_check_shape(ctx, op, args[k].name, args[k].tensor, 1,
                                      k == MICA_INT8_BIAS ? &channels : &factors, "w",
                                      args[MICA_INT8_W].tensor));
    if (products > MICA_INT8_PRODUCTS)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: w is %s: sums of %.0f products, expected at most %d", op,
                         MICA_SHAPE(args[MICA_INT8_W].tensor), products, MICA_INT8_PRODUCTS);
    return MICA_OK;
}

mica_status mica_int8_check_factors(mica_context *ctx, const char *op, const int32_t *multiplier,
                                    const uint8_t *shift, size_t count)
{
    for (size_t i = 0; i < count; i++)
        MICA_TRY(mica_int8_check_factor(ctx, op, multiplier[i], shift[i]));
    return MICA_OK;
}

mica_status mica_int8_take_factors(mica_context *ctx, const char *op, const mica_arg args[MICA_INT8_ARGS],
                                   const mica_contiguous *dense, mica_int8_finish *finish)
{
    const mica_tensor *multiplier = args[MICA_INT8_MULTIPLIER].tensor;
    size_t count = multiplier != NULL ? (size_t)multiplier->dim[0] : 0;
    if (finish->kind == MICA_INT8_SHIFTED) {
        finish->multiplier = dense->data[MICA_INT8_MULTIPLIER];
        finish->shift = dense->data[MICA_INT8_SHIFT];
        return mica_int8_check_factors(ctx, op, finish->multiplier, finish->shift, count);
    }
    finish->factor = dense->data[MICA_INT8_MULTIPLIER];
    for (size_t i = 0; i < count; i++)
        if (!(finish->factor[i] >= 0.0f) || !isfinite(finish->factor[i]))
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: factor %zu is %g: expected a finite number >= 0",
                             op, i, (double)finish->factor[i]);
    return MICA_OK;
}
