/* Convolution of bytes, stride 1, and the largest of each 2 x 2. */
#ifndef KERNEL_INT8_CONV_POOL2
#define KERNEL_INT8_CONV_POOL2

#include <stdint.h>

#include "int8_finish.c"
#include "int8_inline.c"
#include "int8_shape.c"
#include "unroll.c"

static INT8_EACH void
int8_conv_pool2(int8_t *y /* [groups outputs, rows, columns] */,
                const int8_t *x /* [groups channels, rows, columns], with its padding */,
                const int8_t *w /* [groups outputs, channels, kernel_rows, kernel_columns] */,
                const int32_t *bias /* [groups outputs] */, const int32_t *multiplier /* the same */,
                const uint8_t *shift /* the same */, const struct int8_shape *s)
{
    int taps = s->channels * s->kernel_rows * s->kernel_columns;
    for (int k = 0; k < s->groups * s->outputs; k++, y += s->out_plane, w += taps) {
        int32_t start = bias[k], factor = multiplier[k];
        int bits = shift[k];
        for (int i = 0; i < s->rows; i++)
            for (int j = 0; j < s->columns; j++) {
                const int8_t *from = x + k / s->outputs * s->channels * s->plane + 2 * (i * s->stride + j),
                             *tap = w;
                int32_t a = start, b = a, c = a, d = a;
                for (int n = 0; n < s->channels; n++, from += s->plane) {
                    const int8_t *row = from, *next = from + s->stride;
                    for (int r = 0; r < s->kernel_rows; r++, row += s->stride, next += s->stride)
                        UNROLL
                    for (int q = 0; q < s->kernel_columns; q++) {
                        int v = *tap++;
                        a += v * row[q], b += v * row[q + 1], c += v * next[q], d += v * next[q + 1];
                    }
                }
                a = a > b ? a : b, c = c > d ? c : d;
                y[i * s->out_stride + j] = int8_finish(a > c ? a : c, factor, bits, s->low, s->high);
            }
    }
}

#endif /* KERNEL_INT8_CONV_POOL2 */
