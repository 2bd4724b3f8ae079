/* Bytes at another scale, or limited; y may be x. */
#ifndef KERNEL_INT8_RESCALE
#define KERNEL_INT8_RESCALE

#include <stdint.h>

#include "int8_finish.c"

static void int8_rescale(int8_t *y /* [count] */, const int8_t *x /* [count] */, int count,
                         int32_t multiplier, int shift, int low, int high)
{
    for (int i = 0; i < count; i++)
        y[i] = int8_finish(x[i], multiplier, shift, low, high);
}

#endif /* KERNEL_INT8_RESCALE */
