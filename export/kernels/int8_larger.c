/* The larger of sums, lane by lane. */
#ifndef KERNEL_INT8_LARGER
#define KERNEL_INT8_LARGER

#include "int8_lanes.c"

static inline int8_sums sums_larger(int8_sums a, int8_sums b)
{
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
    return vmaxq_s32(a, b);
#else
    for (int i = 0; i < 4; i++)
        a.each[i] = a.each[i] > b.each[i] ? a.each[i] : b.each[i];
    return a;
#endif
}

#endif /* KERNEL_INT8_LARGER */
