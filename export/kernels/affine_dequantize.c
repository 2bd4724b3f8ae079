/* Bytes with a zero point as floats. */
#ifndef KERNEL_AFFINE_DEQUANTIZE
#define KERNEL_AFFINE_DEQUANTIZE

#include <stdint.h>

static void affine_dequantize(float *y /* [count] */, const int8_t *x /* [count] */, int count, float scale,
                              int zero)
{
    for (int i = 0; i < count; i++)
        y[i] = (float)(x[i] - zero) * scale;
}

#endif /* KERNEL_AFFINE_DEQUANTIZE */
