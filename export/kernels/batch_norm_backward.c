/* The gradients of batch_norm: with z = (x - mean) rstd, dgamma += dy z, dbeta += dy and dx = gamma rstd (dy - mean of
 * dy - z mean of dy z); without the means where the statistics were `fixed`. dx may be dy or x. */
#ifndef KERNEL_BATCH_NORM_BACKWARD
#define KERNEL_BATCH_NORM_BACKWARD

#include <stddef.h>

static void batch_norm_backward(float *dx /* [batch, channels, inner] or NULL */,
                                float *dgamma /* [channels] or NULL */, float *dbeta, const float *dy,
                                const float *x, const float *mean /* [channels] */, const float *rstd,
                                const float *gamma /* [channels] or NULL */, int batch, int channels,
                                int inner, int fixed)
{
    for (int c = 0; c < channels; c++) {
        float m = mean[c], r = rstd[c], sum = 0.0f, product = 0.0f, scale = gamma != NULL ? gamma[c] * r : r;
        for (int n = 0; n < batch; n++)
            for (int i = 0, at = (n * channels + c) * inner; i < inner; i++, at++) {
                sum += dy[at];
                product += dy[at] * ((x[at] - m) * r);
            }
        if (dgamma != NULL)
            dgamma[c] += product;
        if (dbeta != NULL)
            dbeta[c] += sum;
        sum = fixed ? 0.0f : sum / (float)(batch * inner);
        product = fixed ? 0.0f : product / (float)(batch * inner);
        for (int n = 0; dx != NULL && n < batch; n++)
            for (int i = 0, at = (n * channels + c) * inner; i < inner; i++, at++)
                dx[at] = scale * (dy[at] - sum - (x[at] - m) * r * product);
    }
}

#endif /* KERNEL_BATCH_NORM_BACKWARD */
