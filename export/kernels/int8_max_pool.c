/* The largest byte of each window. */
#ifndef KERNEL_INT8_MAX_POOL
#define KERNEL_INT8_MAX_POOL

#include <stdint.h>

#include "conv_range.c"
#include "pool_shape.c"

static void int8_max_pool(int8_t *y /* [planes, out_rows, out_columns] */,
                          const int8_t *x /* [planes, rows, columns] */, const struct pool_shape *s)
{
    for (int p = 0; p < s->planes; p++, x += s->rows * s->columns)
        for (int oy = 0; oy < s->out_rows; oy++)
            for (int ox = 0; ox < s->out_columns; ox++) {
                int top = oy * s->stride_rows - s->pad_rows, left = ox * s->stride_columns - s->pad_columns;
                int ky, ky_end, kx0, kx_end, best = INT8_MIN;
                conv_range(&ky, &ky_end, top, s->dilation_rows, s->kernel_rows, s->rows);
                conv_range(&kx0, &kx_end, left, s->dilation_columns, s->kernel_columns, s->columns);
                for (; ky < ky_end; ky++)
                    for (int kx = kx0; kx < kx_end; kx++) {
                        int v =
                            x[(top + ky * s->dilation_rows) * s->columns + left + kx * s->dilation_columns];
                        best = v > best ? v : best;
                    }
                *y++ = (int8_t)best;
            }
}

#endif /* KERNEL_INT8_MAX_POOL */
