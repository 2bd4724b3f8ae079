/* dx += the columns that im2col would have taken from each pixel. */
#ifndef KERNEL_COL2IM
#define KERNEL_COL2IM

#include "pool_shape.c"

static void col2im(float *dx /* [planes, rows, columns] */,
                   const float *y /* [planes, kernel_rows, kernel_columns, out_rows, out_columns] */,
                   const struct pool_shape *s)
{
    for (int p = 0; p < s->planes; p++, dx += s->rows * s->columns)
        for (int ky = 0; ky < s->kernel_rows; ky++)
            for (int kx = 0; kx < s->kernel_columns; kx++)
                for (int oy = 0; oy < s->out_rows; oy++)
                    for (int ox = 0; ox < s->out_columns; ox++, y++) {
                        int r = oy * s->stride_rows + ky * s->dilation_rows - s->pad_rows;
                        int c = ox * s->stride_columns + kx * s->dilation_columns - s->pad_columns;
                        if (r >= 0 && r < s->rows && c >= 0 && c < s->columns)
                            dx[r * s->columns + c] += *y;
                    }
}

#endif /* KERNEL_COL2IM */
