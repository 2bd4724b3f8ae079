/* Batch norm by the running statistics. y may be x. */
#ifndef KERNEL_BATCH_NORM_FIXED
#define KERNEL_BATCH_NORM_FIXED

#include <stddef.h>

#include "sqrt.c"

static void batch_norm_fixed(float *y /* [batch, channels, inner] */, float *mean /* [channels] or NULL */,
                             float *rstd, const float *running_mean /* [channels] */,
                             const float *running_var, const float *x,
                             const float *gamma /* [channels] or NULL */, const float *beta, int batch,
                             int channels, int inner, float eps)
{
    for (int c = 0; c < channels; c++) {
        float m = running_mean[c], v = 1.0f / sqrt_f(running_var[c] + eps);
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

#endif /* KERNEL_BATCH_NORM_FIXED */
