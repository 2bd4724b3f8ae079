/* Sums of one product of halves of pairs: SMLABB and SMLATB where the processor has them. */
#ifndef KERNEL_INT8_HALVES
#define KERNEL_INT8_HALVES

#include <stdint.h>

#include "int8_inline.c"

#ifdef __ARM_FEATURE_DSP
#include <arm_acle.h>

static INT8_PART int32_t add_first(int32_t sum, int32_t a, int32_t b) { return __smlabb(a, b, sum); }
static INT8_PART int32_t add_second(int32_t sum, int32_t a, int32_t b) { return __smlatb(a, b, sum); }

#else

/* sum + a[0] b[0] */
static INT8_PART int32_t add_first(int32_t sum, int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)sum + (uint32_t)((int16_t)(a & 0xffff) * (int16_t)(b & 0xffff)));
}

/* sum + a[1] b[0] */
static INT8_PART int32_t add_second(int32_t sum, int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)sum + (uint32_t)((a >> 16) * (int16_t)(b & 0xffff)));
}

#endif

#endif /* KERNEL_INT8_HALVES */
