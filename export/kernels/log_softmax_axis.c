/* y = x - log of the sum of e^x along an axis. y may be x. */
#ifndef KERNEL_LOG_SOFTMAX_AXIS
#define KERNEL_LOG_SOFTMAX_AXIS

#include "exp.c"
#include "log.c"

static void log_softmax_axis(float *y /* [outer, count, inner] */, const float *x, int outer, int count,
                             int inner)
{
    for (int o = 0; o < outer; o++, x += count * inner, y += count * inner)
        for (int i = 0; i < inner; i++) {
            float most = x[i], sum = 0.0f;
            for (int k = 1; k < count; k++)
                most = x[k * inner + i] > most ? x[k * inner + i] : most;
            for (int k = 0; k < count; k++)
                sum += exp_f(x[k * inner + i] - most);
            sum = log_f(sum);
            for (int k = 0; k < count; k++)
                y[k * inner + i] = x[k * inner + i] - most - sum;
        }
}

#endif /* KERNEL_LOG_SOFTMAX_AXIS */
