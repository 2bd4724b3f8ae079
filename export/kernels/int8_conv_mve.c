/* Convolution of bytes, stride 1: four columns at a time, a vector where the processor has MVE. */
#ifndef KERNEL_INT8_CONV_MVE
#define KERNEL_INT8_CONV_MVE

#include <stdint.h>

#include "int8_lanes.c"
#include "int8_shape.c"

static void int8_conv_mve(int8_t *y /* [groups outputs, rows, columns] */,
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
                const int8_t *from = x + k / s->outputs * s->channels * s->plane + i * s->stride + j,
                             *tap = w;
                int8_sums sums = sums_of(bias[k]);
                for (int c = 0; c < s->channels; c++, from += s->plane)
                    for (int r = 0; r < s->kernel_rows; r++)
                        for (int q = 0; q < s->kernel_columns; q++)
                            sums = sums_add(sums, from + r * s->stride + q, 1, s->columns - j, *tap++);
                sums_finish(y + i * s->out_stride + j, sums, s->columns - j, multiplier[k], shift[k], s->low,
                            s->high);
            }
}

#endif /* KERNEL_INT8_CONV_MVE */
