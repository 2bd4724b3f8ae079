/* Taps of 3 or more columns at two by two neighbouring places: sum[0] and [1] of a row, [2] and [3] of the next. A row
 * of taps is cut into threes, the last of which may begin inside the one before: it has zeros there. */
#ifndef KERNEL_INT8_BLOCK
#define KERNEL_INT8_BLOCK

#include <stdint.h>

#include "int8_inline.c"
#include "int8_row3.c"

static INT8_PART void int8_block(int32_t sum[4], const int8_t *x /* planes, a row every `stride` */,
                                 int stride, int plane, int channels, int rows, int columns,
                                 const int8_t *w /* [channels, threes, rows, 4]: three weights and a 0 */)
{
    int32_t a = sum[0], b = sum[1], c = sum[2], d = sum[3];
    for (int k = 0; k < channels; k++, x += plane)
        for (int at = 0; at < columns; at += 3) {
            const int8_t *row = x + (at + 3 <= columns ? at : columns - 3);
            int32_t w02 = 0, w1 = 0;
            for (int r = 0; r < rows; r++, row += stride, w += 4) {
                int32_t four = load4(row), x02 = even_pair(four), x13 = odd_pair(four);
                int8_row3(&c, &d, x02, x13, w02, w1); /* with the weights of the row before */
                four = load4(w), w02 = even_pair(four), w1 = odd_pair(four);
                int8_row3(&a, &b, x02, x13, w02, w1);
            }
            int32_t four = load4(row);
            int8_row3(&c, &d, even_pair(four), odd_pair(four), w02, w1);
        }
    sum[0] = a, sum[1] = b, sum[2] = c, sum[3] = d;
}

#endif /* KERNEL_INT8_BLOCK */
