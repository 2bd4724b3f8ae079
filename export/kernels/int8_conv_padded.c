/* Any convolution of bytes: what four places see, with zeros outside of the image, is laid out in rows, which are
 * multiplied with the weights of all outputs. */
#ifndef KERNEL_INT8_CONV_PADDED
#define KERNEL_INT8_CONV_PADDED

#include <stdint.h>

#include "conv_shape.c"
#include "int8_finish.c"
#include "int8_products4.c"

/* What the taps of a place meet. */
static int8_t *int8_padded_patch(int8_t *patch, const int8_t *x, const struct conv_shape *s, int top,
                                 int left)
{
    for (int c = 0; c < s->channels; c++, x += s->rows * s->columns)
        for (int ky = 0; ky < s->kernel_rows; ky++) {
            int row = top + ky * s->dilation_rows, column = left;
            const int8_t *from = x + row * s->columns;
            for (int kx = 0; kx < s->kernel_columns; kx++, column += s->dilation_columns)
                *patch++ = row >= 0 && row < s->rows && column >= 0 && column < s->columns ? from[column] : 0;
        }
    return patch;
}

static void int8_conv_padded(int8_t *y /* [batch, groups outputs, out_rows, out_columns] */,
                             const int8_t *x /* [batch, groups channels, rows, columns] */,
                             const int8_t *w /* [groups outputs, channels, kernel_rows, kernel_columns] */,
                             const int32_t *bias /* [groups outputs] */,
                             const int32_t *multiplier /* the same */, const uint8_t *shift /* the same */,
                             const struct conv_shape *s, int low, int high,
                             int8_t *patches /* [4, channels, kernel_rows, kernel_columns] */)
{
    int taps = s->channels * s->kernel_rows * s->kernel_columns, places = s->out_rows * s->out_columns;
    for (int n = 0; n < s->batch * s->groups;
         n++, x += s->channels * s->rows * s->columns, y += s->outputs * places)
        for (int at = 0; at < places; at += 4) {
            int8_t *patch = patches;
            for (int p = at; p < at + 4; p++) {
                int place = p < places ? p : places - 1;
                patch = int8_padded_patch(patch, x, s, place / s->out_columns * s->stride_rows - s->pad_rows,
                                          place % s->out_columns * s->stride_columns - s->pad_columns);
            }
            for (int o = 0; o < s->outputs; o++) {
                int k = n % s->groups * s->outputs + o;
                int32_t sum[4] = {bias[k], bias[k], bias[k], bias[k]};
                add_products4(sum, patches, w + k * taps, taps);
                for (int p = 0; p < 4 && at + p < places; p++)
                    y[o * places + at + p] = int8_finish(sum[p], multiplier[k], shift[k], low, high);
            }
        }
}

#endif /* KERNEL_INT8_CONV_PADDED */
