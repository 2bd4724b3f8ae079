/* Element-wise kernels; compiled once per instruction set. */
#include "kernel/kernels.h"
#include "kernel/map.h"
#include "kernel/map_loop.h"
#include "kernel/vmath.h"

VF_INLINE vf one_where(vm m) { return vf_select(m, vf_set1(1.0f), vf_zero()); }

/* -1, 0 or 1; zeros and NaN as they are. */
VF_INLINE vf sign_of(vf a)
{
    vm same = vm_or(vf_isnan(a), vf_eq(a, vf_zero()));
    return vf_select(same, a, vf_copysign(vf_set1(1.0f), a));
}

VF_INLINE vm is_finite(vf a) { return vf_lt(vf_abs(a), vf_set1(INFINITY)); }

/* From the nearer end, so that s = 0 gives a and s = 1 gives b exactly. */
VF_INLINE vf lerp(vf a, vf b, vf s)
{
    vf step = vf_sub(b, a);
    vf from_b = vf_fnma(vf_sub(vf_set1(1.0f), s), step, b);
    return vf_select(vf_lt(s, vf_set1(0.5f)), vf_fma(s, step, a), from_b);
}

MAP1_LIGHT(neg, 0, vf_neg(a))
MAP1_LIGHT(abs, 0, vf_abs(a))
MAP1(sign, 0, sign_of(a))
MAP1_LIGHT(square, 0, vf_mul(a, a))
MAP1(sqrt, 0, vf_sqrt(a))
MAP1(rsqrt, 0, vf_div(vf_set1(1.0f), vf_sqrt(a)))
MAP1(reciprocal, 0, vf_div(vf_set1(1.0f), a))
MAP1(floor, 0, vf_floor(a))
MAP1(ceil, 0, vf_neg(vf_floor(vf_neg(a))))
MAP1(round, 0, vf_round(a))
MAP1(exp, 0, vf_exp(a))
MAP1(expm1, 0, vf_expm1(a))
MAP1(log, 0, vf_log(a))
MAP1(log1p, 0, vf_log1p(a))
MAP1(sin, 0, vf_sin(a))
MAP1(cos, 0, vf_cos(a))
MAP1(erf, 0, vf_erf(a))
MAP1(tan, 0, vf_tan(a))
MAP1(asin, 0, vf_asin(a))
MAP1(acos, 0, vf_acos(a))
MAP1(atan, 0, vf_atan(a))
MAP1(sinh, 0, vf_sinh(a))
MAP1(cosh, 0, vf_cosh(a))
MAP1(asinh, 0, vf_asinh(a))
MAP1(acosh, 0, vf_acosh(a))
MAP1(atanh, 0, vf_atanh(a))

MAP2_LIGHT(add, 0, vf_add(a, b))
MAP2_LIGHT(sub, 0, vf_sub(a, b))
MAP2_LIGHT(mul, 0, vf_mul(a, b))
MAP2(div, 0, vf_div(a, b))
MAP2_LIGHT(min, 0, vf_min_nan(a, b))
MAP2_LIGHT(max, 0, vf_max_nan(a, b))
MAP2(pow, 0, vf_pow(a, b))

MAP1_LIGHT(add_scalar, 1, vf_add(a, p[0]))
MAP1_LIGHT(sub_scalar, 1, vf_sub(a, p[0]))
MAP1_LIGHT(rsub_scalar, 1, vf_sub(p[0], a))
MAP1_LIGHT(scale, 1, vf_mul(a, p[0]))
MAP1(div_scalar, 1, vf_div(a, p[0]))
MAP1(rdiv_scalar, 1, vf_div(p[0], a))
MAP1_LIGHT(min_scalar, 1, vf_min_nan(a, p[0]))
MAP1_LIGHT(max_scalar, 1, vf_max_nan(a, p[0]))
MAP1(pow_scalar, 1, vf_pow(a, p[0]))

MAP2(eq, 0, one_where(vf_eq(a, b)))
MAP2(ne, 0, one_where(vf_ne(a, b)))
MAP2(lt, 0, one_where(vf_lt(a, b)))
MAP2(le, 0, one_where(vf_le(a, b)))
MAP2(gt, 0, one_where(vf_gt(a, b)))
MAP2(ge, 0, one_where(vf_ge(a, b)))

MAP1(isnan, 0, one_where(vf_isnan(a)))
MAP1(isfinite, 0, one_where(is_finite(a)))

MAP1_LIGHT(clamp, 2, vf_min(p[1], vf_max(p[0], a))) /* a NaN stays: it is the second argument */
MAP2_LIGHT(add_scaled, 1, vf_fma(p[0], b, a))
MAP2(lerp, 1, lerp(a, b, p[0]))
MAP3(where, 0, vf_select(vf_ne(a, vf_zero()), b, c))
MAP2(where_true, 0, vf_select(vf_ne(b, vf_zero()), a, vf_zero()))
MAP2(where_false, 0, vf_select(vf_ne(b, vf_zero()), vf_zero(), a))

/* A tail that has reached 0 is not multiplied by infinity. */
VF_INLINE vf mish(vf a) { return vf_mul(vmath_at_least(a, -200.0f), vf_tanh(vf_softplus(a))); }

VF_INLINE vf positive_or(vf a, vf other) { return vf_select(vf_le(a, vf_zero()), other, a); }

VF_INLINE vf shrink(vf a, vf bias, vf from)
{
    vf above = vf_select(vf_gt(a, from), vf_sub(a, bias), vf_zero());
    above = vf_select(vf_isnan(a), a, above);
    return vf_select(vf_lt(a, vf_neg(from)), vf_add(a, bias), above);
}

MAP1(mish, 0, mish(a))
MAP1(softsign, 0, vf_div(a, vf_add(vf_set1(1.0f), vf_abs(a))))
MAP1(celu, 1, positive_or(a, vf_mul(p[0], vf_expm1(vf_div(a, p[0])))))
MAP1(selu, 2, vf_mul(p[1], positive_or(a, vf_mul(p[0], vf_expm1(a)))))
MAP1(hard_sigmoid, 2, vf_min(vf_set1(1.0f), vf_max(vf_zero(), vf_fma(p[0], a, p[1]))))
MAP1(thresholded_relu, 1, vf_select(vf_le(a, p[0]), vf_zero(), a))
MAP1(shrink, 2, shrink(a, p[0], p[1]))
MAP1(swish, 1, vf_mul(a, vf_sigmoid(vf_mul(p[0], a))))
MAP2(prelu, 0, positive_or(a, vf_mul(a, b)))

const mica_map_kernels VF_SYMBOL(mica_map_kernels) = {
#define FIELD(name)                    .name = map_##name,
#define FIELD_3(name, sources, params) .name = map_##name,
    MICA_MAP_UNARY_TYPED(FIELD) MICA_MAP_UNARY(FIELD) MICA_MAP_BINARY(FIELD) MICA_MAP_SCALAR(FIELD)
        MICA_MAP_COMPARE(FIELD) MICA_MAP_CLASSIFY(FIELD) MICA_MAP_OTHER(FIELD_3) MICA_MAP_CURVES(FIELD_3)};

#define SYMBOL(name)                    MICA_KERNEL_SYMBOL(map, name, map_##name)
#define SYMBOL_3(name, sources, params) MICA_KERNEL_SYMBOL(map, name, map_##name)
MICA_MAP_UNARY_TYPED(SYMBOL)
MICA_MAP_UNARY(SYMBOL)
MICA_MAP_BINARY(SYMBOL)
MICA_MAP_SCALAR(SYMBOL)
MICA_MAP_COMPARE(SYMBOL)
MICA_MAP_CLASSIFY(SYMBOL)
MICA_MAP_OTHER(SYMBOL_3)
MICA_MAP_CURVES(SYMBOL_3)
