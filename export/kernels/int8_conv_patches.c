/* Convolution of bytes, stride 1: what four places see is laid out in rows, which the weights of all
 * outputs are multiplied with. */
#ifndef KERNEL_INT8_CONV_PATCHES
#define KERNEL_INT8_CONV_PATCHES

#include <stdint.h>

#include "int8_finish.c"
#include "int8_inline.c"
#include "int8_patch.c"
#include "int8_products4.c"
#include "int8_shape.c"

static INT8_EACH void
int8_conv_patches(int8_t *y /* [groups outputs, rows, columns] */,
                  const int8_t *x /* [groups channels, rows, columns], with its padding */,
                  const int8_t *w /* [groups outputs, channels, kernel_rows, kernel_columns] */,
                  const int32_t *bias /* [groups outputs] */, const int32_t *multiplier /* the same */,
                  const uint8_t *shift /* the same */, const struct int8_shape *s,
                  int8_t *patches /* [4, channels, kernel_rows, kernel_columns] */)
{
    int taps = s->channels * s->kernel_rows * s->kernel_columns;
    for (int group = 0; group < s->groups; group++, x += s->channels * s->plane)
        for (int i = 0; i < s->rows; i++)
            for (int j = 0; j < s->columns; j += 4) {
                int8_t *patch = patches;
                for (int n = 0; n < 4; n++) {
                    int row = i, column = j + n < s->columns ? j + n : s->columns - 1;
                    patch = int8_patch(patch, x + row * s->stride + column, s->stride, s->plane, s->channels,
                                       s->kernel_rows, s->kernel_columns);
                }
                for (int k = group * s->outputs; k < (group + 1) * s->outputs; k++) {
                    int32_t sum[4] = {bias[k], bias[k], bias[k], bias[k]};
                    add_products4(sum, patches, w + k * taps, taps);
                    for (int n = 0; n < 4 && j + n < s->columns; n++)
                        y[k * s->out_plane + i * s->out_stride + j + n] = int8_finish(
                            sum[n], multiplier[k], shift[k], s->low, s->high);
                }
            }
}

#endif /* KERNEL_INT8_CONV_PATCHES */
