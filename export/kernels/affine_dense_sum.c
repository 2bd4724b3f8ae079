/* One sum of a dense layer of bytes with a zero point. */
#ifndef KERNEL_AFFINE_DENSE_SUM
#define KERNEL_AFFINE_DENSE_SUM

#include <stdint.h>

static int32_t affine_dense_sum(const int8_t *x /* [values] */, const int8_t *w /* [values] */, int32_t bias,
                                int values, int zero)
{
    uint32_t sum = (uint32_t)bias;
    for (int i = 0; i < values; i++)
        sum += (uint32_t)(w[i] * (x[i] - zero));
    return (int32_t)sum;
}

#endif /* KERNEL_AFFINE_DENSE_SUM */
