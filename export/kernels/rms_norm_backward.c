/* The gradients of rms_norm: with g = dy gamma and z = x rstd, dx = rstd (g - z mean of g z), dgamma += dy z. dx may be
 * dy or x. */
#ifndef KERNEL_RMS_NORM_BACKWARD
#define KERNEL_RMS_NORM_BACKWARD

#include <stddef.h>

static void rms_norm_backward(float *dx /* [rows, width] or NULL */, float *dgamma /* [width] or NULL */,
                              const float *dy, const float *x, const float *rstd /* [rows] */,
                              const float *gamma /* [width] or NULL */, int rows, int width)
{
    for (int row = 0; row < rows; row++, dy += width, x += width) {
        float r = rstd[row], product = 0.0f;
        for (int i = 0; i < width; i++) {
            float part = dy[i] * x[i] * r;
            product += gamma != NULL ? part * gamma[i] : part;
            if (dgamma != NULL)
                dgamma[i] += part;
        }
        product /= (float)width;
        for (int i = 0; dx != NULL && i < width; i++)
            dx[row * width + i] = r * (dy[i] * (gamma != NULL ? gamma[i] : 1.0f) - x[i] * r * product);
    }
}

#endif /* KERNEL_RMS_NORM_BACKWARD */
