/* The gradients of a convolution 3 x 3 with max pooling behind: only where the largest pixel of a window was is there
 * one. All are added to what is there; any of them may be NULL. */
#include <stddef.h>
#include <stdint.h>

#include "plane.c"
#include "unroll.c"

/* to += g from, 3 x 3 */
static inline void add_3x3(float *to, int stride, const float *from, int from_stride, float g)
{
    UNROLL for (int r = 0; r < 3; r++) UNROLL for (int q = 0; q < 3; q++)
        to[r * stride + q] += g * from[r * from_stride + q];
}

static void conv3x3_pool_backward(float *dw /* [outputs, channels, 3, 3] */, float *db /* [outputs] */,
                                  float *dx /* bordered as x is */, const float *dy, struct plane o,
                                  const uint8_t *picks /* [outputs, rows, columns] */, int outputs,
                                  const float *x, struct plane p, int channels, int pad, const float *w,
                                  int window)
{
    x -= pad * (p.stride + 1);
    if (dx != NULL)
        dx -= pad * (p.stride + 1);
    for (int k = 0; k < outputs; k++, dy += o.plane, w += 9 * channels) {
        float sum = 0.0f;
        for (int i = 0; i < o.rows; i++)
            for (int j = 0; j < o.columns; j++) {
                int pick = *picks++;
                if (pick == window * window)
                    continue;
                float g = dy[i * o.stride + j];
                int at = (window * i + pick / window) * p.stride + window * j + pick % window;
                sum += g;
                for (int n = 0; n < channels; n++) {
                    if (dw != NULL)
                        add_3x3(dw + 9 * n, 3, x + n * p.plane + at, p.stride, g);
                    if (dx != NULL)
                        add_3x3(dx + n * p.plane + at, p.stride, w + 9 * n, 3, g);
                }
            }
        if (db != NULL)
            db[k] += sum;
        if (dw != NULL)
            dw += 9 * channels;
    }
}
