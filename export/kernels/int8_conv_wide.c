/* Convolution of bytes, at least 3 columns wide, stride 1; y has at least two rows and columns, and the last two may
 * be done twice. */
#ifndef KERNEL_INT8_CONV_WIDE
#define KERNEL_INT8_CONV_WIDE

#include <stdint.h>

#include "int8_block.c"
#include "int8_finish.c"
#include "int8_inline.c"
#include "int8_shape.c"

static INT8_EACH void int8_conv_wide(int8_t *y /* [groups outputs, rows, columns] */,
                                     const int8_t *x /* [groups channels, rows, columns], with its padding */,
                                     const int8_t *w /* [groups outputs, channels, threes, kernel_rows, 4] */,
                                     const int32_t *bias /* [groups outputs] */,
                                     const int32_t *multiplier /* the same */,
                                     const uint8_t *shift /* the same */, const struct int8_shape *s)
{
    for (int k = 0; k < s->groups * s->outputs;
         k++, y += s->out_plane, w += (s->kernel_columns + 2) / 3 * 4 * s->kernel_rows * s->channels) {
        int32_t start = bias[k], factor = multiplier[k];
        int bits = shift[k];
        const int8_t *from = x + k / s->outputs * s->channels * s->plane;
        for (int row = 0; row < s->rows; row += 2)
            for (int column = 0; column < s->columns; column += 2) {
                int i = row + 2 <= s->rows ? row : row - 1,
                    j = column + 2 <= s->columns ? column : column - 1;
                int32_t sum[4] = {start, start, start, start};
                int8_block(sum, from + i * s->stride + j, s->stride, s->plane, s->channels, s->kernel_rows,
                           s->kernel_columns, w);
                int8_t *to = y + i * s->out_stride + j;
                for (int n = 0; n < 4; n++)
                    to[n / 2 * s->out_stride + n % 2] = int8_finish(sum[n], factor, bits, s->low, s->high);
            }
    }
}

#endif /* KERNEL_INT8_CONV_WIDE */
