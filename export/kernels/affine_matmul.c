/* Products of matrices of bytes with zero points, to bytes. */
#ifndef KERNEL_AFFINE_MATMUL
#define KERNEL_AFFINE_MATMUL

#include <stdint.h>

#include "affine_finish.c"
#include "affine_matmul_sum.c"

static void affine_matmul(int8_t *y /* [batch, rows, columns] */, const int8_t *a /* [batch, rows, values] */,
                          const int8_t *b /* [batch, values, columns] */, int batch, int rows, int columns,
                          int values, int a_zero, int b_zero, float factor, int y_zero, int low, int high)
{
    for (; batch > 0; batch--, b += values * columns)
        for (int r = 0; r < rows; r++, a += values)
            for (int k = 0; k < columns; k++) {
                int32_t sum = affine_matmul_sum(a, b + k, values, columns, a_zero, b_zero);
                *y++ = affine_finish((float)sum * factor, y_zero, low, high);
            }
}

#endif /* KERNEL_AFFINE_MATMUL */
