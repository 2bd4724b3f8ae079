/* The slope of x relu6(x + 3) / 6. */
#ifndef KERNEL_HARD_SWISH_GRAD
#define KERNEL_HARD_SWISH_GRAD

static float hard_swish_grad(float x)
{
    return x <= -3.0f ? 0.0f : x >= 3.0f ? 1.0f : x * (1.0f / 3.0f) + 0.5f;
}

#endif /* KERNEL_HARD_SWISH_GRAD */
