/* Cases of the element-wise operations. */
#include "ops/map_case.h"

#define ROUNDING 6e-8   /* half an ulp: one correctly rounded operation */
#define FUNCTION 2.4e-7 /* the polynomials: up to four ulp */

MAP_CASE(add, 2, map_fill_wild, ROUNDING, mica_add(ctx, dst, x, y), a + b);
MAP_CASE(sub, 2, map_fill_wild, ROUNDING, mica_sub(ctx, dst, x, y), a - b);
MAP_CASE(mul, 2, map_fill_wild, ROUNDING, mica_mul(ctx, dst, x, y), a *b);
MAP_CASE(div, 2, map_fill_wild, ROUNDING, mica_div(ctx, dst, x, y), a / b);
MAP_CASE(min, 2, map_fill_wild, 0.0, mica_min(ctx, dst, x, y), isnan(a) || isnan(b) ? NAN : fmin(a, b));
MAP_CASE(max, 2, map_fill_wild, 0.0, mica_max(ctx, dst, x, y), isnan(a) || isnan(b) ? NAN : fmax(a, b));
MAP_CASE(pow, 2, map_fill_wild, FUNCTION, mica_pow(ctx, dst, x, y), pow(a, b));
MAP_CASE(fmod, 2, map_fill_wild, 0.0, mica_fmod(ctx, dst, x, y), fmod(a, b));
MAP_CASE(mod, 2, map_fill_wild, ROUNDING, mica_mod(ctx, dst, x, y),
         fmod(a, b) != 0 && (fmod(a, b) < 0) != (b < 0) ? fmod(a, b) + b : fmod(a, b));
MAP_CASE(add_scaled, 2, NULL, 2e-6, mica_add_scaled(ctx, dst, x, y, s), a + s * b);
MAP_CASE(lerp, 2, NULL, 2e-6, mica_lerp(ctx, dst, x, y, s), a + s * (b - a));

MAP_CASE(add_scalar, 1, map_fill_wild, ROUNDING, mica_add_scalar(ctx, dst, x, s), a + s);
MAP_CASE(sub_scalar, 1, map_fill_wild, ROUNDING, mica_sub_scalar(ctx, dst, x, s), a - s);
MAP_CASE(rsub_scalar, 1, map_fill_wild, ROUNDING, mica_rsub_scalar(ctx, dst, x, s), s - a);
MAP_CASE(scale, 1, map_fill_wild, ROUNDING, mica_scale(ctx, dst, x, s), a *s);
MAP_CASE(div_scalar, 1, map_fill_wild, ROUNDING, mica_div_scalar(ctx, dst, x, s), a / s);
MAP_CASE(rdiv_scalar, 1, map_fill_wild, ROUNDING, mica_rdiv_scalar(ctx, dst, x, s), s / a);
MAP_CASE(min_scalar, 1, map_fill_wild, 0.0, mica_min_scalar(ctx, dst, x, s), isnan(a) ? a : fmin(a, s));
MAP_CASE(max_scalar, 1, map_fill_wild, 0.0, mica_max_scalar(ctx, dst, x, s), isnan(a) ? a : fmax(a, s));
MAP_CASE(pow_scalar, 1, map_fill_wild, FUNCTION, mica_pow_scalar(ctx, dst, x, s), pow(a, s));
MAP_CASE(clamp, 1, map_fill_wild, 0.0, mica_clamp(ctx, dst, x, s, t), isnan(a) ? a : fmin(fmax(a, s), t));

MAP_CASE(neg, 1, map_fill_wild, 0.0, mica_neg(ctx, dst, x), -a);
MAP_CASE(abs, 1, map_fill_wild, 0.0, mica_abs(ctx, dst, x), fabs(a));
MAP_CASE(sign, 1, map_fill_wild, 0.0, mica_sign(ctx, dst, x), a > 0 ? 1.0 : a < 0 ? -1.0 : a);
MAP_CASE(square, 1, map_fill_wild, ROUNDING, mica_square(ctx, dst, x), a *a);
MAP_CASE(sqrt, 1, map_fill_wild, ROUNDING, mica_sqrt(ctx, dst, x), sqrt(a));
MAP_CASE(rsqrt, 1, map_fill_wild, 2 * ROUNDING, mica_rsqrt(ctx, dst, x), 1.0 / sqrt(a));
MAP_CASE(reciprocal, 1, map_fill_wild, ROUNDING, mica_reciprocal(ctx, dst, x), 1.0 / a);
MAP_CASE(floor, 1, map_fill_wild, 0.0, mica_floor(ctx, dst, x), floor(a));
MAP_CASE(ceil, 1, map_fill_wild, 0.0, mica_ceil(ctx, dst, x), ceil(a));
MAP_CASE(round, 1, map_fill_wild, 0.0, mica_round(ctx, dst, x), nearbyint(a));
MAP_CASE(exp, 1, map_fill_wild, FUNCTION, mica_exp(ctx, dst, x), exp(a));
MAP_CASE(expm1, 1, map_fill_wild, FUNCTION, mica_expm1(ctx, dst, x), expm1(a));
MAP_CASE(log, 1, map_fill_wild, FUNCTION, mica_log(ctx, dst, x), log(a));
MAP_CASE(log1p, 1, map_fill_wild, FUNCTION, mica_log1p(ctx, dst, x), log1p(a));
MAP_CASE(sin, 1, map_fill_wild, FUNCTION, mica_sin(ctx, dst, x), sin(a));
MAP_CASE(cos, 1, map_fill_wild, FUNCTION, mica_cos(ctx, dst, x), cos(a));
MAP_CASE(erf, 1, map_fill_wild, FUNCTION, mica_erf(ctx, dst, x), erf(a));
MAP_CASE(tan, 1, map_fill_wild, FUNCTION, mica_tan(ctx, dst, x), tan(a));
MAP_CASE(asin, 1, map_fill_wild, FUNCTION, mica_asin(ctx, dst, x), asin(a));
MAP_CASE(acos, 1, map_fill_wild, FUNCTION, mica_acos(ctx, dst, x), acos(a));
MAP_CASE(atan, 1, map_fill_wild, FUNCTION, mica_atan(ctx, dst, x), atan(a));
MAP_CASE(sinh, 1, map_fill_wild, FUNCTION, mica_sinh(ctx, dst, x), sinh(a));
MAP_CASE(cosh, 1, map_fill_wild, FUNCTION, mica_cosh(ctx, dst, x), cosh(a));
MAP_CASE(asinh, 1, map_fill_wild, FUNCTION, mica_asinh(ctx, dst, x), asinh(a));
MAP_CASE(acosh, 1, map_fill_wild, FUNCTION, mica_acosh(ctx, dst, x), acosh(a));
MAP_CASE(atanh, 1, map_fill_wild, FUNCTION, mica_atanh(ctx, dst, x), atanh(a));

static double softplus_of(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

/* Activations that are made as these are; the product of two functions is up to eight ulp off. */
#define CURVE_CASE(op, inputs, fill_function, allowed, call_, expression)                          \
    MAP_CASE(op, inputs, fill_function, allowed, call_, expression);                               \
    __attribute__((constructor)) static void name_##op(void)                                       \
    {                                                                                              \
        op_case_##op.names[0] = "y", op_case_##op.names[1] = "x", op_case_##op.names[2] = "slope"; \
    }

CURVE_CASE(mish, 1, map_fill_wild, 2 * FUNCTION, mica_mish(ctx, dst, x),
           isinf(a) && a < 0 ? -0.0 : a * tanh(softplus_of(a)))
CURVE_CASE(softsign, 1, map_fill_wild, 2 * ROUNDING, mica_softsign(ctx, dst, x), a / (1 + fabs(a)))
CURVE_CASE(celu, 1, NULL, FUNCTION, mica_celu(ctx, dst, x, 1.5f), a > 0 ? a : 1.5 * expm1(a / 1.5))
CURVE_CASE(selu, 1, NULL, FUNCTION, mica_selu(ctx, dst, x, 1.5f, 0.75f), 0.75 * (a > 0 ? a : 1.5 * expm1(a)))
CURVE_CASE(hard_sigmoid, 1, map_fill_wild, 3 * ROUNDING, mica_hard_sigmoid(ctx, dst, x, 0.25f, 0.5f),
           isnan(a) ? a : fmin(fmax(0.25 * a + 0.5, 0), 1))
CURVE_CASE(thresholded_relu, 1, map_fill_wild, 0.0, mica_thresholded_relu(ctx, dst, x, 0.5f),
           a <= 0.5 ? 0 : a)
CURVE_CASE(shrink, 1, map_fill_wild, ROUNDING, mica_shrink(ctx, dst, x, 0.25f, 0.5f),
           isnan(a)                     ? a
           : a<-0.5 ? a + 0.25 : a> 0.5 ? a - 0.25
                                        : 0)
CURVE_CASE(swish, 1, NULL, 2 * FUNCTION, mica_swish(ctx, dst, x, 1.5f), a / (1 + exp(-1.5 * a)))
CURVE_CASE(prelu, 2, map_fill_wild, ROUNDING, mica_prelu(ctx, dst, x, y), a <= 0 ? a * b : a)

static float count_up(void *user, float a)
{
    (*(size_t *)user)++;
    return 2.0f * a;
}
static float hypotenuse(void *user, float a, float b)
{
    (void)user;
    return (float)sqrt((double)a * a + (double)b * b);
}
static float middle(void *user, float a, float b, float c)
{
    (void)user;
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

static size_t calls;
MAP_CASE(apply1, 1, NULL, 0.0, mica_apply1(ctx, dst, x, (mica_function1){count_up, &calls}), 2.0 * a);
MAP_CASE(apply2, 2, NULL, ROUNDING, mica_apply2(ctx, dst, x, y, (mica_function2){hypotenuse, NULL}),
         sqrt(a *a + b * b));
MAP_CASE(apply3, 3, NULL, 0.0, mica_apply3(ctx, dst, x, y, z, (mica_function3){middle, NULL}),
         fmax(fmin(a, b), fmin(fmax(a, b), c)));
MAP_CASE(apply_scalar, 1, NULL, ROUNDING,
         mica_apply_scalar(ctx, dst, x, s, (mica_function2){hypotenuse, NULL}), sqrt(a *a + s * s));

TEST(apply_calls_the_function_once_per_element)
{
    mica_context *ctx = test_context(3);
    static float data[50000];
    mica_tensor a = mica_1d(data, 50000);
    calls = 0;
    CHECK_OK(ctx, mica_apply1(ctx, &a, &a, (mica_function1){count_up, &calls}));
    CHECK(calls == 50000);
    CHECK_ERROR(ctx, mica_apply1(ctx, &a, &a, (mica_function1){NULL, NULL}), MICA_ERR_ARGUMENT,
                "argument error: apply1: f has no function (NULL) to apply to a");
}

TEST(clamp_refuses_bounds_out_of_order)
{
    mica_context *ctx = test_context(1);
    float data[2] = {1.0f, 2.0f};
    mica_tensor a = mica_1d(data, 2);
    CHECK_ERROR(ctx, mica_clamp(ctx, &a, &a, 2.0f, 1.0f), MICA_ERR_ARGUMENT,
                "argument error: clamp: low is 2, high is 1: expected low <= high");
    CHECK(mica_clamp(ctx, &a, &a, NAN, 1.0f) == MICA_ERR_ARGUMENT);
    CHECK(data[0] == 1.0f && data[1] == 2.0f);
}

TEST(elementwise_messages_name_both_shapes)
{
    mica_context *ctx = test_context(1);
    float data[24] = {0};
    mica_tensor a = mica_2d(data, 2, 3), b = mica_2d(data + 6, 2, 4);
    CHECK_ERROR(ctx, mica_add(ctx, &a, &a, &b), MICA_ERR_SHAPE,
                "shape error: add: b is [2, 4], which does not broadcast to dst [2, 3]");
}
