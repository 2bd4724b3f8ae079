/* x^y: by squaring where y is a small integer, else e^(y log x), whose relative error grows with |y log x| to 5e-6. */
#ifndef KERNEL_POW
#define KERNEL_POW

#include <stdint.h>

#include "exp.c"
#include "log.c"

static float pow_f(float x, float y)
{
    if (y >= -64.0f && y <= 64.0f && (float)(int32_t)y == y) {
        float power = 1.0f, factor = x;
        for (int32_t n = (int32_t)(y < 0.0f ? -y : y); n > 0; n >>= 1, factor *= factor)
            if (n & 1)
                power *= factor;
        return y < 0.0f ? 1.0f / power : power;
    }
    float a = x < 0.0f ? -x : x, r;
    int even = y >= 0x1p24f || y <= -0x1p24f, whole = even || (float)(int32_t)y == y;
    if (x < 0.0f && !whole)
        return log_f(-1.0f);
    if (a == 1.0f)
        r = 1.0f;
    else
        r = exp_f(y * log_f(a));
    return x < 0.0f && !even && (int32_t)y % 2 != 0 ? -r : r;
}

#endif /* KERNEL_POW */
