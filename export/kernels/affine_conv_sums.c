/* A convolution of bytes with a zero point: the sums. */
#ifndef KERNEL_AFFINE_CONV_SUMS
#define KERNEL_AFFINE_CONV_SUMS

#include <stdint.h>

#include "affine_conv_sum.c"

static void affine_conv_sums(int32_t *y /* [batch, groups outputs, out_rows, out_columns] */,
                             const int8_t *x /* [batch, groups channels, rows, columns] */,
                             const int8_t *w /* [groups outputs, channels, kernel_rows, kernel_columns] */,
                             const int32_t *bias /* [groups outputs] */, const struct conv_shape *s,
                             int x_zero)
{
    for (int n = 0; n < s->batch; n++)
        for (int o = 0; o < s->groups * s->outputs; o++)
            for (int i = 0; i < s->out_rows * s->out_columns; i++) {
                int32_t sum = affine_conv_sum(x, w, bias[o], s, x_zero, n, o, i);
                *y++ = sum;
            }
}

#endif /* KERNEL_AFFINE_CONV_SUMS */
