/* dx += each window's share of dy: the gradient of avg_pool. */
#ifndef KERNEL_AVG_POOL_BACKWARD
#define KERNEL_AVG_POOL_BACKWARD

#include "conv_range.c"
#include "pool_shape.c"

static void avg_pool_backward(float *dx /* [planes, rows, columns] */,
                              const float *dy /* [planes, out_rows, out_columns] */,
                              const struct pool_shape *s, int exclude_pad)
{
    for (int p = 0; p < s->planes; p++, dx += s->rows * s->columns)
        for (int oy = 0; oy < s->out_rows; oy++)
            for (int ox = 0; ox < s->out_columns; ox++) {
                int top = oy * s->stride_rows - s->pad_rows, left = ox * s->stride_columns - s->pad_columns;
                int ky0, ky_end, kx0, kx_end;
                conv_range(&ky0, &ky_end, top, 1, s->kernel_rows, s->rows);
                conv_range(&kx0, &kx_end, left, 1, s->kernel_columns, s->columns);
                int tall = ky_end - ky0, wide = kx_end - kx0;
                if (!exclude_pad) {
                    tall = s->rows + s->pad_rows - top < s->kernel_rows ? s->rows + s->pad_rows - top
                                                                        : s->kernel_rows;
                    wide = s->columns + s->pad_columns - left < s->kernel_columns
                               ? s->columns + s->pad_columns - left
                               : s->kernel_columns;
                }
                float share = *dy++ / (float)(tall * wide);
                for (int ky = ky0; ky < ky_end; ky++)
                    for (int kx = kx0; kx < kx_end; kx++)
                        dx[(top + ky) * s->columns + left + kx] += share;
            }
}

#endif /* KERNEL_AVG_POOL_BACKWARD */
