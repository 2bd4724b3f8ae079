/* y = x rstd gamma for each row, rstd = 1 / sqrt(mean of x^2 + eps). y may be x. */
#ifndef KERNEL_RMS_NORM
#define KERNEL_RMS_NORM

#include <stddef.h>

#include "sqrt.c"

static void rms_norm(float *y /* [rows, width] */, float *rstd /* [rows] or NULL */, const float *x,
                     const float *gamma /* [width] or NULL */, int rows, int width, float eps)
{
    for (int row = 0; row < rows; row++, x += width, y += width) {
        float sum = 0.0f;
        for (int i = 0; i < width; i++)
            sum += x[i] * x[i];
        sum = 1.0f / sqrt_f(sum / (float)width + eps);
        for (int i = 0; i < width; i++)
            y[i] = gamma != NULL ? x[i] * sum * gamma[i] : x[i] * sum;
        if (rstd != NULL)
            rstd[row] = sum;
    }
}

#endif /* KERNEL_RMS_NORM */
