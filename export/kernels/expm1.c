/* e^x - 1, within a few ulp, near 0 too: there by the polynomial of exp_f, without its 1. */
#ifndef KERNEL_EXPM1
#define KERNEL_EXPM1

#include <stdint.h>

#include "exp.c"

static float expm1_f(float x)
{
    if (x > 0.35f || x < -0.35f)
        return exp_f(x) - 1.0f;
    float q = 0x1.6b694p-10f;
    q = q * x + 0x1.122a5cp-7f;
    q = q * x + 0x1.55572p-5f;
    q = q * x + 0x1.5554acp-3f;
    q = q * x + 0x1.fffffep-2f;
    return x + x * x * q;
}

#endif /* KERNEL_EXPM1 */
