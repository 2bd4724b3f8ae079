/* y = e^x / the sum of e^x along an axis. y may be x. */
#ifndef KERNEL_SOFTMAX_AXIS
#define KERNEL_SOFTMAX_AXIS

#include "exp.c"

static void softmax_axis(float *y /* [outer, count, inner] */, const float *x, int outer, int count,
                         int inner)
{
    for (int o = 0; o < outer; o++, x += count * inner, y += count * inner)
        for (int i = 0; i < inner; i++) {
            float most = x[i], sum = 0.0f;
            for (int k = 1; k < count; k++)
                most = x[k * inner + i] > most ? x[k * inner + i] : most;
            for (int k = 0; k < count; k++)
                sum += y[k * inner + i] = exp_f(x[k * inner + i] - most);
            sum = 1.0f / sum;
            for (int k = 0; k < count; k++)
                y[k * inner + i] *= sum;
        }
}

#endif /* KERNEL_SOFTMAX_AXIS */
