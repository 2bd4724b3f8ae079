/* Convolution k x k with stride 1, then the largest of each window x window, at least `least` (0: relu). Where picks
 * are wanted, each says which of the window was the largest, counted by rows; window * window: none, all were below
 * `least`. */
#include <stddef.h>
#include <stdint.h>

#include "plane.c"

static void conv_pool(float *y, struct plane o, uint8_t *picks /* [outputs, rows, columns] or NULL */,
                      int outputs, const float *x, struct plane p, int channels,
                      int pad /* the border of x */, const float *w /* [outputs, channels, k, k] */,
                      const float *bias /* [outputs] or NULL */, float least, int k, int window)
{
    x -= pad * (p.stride + 1);
    for (int m = 0; m < outputs; m++, w += channels * k * k, y += o.plane)
        for (int i = 0; i < o.rows; i++)
            for (int j = 0; j < o.columns; j++) {
                float best = 0.0f;
                int at = -1;
                for (int cell = 0; cell < window * window; cell++) {
                    const float *in = x + (window * i + cell / window) * p.stride + window * j +
                                      cell % window,
                                *tap = w;
                    float sum = 0.0f;
                    for (int c = 0; c < channels; c++, in += p.plane)
                        for (int r = 0; r < k; r++)
                            for (int q = 0; q < k; q++)
                                sum += *tap++ * in[r * p.stride + q];
                    if (at < 0 || sum > best) {
                        best = sum;
                        at = cell;
                    }
                }
                if (bias != NULL)
                    best += bias[m];
                if (picks != NULL)
                    *picks++ = (uint8_t)(best > least ? at : window * window);
                y[i * o.stride + j] = best > least ? best : least;
            }
}
