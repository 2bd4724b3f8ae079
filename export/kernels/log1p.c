/* log(1 + x), within a few ulp, near 0 too: log(u) for u = 1 + x rounded, made up for what rounding lost. */
#ifndef KERNEL_LOG1P
#define KERNEL_LOG1P

#include "log.c"

static float log1p_f(float x)
{
    float u = 1.0f + x;
    if (u == 1.0f)
        return x;
    if (!(x < 0x1p25f) || u <= 0.0f)
        return log_f(u);
    return log_f(u) * (x / (u - 1.0f));
}

#endif /* KERNEL_LOG1P */
