/* A dense layer of bytes with zero points, to bytes. */
#ifndef KERNEL_AFFINE_DENSE
#define KERNEL_AFFINE_DENSE

#include <stdint.h>

#include "affine_dense_sum.c"
#include "affine_finish.c"

static void affine_dense(int8_t *y /* [rows, units] */, const int8_t *x /* [rows, values] */,
                         const int8_t *w /* [units, values] */, const int32_t *bias /* [units] */, int rows,
                         int units, int values, int x_zero, const float *factor /* [units], or one: each 0 */,
                         int each, int y_zero, int low, int high)
{
    for (int r = 0; r < rows; r++, x += values)
        for (int k = 0; k < units; k++) {
            int32_t sum = affine_dense_sum(x, w + k * values, bias[k], values, x_zero);
            *y++ = affine_finish((float)sum * factor[k * each], y_zero, low, high);
        }
}

#endif /* KERNEL_AFFINE_DENSE */
