/* A convolution of 1 x 1, four pixels at a time: y[o] = bias[o] + the sum over c of w[o][c] x[c], or with add y +=
 * without the bias. With w's strides the other way round it is the gradient by x. */
#ifndef KERNEL_MIX_CHANNELS
#define KERNEL_MIX_CHANNELS

#include <stddef.h>

static void mix_channels(float *y /* [batch, outputs, plane] */,
                         const float *x /* [batch, channels, plane] */,
                         const float *w /* [outputs, channels] at these strides */,
                         const float *bias /* [outputs] or NULL */, int batch, int outputs, int channels,
                         int plane, int w_output, int w_channel, int add)
{
    for (int n = 0; n < batch; n++, x += channels * plane)
        for (int o = 0; o < outputs; o++, y += plane) {
            const float *weights = w + o * w_output;
            float start = bias != NULL && !add ? bias[o] : 0.0f;
            int p = 0;
            for (; p + 4 <= plane; p += 4) {
                const float *from = x + p, *tap = weights;
                float a = start, b = start, c = start, d = start;
                for (int k = 0; k < channels; k++, from += plane, tap += w_channel) {
                    float t = *tap;
                    a += t * from[0];
                    b += t * from[1];
                    c += t * from[2];
                    d += t * from[3];
                }
                y[p] = add ? y[p] + a : a;
                y[p + 1] = add ? y[p + 1] + b : b;
                y[p + 2] = add ? y[p + 2] + c : c;
                y[p + 3] = add ? y[p + 3] + d : d;
            }
            for (; p < plane; p++) {
                float a = start;
                for (int k = 0; k < channels; k++)
                    a += weights[k * w_channel] * x[k * plane + p];
                y[p] = add ? y[p] + a : a;
            }
        }
}

#endif /* KERNEL_MIX_CHANNELS */
