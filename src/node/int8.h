/* Checks and samples of the int8 entries. */
#ifndef MICA_SRC_NODE_INT8_H
#define MICA_SRC_NODE_INT8_H

#include "node/check.h"
#include "tensor/tensor.h"

#define MICA_INT8_LIMIT_FIELDS(type)                                      \
    MICA_FIELD(type, low, INT, "the least result; low = high = 0: -127"), \
        MICA_FIELD(type, high, INT, "the largest result; low = high = 0: 127")
#define MICA_INT8_FACTOR_FIELDS(type)                            \
    MICA_FIELD(type, multiplier, INT, "of sums: 0 to 2^31 - 1"), \
        MICA_FIELD(type, shift, INT, "bits that products go down by, 1 to 62"), MICA_INT8_LIMIT_FIELDS(type)

static inline mica_status mica_infer_limits(mica_infer *i, int low, int high)
{
    if ((low == 0 && high == 0) || (low >= -127 && high <= 127 && low <= high))
        return MICA_OK;
    return mica_infer_fail(i, MICA_ERR_ARGUMENT, "low is %d, high is %d: expected -127 <= low <= high <= 127",
                           low, high);
}

static inline mica_status mica_infer_factor(mica_infer *i, int multiplier, int shift)
{
    if (multiplier >= 0 && shift >= 1 && shift <= 62)
        return MICA_OK;
    return mica_infer_fail(i, MICA_ERR_ARGUMENT,
                           "multiplier is %d, shift is %d: expected 0 or more, and 1 to 62", multiplier,
                           shift);
}

/* ---- With zero points ---- */

#define MICA_AFFINE_LIMIT_FIELDS(type)                                    \
    MICA_FIELD(type, low, INT, "the least result; low = high = 0: -128"), \
        MICA_FIELD(type, high, INT, "the largest result; low = high = 0: 127")
#define MICA_AFFINE_FIELDS(type)                                       \
    MICA_FIELD(type, x_zero, INT, "the zero point of x, -128 to 127"), \
        MICA_FIELD(type, y_zero, INT, "that of y"), MICA_AFFINE_LIMIT_FIELDS(type)

static inline mica_status mica_infer_zero(mica_infer *i, int zero)
{
    if (zero >= INT8_MIN && zero <= INT8_MAX)
        return MICA_OK;
    return mica_infer_fail(i, MICA_ERR_ARGUMENT, "a zero point is %d: expected -128 to 127", zero);
}

static inline mica_status mica_infer_affine(mica_infer *i, int x_zero, int y_zero, int low, int high)
{
    MICA_TRY(mica_infer_zero(i, x_zero));
    MICA_TRY(mica_infer_zero(i, y_zero));
    if ((low == 0 && high == 0) || (low >= INT8_MIN && high <= INT8_MAX && low <= high))
        return MICA_OK;
    return mica_infer_fail(i, MICA_ERR_ARGUMENT, "low is %d, high is %d: expected -128 <= low <= high <= 127",
                           low, high);
}

/* ---- Products ---- */

/* Inputs 1 to 4: w, bias, multiplier, shift, for sums of so many products; and packed weights, if any. */
enum { INT8_X, INT8_W, INT8_BIAS, INT8_MULTIPLIER, INT8_SHIFT, INT8_INS, INT8_PACKED = INT8_INS };

static inline mica_status mica_infer_int8_weights(mica_infer *i, double products)
{
    static const mica_dtype want[] = {
        [INT8_BIAS] = MICA_I32, [INT8_MULTIPLIER] = MICA_I32, [INT8_SHIFT] = MICA_U8};
    mica_index channels = i->in[INT8_W]->dim[0], factors = channels;
    const mica_tensor *multiplier = i->in[INT8_MULTIPLIER];
    if (multiplier->rank == 1 && multiplier->dim[0] == 1)
        factors = 1;
    for (int k = INT8_BIAS; k < INT8_INS; k++) {
        const mica_tensor *t = i->in[k];
        mica_index count = k == INT8_BIAS ? channels : factors;
        MICA_TRY(mica_infer_dtype(i, k, want[k]));
        if (t->rank != 1 || t->dim[0] != count)
            return mica_infer_fail(i, MICA_ERR_SHAPE, "expected %s [%td], got %s", i->op->names[k], count,
                                   MICA_SHAPE(t));
    }
    if (i->ins > INT8_PACKED && i->in[INT8_PACKED] != NULL)
        MICA_TRY(mica_infer_dtype(i, INT8_PACKED, MICA_U8));
    if (products > MICA_INT8_PRODUCTS)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "sums of %.0f products: expected at most %d", products,
                               MICA_INT8_PRODUCTS);
    return MICA_OK;
}

static inline mica_int8_weights mica_int8_weights_of(const mica_call *c, const mica_tensor *w)
{
    return (mica_int8_weights){w, c->in[INT8_BIAS], c->in[INT8_MULTIPLIER], c->in[INT8_SHIFT],
                               c->ins > INT8_PACKED ? c->in[INT8_PACKED] : NULL};
}

/* Of products with zero points, behind x, w and bias: a factor, unless sums are the result, and packed weights. */
enum { AFFINE_FACTOR = INT8_BIAS + 1, AFFINE_PACKED, AFFINE_INS = AFFINE_FACTOR };

static inline mica_status mica_infer_affine_weights(mica_infer *i, double products, mica_dtype to)
{
    mica_index channels = i->in[INT8_W]->dim[0];
    const mica_tensor *bias = i->in[INT8_BIAS],
                      *factor = i->ins > AFFINE_FACTOR ? i->in[AFFINE_FACTOR] : NULL;
    MICA_TRY(mica_infer_dtype(i, INT8_BIAS, MICA_I32));
    if (bias->rank != 1 || bias->dim[0] != channels)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected bias [%td], got %s", channels, MICA_SHAPE(bias));
    if (to != MICA_I8 && to != MICA_F32 && to != MICA_I32)
        return mica_infer_fail(i, MICA_ERR_DTYPE, "dtype is %s: expected i8, f32 or i32",
                               mica_dtype_name(to));
    if ((to == MICA_I32) != (factor == NULL))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "dtype is %s, %s a factor", mica_dtype_name(to),
                               factor == NULL ? "which needs" : "which does not take");
    if (factor != NULL) {
        MICA_TRY(mica_infer_dtype(i, AFFINE_FACTOR, MICA_F32));
        if (factor->rank != 1 || (factor->dim[0] != channels && factor->dim[0] != 1))
            return mica_infer_fail(i, MICA_ERR_SHAPE, "expected factor [%td] or [1], got %s", channels,
                                   MICA_SHAPE(factor));
    }
    if (i->ins > AFFINE_PACKED && i->in[AFFINE_PACKED] != NULL)
        MICA_TRY(mica_infer_dtype(i, AFFINE_PACKED, MICA_U8));
    if (products > MICA_INT8_PRODUCTS)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "sums of %.0f products: expected at most %d", products,
                               MICA_INT8_PRODUCTS);
    return MICA_OK;
}

static inline mica_affine_weights mica_affine_weights_of(const mica_call *c, const mica_tensor *w)
{
    return (mica_affine_weights){w, c->in[INT8_BIAS], c->ins > AFFINE_FACTOR ? c->in[AFFINE_FACTOR] : NULL,
                                 c->ins > AFFINE_PACKED ? c->in[AFFINE_PACKED] : NULL};
}

/* ---- Samples ---- */

static inline void mica_sample_zeros(mica_op_sample *s, int *zero, int count)
{
    for (int k = 0; k < count; k++)
        zero[k] = mica_sample_chance(s) ? (int)mica_op_sample_int(s, -128, 127) : 0;
}

static inline void mica_sample_bytes(mica_op_sample *s, int in, int rank, const mica_index *dims)
{
    mica_op_sample_shape(s, in, rank, dims);
    s->in[in].dtype = MICA_I8;
    mica_sample_range(s, in, -127.0, 128.0);
}

static inline void mica_sample_factor(mica_op_sample *s, int *multiplier, int *shift, int least)
{
    *multiplier = (int)mica_op_sample_int(s, (mica_index)1 << 30, INT32_MAX);
    *shift = (int)mica_op_sample_int(s, least, least + 4);
}

static inline void mica_sample_limits(mica_op_sample *s, int *low, int *high)
{
    if (mica_sample_chance(s))
        *high = mica_sample_chance(s) ? 127 : (int)mica_op_sample_int(s, 1, 126);
    *low = 0;
}

/* What belongs to weights of so many output channels. */
static inline void mica_sample_int8_weights(mica_op_sample *s, mica_index channels)
{
    mica_index factors = mica_sample_chance(s) ? 1 : channels;
    mica_op_sample_shape(s, INT8_BIAS, 1, &channels);
    s->in[INT8_BIAS].dtype = MICA_I32;
    mica_sample_range(s, INT8_BIAS, 0.0, 20000.0);
    mica_op_sample_shape(s, INT8_MULTIPLIER, 1, &factors);
    s->in[INT8_MULTIPLIER].dtype = MICA_I32;
    mica_sample_range(s, INT8_MULTIPLIER, 0x1p30, 2147483000.0);
    mica_op_sample_shape(s, INT8_SHIFT, 1, &factors);
    s->in[INT8_SHIFT].dtype = MICA_U8;
    mica_sample_range(s, INT8_SHIFT, 36.0, 42.0);
}

static inline void mica_sample_affine_weights(mica_op_sample *s, mica_index channels, mica_dtype *to)
{
    mica_index factors = mica_sample_chance(s) ? 1 : channels;
    *to = mica_sample_chance(s) ? MICA_I8 : MICA_F32;
    mica_op_sample_shape(s, INT8_BIAS, 1, &channels);
    s->in[INT8_BIAS].dtype = MICA_I32;
    mica_sample_range(s, INT8_BIAS, 0.0, 20000.0);
    s->ins = AFFINE_FACTOR + 1;
    mica_op_sample_shape(s, AFFINE_FACTOR, 1, &factors);
    mica_sample_range(s, AFFINE_FACTOR, 0.0005, 0.01);
}

#define MICA_INT8_ENTRY(op, words, ...) \
    const mica_op mica_op_##op = {.name = #op, .family = "int8", .about = words, .outs = 1, __VA_ARGS__};

#endif
