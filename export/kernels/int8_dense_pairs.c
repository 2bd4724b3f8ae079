/* A dense layer of bytes, two units at a time. */
#ifndef KERNEL_INT8_DENSE_PAIRS
#define KERNEL_INT8_DENSE_PAIRS

#include <stdint.h>

#include "int8_finish.c"
#include "int8_pairs.c"

static void int8_dense_pairs(int8_t *y /* [rows, units] */, const int8_t *x /* [rows, values] */,
                             const int8_t *w /* [units, values] */, const int32_t *bias /* [units] */,
                             const int32_t *multiplier /* [units] */, const uint8_t *shift /* [units] */,
                             int rows, int units, int values, int low, int high)
{
    for (int r = 0; r < rows; r++, x += values)
        for (int k = 0; k < units; k += 2) {
            int more = k + 1 < units, i = 0; /* the last may be alone: it is done twice then */
            const int8_t *u = w + k * values, *v = u + (more ? values : 0);
            int32_t a = bias[k], b = bias[k + more];
            for (; i + 4 <= values; i += 4) {
                int32_t four = load4(x + i), even = even_pair(four), odd = odd_pair(four);
                four = load4(u + i);
                a = add_both(add_both(a, even, even_pair(four)), odd, odd_pair(four));
                four = load4(v + i);
                b = add_both(add_both(b, even, even_pair(four)), odd, odd_pair(four));
            }
            for (; i < values; i++) {
                a = (int32_t)((uint32_t)a + (uint32_t)(u[i] * x[i]));
                b = (int32_t)((uint32_t)b + (uint32_t)(v[i] * x[i]));
            }
            y[r * units + k] = int8_finish(a, multiplier[k], shift[k], low, high);
            y[r * units + k + more] = int8_finish(b, multiplier[k + more], shift[k + more], low, high);
        }
}

#endif /* KERNEL_INT8_DENSE_PAIRS */
