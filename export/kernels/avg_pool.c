/* The mean of each window, where padding counts as zeros, or with exclude_pad not at all. Padding ends `pad` behind the
 * image: what a last window has beyond that counts neither way. */
#ifndef KERNEL_AVG_POOL
#define KERNEL_AVG_POOL

#include "conv_range.c"
#include "pool_shape.c"

static void avg_pool(float *y /* [planes, out_rows, out_columns] */,
                     const float *x /* [planes, rows, columns] */, const struct pool_shape *s,
                     int exclude_pad)
{
    for (int p = 0; p < s->planes; p++, x += s->rows * s->columns)
        for (int oy = 0; oy < s->out_rows; oy++)
            for (int ox = 0; ox < s->out_columns; ox++) {
                int top = oy * s->stride_rows - s->pad_rows, left = ox * s->stride_columns - s->pad_columns;
                int ky0, ky_end, kx0, kx_end;
                float sum = 0.0f;
                conv_range(&ky0, &ky_end, top, 1, s->kernel_rows, s->rows);
                conv_range(&kx0, &kx_end, left, 1, s->kernel_columns, s->columns);
                for (int ky = ky0; ky < ky_end; ky++)
                    for (int kx = kx0; kx < kx_end; kx++)
                        sum += x[(top + ky) * s->columns + left + kx];
                int tall = ky_end - ky0, wide = kx_end - kx0;
                if (!exclude_pad) {
                    tall = s->rows + s->pad_rows - top < s->kernel_rows ? s->rows + s->pad_rows - top
                                                                        : s->kernel_rows;
                    wide = s->columns + s->pad_columns - left < s->kernel_columns
                               ? s->columns + s->pad_columns - left
                               : s->kernel_columns;
                }
                *y++ = sum / (float)(tall * wide);
            }
}

#endif /* KERNEL_AVG_POOL */
