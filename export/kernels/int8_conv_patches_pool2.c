/* Convolution of bytes, stride 1, and the largest of each 2 x 2: what four places see is laid out in rows, which the
 * weights of all outputs are multiplied with. */
#ifndef KERNEL_INT8_CONV_PATCHES_POOL2
#define KERNEL_INT8_CONV_PATCHES_POOL2

#include <stdint.h>

#include "int8_finish.c"
#include "int8_inline.c"
#include "int8_patch.c"
#include "int8_products4.c"
#include "int8_shape.c"

static INT8_EACH void
int8_conv_patches_pool2(int8_t *y /* [groups outputs, rows, columns] */,
                        const int8_t *x /* [groups channels, rows, columns], with its padding */,
                        const int8_t *w /* [groups outputs, channels, kernel_rows, kernel_columns] */,
                        const int32_t *bias /* [groups outputs] */, const int32_t *multiplier /* the same */,
                        const uint8_t *shift /* the same */, const struct int8_shape *s,
                        int8_t *patches /* [4, channels, kernel_rows, kernel_columns] */)
{
    int taps = s->channels * s->kernel_rows * s->kernel_columns;
    for (int group = 0; group < s->groups; group++, x += s->channels * s->plane)
        for (int i = 0; i < s->rows; i++)
            for (int j = 0; j < s->columns; j++) {
                int8_t *patch = patches;
                for (int n = 0; n < 4; n++) {
                    int row = 2 * i + n / 2, column = 2 * j + n % 2;
                    patch = int8_patch(patch, x + row * s->stride + column, s->stride, s->plane, s->channels,
                                       s->kernel_rows, s->kernel_columns);
                }
                for (int k = group * s->outputs; k < (group + 1) * s->outputs; k++) {
                    int32_t sum[4] = {bias[k], bias[k], bias[k], bias[k]};
                    add_products4(sum, patches, w + k * taps, taps);
                    int32_t top = sum[0] > sum[1] ? sum[0] : sum[1], low = sum[2] > sum[3] ? sum[2] : sum[3];
                    y[k * s->out_plane + i * s->out_stride + j] = int8_finish(
                        top > low ? top : low, multiplier[k], shift[k], s->low, s->high);
                }
            }
}

#endif /* KERNEL_INT8_CONV_PATCHES_POOL2 */
