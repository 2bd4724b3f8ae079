/* Convolution of bytes, stride 1, and the largest of each 2 x 2: four of them at a time, vectors where the processor
 * has MVE. */
#ifndef KERNEL_INT8_CONV_POOL2_MVE
#define KERNEL_INT8_CONV_POOL2_MVE

#include <stdint.h>

#include "int8_larger.c"
#include "int8_shape.c"

static void int8_conv_pool2_mve(int8_t *y /* [groups outputs, rows, columns] */,
                                const int8_t *x /* [groups channels, rows, columns], with its padding */,
                                const int8_t *w /* [groups outputs, channels, kernel_rows, kernel_columns] */,
                                const int32_t *bias /* [groups outputs] */,
                                const int32_t *multiplier /* the same */, const uint8_t *shift /* the same */,
                                const struct int8_shape *s)
{
    int taps = s->channels * s->kernel_rows * s->kernel_columns;
    for (int k = 0; k < s->groups * s->outputs; k++, y += s->out_plane, w += taps)
        for (int i = 0; i < s->rows; i++)
            for (int j = 0; j < s->columns; j += 4) {
                const int8_t *from = x + k / s->outputs * s->channels * s->plane + 2 * (i * s->stride + j),
                             *tap = w;
                int8_sums a = sums_of(bias[k]), b = a, c = a, d = a;
                int lanes = s->columns - j;
                for (int n = 0; n < s->channels; n++, from += s->plane)
                    for (int r = 0; r < s->kernel_rows; r++)
                        for (int q = 0; q < s->kernel_columns; q++, tap++) {
                            const int8_t *at = from + r * s->stride + q, *next = at + s->stride;
                            a = sums_add(a, at, 2, lanes, *tap);
                            b = sums_add(b, at + 1, 2, lanes, *tap);
                            c = sums_add(c, next, 2, lanes, *tap);
                            d = sums_add(d, next + 1, 2, lanes, *tap);
                        }
                sums_finish(y + i * s->out_stride + j, sums_larger(sums_larger(a, b), sums_larger(c, d)),
                            lanes, multiplier[k], shift[k], s->low, s->high);
            }
}

#endif /* KERNEL_INT8_CONV_POOL2_MVE */
