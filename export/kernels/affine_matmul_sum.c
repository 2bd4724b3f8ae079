/* One sum of a product of two matrices of bytes with zero points. */
#ifndef KERNEL_AFFINE_MATMUL_SUM
#define KERNEL_AFFINE_MATMUL_SUM

#include <stdint.h>

static int32_t affine_matmul_sum(const int8_t *a /* [values] */, const int8_t *b /* a column */, int values,
                                 int columns, int a_zero, int b_zero)
{
    int32_t sum = 0;
    for (int i = 0; i < values; i++)
        sum += (a[i] - a_zero) * (b[i * columns] - b_zero);
    return sum;
}

#endif /* KERNEL_AFFINE_MATMUL_SUM */
