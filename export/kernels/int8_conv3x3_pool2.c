/* Convolution of bytes, 3 x 3, stride 1, and the largest of each 2 x 2. */
#ifndef KERNEL_INT8_CONV3X3_POOL2
#define KERNEL_INT8_CONV3X3_POOL2

#include <stdint.h>

#include "int8_block3x3.c"
#include "int8_finish.c"
#include "int8_inline.c"
#include "int8_shape.c"

static INT8_EACH void
int8_conv3x3_pool2(int8_t *y /* [groups outputs, rows, columns] */,
                   const int8_t *x /* [groups channels, rows, columns], with its padding */,
                   const int8_t *w /* [groups outputs, channels, 3, 4] */,
                   const int32_t *bias /* [groups outputs] */, const int32_t *multiplier /* the same */,
                   const uint8_t *shift /* the same */, const struct int8_shape *s)
{
    for (int k = 0; k < s->groups * s->outputs; k++, y += s->out_plane, w += 12 * s->channels) {
        int32_t start = bias[k], factor = multiplier[k];
        int bits = shift[k];
        const int8_t *from = x + k / s->outputs * s->channels * s->plane;
        for (int i = 0; i < s->rows; i++)
            for (int j = 0; j < s->columns; j++) {
                int32_t sum[4] = {start, start, start, start};
                int8_block3x3(sum, from + 2 * (i * s->stride + j), s->stride, s->plane, s->channels, w);
                int32_t top = sum[0] > sum[1] ? sum[0] : sum[1], low = sum[2] > sum[3] ? sum[2] : sum[3];
                y[i * s->out_stride + j] = int8_finish(top > low ? top : low, factor, bits, s->low, s->high);
            }
    }
}

#endif /* KERNEL_INT8_CONV3X3_POOL2 */
