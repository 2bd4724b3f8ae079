/* A dense layer of bytes with a zero point, to floats. */
#ifndef KERNEL_AFFINE_DENSE_FLOAT
#define KERNEL_AFFINE_DENSE_FLOAT

#include <stdint.h>

#include "affine_dense_sum.c"

static void affine_dense_float(float *y /* [rows, units] */, const int8_t *x /* [rows, values] */,
                               const int8_t *w /* [units, values] */, const int32_t *bias /* [units] */,
                               int rows, int units, int values, int x_zero,
                               const float *factor /* [units], or one: each 0 */, int each)
{
    for (int r = 0; r < rows; r++, x += values)
        for (int k = 0; k < units; k++) {
            int32_t sum = affine_dense_sum(x, w + k * values, bias[k], values, x_zero);
            *y++ = (float)sum * factor[k * each];
        }
}

#endif /* KERNEL_AFFINE_DENSE_FLOAT */
