/* One sum of a convolution of bytes with a zero point, which is also what lies around an image. */
#ifndef KERNEL_AFFINE_CONV_SUM
#define KERNEL_AFFINE_CONV_SUM

#include <stdint.h>

#include "conv_range.c"
#include "conv_shape.c"

static int32_t affine_conv_sum(const int8_t *x /* [batch, groups channels, rows, columns] */,
                               const int8_t *w /* [groups outputs, channels, kernel_rows, kernel_columns] */,
                               int32_t bias, const struct conv_shape *s, int zero, int n, int o, int pixel)
{
    int taps = s->kernel_rows * s->kernel_columns, plane = s->rows * s->columns;
    const int8_t *from = x + (n * s->groups + o / s->outputs) * s->channels * plane;
    const int8_t *weights = w + o * s->channels * taps;
    int top = pixel / s->out_columns * s->stride_rows - s->pad_rows;
    int left = pixel % s->out_columns * s->stride_columns - s->pad_columns;
    int ky, ky_end, kx0, kx_end;
    uint32_t sum = (uint32_t)bias;
    conv_range(&ky, &ky_end, top, s->dilation_rows, s->kernel_rows, s->rows);
    conv_range(&kx0, &kx_end, left, s->dilation_columns, s->kernel_columns, s->columns);
    for (; ky < ky_end; ky++) {
        int row = (top + ky * s->dilation_rows) * s->columns + left, tap = ky * s->kernel_columns;
        for (int c = 0; c < s->channels; c++)
            for (int kx = kx0; kx < kx_end; kx++)
                sum += (uint32_t)(weights[c * taps + tap + kx] *
                                  (from[c * plane + row + kx * s->dilation_columns] - zero));
    }
    return (int32_t)sum;
}

#endif /* KERNEL_AFFINE_CONV_SUM */
