/* The slope of x S, S = sigmoid(x): S + S x (1 - S), where 1 - S = e^-x S does not cancel. */
#ifndef KERNEL_SILU_GRAD
#define KERNEL_SILU_GRAD

#include "exp.c"

static float silu_grad(float x)
{
    x = x > 87.0f ? 87.0f : x < -87.0f ? -87.0f : x;
    float e = exp_f(-x), s = 1.0f / (1.0f + e);
    return s + s * (x * (e * s));
}

#endif /* KERNEL_SILU_GRAD */
