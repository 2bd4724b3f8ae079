/* The square root: by the instruction where there is one, else by Newton's method, within an ulp. */
#ifndef KERNEL_SQRT
#define KERNEL_SQRT

#include <stdint.h>

static float sqrt_f(float x)
{
#if defined __arm__ && defined __ARM_FP && (__ARM_FP & 4)
    float y;
    __asm__("vsqrt.f32 %0, %1" : "=t"(y) : "t"(x));
    return y;
#elif defined __riscv_flen
    float y;
    __asm__("fsqrt.s %0, %1" : "=f"(y) : "f"(x));
    return y;
#else
    union {
        float f;
        uint32_t i;
    } bits;
    bits.f = x;
    if (x == 0.0f || x != x || bits.i == 0x7f800000u)
        return x;
    if (bits.i >> 31) {
        bits.i = 0x7fc00000u;
        return bits.f;
    }
    float scale = x < 0x1p-100f ? 0x1p-20f : x > 0x1p100f ? 0x1p20f : 1.0f;
    bits.f = x = x < 0x1p-100f ? x * 0x1p40f : x > 0x1p100f ? x * 0x1p-40f : x;
    bits.i = 0x5f3759dfu - (bits.i >> 1);
    float r = bits.f; /* 1 / sqrt(x), to 3 %, then twice the digits each time */
    r = r * (1.5f - 0.5f * x * r * r);
    r = r * (1.5f - 0.5f * x * r * r);
    r = r * (1.5f - 0.5f * x * r * r);
    float s = x * r;
    return (s + 0.5f * r * (x - s * s)) * scale;
#endif
}

#endif /* KERNEL_SQRT */
