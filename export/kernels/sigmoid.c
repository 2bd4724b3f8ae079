/* 1 / (1 + e^-x), within a few ulp; 0 below -88, where it would be subnormal. */
#ifndef KERNEL_SIGMOID
#define KERNEL_SIGMOID

#include "exp.c"

static float sigmoid_f(float x) { return 1.0f / (1.0f + exp_f(-x)); }

#endif /* KERNEL_SIGMOID */
