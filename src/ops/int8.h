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
    f.multiplier += each ? channel : 0;
    f.shift += each ? channel : 0;
    return f;
}

/* Both 0: all of -127 to 127. */
mica_status mica_int8_check_limits(mica_context *ctx, const char *op, int low, int high, int32_t out[2]);
mica_status mica_int8_check_factor(mica_context *ctx, const char *op, int multiplier, int shift);

/* Arguments 2 to 6 of a call, behind y and x: w, bias, multiplier, shift, packed. */
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
/* The shapes of these, for M output channels and so many products in a sum. */
mica_status mica_int8_check_channels(mica_context *ctx, const char *op, const mica_arg args[MICA_INT8_ARGS],
                                     mica_index channels, double products);
/* Their numbers, once they can be read; contiguous. */
mica_status mica_int8_check_factors(mica_context *ctx, const char *op, const int32_t *multiplier,
                                    const uint8_t *shift, size_t count);

#endif
