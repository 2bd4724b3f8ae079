/* tanh(x) = (e^2x - 1) / (e^2x + 1), within a few ulp. */
#ifndef KERNEL_TANH
#define KERNEL_TANH

#include "expm1.c"

static float tanh_f(float x)
{
    float a = x < 0.0f ? -x : x;
    a = a > 9.1f ? 9.1f : a;
    float t = expm1_f(a + a);
    t = t / (t + 2.0f);
    return x < 0.0f ? -t : t;
}

#endif /* KERNEL_TANH */
