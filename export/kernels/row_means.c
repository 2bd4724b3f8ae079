/* y = the mean of each row. */
#ifndef KERNEL_ROW_MEANS
#define KERNEL_ROW_MEANS

static void row_means(float *y /* [rows] */, const float *x /* [rows, width] */, int rows, int width)
{
    for (int row = 0; row < rows; row++) {
        float sum = 0.0f;
        for (int i = 0; i < width; i++)
            sum += *x++;
        y[row] = sum / (float)width;
    }
}

#endif /* KERNEL_ROW_MEANS */
