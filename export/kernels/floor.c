/* The largest integer not above x. */
#ifndef KERNEL_FLOOR
#define KERNEL_FLOOR

#include <stdint.h>

static float floor_f(float x)
{
    if (!(x < 0x1p23f && x > -0x1p23f))
        return x;
    float y = (float)(int32_t)x;
    return y > x ? y - 1.0f : y == 0.0f ? x * 0.0f : y;
}

#endif /* KERNEL_FLOOR */
