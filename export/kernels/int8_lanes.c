/* Four sums as they lie in a vector of MVE, or in an array; `lanes` of them count. */
#ifndef KERNEL_INT8_LANES
#define KERNEL_INT8_LANES

#include <stdint.h>

#include "int8_finish.c"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#include <arm_mve.h>

typedef int32x4_t int8_sums;

static inline int8_sums sums_of(int32_t start) { return vdupq_n_s32(start); }

/* sums + w times four bytes, `step` (1 or 2) apart */
static inline int8_sums sums_add(int8_sums sums, const int8_t *x, int step, int lanes, int w)
{
    mve_pred16_t used = vctp32q((uint32_t)lanes);
    if (step == 1)
        return vmlaq_n_s32(sums, vldrbq_z_s32(x, used), w);
    return vmlaq_n_s32(sums, vldrbq_gather_offset_z_s32(x, vidupq_n_u32(0, 2), used), w);
}

static inline void sums_finish(int8_t *y, int8_sums sums, int lanes, int32_t multiplier, int shift, int low,
                               int high)
{
    if (shift > 32) {
        int32x4_t r = vrshlq_n_s32(vmulhq_s32(sums, vdupq_n_s32(multiplier)), 32 - shift);
        r = vminq_s32(vmaxq_s32(r, vdupq_n_s32(low)), vdupq_n_s32(high));
        vstrbq_p_s32(y, r, vctp32q((uint32_t)lanes));
        return;
    }
    int32_t each[4];
    vst1q_s32(each, sums);
    for (int i = 0; i < lanes && i < 4; i++)
        y[i] = int8_finish(each[i], multiplier, shift, low, high);
}

#else

typedef struct int8_sums {
    int32_t each[4];
} int8_sums;

static inline int8_sums sums_of(int32_t start)
{
    int8_sums sums = {{start, start, start, start}};
    return sums;
}

static inline int8_sums sums_add(int8_sums sums, const int8_t *x, int step, int lanes, int w)
{
    for (int i = 0; i < lanes && i < 4; i++)
        sums.each[i] = (int32_t)((uint32_t)sums.each[i] + (uint32_t)(x[i * step] * w));
    return sums;
}

static inline void sums_finish(int8_t *y, int8_sums sums, int lanes, int32_t multiplier, int shift, int low,
                               int high)
{
    for (int i = 0; i < lanes && i < 4; i++)
        y[i] = int8_finish(sums.each[i], multiplier, shift, low, high);
}

#endif

#endif /* KERNEL_INT8_LANES */
