/* Powers; part of vmath.h. */
#ifndef MICA_SRC_KERNEL_VMATH_POW_H
#define MICA_SRC_KERNEL_VMATH_POW_H

#include "kernel/vec.h"

/* log(m) + e ln(2) as a sum of two floats, to about 2^-35; m in [2/3, 4/3). Returns the larger. log(m) = 2
 * atanh(s) = 2 (s + s^3/3 + s^5 Q(s^2)), s = (m - 1) / (m + 1): the first two terms in two floats */
VF_INLINE vf vmath_log_pair(vf m, vf e, vf *low)
{
    static const float c[] = {0x1.999996p-3f, 0x1.2494fep-3f, 0x1.c5c0c2p-4f, 0x1.97dc52p-4f};
    const vf one = vf_set1(1.0f), two = vf_set1(2.0f), third = vf_set1(0x1.555556p-2f);
    vf f = vf_sub(m, one), g = vf_add(m, one), g_low = vf_sub(m, vf_sub(g, one));
    vf s = vf_div(f, g), product_low, product = vf_two_product(s, g, &product_low);
    vf rest = vf_fnma(s, g_low, vf_sub(vf_sub(f, product), product_low));
    vf s_low = vf_div(rest, g);

    vf square_low, square = vf_two_product(s, s, &square_low);
    square_low = vf_fma(vf_mul(two, s), s_low, square_low);
    vf cube_low, cube = vf_two_product(s, square, &cube_low);
    cube_low = vf_add(cube_low, vf_fma(s, square_low, vf_mul(s_low, square)));
    vf term_low, term = vf_two_product(cube, third, &term_low);
    term_low = vf_add(term_low, vf_fma(cube, vf_set1(-0x1.555556p-27f), vf_mul(cube_low, third)));
    vf small = vf_fma(vf_mul(cube, square), VMATH_POLY(square, c), vf_add(s_low, term_low));

    /* e ln(2) + 2 s + 2 s^3/3: each sum has its larger term first, so what it loses is exact. */
    vf base = vf_mul(e, vf_set1(VMATH_LN2_HIGH)), first = vf_mul(two, s), second = vf_mul(two, term);
    vf partial = vf_add(base, first), partial_lost = vf_sub(first, vf_sub(partial, base));
    vf sum = vf_add(partial, second), sum_lost = vf_sub(second, vf_sub(sum, partial));
    vf tail = vf_fma(two, small, vf_fma(e, vf_set1(VMATH_LN2_LOW), vf_add(partial_lost, sum_lost)));
    vf high = vf_add(sum, tail);
    *low = vf_sub(tail, vf_sub(high, sum));
    return high;
}

/* a^y = e^(y log(a)) for a >= 0, by limits where a is 0 or infinite; NaN for 1^infinity. */
VF_INLINE vf vmath_pow_magnitude(vf a, vf y)
{
    vm subnormal = vf_lt(a, vf_set1(0x1p-126f));
    vi e;
    vf m = vmath_split(vf_select(subnormal, vf_mul(a, vf_set1(0x1p23f)), a), &e);
    vf exponent = vf_sub(vf_from_vi(e), vf_select(subnormal, vf_set1(23.0f), vf_zero()));
    vf log_low, log_high = vmath_log_pair(m, exponent, &log_low);
    log_high = vf_select(vf_lt(a, vf_set1(INFINITY)), log_high, a);
    log_high = vf_select(vf_eq(a, vf_zero()), vf_set1(-INFINITY), log_high);

    vf low, high = vf_two_product(y, log_high, &low);
    low = vf_fma(y, log_low, low);
    low = vf_select(vf_lt(vf_abs(high), vf_set1(110.0f)), low, vf_zero());
    vi n;
    vf q = vmath_expm1_reduced_sum(vmath_at_least(vmath_at_most(high, 90.0f), -105.0f), low, &n);
    vf p = vf_add(vf_set1(1.0f), q);
    return vmath_scale(p, n);
}

/* x^y with all the special cases of C's pow: x^0 = 1^y = (-1)^(+-infinity) = 1, a negative x gives NaN unless
 * y is an integer, and an odd y keeps the sign of x, of zeros and infinities too. At most 1.5 ulp. */
VF_INLINE vf vf_pow(vf x, vf y)
{
    const vf one = vf_set1(1.0f), zero = vf_zero();
    vf a = vf_abs(x), half = vf_mul(vf_set1(0.5f), y);
    vm integer = vf_eq(vf_trunc(y), y), odd = vm_and(integer, vf_ne(vf_trunc(half), half));
    vf r = vmath_pow_magnitude(a, y);
    r = vf_select(vm_and(vf_eq(a, one), vf_eq(y, y)), one, r);
    r = vf_select(odd, vf_copysign(r, x), r);
    vm outside = vm_and(vf_lt(x, zero), vf_gt(x, vf_set1(-INFINITY)));
    r = vf_select(vm_and(outside, vm_not(integer)), vf_set1(NAN), r);
    return vf_select(vm_or(vf_eq(x, one), vf_eq(y, zero)), one, r);
}

#endif
