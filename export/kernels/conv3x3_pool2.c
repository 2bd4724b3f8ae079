/* Convolution 3 x 3 with stride 1, then the largest of each 2 x 2, at least `least` (0: relu). Two outputs at a time:
 * eight sums, and a patch of sixteen pixels in registers. Where picks are wanted, each says which of the four was the
 * largest; 4: none, as all were below `least`. */
#include <stddef.h>
#include <stdint.h>

#include "plane.c"
#include "unroll.c"

static void conv3x3_pool2(float *y, struct plane o, uint8_t *picks /* [outputs, rows, columns] or NULL */,
                          int outputs, const float *x, struct plane p, int channels,
                          int pad /* the border of x */, const float *w /* [outputs, channels, 3, 3] */,
                          const float *bias /* [outputs] or NULL */, float least)
{
    int taps = 9 * channels, cells = o.rows * o.columns;
    x -= pad * (p.stride + 1);
    for (int k = 0; k < outputs; k += 2, w += 2 * taps, y += 2 * o.plane) {
        int second = k + 1 < outputs; /* otherwise the last one is made twice */
        for (int i = 0; i < o.rows; i++)
            for (int j = 0; j < o.columns; j++) {
                const float *in = x + 2 * i * p.stride + 2 * j, *u = w, *v = second ? w + taps : w;
                float s[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
                for (int n = 0; n < channels; n++, in += p.plane, u += 9, v += 9) {
                    float a[4][4];
                    UNROLL for (int r = 0; r < 4; r++) UNROLL for (int q = 0; q < 4; q++)
                        a[r][q] = in[r * p.stride + q];
                    UNROLL for (int r = 0; r < 3; r++) UNROLL for (int q = 0; q < 3; q++)
                    {
                        float f = u[3 * r + q], g = v[3 * r + q];
                        s[0] += f * a[r][q];
                        s[1] += f * a[r][q + 1];
                        s[2] += f * a[r + 1][q];
                        s[3] += f * a[r + 1][q + 1];
                        s[4] += g * a[r][q];
                        s[5] += g * a[r][q + 1];
                        s[6] += g * a[r + 1][q];
                        s[7] += g * a[r + 1][q + 1];
                    }
                }
                UNROLL for (int h = 0; h < 2; h++)
                {
                    float best = s[4 * h];
                    int at = 0;
                    UNROLL for (int q = 1; q < 4; q++) if (s[4 * h + q] > best)
                    {
                        best = s[4 * h + q];
                        at = q;
                    }
                    if (h > second)
                        break;
                    if (bias != NULL)
                        best += bias[k + h];
                    if (picks != NULL)
                        picks[(k + h) * cells + i * o.columns + j] = (uint8_t)(best > least ? at : 4);
                    y[h * o.plane + i * o.stride + j] = best > least ? best : least;
                }
            }
    }
}
