/* Sine and cosine; part of vmath.h. */
#ifndef MICA_SRC_KERNEL_VMATH_TRIG_H
#define MICA_SRC_KERNEL_VMATH_TRIG_H

#include "kernel/vec.h"

/* c - a b, rounded as if the product were exact. */
VF_INLINE vf vmath_sub_product(vf a, vf b, vf c)
{
#if VF_HAS_FMA
    return vf_fnma(a, b, c);
#else
    vf low, high = vf_two_product(a, b, &low);
    return vf_sub(vf_sub(c, high), low);
#endif
}

#define VMATH_QUADRANT_LIMIT 0x1p15f

/* x = n pi/2 + r, |r| <= pi/4, for one |x| > 2^7 of any size: multiplies by just those 96 bits of 2/pi whose
 * product with x is neither a multiple of 4 nor too small to matter (Payne and Hanek). Returns r; n modulo 4. */
static inline float vmath_reduce_large(float x, int32_t *n)
{
    static const uint32_t two_over_pi[] = {0, /* the bits before the point */
                                           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                           0xdb629599u, 0x3c439041u, 0xfe5163abu};
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 23 & 0xffu) - 150; /* |x| = mantissa * 2^exponent */
    *n = 0;
    if (exponent > 104)
        return NAN; /* x is infinite */
    uint64_t mantissa = (bits & 0x7fffffu) | 0x800000u;
    int first = exponent + 30; /* the bit whose product with the mantissa's last has weight 2 */
    int shift = first % 32;
    const uint32_t *words = two_over_pi + first / 32;
    uint64_t high = (uint64_t)words[0] << 32 | words[1], low = (uint64_t)words[2] << 32 | words[3];
    if (shift > 0) {
        high = high << shift | low >> (64 - shift);
        low <<= shift;
    }
    uint64_t turns = mantissa * high + (mantissa * (low >> 32) >> 32); /* 2 bits of n, 62 of fraction */
    uint64_t quadrant = (turns + (UINT64_C(1) << 61)) >> 62;
    double r = (double)(int64_t)(turns - (quadrant << 62)) * 0x1.921fb54442d18p-62;
    *n = x < 0 ? -(int32_t)quadrant : (int32_t)quadrant;
    return (float)(x < 0 ? -r : r);
}

/* x = n pi/2 + r with |r| <= pi/4 and a little; returns r. n is right modulo 4. */
VF_INLINE vf vmath_reduce_quadrant(vf x, vi *n)
{
    const vf magic = vf_set1(0x1.8p23f); /* adding it rounds to an integer and leaves that in the low bits */
    vf shifted = vf_fma(x, vf_set1(0x1.45f306p-1f), magic), count = vf_sub(shifted, magic);
    *n = vf_bits(shifted);
    /* pi/2 in three floats; the first difference is exact, the second rounds only where r is large. */
    vf r = vmath_sub_product(count, vf_set1(0x1.921fb6p+0f), x);
    r = vmath_sub_product(count, vf_set1(-0x1.777a5cp-25f), r);
    r = vf_fnma(count, vf_set1(-0x1.ee59dap-50f), r);
    if (!vm_any(vf_gt(vf_abs(x), vf_set1(VMATH_QUADRANT_LIMIT))))
        return r;
    float lanes[VF_LANES], reduced[VF_LANES];
    int32_t quadrants[VF_LANES];
    vf_store(lanes, x);
    vf_store(reduced, r);
    vi_store(quadrants, *n);
    for (int i = 0; i < VF_LANES; i++)
        if (fabsf(lanes[i]) > VMATH_QUADRANT_LIMIT)
            reduced[i] = vmath_reduce_large(lanes[i], &quadrants[i]);
    *n = vi_load(quadrants);
    return vf_load(reduced);
}

/* sin(x + quadrant pi/2). */
VF_INLINE vf vmath_sin_from(vf x, int32_t quadrant)
{
    static const float s[] = {-0x1.555546p-3f, 0x1.11076ap-7f, -0x1.994c2ap-13f};
    static const float c[] = {0x1.55554ap-5f, -0x1.6c0c2p-10f, 0x1.99e41p-16f};
    vi n;
    vf r = vmath_reduce_quadrant(x, &n), square = vf_mul(r, r);
    n = vi_add(n, vi_set1(quadrant));
    vf sine = vf_fma(vf_mul(r, square), VMATH_POLY(square, s), r);
    vf cosine = vf_fnma(vf_set1(0.5f), square, vf_set1(1.0f));
    cosine = vf_fma(vf_mul(square, square), VMATH_POLY(square, c), cosine);
    vm odd = vi_eq(vi_and(n, vi_set1(1)), vi_set1(1));
    vi sign = vi_shl(vi_and(n, vi_set1(2)), 30);
    return vf_of_bits(vi_xor(vf_bits(vf_select(odd, cosine, sine)), sign));
}

/* sin(x); NaN at the infinities. At most 2 ulp. */
VF_INLINE vf vf_sin(vf x) { return vf_select(vf_eq(x, vf_zero()), x, vmath_sin_from(x, 0)); }

/* cos(x); NaN at the infinities. At most 2 ulp. */
VF_INLINE vf vf_cos(vf x) { return vmath_sin_from(x, 1); }

#endif
