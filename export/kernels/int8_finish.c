/* A sum of products as a byte: (sum multiplier + 2^(shift - 1)) >> shift, limited. Above 32 bits, those below do not
 * count. */
#ifndef KERNEL_INT8_FINISH
#define KERNEL_INT8_FINISH

#include <stdint.h>

static int8_t int8_finish(int32_t sum, int32_t multiplier, int shift, int low, int high)
{
    int64_t product = (int64_t)sum * multiplier;
    if (shift > 32) {
        int32_t r = ((int32_t)(product >> 32) + ((int32_t)1 << (shift - 33))) >> (shift - 32);
        return (int8_t)(r < low ? low : r > high ? high : r);
    }
    product = (product + ((int64_t)1 << (shift - 1))) >> shift;
    return (int8_t)(product < low ? low : product > high ? high : product);
}

#endif /* KERNEL_INT8_FINISH */
