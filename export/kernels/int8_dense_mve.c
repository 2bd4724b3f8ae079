/* A dense layer of bytes, sixteen products at a time where the processor has MVE. */
#ifndef KERNEL_INT8_DENSE_MVE
#define KERNEL_INT8_DENSE_MVE

#include <stdint.h>

#include "int8_finish.c"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#include <arm_mve.h>

static inline int32_t add_products(int32_t sum, const int8_t *a, const int8_t *b, int count)
{
    for (; count > 0; count -= 16, a += 16, b += 16) {
        mve_pred16_t lanes = vctp8q((uint32_t)count);
        sum = vmladavaq_p_s8(sum, vldrbq_z_s8(a, lanes), vldrbq_z_s8(b, lanes), lanes);
    }
    return sum;
}

#else

static inline int32_t add_products(int32_t sum, const int8_t *a, const int8_t *b, int count)
{
    uint32_t wrapped = (uint32_t)sum;
    for (int i = 0; i < count; i++)
        wrapped += (uint32_t)(a[i] * b[i]);
    return (int32_t)wrapped;
}

#endif

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
