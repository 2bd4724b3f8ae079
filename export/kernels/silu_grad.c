/* The slope of x sigmoid(x). */
#ifndef KERNEL_SILU_GRAD
#define KERNEL_SILU_GRAD

#include "sigmoid.c"

static float silu_grad(float x)
{
    float s = sigmoid_f(x);
    return s + s * (x < -88.0f ? 0.0f : x * (1.0f - s));
}

#endif /* KERNEL_SILU_GRAD */
