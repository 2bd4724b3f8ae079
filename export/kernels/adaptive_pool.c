/* The means of out_rows x out_columns nearly equal parts of each plane. */
#ifndef KERNEL_ADAPTIVE_POOL
#define KERNEL_ADAPTIVE_POOL

static void adaptive_pool(float *y /* [planes, out_rows, out_columns] */,
                          const float *x /* [planes, rows, columns] */, int planes, int rows, int columns,
                          int out_rows, int out_columns)
{
    for (int p = 0; p < planes; p++, x += rows * columns)
        for (int oy = 0; oy < out_rows; oy++)
            for (int ox = 0; ox < out_columns; ox++) {
                int top = oy * rows / out_rows, bottom = ((oy + 1) * rows + out_rows - 1) / out_rows;
                int left = ox * columns / out_columns,
                    right = ((ox + 1) * columns + out_columns - 1) / out_columns;
                float sum = 0.0f;
                for (int r = top; r < bottom; r++)
                    for (int c = left; c < right; c++)
                        sum += x[r * columns + c];
                *y++ = sum / (float)((bottom - top) * (right - left));
            }
}

#endif /* KERNEL_ADAPTIVE_POOL */
