/* A dense layer of bytes, sixteen products at a time where the processor has MVE. */
#ifndef KERNEL_INT8_DENSE_MVE
#define KERNEL_INT8_DENSE_MVE

#include <stdint.h>

#include "int8_finish.c"
#include "int8_products.c"

static void int8_dense_mve(int8_t *y /* [rows, units] */, const int8_t *x /* [rows, values] */,
                           const int8_t *w /* [units, values] */, const int32_t *bias /* [units] */,
                           const int32_t *multiplier /* [units] */, const uint8_t *shift /* [units] */,
                           int rows, int units, int values, int low, int high)
{
    for (int r = 0; r < rows; r++, x += values)
        for (int k = 0; k < units; k++)
            *y++ = int8_finish(add_products(bias[k], x, w + k * values, values), multiplier[k], shift[k], low,
                               high);
}

#endif /* KERNEL_INT8_DENSE_MVE */
