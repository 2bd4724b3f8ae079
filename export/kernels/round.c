/* The nearest integer, ties to even. */
#ifndef KERNEL_ROUND
#define KERNEL_ROUND

#include <stdint.h>

static float round_f(float x)
{
    if (!(x < 0x1p23f && x > -0x1p23f))
        return x;
    volatile float shifted = x < 0.0f ? x - 0x1p23f : x + 0x1p23f; /* where a float has no fraction */
    float y = x < 0.0f ? shifted + 0x1p23f : shifted - 0x1p23f;
    return y == 0.0f ? x * 0.0f : y;
}

#endif /* KERNEL_ROUND */
