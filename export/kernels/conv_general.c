/* Any 2-D convolution (1-D: of one row): groups, strides, padding, dilation. With add, y += without the bias. */
#ifndef KERNEL_CONV_GENERAL
#define KERNEL_CONV_GENERAL

#include <stddef.h>

#include "conv_range.c"
#include "conv_shape.c"

static void conv_general(float *y /* [batch, groups outputs, out_rows, out_columns] */,
                         const float *x /* [batch, groups channels, rows, columns] */,
                         const float *w /* [groups outputs, channels, kernel_rows, kernel_columns] */,
                         const float *bias /* [groups outputs] or NULL */, const struct conv_shape *s,
                         int add)
{
    int taps = s->kernel_rows * s->kernel_columns, plane = s->rows * s->columns;
    for (int n = 0; n < s->batch; n++)
        for (int o = 0; o < s->groups * s->outputs; o++) {
            const float *from = x + (n * s->groups + o / s->outputs) * s->channels * plane;
            const float *weights = w + o * s->channels * taps;
            for (int oy = 0; oy < s->out_rows; oy++)
                for (int ox = 0; ox < s->out_columns; ox++, y++) {
                    int top = oy * s->stride_rows - s->pad_rows,
                        left = ox * s->stride_columns - s->pad_columns;
                    int ky, ky_end, kx0, kx_end;
                    float sum = add ? *y : bias != NULL ? bias[o] : 0.0f;
                    conv_range(&ky, &ky_end, top, s->dilation_rows, s->kernel_rows, s->rows);
                    conv_range(&kx0, &kx_end, left, s->dilation_columns, s->kernel_columns, s->columns);
                    for (; ky < ky_end; ky++) {
                        const float *row = from + (top + ky * s->dilation_rows) * s->columns + left;
                        const float *tap = weights + ky * s->kernel_columns;
                        for (int c = 0; c < s->channels; c++)
                            for (int kx = kx0; kx < kx_end; kx++)
                                sum += tap[c * taps + kx] * row[c * plane + kx * s->dilation_columns];
                    }
                    *y = sum;
                }
        }
}

#endif /* KERNEL_CONV_GENERAL */
