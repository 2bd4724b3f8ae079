/* The slope of x Phi(x): Phi(x) + x phi(x). */
#ifndef KERNEL_GELU_GRAD
#define KERNEL_GELU_GRAD

#include "erf.c"
#include "exp.c"

static float gelu_grad(float x)
{
    return 0.5f * (1.0f + erf_f(x * 0.70710678f)) + x * 0.39894228f * exp_f(-0.5f * x * x);
}

#endif /* KERNEL_GELU_GRAD */
