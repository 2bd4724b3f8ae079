/* A number in steps of a byte, rounded half to even, plus a zero point, limited. Limits come first: they are whole. */
#ifndef KERNEL_AFFINE_FINISH
#define KERNEL_AFFINE_FINISH

#include <stdint.h>

static int8_t affine_finish(float v, int zero, int low, int high)
{
    float least = (float)(low - zero), most = (float)(high - zero);
    v = v > least ? v : least; /* a NaN is not above it */
    v = v < most ? v : most;
    float rounded = v + 12582912.0f;
    return (int8_t)((int)(rounded - 12582912.0f) + zero);
}

#endif /* KERNEL_AFFINE_FINISH */
