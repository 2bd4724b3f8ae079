/* dx += dy convolved with w the other way: the gradient of conv_general by x, and the transposed convolution. */
#ifndef KERNEL_CONV_GENERAL_BACKWARD_INPUT
#define KERNEL_CONV_GENERAL_BACKWARD_INPUT

#include "conv_range.c"
#include "conv_shape.c"

static void
conv_general_backward_input(float *dx /* [batch, groups channels, rows, columns] */,
                            const float *dy /* [batch, groups outputs, out_rows, out_columns] */,
                            const float *w /* [groups outputs, channels, kernel_rows, kernel_columns] */,
                            const struct conv_shape *s)
{
    int taps = s->kernel_rows * s->kernel_columns, plane = s->rows * s->columns;
    for (int n = 0; n < s->batch; n++)
        for (int o = 0; o < s->groups * s->outputs; o++) {
            float *to = dx + (n * s->groups + o / s->outputs) * s->channels * plane;
            const float *weights = w + o * s->channels * taps;
            for (int oy = 0; oy < s->out_rows; oy++)
                for (int ox = 0; ox < s->out_columns; ox++) {
                    int top = oy * s->stride_rows - s->pad_rows,
                        left = ox * s->stride_columns - s->pad_columns;
                    int ky, ky_end, kx0, kx_end;
                    float d = *dy++;
                    conv_range(&ky, &ky_end, top, s->dilation_rows, s->kernel_rows, s->rows);
                    conv_range(&kx0, &kx_end, left, s->dilation_columns, s->kernel_columns, s->columns);
                    for (; ky < ky_end; ky++) {
                        int row = (top + ky * s->dilation_rows) * s->columns + left;
                        const float *tap = weights + ky * s->kernel_columns;
                        for (int c = 0; c < s->channels; c++)
                            for (int kx = kx0; kx < kx_end; kx++)
                                to[c * plane + row + kx * s->dilation_columns] += tap[c * taps + kx] * d;
                    }
                }
        }
}

#endif /* KERNEL_CONV_GENERAL_BACKWARD_INPUT */
