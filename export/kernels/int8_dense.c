/* A dense layer of bytes. */
#ifndef KERNEL_INT8_DENSE
#define KERNEL_INT8_DENSE

#include <stdint.h>

#include "int8_finish.c"

static void int8_dense(int8_t *y /* [rows, units] */, const int8_t *x /* [rows, values] */,
                       const int8_t *w /* [units, values] */, const int32_t *bias /* [units] */,
                       const int32_t *multiplier /* [units] */, const uint8_t *shift /* [units] */, int rows,
                       int units, int values, int low, int high)
{
    for (int r = 0; r < rows; r++, x += values)
        for (int k = 0; k < units; k++) {
            uint32_t sum = (uint32_t)bias[k];
            const int8_t *weights = w + k * values;
            for (int i = 0; i < values; i++)
                sum += (uint32_t)(weights[i] * x[i]);
            *y++ = int8_finish((int32_t)sum, multiplier[k], shift[k], low, high);
        }
}

#endif /* KERNEL_INT8_DENSE */
