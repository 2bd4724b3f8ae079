/* Floats as bytes: x times 1 / scale, limited, rounded half to even, which adding 1.5 * 2^23 does. */
#ifndef KERNEL_INT8_QUANTIZE
#define KERNEL_INT8_QUANTIZE

#include <stdint.h>

static void int8_quantize(int8_t *y /* [count] */, const float *x /* [count] */, int count, float factor)
{
    for (int i = 0; i < count; i++) {
        float v = x[i] * factor;
        v = v > -127.0f ? v : -127.0f; /* a NaN is not above it */
        v = v < 127.0f ? v : 127.0f;
        float rounded = v + 12582912.0f;
        y[i] = (int8_t)(rounded - 12582912.0f);
    }
}

#endif /* KERNEL_INT8_QUANTIZE */
