/* The sum of each plane's bytes, of which the factor makes a mean. */
#ifndef KERNEL_AFFINE_GLOBAL_AVG_POOL
#define KERNEL_AFFINE_GLOBAL_AVG_POOL

#include <stdint.h>

#include "affine_finish.c"

static void affine_global_avg_pool(int8_t *y /* [planes] */, const int8_t *x /* [planes, count] */,
                                   int planes, int count, float factor, int x_zero, int y_zero, int low,
                                   int high)
{
    for (int p = 0; p < planes; p++, x += count) {
        int32_t sum = 0;
        for (int i = 0; i < count; i++)
            sum += x[i] - x_zero;
        y[p] = affine_finish((float)sum * factor, y_zero, low, high);
    }
}

#endif /* KERNEL_AFFINE_GLOBAL_AVG_POOL */
