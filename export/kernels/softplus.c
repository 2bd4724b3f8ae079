/* log(1 + e^x), without overflow. */
#ifndef KERNEL_SOFTPLUS
#define KERNEL_SOFTPLUS

#include "exp.c"
#include "log1p.c"

static float softplus(float x) { return x > 0.0f ? x + log1p_f(exp_f(-x)) : log1p_f(exp_f(x)); }

#endif /* KERNEL_SOFTPLUS */
