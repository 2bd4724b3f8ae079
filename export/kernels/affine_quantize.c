/* Floats as bytes with a zero point. */
#ifndef KERNEL_AFFINE_QUANTIZE
#define KERNEL_AFFINE_QUANTIZE

#include <stdint.h>

#include "affine_finish.c"

static void affine_quantize(int8_t *y /* [count] */, const float *x /* [count] */, int count, float scale,
                            int zero)
{
    for (int i = 0; i < count; i++)
        y[i] = affine_finish(x[i] / scale, zero, -128, 127);
}

#endif /* KERNEL_AFFINE_QUANTIZE */
