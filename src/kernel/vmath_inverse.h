/* Tangent, hyperbolic functions, and the inverses of both kinds; part of vmath.h, over its exponentials and
 * logarithms. */
#ifndef MICA_SRC_KERNEL_VMATH_INVERSE_H
#define MICA_SRC_KERNEL_VMATH_INVERSE_H

#include "kernel/vmath.h"

/* tan(x); NaN at the infinities. At most 4 ulp. */
VF_INLINE vf vf_tan(vf x) { return vf_div(vf_sin(x), vf_cos(x)); }

/* ---- Inverse trigonometric functions ---- */

/* atan(x). At most 2 ulp.
 *
 * Above 1 from its reciprocal, pi/2 - atan(1/x); what is then above tan(pi/8) from pi/4 + atan((t - 1) / (t + 1)). */
VF_INLINE vf vf_atan(vf x)
{
    static const float c[] = {-0x1.55554ap-2f, 0x1.9991e8p-3f, -0x1.23ba34p-3f, 0x1.b22d28p-4f,
                              -0x1.f3117ap-5f};
    const vf one = vf_set1(1.0f), zero = vf_zero();
    vf a = vf_abs(x);
    vm turned = vf_gt(a, one);
    vf t = vf_select(turned, vf_div(one, a), a);
    vm upper = vf_gt(t, vf_set1(0x1.a8279ap-2f));
    vf z = vf_select(upper, vf_div(vf_sub(t, one), vf_add(t, one)), t), square = vf_mul(z, z);
    vf near = vf_mul(vf_mul(z, square), VMATH_POLY(square, c)); /* less z */
    /* The angle is high + low + z + near, or pi/2 less that; high and low add up to pi/4 or 0. */
    vf high = vf_select(upper, vf_set1(0x1.921fb6p-1f), zero),
       low = vf_select(upper, vf_set1(-0x1.777a5cp-26f), zero);
    vf angle = vf_add(high, vf_add(z, vf_add(near, low)));
    vf rest = vf_sub(vf_set1(0x1.921fb6p+0f), high); /* exact: pi/2 or pi/4 */
    vf rest_low = vf_sub(vf_set1(-0x1.777a5cp-25f), low);
    vf other = vf_add(rest, vf_sub(vf_sub(rest_low, near), z));
    return vf_copysign(vf_select(turned, other, angle), x);
}

/* asin(x); NaN beyond -1 and 1. At most 4 ulp. */
VF_INLINE vf vf_asin(vf x)
{
    const vf one = vf_set1(1.0f);
    return vf_atan(vf_div(x, vf_sqrt(vf_mul(vf_sub(one, x), vf_add(one, x)))));
}

/* acos(x); NaN beyond -1 and 1. At most 4 ulp. */
VF_INLINE vf vf_acos(vf x)
{
    const vf one = vf_set1(1.0f);
    return vf_mul(vf_set1(2.0f), vf_atan(vf_sqrt(vf_div(vf_sub(one, x), vf_add(one, x)))));
}

/* ---- Hyperbolic functions ---- */

/* e^a / 2 for a where e^a overflows. */
VF_INLINE vf vmath_half_exp(vf a)
{
    vf root = vf_exp(vf_mul(vf_set1(0.5f), a));
    return vf_mul(vf_mul(vf_set1(0.5f), root), root);
}

#define VMATH_EXP_LIMIT 88.0f

/* (e^x - e^-x) / 2. At most 4 ulp. */
VF_INLINE vf vf_sinh(vf x)
{
    const vf half = vf_set1(0.5f);
    vf a = vf_abs(x), e = vf_expm1(vmath_at_most(a, VMATH_EXP_LIMIT));
    vf y = vf_mul(half, vf_add(e, vf_div(e, vf_add(e, vf_set1(1.0f)))));
    return vf_copysign(vf_select(vf_gt(a, vf_set1(VMATH_EXP_LIMIT)), vmath_half_exp(a), y), x);
}

/* (e^x + e^-x) / 2. At most 4 ulp. */
VF_INLINE vf vf_cosh(vf x)
{
    const vf half = vf_set1(0.5f);
    vf a = vf_abs(x), e = vf_exp(vmath_at_most(a, VMATH_EXP_LIMIT));
    vf y = vf_fma(half, e, vf_div(half, e));
    return vf_select(vf_gt(a, vf_set1(VMATH_EXP_LIMIT)), vmath_half_exp(a), y);
}

/* log(2 a), for a that are large or infinite. */
VF_INLINE vf vmath_log_twice(vf a) { return vf_add(vf_log(a), vf_set1(0x1.62e43p-1f)); }

#define VMATH_LARGE 0x1p13f /* its square less 1, or plus 1, has the same logarithm */

/* The inverse of sinh: log(a + sqrt(a^2 + 1)), with the sign of x. At most 4 ulp. */
VF_INLINE vf vf_asinh(vf x)
{
    const vf one = vf_set1(1.0f);
    vf a = vf_abs(x), bounded = vmath_at_most(a, VMATH_LARGE), square = vf_mul(bounded, bounded);
    vf y = vf_log1p(vf_add(bounded, vf_div(square, vf_add(one, vf_sqrt(vf_add(square, one))))));
    return vf_copysign(vf_select(vf_gt(a, vf_set1(VMATH_LARGE)), vmath_log_twice(a), y), x);
}

/* The inverse of cosh: log(x + sqrt(x^2 - 1)); NaN below 1. At most 4 ulp. */
VF_INLINE vf vf_acosh(vf x)
{
    vf t = vf_sub(vmath_at_most(x, VMATH_LARGE), vf_set1(1.0f));
    vf y = vf_log1p(vf_add(t, vf_sqrt(vf_mul(t, vf_add(t, vf_set1(2.0f))))));
    y = vf_select(vf_gt(x, vf_set1(VMATH_LARGE)), vmath_log_twice(x), y);
    return vf_select(vf_lt(x, vf_set1(1.0f)), vf_set1(NAN), y);
}

/* The inverse of tanh: log((1 + x) / (1 - x)) / 2; NaN beyond -1 and 1. At most 4 ulp. */
VF_INLINE vf vf_atanh(vf x)
{
    vf a = vf_abs(x), ratio = vf_div(vf_add(a, a), vf_sub(vf_set1(1.0f), a));
    return vf_copysign(vf_mul(vf_set1(0.5f), vf_log1p(ratio)), x);
}

#endif
