/* Convolution 3 x 3 with stride 1 over planes that have their padding as a border, at least `least` (0: relu). Two
 * outputs of two pixels at a time: four sums, and a patch of twelve pixels in registers. There are two columns or
 * more. */
#include <stddef.h>

#include "plane.c"
#include "unroll.c"

static void conv3x3(float *y, struct plane o, int outputs, const float *x, struct plane p, int channels,
                    int pad /* the border of x */, const float *w /* [outputs, channels, 3, 3] */,
                    const float *bias /* [outputs] or NULL */, float least)
{
    int taps = 9 * channels;
    x -= pad * (p.stride + 1);
    for (int k = 0; k < outputs; k += 2, w += 2 * taps, y += 2 * o.plane) {
        int second = k + 1 < outputs; /* otherwise the last one is made twice */
        float b = bias != NULL ? bias[k] : 0.0f, c = bias != NULL ? bias[k + second] : 0.0f;
        for (int i = 0; i < o.rows; i++)
            for (int column = 0; column < o.columns; column += 2) {
                int j = column + 1 < o.columns ? column
                                               : column - 1; /* an odd last one with the one before */
                const float *in = x + i * p.stride + j, *u = w, *v = second ? w + taps : w;
                float s[4] = {b, b, c, c};
                for (int n = 0; n < channels; n++, in += p.plane, u += 9, v += 9)
                    UNROLL for (int r = 0; r < 3; r++)
                    {
                        float a[4];
                        UNROLL for (int q = 0; q < 4; q++) a[q] = in[r * p.stride + q];
                        UNROLL for (int q = 0; q < 3; q++)
                        {
                            float f = u[3 * r + q], g = v[3 * r + q];
                            s[0] += f * a[q];
                            s[1] += f * a[q + 1];
                            s[2] += g * a[q];
                            s[3] += g * a[q + 1];
                        }
                    }
                float *out = y + i * o.stride + j;
                out[0] = s[0] > least ? s[0] : least;
                out[1] = s[1] > least ? s[1] : least;
                if (second) {
                    out[o.plane] = s[2] > least ? s[2] : least;
                    out[o.plane + 1] = s[3] > least ? s[3] : least;
                }
            }
    }
}
