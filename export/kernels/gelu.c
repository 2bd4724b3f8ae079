/* x Phi(x), Phi the normal distribution. */
#ifndef KERNEL_GELU
#define KERNEL_GELU

#include "erf.c"

static float gelu(float x) { return 0.5f * x * (1.0f + erf_f(x * 0.70710678f)); }

#endif /* KERNEL_GELU */
