/* The natural logarithm, within 2 ulp; -infinity at 0, NaN below. x = 2^e (1 + f), log(1 + f) by a polynomial. */
#ifndef KERNEL_LOG
#define KERNEL_LOG

#include <stdint.h>

static float log_f(float x)
{
    union {
        float f;
        uint32_t i;
    } bits;
    float shift = 0.0f;
    bits.f = x;
    if (x != x || bits.i == 0x7f800000u)
        return x;
    if (x <= 0.0f) {
        bits.i = x == 0.0f ? 0xff800000u : 0x7fc00000u;
        return bits.f;
    }
    if (x < 0x1p-126f) {
        bits.f = x * 0x1p23f;
        shift = 23.0f;
    }
    int32_t e = (int32_t)(bits.i - 0x3f2aaaabu) >> 23;
    bits.i -= (uint32_t)e << 23;
    float f = bits.f - 1.0f, n = (float)e - shift, square = f * f, p = -0x1.0303a4p-3f;
    p = p * f + 0x1.1ee6b4p-3f;
    p = p * f - 0x1.f5627cp-4f;
    p = p * f + 0x1.1eb8dap-3f;
    p = p * f - 0x1.55884ep-3f;
    p = p * f + 0x1.99d268p-3f;
    p = p * f - 0x1.ffff6ap-3f;
    p = p * f + 0x1.5555p-2f;
    return n * 0x1.62e4p-1f + (f + (f * square * p + (n * 0x1.7f7d1cp-20f - 0.5f * square)));
}

#endif /* KERNEL_LOG */
