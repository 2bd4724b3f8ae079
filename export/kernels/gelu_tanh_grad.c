/* The slope of gelu_tanh: S + S (1 - S) x d(2u)/dx, S = sigmoid(2u), where 1 - S = e^-2u S does not cancel. */
#ifndef KERNEL_GELU_TANH_GRAD
#define KERNEL_GELU_TANH_GRAD

#include "exp.c"

static float gelu_tanh_grad(float x)
{
    x = x > 9.0f ? 9.0f : x < -9.0f ? -9.0f : x;
    float e = exp_f(-x * (1.59576912f + 0.0713548163f * x * x)), s = 1.0f / (1.0f + e);
    return s + s * (e * s) * (x * (1.59576912f + 3.0f * 0.0713548163f * x * x));
}

#endif /* KERNEL_GELU_TANH_GRAD */
