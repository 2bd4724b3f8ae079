/* The error function, within 2 ulp: x + x P(x^2) near 0, 1 - e^-Q(|x|) beyond. */
#ifndef KERNEL_ERF
#define KERNEL_ERF

#include "exp.c"

static float erf_f(float x)
{
    float a = x < 0.0f ? -x : x;
    if (a < 0.925f) {
        float s = x * x, p = -0x1.38ff0ap-11f;
        p = p * s + 0x1.47009cp-8f;
        p = p * s - 0x1.b68398p-6f;
        p = p * s + 0x1.ce1a2p-4f;
        p = p * s - 0x1.8126e6p-2f;
        p = p * s + 0x1.06eba6p-3f;
        return x + x * p;
    }
    a = a > 4.0f ? 4.0f : a;
    float q = -0x1.9da86cp-13f;
    q = q * a + 0x1.907392p-9f;
    q = q * a - 0x1.6ce57ep-6f;
    q = q * a + 0x1.aa0ed2p-4f;
    q = q * a + 0x1.4630acp-1f;
    q = q * a + 0x1.20b2b6p+0f;
    q = q * a + 0x1.81ed7ap-13f;
    float y = 1.0f - exp_f(-q);
    return x < 0.0f ? -y : y;
}

#endif /* KERNEL_ERF */
