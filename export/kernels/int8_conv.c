/* Any convolution of bytes, in 2-D or of one row: groups, strides, padding, dilation. */
#ifndef KERNEL_INT8_CONV
#define KERNEL_INT8_CONV

#include <stdint.h>

#include "conv_range.c"
#include "conv_shape.c"
#include "int8_finish.c"

static void int8_conv(int8_t *y /* [batch, groups outputs, out_rows, out_columns] */,
                      const int8_t *x /* [batch, groups channels, rows, columns] */,
                      const int8_t *w /* [groups outputs, channels, kernel_rows, kernel_columns] */,
                      const int32_t *bias /* [groups outputs] */, const int32_t *multiplier /* the same */,
                      const uint8_t *shift /* the same */, const struct conv_shape *s, int low, int high)
{
    int taps = s->kernel_rows * s->kernel_columns, plane = s->rows * s->columns;
    for (int n = 0; n < s->batch; n++)
        for (int o = 0; o < s->groups * s->outputs; o++) {
            const int8_t *from = x + (n * s->groups + o / s->outputs) * s->channels * plane;
            const int8_t *weights = w + o * s->channels * taps;
            for (int oy = 0; oy < s->out_rows; oy++)
                for (int ox = 0; ox < s->out_columns; ox++) {
                    int top = oy * s->stride_rows - s->pad_rows,
                        left = ox * s->stride_columns - s->pad_columns;
                    int ky, ky_end, kx0, kx_end;
                    uint32_t sum = (uint32_t)bias[o];
                    conv_range(&ky, &ky_end, top, s->dilation_rows, s->kernel_rows, s->rows);
                    conv_range(&kx0, &kx_end, left, s->dilation_columns, s->kernel_columns, s->columns);
                    for (; ky < ky_end; ky++) {
                        int row = (top + ky * s->dilation_rows) * s->columns + left,
                            tap = ky * s->kernel_columns;
                        for (int c = 0; c < s->channels; c++)
                            for (int kx = kx0; kx < kx_end; kx++)
                                sum += (uint32_t)(weights[c * taps + tap + kx] *
                                                  from[c * plane + row + kx * s->dilation_columns]);
                    }
                    *y++ = int8_finish((int32_t)sum, multiplier[o], shift[o], low, high);
                }
        }
}

#endif /* KERNEL_INT8_CONV */
