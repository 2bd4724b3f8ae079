/* dx = dy - e^y times the sum of dy, along an axis, from log_softmax's output y. dx may be dy or y. */
#ifndef KERNEL_LOG_SOFTMAX_AXIS_BACKWARD
#define KERNEL_LOG_SOFTMAX_AXIS_BACKWARD

#include "exp.c"

static void log_softmax_axis_backward(float *dx /* [outer, count, inner] */, const float *dy, const float *y,
                                      int outer, int count, int inner)
{
    for (int o = 0; o < outer; o++, dx += count * inner, dy += count * inner, y += count * inner)
        for (int i = 0; i < inner; i++) {
            float sum = 0.0f;
            for (int k = 0; k < count; k++)
                sum += dy[k * inner + i];
            for (int k = 0; k < count; k++)
                dx[k * inner + i] = dy[k * inner + i] - exp_f(y[k * inner + i]) * sum;
        }
}

#endif /* KERNEL_LOG_SOFTMAX_AXIS_BACKWARD */
