/* Layer, group and instance norm: each row of x has its mean and variance. A row is a group of `channels` channels of
 * `inner` elements, and rows take turns through `groups` groups; layer norm is one group, inner 1. y may be x. */
#ifndef KERNEL_NORM_ROWS
#define KERNEL_NORM_ROWS

#include <stddef.h>

#include "sqrt.c"

static void norm_rows(float *y /* [rows, channels, inner] */, float *mean /* [rows] or NULL */,
                      float *rstd /* [rows] or NULL */, const float *x,
                      const float *gamma /* [groups, channels] or NULL */, const float *beta /* the same */,
                      int rows, int groups, int channels, int inner, float eps)
{
    int width = channels * inner;
    for (int row = 0; row < rows; row++, x += width, y += width) {
        float m = 0.0f, v = 0.0f, rest = 0.0f; /* what the sum of many floats lost */
        for (int i = 0; i < width; i++)
            m += x[i];
        m /= (float)width;
        for (int i = 0; i < width; i++) {
            float d = x[i] - m;
            v += d * d;
            rest += d;
        }
        m += rest / (float)width;
        v -= rest * (rest / (float)width);
        v = 1.0f / sqrt_f(v / (float)width + eps);
        int first = row % groups * channels;
        for (int c = 0; c < channels; c++) {
            float scale = gamma != NULL ? gamma[first + c] * v : v,
                  shift = beta != NULL ? beta[first + c] : 0.0f;
            for (int i = c * inner; i < (c + 1) * inner; i++)
                y[i] = (x[i] - m) * scale + shift;
        }
        if (mean != NULL)
            mean[row] = m;
        if (rstd != NULL)
            rstd[row] = v;
    }
}

#endif /* KERNEL_NORM_ROWS */
