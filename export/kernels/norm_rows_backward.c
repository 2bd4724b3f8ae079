/* The gradients of norm_rows: with g = dy gamma and z = (x - mean) rstd, dx = rstd (g - mean of g - z mean of g z),
 * dgamma += dy z, dbeta += dy. dx may be dy or x. */
#ifndef KERNEL_NORM_ROWS_BACKWARD
#define KERNEL_NORM_ROWS_BACKWARD

#include <stddef.h>

static void norm_rows_backward(float *dx /* [rows, channels, inner] or NULL */,
                               float *dgamma /* [groups, channels] or NULL */, float *dbeta /* the same */,
                               const float *dy, const float *x, const float *mean /* [rows] */,
                               const float *rstd, const float *gamma /* or NULL */, int rows, int groups,
                               int channels, int inner)
{
    int width = channels * inner;
    for (int row = 0; row < rows; row++) {
        const float *dyr = dy + row * width, *xr = x + row * width;
        float m = mean[row], r = rstd[row], sum = 0.0f, product = 0.0f;
        int first = row % groups * channels;
        for (int c = 0; c < channels; c++) {
            float scale = gamma != NULL ? gamma[first + c] : 1.0f, s = 0.0f, p = 0.0f;
            for (int i = c * inner; i < (c + 1) * inner; i++) {
                s += dyr[i];
                p += dyr[i] * ((xr[i] - m) * r);
            }
            if (dgamma != NULL)
                dgamma[first + c] += p;
            if (dbeta != NULL)
                dbeta[first + c] += s;
            sum += s * scale;
            product += p * scale;
        }
        sum /= (float)width;
        product /= (float)width;
        for (int c = 0; dx != NULL && c < channels; c++) {
            float scale = gamma != NULL ? gamma[first + c] : 1.0f;
            for (int i = c * inner; i < (c + 1) * inner; i++)
                dx[row * width + i] = r * (dyr[i] * scale - sum - (xr[i] - m) * r * product);
        }
    }
}

#endif /* KERNEL_NORM_ROWS_BACKWARD */
