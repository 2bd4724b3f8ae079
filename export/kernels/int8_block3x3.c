/* 3 x 3 taps at two by two neighbouring places: sum[0] and [1] of a row, [2] and [3] of the next. */
#ifndef KERNEL_INT8_BLOCK3X3
#define KERNEL_INT8_BLOCK3X3

#include <stdint.h>

#include "int8_inline.c"
#include "int8_row3.c"

static INT8_PART void int8_block3x3(int32_t sum[4], const int8_t *x /* planes, a row every `stride` */,
                                    int stride, int plane, int channels,
                                    const int8_t *w /* [channels, 3, 4]: a row's three and a 0 */)
{
    int32_t a = sum[0], b = sum[1], c = sum[2], d = sum[3];
    for (const int8_t *end = w + 12 * channels; w != end; w += 12, x += plane) {
        int32_t four = load4(w), v02 = even_pair(four), v1 = odd_pair(four), w02, w1, x02, x13;
        const int8_t *row = x;
        four = load4(row), x02 = even_pair(four), x13 = odd_pair(four);
        int8_row3(&a, &b, x02, x13, v02, v1);
        row += stride;
        four = load4(row), x02 = even_pair(four), x13 = odd_pair(four);
        int8_row3(&c, &d, x02, x13, v02, v1);
        four = load4(w + 4), w02 = even_pair(four), w1 = odd_pair(four);
        int8_row3(&a, &b, x02, x13, w02, w1);
        row += stride;
        four = load4(row), x02 = even_pair(four), x13 = odd_pair(four);
        int8_row3(&c, &d, x02, x13, w02, w1);
        four = load4(w + 8), w02 = even_pair(four), w1 = odd_pair(four);
        int8_row3(&a, &b, x02, x13, w02, w1);
        row += stride;
        four = load4(row), x02 = even_pair(four), x13 = odd_pair(four);
        int8_row3(&c, &d, x02, x13, w02, w1);
    }
    sum[0] = a, sum[1] = b, sum[2] = c, sum[3] = d;
}

#endif /* KERNEL_INT8_BLOCK3X3 */
