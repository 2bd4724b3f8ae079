/* Products of bytes with four others, sixteen at a time where the processor has MVE: sum[n] += patches[n] w. */
#ifndef KERNEL_INT8_PRODUCTS4
#define KERNEL_INT8_PRODUCTS4

#include <stdint.h>

#include "int8_inline.c"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#include <arm_mve.h>

static INT8_PART void add_products4(int32_t sum[4], const int8_t *patches /* [4, count] */, const int8_t *w,
                                    int count)
{
    int32_t a = sum[0], b = sum[1], c = sum[2], d = sum[3];
    for (int left = count; left > 0; left -= 16, patches += 16, w += 16) {
        mve_pred16_t lanes = vctp8q((uint32_t)left);
        int8x16_t weights = vldrbq_z_s8(w, lanes);
        a = vmladavaq_p_s8(a, vldrbq_z_s8(patches, lanes), weights, lanes);
        b = vmladavaq_p_s8(b, vldrbq_z_s8(patches + count, lanes), weights, lanes);
        c = vmladavaq_p_s8(c, vldrbq_z_s8(patches + 2 * count, lanes), weights, lanes);
        d = vmladavaq_p_s8(d, vldrbq_z_s8(patches + 3 * count, lanes), weights, lanes);
    }
    sum[0] = a, sum[1] = b, sum[2] = c, sum[3] = d;
}

#else

static INT8_PART void add_products4(int32_t sum[4], const int8_t *patches /* [4, count] */, const int8_t *w,
                                    int count)
{
    for (int n = 0; n < 4; n++, patches += count)
        for (int i = 0; i < count; i++)
            sum[n] = (int32_t)((uint32_t)sum[n] + (uint32_t)(patches[i] * w[i]));
}

#endif

#endif /* KERNEL_INT8_PRODUCTS4 */
