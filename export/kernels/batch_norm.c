/* Batch norm by the statistics of the batch, towards which the running ones move by `momentum`. y may be x.
 * What the sum of many floats lost is found when they are gone through again: `rest`. */
#ifndef KERNEL_BATCH_NORM
#define KERNEL_BATCH_NORM

#include <stddef.h>

#include "sqrt.c"

static void batch_norm(float *y /* [batch, channels, inner] */, float *mean /* [channels] or NULL */,
                       float *rstd, float *running_mean /* [channels] or NULL */, float *running_var,
                       const float *x, const float *gamma /* [channels] or NULL */, const float *beta,
                       int batch, int channels, int inner, float eps, float momentum)
{
    float count = (float)(batch * inner);
    for (int c = 0; c < channels; c++) {
        float m = 0.0f, v = 0.0f, rest = 0.0f;
        for (int n = 0; n < batch; n++)
            for (int i = 0; i < inner; i++)
                m += x[(n * channels + c) * inner + i];
        m /= count;
        for (int n = 0; n < batch; n++)
            for (int i = 0; i < inner; i++) {
                float d = x[(n * channels + c) * inner + i] - m;
                v += d * d;
                rest += d;
            }
        m += rest / count;
        v -= rest * (rest / count);
        if (running_mean != NULL)
            running_mean[c] += momentum * (m - running_mean[c]);
        if (running_var != NULL)
            running_var[c] += momentum * (v / (count - 1.0f) - running_var[c]);
        v = 1.0f / sqrt_f(v / count + eps);
        float scale = gamma != NULL ? gamma[c] * v : v, shift = beta != NULL ? beta[c] : 0.0f;
        for (int n = 0; n < batch; n++)
            for (int i = 0; i < inner; i++)
                y[(n * channels + c) * inner + i] = (x[(n * channels + c) * inner + i] - m) * scale + shift;
        if (mean != NULL)
            mean[c] = m;
        if (rstd != NULL)
            rstd[c] = v;
    }
}

#endif /* KERNEL_BATCH_NORM */
