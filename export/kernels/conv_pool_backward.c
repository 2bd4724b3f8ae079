/* The gradients of a convolution k x k with max pooling behind: only where the largest pixel of a window was is there
 * one. All are added to what is there; any of them may be NULL. */
#include <stddef.h>
#include <stdint.h>

#include "plane.c"

static void conv_pool_backward(float *dw /* [outputs, channels, k, k] */, float *db /* [outputs] */,
                               float *dx /* bordered as x is */, const float *dy, struct plane o,
                               const uint8_t *picks /* [outputs, rows, columns] */, int outputs,
                               const float *x, struct plane p, int channels, int pad, const float *w, int k,
                               int window)
{
    int taps = channels * k * k;
    x -= pad * (p.stride + 1);
    if (dx != NULL)
        dx -= pad * (p.stride + 1);
    for (int m = 0; m < outputs; m++, dy += o.plane)
        for (int i = 0; i < o.rows; i++)
            for (int j = 0; j < o.columns; j++) {
                int pick = *picks++, tap = m * taps;
                if (pick == window * window)
                    continue;
                float g = dy[i * o.stride + j];
                int at = (window * i + pick / window) * p.stride + window * j + pick % window;
                if (db != NULL)
                    db[m] += g;
                for (int c = 0; c < channels; c++)
                    for (int r = 0; r < k; r++)
                        for (int q = 0; q < k; q++, tap++) {
                            int from = c * p.plane + at + r * p.stride + q;
                            if (dw != NULL)
                                dw[tap] += g * x[from];
                            if (dx != NULL)
                                dx[from] += g * w[tap];
                        }
            }
}
