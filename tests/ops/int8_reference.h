/* What the cases of int8 operations share: options, and results in 64 bits. */
#ifndef MICA_TESTS_OPS_INT8_REFERENCE_H
#define MICA_TESTS_OPS_INT8_REFERENCE_H

#include "ops/op_case.h"

/* Options in i[]; those of windows are for height and width. */
enum {
    LOW = 0,
    HIGH,
    MULTIPLIER,
    MULTIPLIER_B,
    SHIFT,
    STRIDE,
    PAD = STRIDE + 2,
    DILATION = PAD + 2,
    KERNEL = DILATION + 2,
    GROUPS = KERNEL + 2,
    CEIL,
    X_ZERO, /* of x, or of a and b, and of y */
    B_ZERO,
    Y_ZERO,
    TO
};

static inline double int8_finished(const op_call *c, int64_t sum, int64_t multiplier, int shift)
{
    bool all = c->i[LOW] == 0 && c->i[HIGH] == 0;
    int64_t low = all ? -127 : c->i[LOW], high = all ? 127 : c->i[HIGH];
    int64_t r = (sum * multiplier + ((int64_t)1 << (shift - 1))) >> shift;
    return (double)(r < low ? low : r > high ? high : r);
}

/* The pixel of x that an output pixel meets by a tap; false: it is padding. */
static inline bool int8_place(const op_call *c, const mica_tensor *x, long at[2], const long tap[2])
{
    for (int k = 0; k < 2; k++) {
        long stride = c->i[STRIDE + k] > 0 ? c->i[STRIDE + k] : c->i[KERNEL + k] > 0 ? c->i[KERNEL + k] : 1;
        long dilation = c->i[DILATION + k] > 0 ? c->i[DILATION + k] : 1;
        at[k] = at[k] * stride - c->i[PAD + k] + tap[k] * dilation;
        if (at[k] < 0 || at[k] >= x->dim[x->rank - 2 + k])
            return false;
    }
    return true;
}

/* Products, of tensors y, x, w (case_int8.c): shapes of the first three, whose output channels are returned; and sums
 * of x less X_ZERO for result i, in a channel of its own. */
mica_index int8_draw_linear(op_call *c, test_random *r);
mica_index int8_draw_conv(op_call *c, test_random *r);
int64_t int8_sum_linear(const op_call *c, double *const *v, size_t i, size_t *channel);
int64_t int8_sum_conv(const op_call *c, double *const *v, size_t i, size_t *channel);
/* Fewer or more images, rows and columns. */
void int8_resize_conv(op_call *c, test_random *r, bool larger);

#endif
