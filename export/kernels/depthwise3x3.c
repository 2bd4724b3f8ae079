/* A convolution of 3 x 3 for each channel alone. Inside the image nine products are written out; at its edges taps
 * that lie beyond are left out. */
#ifndef KERNEL_DEPTHWISE3X3
#define KERNEL_DEPTHWISE3X3

#include <stddef.h>

static void depthwise3x3(float *y /* [batch, channels, out_rows, out_columns] */,
                         const float *x /* [batch, channels, rows, columns] */,
                         const float *w /* [channels, 3, 3] */, const float *bias /* [channels] or NULL */,
                         int batch, int channels, int rows, int columns, int out_rows, int out_columns,
                         int stride, int pad)
{
    for (int plane = 0; plane < batch * channels; plane++, x += rows * columns) {
        const float *t = w + plane % channels * 9;
        float start = bias != NULL ? bias[plane % channels] : 0.0f;
        float t0 = t[0], t1 = t[1], t2 = t[2], t3 = t[3], t4 = t[4], t5 = t[5], t6 = t[6], t7 = t[7],
              t8 = t[8];
        for (int oy = 0; oy < out_rows; oy++)
            for (int ox = 0; ox < out_columns; ox++) {
                int top = oy * stride - pad, left = ox * stride - pad;
                float sum = start;
                if (top >= 0 && top + 3 <= rows && left >= 0 && left + 3 <= columns) {
                    const float *a = x + top * columns + left, *b = a + columns, *c = b + columns;
                    sum += t0 * a[0] + t1 * a[1] + t2 * a[2];
                    sum += t3 * b[0] + t4 * b[1] + t5 * b[2];
                    sum += t6 * c[0] + t7 * c[1] + t8 * c[2];
                } else {
                    for (int k = 0; k < 9; k++) {
                        int row = top + k / 3, column = left + k % 3;
                        if (row >= 0 && row < rows && column >= 0 && column < columns)
                            sum += t[k] * x[row * columns + column];
                    }
                }
                *y++ = sum;
            }
    }
}

#endif /* KERNEL_DEPTHWISE3X3 */
