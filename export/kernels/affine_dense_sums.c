/* A dense layer of bytes with a zero point: the sums. */
#ifndef KERNEL_AFFINE_DENSE_SUMS
#define KERNEL_AFFINE_DENSE_SUMS

#include <stdint.h>

#include "affine_dense_sum.c"

static void affine_dense_sums(int32_t *y /* [rows, units] */, const int8_t *x /* [rows, values] */,
                              const int8_t *w /* [units, values] */, const int32_t *bias /* [units] */,
                              int rows, int units, int values, int x_zero)
{
    for (int r = 0; r < rows; r++, x += values)
        for (int k = 0; k < units; k++) {
            int32_t sum = affine_dense_sum(x, w + k * values, bias[k], values, x_zero);
            *y++ = sum;
        }
}

#endif /* KERNEL_AFFINE_DENSE_SUMS */
