/* The sum of each plane's bytes, of which the multiplier makes a mean. */
#ifndef KERNEL_INT8_GLOBAL_AVG_POOL
#define KERNEL_INT8_GLOBAL_AVG_POOL

#include <stdint.h>

#include "int8_finish.c"

static void int8_global_avg_pool(int8_t *y /* [planes] */, const int8_t *x /* [planes, count] */, int planes,
                                 int count, int32_t multiplier, int shift, int low, int high)
{
    for (int p = 0; p < planes; p++, x += count) {
        int32_t sum = 0;
        for (int i = 0; i < count; i++)
            sum += x[i];
        y[p] = int8_finish(sum, multiplier, shift, low, high);
    }
}

#endif /* KERNEL_INT8_GLOBAL_AVG_POOL */
