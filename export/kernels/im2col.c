/* Row (plane, ky, kx) of y holds the pixel that this tap meets at each window, 0 beyond the edges. */
#ifndef KERNEL_IM2COL
#define KERNEL_IM2COL

#include "pool_shape.c"

static void im2col(float *y /* [planes, kernel_rows, kernel_columns, out_rows, out_columns] */,
                   const float *x /* [planes, rows, columns] */, const struct pool_shape *s)
{
    for (int p = 0; p < s->planes; p++, x += s->rows * s->columns)
        for (int ky = 0; ky < s->kernel_rows; ky++)
            for (int kx = 0; kx < s->kernel_columns; kx++)
                for (int oy = 0; oy < s->out_rows; oy++)
                    for (int ox = 0; ox < s->out_columns; ox++) {
                        int r = oy * s->stride_rows + ky * s->dilation_rows - s->pad_rows;
                        int c = ox * s->stride_columns + kx * s->dilation_columns - s->pad_columns;
                        *y++ = r >= 0 && r < s->rows && c >= 0 && c < s->columns ? x[r * s->columns + c]
                                                                                 : 0.0f;
                    }
}

#endif /* KERNEL_IM2COL */
