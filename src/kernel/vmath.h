/* Elementary functions on vectors: our own polynomials, so that every instruction set has the same
 * accuracy. tools/fit_vmath.py derives the coefficients.
 *
 * A bound in ulp holds for every float, with subnormal arguments and results, with and without fused
 * multiply-adds; tests/kernel/test_vmath.c measures it. NaN gives NaN, infinities give the limit (or NaN
 * where there is none), and odd functions keep the sign of a zero. */
#ifndef MICA_SRC_KERNEL_VMATH_H
#define MICA_SRC_KERNEL_VMATH_H

#include "kernel/vec.h"

/* c[0] + c[1] x + ...: the even and the odd powers by Horner's rule, side by side, as a chain of all of them would
 * be what the time goes into. With a constant table and count it unrolls. */
VF_INLINE vf vmath_poly(vf x, const float *c, int count)
{
    vf square = vf_mul(x, x), sums[2] = {vf_set1(c[count - 2]), vf_set1(c[count - 1])};
    for (int k = count - 3; k >= 1; k -= 2) {
        sums[1] = vf_fma(sums[1], square, vf_set1(c[k]));
        sums[0] = vf_fma(sums[0], square, vf_set1(c[k - 1]));
    }
    if (count % 2 == 0)
        return vf_fma(sums[1], x, sums[0]);
    return vf_fma(vf_fma(sums[1], x, sums[0]), x, vf_set1(c[0]));
}

#define VMATH_POLY(x, table) vmath_poly(x, table, (int)(sizeof(table) / sizeof *(table)))

/* Bounds that let a NaN in x through. */
VF_INLINE vf vmath_at_most(vf x, float bound) { return vf_min(vf_set1(bound), x); }
VF_INLINE vf vmath_at_least(vf x, float bound) { return vf_max(vf_set1(bound), x); }

#define VMATH_LN2_HIGH 0x1.62e4p-1f /* 15 bits: its product with an exponent is exact */
#define VMATH_LN2_LOW  0x1.7f7d1cp-20f

/* ---- Exponentials ---- */

/* x = n ln(2) + r with |r| <= ln(2)/2, where r = x - count ln(2), |x| < 2^8. *n gets `bias` added; only its
 * lowest nine bits are right: enough for vf_pow2i, and for half of n. Returns x less the high part of count
 * ln(2), which is exact. */
VF_INLINE vf vmath_reduce(vf x, float bias, vf *count, vi *n)
{
    const vf magic = vf_set1(0x1.8p23f +
                             bias); /* adding it rounds to an integer and leaves that in the low bits */
    vf shifted = vf_fma(x, vf_set1(0x1.715476p+0f), magic);
    *count = vf_sub(shifted, magic);
    *n = vf_bits(shifted);
    return vf_fnma(*count, vf_set1(VMATH_LN2_HIGH), x);
}

/* e^r - 1 for |r| <= ln(2)/2. */
VF_INLINE vf vmath_expm1_near(vf r)
{
    static const float c[] = {0x1.fffffep-2f, 0x1.5554acp-3f, 0x1.55572p-5f, 0x1.122a5cp-7f, 0x1.6b694p-10f};
    return vf_fma(vf_mul(r, r), VMATH_POLY(r, c), r);
}

/* e^x = (1 + q) 2^n; returns q, in [-0.3, 0.42]. */
VF_INLINE vf vmath_expm1_reduced(vf x, vi *n)
{
    vf count, r = vmath_reduce(x, 0.0f, &count, n);
    return vmath_expm1_near(vf_fnma(count, vf_set1(VMATH_LN2_LOW), r));
}

/* The same for x + low, |low| at most an ulp of x. */
VF_INLINE vf vmath_expm1_reduced_sum(vf x, vf low, vi *n)
{
    vf count, r = vmath_reduce(x, 0.0f, &count, n);
    return vmath_expm1_near(vf_add(r, vf_fnma(count, vf_set1(VMATH_LN2_LOW), low)));
}

/* e^x = p 2^n, p in [0.7, 1.42]. */
VF_INLINE vf vmath_exp_parts(vf x, vi *n) { return vf_add(vf_set1(1.0f), vmath_expm1_reduced(x, n)); }

/* p 2^n for -252 <= n <= 254. In two steps, as 2^n alone may overflow or be subnormal. */
VF_INLINE vf vmath_scale(vf p, vi n)
{
    vi half = vi_sar(n, 1);
    return vf_mul(vf_mul(p, vf_pow2i(half)), vf_pow2i(vi_sub(n, half)));
}

/* p 2^n for -190 <= n <= 63, in fewer steps. */
VF_INLINE vf vmath_scale_down(vf p, vi n)
{
    return vf_mul(vf_mul(p, vf_pow2i(vi_add(n, vi_set1(64)))), vf_set1(0x1p-64f));
}

/* e^x. At most 1.5 ulp. */
VF_INLINE vf vf_exp(vf x)
{
    vi n;
    x = vmath_at_least(vmath_at_most(x, 89.0f), -104.0f); /* beyond: infinity, 0 */
    vf p = vmath_exp_parts(x, &n);
    return vmath_scale(p, n);
}

/* e^x for x <= 1, in fewer steps: 0 where it would be subnormal, or nearly so. Elsewhere at most 1.5 ulp. */
VF_INLINE vf vf_exp_down(vf x)
{
    vi n;
    vf count, r = vmath_reduce(vmath_at_least(x, -88.0f), 127.0f, &count, &n);
    vf q = vmath_expm1_near(vf_fnma(count, vf_set1(VMATH_LN2_LOW), r));
    vf unit = vf_of_bits(vi_shl(n, 23)); /* 2^n; 0 at -88, where n is -127 */
    return vf_fma(q, unit, unit);
}

/* e^x - 1. At most 2 ulp. */
VF_INLINE vf vf_expm1(vf x)
{
    vi n;
    vf bounded = vmath_at_least(vmath_at_most(x, 89.0f), -18.0f); /* beyond: infinity, -1 */
    vf q = vmath_expm1_reduced(bounded, &n);
    /* 2^n (q + 1) - 1 = 2^n (q + (1 - 2^-n)), which does not cancel near 0 */
    vi half = vi_sar(n, 1), rest = vi_sub(n, half), zero = vi_set1(0);
    vf inverse = vf_mul(vf_pow2i(vi_sub(zero, half)), vf_pow2i(vi_sub(zero, rest)));
    vf scaled = vf_add(q, vf_sub(vf_set1(1.0f), inverse));
    return vf_copysign(vf_mul(vf_mul(scaled, vf_pow2i(half)), vf_pow2i(rest)), x);
}

/* ---- Logarithms ---- */

/* x = m 2^e with m in [2/3, 4/3), for normal x; returns m. */
VF_INLINE vf vmath_split(vf x, vi *e)
{
    vi bits = vf_bits(x);
    *e = vi_sar(vi_sub(bits, vi_set1(0x3f2aaaab)), 23);
    return vf_of_bits(vi_sub(bits, vi_shl(*e, 23)));
}

/* log(1 + f) + e ln(2) for |f| <= 1/3. */
VF_INLINE vf vmath_log_sum(vf f, vf e)
{
    static const float c[] = {0x1.5555p-2f,   -0x1.ffff6ap-3f, 0x1.99d268p-3f, -0x1.55884ep-3f,
                              0x1.1eb8dap-3f, -0x1.f5627cp-4f, 0x1.1ee6b4p-3f, -0x1.0303a4p-3f};
    vf square = vf_mul(f, f);
    vf small = vf_fma(e, vf_set1(VMATH_LN2_LOW), vf_mul(vf_set1(-0.5f), square));
    small = vf_fma(vf_mul(f, square), VMATH_POLY(f, c), small);
    return vf_fma(e, vf_set1(VMATH_LN2_HIGH), vf_add(f, small));
}

/* log(x); -infinity at 0, NaN below. At most 1 ulp. */
VF_INLINE vf vf_log(vf x)
{
    vm subnormal = vf_lt(x, vf_set1(0x1p-126f));
    vi e;
    vf m = vmath_split(vf_select(subnormal, vf_mul(x, vf_set1(0x1p23f)), x), &e);
    vf exponent = vf_sub(vf_from_vi(e), vf_select(subnormal, vf_set1(23.0f), vf_zero()));
    vf y = vmath_log_sum(vf_sub(m, vf_set1(1.0f)), exponent);
    y = vf_select(vf_lt(x, vf_set1(INFINITY)), y, x);
    y = vf_select(vf_eq(x, vf_zero()), vf_set1(-INFINITY), y);
    return vf_select(vf_lt(x, vf_zero()), vf_set1(NAN), y);
}

/* log(1 + x) for finite x > -1. */
VF_INLINE vf vmath_log1p_finite(vf x)
{
    const vf one = vf_set1(1.0f);
    vf u = vf_add(x, one), back = vf_sub(u, x);
    vf lost = vf_add(vf_sub(one, back), vf_sub(x, vf_sub(u, back))); /* 1 + x = u + lost */
    vi e;
    vf m = vmath_split(u, &e);
    /* Of a large u nothing visible is lost, and 2^-e may not be a number. */
    vf inverse = vf_of_bits(vi_sub(vf_bits(one), vi_shl(e, 23)));
    inverse = vf_select(vf_lt(x, vf_set1(0x1p25f)), inverse, vf_zero());
    return vmath_log_sum(vf_fma(lost, inverse, vf_sub(m, one)), vf_from_vi(e));
}

/* log(1 + x); -infinity at -1, NaN below. At most 2 ulp. */
VF_INLINE vf vf_log1p(vf x)
{
    vf y = vf_copysign(vmath_log1p_finite(x), x);
    y = vf_select(vf_lt(x, vf_set1(INFINITY)), y, x);
    y = vf_select(vf_eq(x, vf_set1(-1.0f)), vf_set1(-INFINITY), y);
    return vf_select(vf_lt(x, vf_set1(-1.0f)), vf_set1(NAN), y);
}

/* ---- Powers of one half ---- */

/* 1 / sqrt(x): two correctly rounded operations, at most 1.5 ulp. */
VF_INLINE vf vf_rsqrt(vf x) { return vf_div(vf_set1(1.0f), vf_sqrt(x)); }

/* ---- Sigmoids ---- */

/* tanh(x) = (e^2x - 1) / (e^2x + 1). At most 3 ulp. */
VF_INLINE vf vf_tanh(vf x)
{
    const vf one = vf_set1(1.0f);
    vi n;
    vf a = vmath_at_most(vf_abs(x), 9.1f); /* beyond: 1 */
    vf q = vmath_expm1_reduced(vf_add(a, a), &n);
    vf inverse = vf_pow2i(vi_sub(vi_set1(0), n));
    vf top = vf_add(q, vf_sub(one, inverse)); /* 2^-n (e^2x - 1) */
    return vf_copysign(vf_div(top, vf_fma(vf_set1(2.0f), inverse, top)), x);
}

/* 1 / (1 + e^-x). At most 3 ulp. All is scaled down by 2^32, so that e^-x does not overflow before the result
 * is 0. */
VF_INLINE vf vf_sigmoid(vf x)
{
    const vf unit = vf_set1(0x1p-32f);
    vi n;
    vf p = vmath_exp_parts(vmath_at_least(vmath_at_most(vf_neg(x), 105.0f), -65.5f), &n);
    return vf_div(unit, vf_fma(p, vf_pow2i(vi_sub(n, vi_set1(32))), unit));
}

/* x / (1 + e) for e = p 2^n, -127 <= n <= 159. Where e may be large, all is scaled down by 2^32. */
VF_INLINE vf vmath_times_sigmoid(vf x, vf p, vi n)
{
    vf unit = vf_select(vf_lt(x, vf_set1(-1.0f)), vf_set1(0x1p-32f), vf_set1(1.0f));
    vf scale = vf_of_bits(vi_add(vi_shl(n, 23), vf_bits(unit))); /* unit 2^n; 0 for n = -127 */
    return vf_div(vf_mul(x, unit), vf_fma(p, scale, unit));
}

/* x sigmoid(x); -0 at -infinity. At most 3 ulp. */
VF_INLINE vf vf_silu(vf x)
{
    vi n;
    x = vmath_at_least(x, -110.0f);
    vf p = vmath_exp_parts(vmath_at_least(vf_neg(x), -88.0f), &n);
    return vmath_times_sigmoid(x, p, n);
}

/* d/dx x S = S + S (x (1 - S)), S = sigmoid(x), 1 - S = e^-x S. Absolute error at most 2^-22. */
VF_INLINE vf vf_silu_grad(vf x)
{
    const vf one = vf_set1(1.0f);
    x = vmath_at_least(vmath_at_most(x, 87.0f), -87.0f);
    vi n;
    vf p = vmath_exp_parts(vf_neg(x), &n), e = vf_mul(p, vf_pow2i(n)), s = vf_div(one, vf_add(one, e));
    return vf_fma(s, vf_mul(x, vf_mul(e, s)), s);
}

/* log(1 + e^x) = max(x, 0) + log(1 + e), e = e^-|x|. At most 2.5 ulp. */
VF_INLINE vf vf_softplus(vf x)
{
    static const float c[] = {-0x1.ffffccp-2f, 0x1.554d22p-2f,  -0x1.ff1608p-3f,
                              0x1.9305ep-3f,   -0x1.39812cp-3f, 0x1.b23178p-4f,
                              -0x1.d1f15p-5f,  0x1.443504p-6f,  -0x1.a6e84ap-9f};
    vi n;
    vf p = vmath_exp_parts(vmath_at_least(vf_neg(vf_abs(x)), -104.0f), &n), e = vmath_scale_down(p, n);
    vf sum = vf_set1(c[8]); /* in one chain: of even and odd powers apart, the sums would cancel */
    for (int k = 7; k >= 0; k--)
        sum = vf_fma(sum, e, vf_set1(c[k]));
    return vf_add(vmath_at_least(x, 0.0f), vf_fma(vf_mul(e, e), sum, e));
}

/* ---- The normal distribution ---- */

/* erf(x). At most 1.5 ulp. */
VF_INLINE vf vf_erf(vf x)
{
    static const float near[] = {0x1.06eba6p-3f,  -0x1.8126e6p-2f, 0x1.ce1a2p-4f,
                                 -0x1.b68398p-6f, 0x1.47009cp-8f,  -0x1.38ff0ap-11f};
    static const float far[] = {0x1.81ed7ap-13f, 0x1.20b2b6p+0f, 0x1.4630acp-1f,  0x1.aa0ed2p-4f,
                                -0x1.6ce57ep-6f, 0x1.907392p-9f, -0x1.9da86cp-13f};
    vf a = vmath_at_most(vf_abs(x), 4.0f); /* beyond: 1 */
    vf low = vf_fma(x, VMATH_POLY(vf_mul(a, a), near), x);
    vi n;
    vf p = vmath_exp_parts(vf_neg(VMATH_POLY(a, far)), &n);
    vf high = vf_copysign(vf_fnma(p, vf_pow2i(n), vf_set1(1.0f)), x);
    return vf_select(vf_lt(a, vf_set1(0.925f)), low, high);
}

/* e^z = (1 + q) 2^n for z = -t^2/2, 0 <= t <= 15; returns q. The rounding error of z is carried along, as it
 * matters for large t. */
VF_INLINE vf vmath_bell_reduced(vf t, vi *n)
{
    vf low, z = vf_two_product(vf_mul(vf_set1(-0.5f), t), t, &low);
    return vmath_expm1_reduced_sum(z, low, n);
}

/* The density e^(-x^2/2) / sqrt(2 pi). At most 1.5 ulp. */
VF_INLINE vf vf_phi(vf x)
{
    const vf peak = vf_set1(0x1.988454p-2f);
    vi n;
    vf q = vmath_bell_reduced(vmath_at_most(vf_abs(x), 15.0f), &n);
    return vmath_scale_down(vf_fma(q, peak, peak), n);
}

/* With Q the upper tail of the distribution, t Q(t) = y P(y) e^(-t^2/2), where y = t / (t + 2.890625) and P
 * is smooth. */

/* x Phi(x) = max(x, 0) - |x| Q(|x|), Phi the distribution function; -0 at -infinity. The exponential is 2^64 times too
 * large, which P makes up for: the tail's numbers are small. */
VF_INLINE vf vmath_gelu_anywhere(vf x)
{
    static const float tail[] = {0x1.7326ep-65f,   -0x1.fa8b06p-65f, 0x1.ad1ec8p-65f,
                                 -0x1.1146aep-66f, -0x1.c445c2p-67f, 0x1.69ddcep-67f,
                                 0x1.d5ee2cp-68f,  -0x1.6d416cp-68f, -0x1.4fabe2p-68f};
    vf t = vmath_at_most(vf_abs(x), 15.0f); /* beyond: x, -0 */
    vf y = vf_div(t, vf_add(t, vf_set1(2.890625f)));
    vi n;
    vf q = vmath_bell_reduced(t, &n), unit = vf_pow2i(vi_add(n, vi_set1(64)));
    vf bell = vf_mul(y, vf_fma(q, unit, unit));
    return vf_fnma(bell, VMATH_POLY(vf_sub(y, vf_set1(0.5f)), tail), vmath_at_least(x, -0.0f));
}

#include "kernel/vmath_gelu.h"

/* x Phi(x). At most 4.5 ulp, the tails included. A lane's result does not depend on the others. */
VF_INLINE vf vf_gelu(vf x)
{
#if defined(VF_LOOKUP)
    vm far = vf_lt(x, vf_set1(VMATH_GELU_NEAR));
    vf near = vmath_gelu_near(x);
    return vm_any(far) ? vf_select(far, vmath_gelu_anywhere(x), near) : near;
#else
    return vmath_gelu_anywhere(x);
#endif
}

/* d/dx x Phi(x) = Phi(x) + x phi(x) = 1/2 + x R(x^2), R a quotient of polynomials. Absolute error at most 2^-22. */
VF_INLINE vf vf_gelu_grad(vf x)
{
    static const float top[] = {0x1.988452p-1f, -0x1.27dd98p-6f, 0x1.bca80ep-7f,  0x1.2ab012p-12f,
                                0x1.0cabcp-15f, 0x1.2ce202p-20f, 0x1.be791ap-27f, -0x1.fbda3cp-36f};
    static const float bottom[] = {0x1p+0f,         0x1.3e2834p-2f,  0x1.755a94p-5f, 0x1.0febdcp-8f,
                                   0x1.0f11fcp-12f, 0x1.6aa5b6p-17f, 0x1.861c8p-22f};
    x = vmath_at_least(vmath_at_most(x, 6.05f), -6.05f); /* beyond: 1, 0, to which it rounds there */
    vf square = vf_mul(x, x);
    vf odd = vf_div(vf_mul(x, VMATH_POLY(square, top)), VMATH_POLY(square, bottom));
    return vf_add(vf_set1(0.5f), odd);
}

/* 0.5 x (1 + tanh(u)) = x sigmoid(2u) with 2u = 2 sqrt(2/pi) (x + 0.044715 x^3) = x (C1 + C2 x^2) */
#define VMATH_C1_HIGH 0x1.988454p+0f
#define VMATH_C1_LOW  -0x1.857936p-25f
#define VMATH_C2_HIGH 0x1.2444f2p-4f
#define VMATH_C2_LOW  0x1.49b16ap-29f

/* e^-2u = (1 + q) 2^n for |x| <= 11; returns q. 2u is carried in two floats: its rounding would show in
 * the tail. */
VF_INLINE vf vmath_gelu_tanh_reduced(vf x, vi *n)
{
    const vf c1 = vf_set1(VMATH_C1_HIGH), c2 = vf_set1(VMATH_C2_HIGH);
    vf square_low, square = vf_two_product(x, x, &square_low);
    vf low, product = vf_two_product(c2, square, &low);
    low = vf_fma(c2, square_low, vf_fma(vf_set1(VMATH_C2_LOW), square, low));
    vf sum = vf_add(c1, product), back = vf_sub(sum, c1);
    vf lost = vf_add(vf_sub(c1, vf_sub(sum, back)), vf_sub(product, back)); /* c1 + product = sum + lost */
    low = vf_add(vf_add(low, vf_set1(VMATH_C1_LOW)), lost);
    vf z_low, z = vf_two_product(sum, x, &z_low);
    return vmath_expm1_reduced_sum(vf_neg(z), vf_neg(vf_fma(low, x, z_low)), n);
}

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); -0 at -infinity. At most 3 ulp, the tails included. */
VF_INLINE vf vf_gelu_tanh(vf x)
{
    vi n;
    x = vmath_at_least(x, -10.9f);
    vf q = vmath_gelu_tanh_reduced(vmath_at_most(x, 10.0f), &n);
    return vmath_times_sigmoid(x, vf_add(vf_set1(1.0f), q), n);
}

/* d/dx x S = S + S (x (1 - S) (C1 + 3 C2 x^2)), S = sigmoid(2u). Absolute error at most 2^-22. */
VF_INLINE vf vf_gelu_tanh_grad(vf x)
{
    const vf one = vf_set1(1.0f), c1 = vf_set1(VMATH_C1_HIGH);
    x = vmath_at_least(vmath_at_most(x, 9.0f), -9.0f); /* beyond: 1, 0 */
    vf square = vf_mul(x, x);
    vi n;
    vf p = vmath_exp_parts(vf_mul(vf_neg(x), vf_fma(vf_set1(VMATH_C2_HIGH), square, c1)), &n);
    vf e = vf_mul(p, vf_pow2i(n)), s = vf_div(one, vf_add(one, e));
    vf slope = vf_mul(x, vf_fma(vf_set1(3.0f * VMATH_C2_HIGH), square, c1));
    return vf_fma(s, vf_mul(slope, vf_mul(e, s)), s);
}

#include "kernel/vmath_pow.h"
#include "kernel/vmath_trig.h"

#include "kernel/vmath_inverse.h"

#endif
