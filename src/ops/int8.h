/* What the int8 operations check alike. */
#ifndef MICA_SRC_OPS_INT8_H
#define MICA_SRC_OPS_INT8_H

#include <mica/ops/int8.h>

#include "kernel/int8.h"
#include "ops/contiguous.h"

#define MICA_I8_ONLY MICA_DTYPE_BIT(MICA_I8)

/* What finishes the sums of output channels from this one on. */
static inline mica_int8_finish mica_int8_finish_from(const mica_int8_finish *all, int each, size_t channel)
{
    mica_int8_finish f = *all;
    if (!each)
        return f;
    if (f.kind == MICA_INT8_SHIFTED) {
        f.multiplier += channel;
        f.shift += channel;
    } else {
        f.factor += channel;
    }
    return f;
}

/* Both 0: all of -127 to 127. */
mica_status mica_int8_check_limits(mica_context *ctx, const char *op, int low, int high, int32_t out[2]);
mica_status mica_int8_check_factor(mica_context *ctx, const char *op, int multiplier, int shift);

/* With zero points: both 0 is all of -128 to 127. */
mica_status mica_affine_check_limits(mica_context *ctx, const char *op, int low, int high, int32_t out[2]);
mica_status mica_affine_check_zero(mica_context *ctx, const char *op, int zero);

/* Arguments 2 to 6 of a call, behind y and x: w, bias, multiplier, shift, packed. Products with zero points have their
 * factor in the place of the multiplier, and no shift. */
enum {
    MICA_INT8_Y,
    MICA_INT8_X,
    MICA_INT8_W,
    MICA_INT8_BIAS,
    MICA_INT8_MULTIPLIER,
    MICA_INT8_SHIFT,
    MICA_INT8_PACKED,
    MICA_INT8_ARGS
};
mica_status mica_int8_check_weights(mica_context *ctx, const char *op, mica_arg args[MICA_INT8_ARGS],
                                    const mica_tensor *y, const mica_tensor *x,
                                    const mica_int8_weights *weights);
/* The same of products with zero points: also their options, into all of *finish but the factor. */
mica_status mica_affine_check_weights(mica_context *ctx, const char *op, mica_arg args[MICA_INT8_ARGS],
                                      const mica_tensor *y, const mica_tensor *x,
                                      const mica_affine_weights *weights, const mica_affine_opts *opts,
                                      mica_int8_finish *finish);
/* The shapes of these, for M output channels and so many products in a sum. */
mica_status mica_int8_check_channels(mica_context *ctx, const char *op, const mica_arg args[MICA_INT8_ARGS],
                                     mica_index channels, double products);
/* Their numbers, once they can be read; contiguous. */
mica_status mica_int8_check_factors(mica_context *ctx, const char *op, const int32_t *multiplier,
                                    const uint8_t *shift, size_t count);
/* The numbers that finish sums, from contiguous arguments: checked, and into *finish. */
mica_status mica_int8_take_factors(mica_context *ctx, const char *op, const mica_arg args[MICA_INT8_ARGS],
                                   const mica_contiguous *dense, mica_int8_finish *finish);
/* What a call reads of them: packed weights stand for w and bias, which may be of any layout then. */
static inline void mica_int8_read_args(mica_arg used[MICA_INT8_ARGS], const mica_arg args[MICA_INT8_ARGS])
{
    for (int k = 0; k < MICA_INT8_ARGS; k++)
        used[k] = args[k];
    if (args[MICA_INT8_PACKED].tensor != NULL)
        used[MICA_INT8_W].tensor = used[MICA_INT8_BIAS].tensor = NULL;
}
/* Whether each channel has numbers of its own. */
static inline int mica_int8_each(const mica_arg args[MICA_INT8_ARGS])
{
    const mica_tensor *t = args[MICA_INT8_MULTIPLIER].tensor;
    return t != NULL && t->dim[0] > 1;
}

#endif
