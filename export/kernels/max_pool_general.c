/* The largest of each window, of which the first counts, and where in its plane it lay. NaN wins. */
#ifndef KERNEL_MAX_POOL_GENERAL
#define KERNEL_MAX_POOL_GENERAL

#include <stddef.h>
#include <stdint.h>

#include "conv_range.c"
#include "pool_shape.c"

static void max_pool_general(float *y /* [planes, out_rows, out_columns] */,
                             int32_t *indices /* the same, or NULL */,
                             const float *x /* [planes, rows, columns] */, const struct pool_shape *s)
{
    for (int p = 0; p < s->planes; p++, x += s->rows * s->columns)
        for (int oy = 0; oy < s->out_rows; oy++)
            for (int ox = 0; ox < s->out_columns; ox++) {
                int top = oy * s->stride_rows - s->pad_rows, left = ox * s->stride_columns - s->pad_columns;
                int ky, ky_end, kx0, kx_end, best = -1;
                conv_range(&ky, &ky_end, top, s->dilation_rows, s->kernel_rows, s->rows);
                conv_range(&kx0, &kx_end, left, s->dilation_columns, s->kernel_columns, s->columns);
                for (; ky < ky_end; ky++)
                    for (int kx = kx0; kx < kx_end; kx++) {
                        int at = (top + ky * s->dilation_rows) * s->columns + left + kx * s->dilation_columns;
                        if (best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best]))
                            best = at;
                    }
                *y++ = x[best];
                if (indices != NULL)
                    *indices++ = best;
            }
}

#endif /* KERNEL_MAX_POOL_GENERAL */
