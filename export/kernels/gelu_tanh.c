/* x (1 + tanh(u)) / 2 = x sigmoid(2u), 2u = 1.596 (x + 0.044715 x^3). */
#ifndef KERNEL_GELU_TANH
#define KERNEL_GELU_TANH

#include "sigmoid.c"

static float gelu_tanh(float x) { return x * sigmoid_f(x * (1.59576912f + 0.0713548163f * x * x)); }

#endif /* KERNEL_GELU_TANH */
