/* Bytes as floats. */
#ifndef KERNEL_INT8_DEQUANTIZE
#define KERNEL_INT8_DEQUANTIZE

#include <stdint.h>

static void int8_dequantize(float *y /* [count] */, const int8_t *x /* [count] */, int count, float scale)
{
    for (int i = 0; i < count; i++)
        y[i] = (float)x[i] * scale;
}

#endif /* KERNEL_INT8_DEQUANTIZE */
