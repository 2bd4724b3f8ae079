/* dx += each part's share of dy: the gradient of adaptive_pool. */
#ifndef KERNEL_ADAPTIVE_POOL_BACKWARD
#define KERNEL_ADAPTIVE_POOL_BACKWARD

static void adaptive_pool_backward(float *dx /* [planes, rows, columns] */,
                                   const float *dy /* [planes, out_rows, out_columns] */, int planes,
                                   int rows, int columns, int out_rows, int out_columns)
{
    for (int p = 0; p < planes; p++, dx += rows * columns)
        for (int oy = 0; oy < out_rows; oy++)
            for (int ox = 0; ox < out_columns; ox++) {
                int top = oy * rows / out_rows, bottom = ((oy + 1) * rows + out_rows - 1) / out_rows;
                int left = ox * columns / out_columns,
                    right = ((ox + 1) * columns + out_columns - 1) / out_columns;
                float share = *dy++ / (float)((bottom - top) * (right - left));
                for (int r = top; r < bottom; r++)
                    for (int c = left; c < right; c++)
                        dx[r * columns + c] += share;
            }
}

#endif /* KERNEL_ADAPTIVE_POOL_BACKWARD */
