/* Products of matrices of bytes with zero points, to floats. */
#ifndef KERNEL_AFFINE_MATMUL_FLOAT
#define KERNEL_AFFINE_MATMUL_FLOAT

#include <stdint.h>

#include "affine_matmul_sum.c"

static void affine_matmul_float(float *y /* [batch, rows, columns] */,
                                const int8_t *a /* [batch, rows, values] */,
                                const int8_t *b /* [batch, values, columns] */, int batch, int rows,
                                int columns, int values, int a_zero, int b_zero, float factor)
{
    for (; batch > 0; batch--, b += values * columns)
        for (int r = 0; r < rows; r++, a += values)
            for (int k = 0; k < columns; k++)
                *y++ = (float)affine_matmul_sum(a, b + k, values, columns, a_zero, b_zero) * factor;
}

#endif /* KERNEL_AFFINE_MATMUL_FLOAT */
