/* Sums of bytes of two scales; y may be a or b. */
#ifndef KERNEL_INT8_ADD
#define KERNEL_INT8_ADD

#include <stdint.h>

static void int8_add(int8_t *y /* [count] */, const int8_t *a /* [count] */, const int8_t *b /* [count] */,
                     int count, int32_t of_a, int32_t of_b, int shift, int low, int high)
{
    int32_t half = (int32_t)1 << (shift - 1);
    for (int i = 0; i < count; i++) {
        int32_t r = (a[i] * of_a + b[i] * of_b + half) >> shift;
        y[i] = (int8_t)(r < low ? low : r > high ? high : r);
    }
}

#endif /* KERNEL_INT8_ADD */
