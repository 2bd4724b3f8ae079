/* Sums of bytes with zero points. Both products are rounded: they must not become part of a multiply-add. */
#ifndef KERNEL_AFFINE_ADD
#define KERNEL_AFFINE_ADD

#include <stdint.h>

#include "affine_finish.c"

static void affine_add(int8_t *y /* [count] */, const int8_t *a /* [count] */, const int8_t *b /* [count] */,
                       int count, const float *factor /* [2] */, const int *zero /* [3] */, int low, int high)
{
    for (int i = 0; i < count; i++) {
        volatile float left = (float)(a[i] - zero[0]) * factor[0],
                       right = (float)(b[i] - zero[1]) * factor[1];
        y[i] = affine_finish(left + right, zero[2], low, high);
    }
}

#endif /* KERNEL_AFFINE_ADD */
