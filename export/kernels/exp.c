/* e^x, within 2 ulp: x = n ln 2 + r, e^r by a polynomial, then 2^n in two steps, as it may not be a float alone. */
#ifndef KERNEL_EXP
#define KERNEL_EXP

#include <stdint.h>

static float exp_f(float x)
{
    union {
        float f;
        uint32_t i;
    } low, high;
    x = x > 89.0f ? 89.0f : x < -104.0f ? -104.0f : x;
    if (x != x)
        return x;
    int32_t n = (int32_t)(x * 1.44269504f + (x < 0.0f ? -0.5f : 0.5f));
    float r = x - (float)n * 0x1.62e4p-1f - (float)n * 0x1.7f7d1cp-20f;
    float q = 0x1.6b694p-10f;
    q = q * r + 0x1.122a5cp-7f;
    q = q * r + 0x1.55572p-5f;
    q = q * r + 0x1.5554acp-3f;
    q = q * r + 0x1.fffffep-2f;
    int32_t half = n / 2;
    low.i = (uint32_t)(half + 127) << 23;
    high.i = (uint32_t)(n - half + 127) << 23;
    return (1.0f + (r + r * r * q)) * low.f * high.f;
}

#endif /* KERNEL_EXP */
