/* Four bytes as two pairs of 16 bits, and sums of two products: SXTB16 and SMLAD where the processor has them. */
#ifndef KERNEL_INT8_PAIRS
#define KERNEL_INT8_PAIRS

#include <stdint.h>
#include <string.h>

#include "int8_inline.c"

#ifdef __ARM_FEATURE_DSP
#include <arm_acle.h>

static INT8_PART int32_t load4(const int8_t *x)
{
    int32_t four;
    memcpy(&four, x, 4);
    return four;
}

/* Bytes 0 and 2. */
static INT8_PART int32_t even_pair(int32_t four) { return (int32_t)__sxtb16((int8x4_t)four); }

/* Bytes 1 and 3. */
static INT8_PART int32_t odd_pair(int32_t four)
{
    int32_t pair;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(four));
    return pair;
}

/* sum + a[0] b[0] + a[1] b[1] */
static INT8_PART int32_t add_both(int32_t sum, int32_t a, int32_t b) { return __smlad(a, b, sum); }

#else

static INT8_PART int32_t load4(const int8_t *x)
{
    return (int32_t)((uint32_t)(uint8_t)x[0] | (uint32_t)(uint8_t)x[1] << 8 | (uint32_t)(uint8_t)x[2] << 16 |
                     (uint32_t)(uint8_t)x[3] << 24);
}

static INT8_PART int32_t pair_of(uint32_t four)
{
    return (int32_t)((uint32_t)(int8_t)(four & 255u) & 0xffffu) |
           (int32_t)((uint32_t)(int8_t)(four >> 16 & 255u) << 16);
}

static INT8_PART int32_t even_pair(int32_t four) { return pair_of((uint32_t)four); }
static INT8_PART int32_t odd_pair(int32_t four) { return pair_of((uint32_t)four >> 8); }

static INT8_PART int32_t add_both(int32_t sum, int32_t a, int32_t b)
{
    int32_t first = (int16_t)(a & 0xffff) * (int16_t)(b & 0xffff), second = (a >> 16) * (b >> 16);
    return (int32_t)((uint32_t)sum + (uint32_t)first + (uint32_t)second);
}

#endif

#endif /* KERNEL_INT8_PAIRS */
