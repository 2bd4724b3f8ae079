/* sum + products of bytes: sixteen at a time where the processor has MVE. */
#ifndef KERNEL_INT8_PRODUCTS
#define KERNEL_INT8_PRODUCTS

#include <stdint.h>

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

#endif /* KERNEL_INT8_PRODUCTS */
