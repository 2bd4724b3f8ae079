/* Element-wise operations: dst[i] = f(a[i], ...).
 *
 * All tensors are f32, of any layout; inputs are broadcast to dst's shape. dst may be exactly an input.
 * NaN and infinities follow IEEE 754.
 *
 * Those marked (types) also take f64, which is computed in double, and integers of eight bits and more, where results
 * that do not fit wrap around (two's complement); (floats) marks those that also take f64. All tensors are of one
 * dtype then. */
#ifndef MICA_OPS_ELEMENTWISE_H
#define MICA_OPS_ELEMENTWISE_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Two tensors ------------------------------------------------------------------------------------- */

/* a + b (types) */
MICA_API mica_status mica_add(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                              const mica_tensor *b);
/* a - b (types) */
MICA_API mica_status mica_sub(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                              const mica_tensor *b);
/* a * b (types) */
MICA_API mica_status mica_mul(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                              const mica_tensor *b);
/* a / b (types). Of integers: toward 0; a division by 0 gives 0. */
MICA_API mica_status mica_div(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                              const mica_tensor *b);
/* The minimum; NaN if either is NaN (types, and bool). */
MICA_API mica_status mica_min(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                              const mica_tensor *b);
/* The maximum; NaN if either is NaN (types, and bool). */
MICA_API mica_status mica_max(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                              const mica_tensor *b);
/* a to the power b, as C's pow (types). Of integers: a negative power is 0, but of 1 and -1. */
MICA_API mica_status mica_pow(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                              const mica_tensor *b);
/* What is left of a / b, with the sign of b, as Python's % (types). Of integers: 0 where b is 0. */
MICA_API mica_status mica_mod(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                              const mica_tensor *b);
/* The same with the sign of a, as C's % and fmod (types). */
MICA_API mica_status mica_fmod(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                               const mica_tensor *b);
/* a + s * b, with one rounding where the processor has fused multiply-add. */
MICA_API mica_status mica_add_scaled(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                     const mica_tensor *b, float s);
/* a + s * (b - a): a for s = 0, b for s = 1. */
MICA_API mica_status mica_lerp(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                               const mica_tensor *b, float s);

/* ---- A tensor and a number --------------------------------------------------------------------------- */

/* a + s */
MICA_API mica_status mica_add_scalar(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                     float s);
/* a - s */
MICA_API mica_status mica_sub_scalar(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                     float s);
/* s - a */
MICA_API mica_status mica_rsub_scalar(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                      float s);
/* a * s */
MICA_API mica_status mica_scale(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, float s);
/* a / s */
MICA_API mica_status mica_div_scalar(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                     float s);
/* s / a */
MICA_API mica_status mica_rdiv_scalar(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                      float s);
/* The minimum of a and s; NaN if either is NaN. */
MICA_API mica_status mica_min_scalar(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                     float s);
/* The maximum of a and s; NaN if either is NaN. */
MICA_API mica_status mica_max_scalar(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                     float s);
/* a to the power s, as C's pow. */
MICA_API mica_status mica_pow_scalar(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                     float s);
/* a clamped to [low, high]; NaN stays NaN. Fails unless low <= high. */
MICA_API mica_status mica_clamp(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, float low,
                                float high);

/* ---- One tensor -------------------------------------------------------------------------------------- */

/* -a (types) */
MICA_API mica_status mica_neg(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* |a| (types) */
MICA_API mica_status mica_abs(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* -1, 0 or 1; NaN stays (types). */
MICA_API mica_status mica_sign(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* a * a (types) */
MICA_API mica_status mica_square(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The square root, correctly rounded; NaN below 0 (floats). */
MICA_API mica_status mica_sqrt(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* 1 / sqrt(a), by a true root and division. */
MICA_API mica_status mica_rsqrt(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* 1 / a */
MICA_API mica_status mica_reciprocal(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The largest integer not above a (floats). */
MICA_API mica_status mica_floor(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The smallest integer not below a (floats). */
MICA_API mica_status mica_ceil(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The nearest integer, ties to even (floats). */
MICA_API mica_status mica_round(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* e to the power a */
MICA_API mica_status mica_exp(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* exp(a) - 1, accurate near 0 */
MICA_API mica_status mica_expm1(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The natural logarithm; -infinity at 0, NaN below. */
MICA_API mica_status mica_log(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* log(1 + a), accurate near 0 */
MICA_API mica_status mica_log1p(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* Sine of a in radians */
MICA_API mica_status mica_sin(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* Cosine of a in radians */
MICA_API mica_status mica_cos(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The error function */
MICA_API mica_status mica_erf(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* Tangent of a in radians */
MICA_API mica_status mica_tan(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The angle in [-pi/2, pi/2] with sine a; NaN beyond -1 and 1 */
MICA_API mica_status mica_asin(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The angle in [0, pi] with cosine a; NaN beyond -1 and 1 */
MICA_API mica_status mica_acos(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The angle in [-pi/2, pi/2] with tangent a */
MICA_API mica_status mica_atan(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The hyperbolic sine */
MICA_API mica_status mica_sinh(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The hyperbolic cosine */
MICA_API mica_status mica_cosh(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The inverse of sinh */
MICA_API mica_status mica_asinh(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The inverse of cosh; NaN below 1 */
MICA_API mica_status mica_acosh(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* The inverse of tanh; NaN beyond -1 and 1 */
MICA_API mica_status mica_atanh(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);

/* ---- A caller's function ----------------------------------------------------------------------------- */

/* A function with its user data. It is called on the calling thread only, once for each
 * element, in no specified order. */
typedef struct mica_function1 {
    float (*call)(void *user, float a);
    void *user;
} mica_function1;

typedef struct mica_function2 {
    float (*call)(void *user, float a, float b);
    void *user;
} mica_function2;

typedef struct mica_function3 {
    float (*call)(void *user, float a, float b, float c);
    void *user;
} mica_function3;

/* f(a) */
MICA_API mica_status mica_apply1(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                 mica_function1 f);
/* f(a, b) */
MICA_API mica_status mica_apply2(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                 const mica_tensor *b, mica_function2 f);
/* f(a, b, c) */
MICA_API mica_status mica_apply3(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                 const mica_tensor *b, const mica_tensor *c, mica_function3 f);
/* f(a, s) */
MICA_API mica_status mica_apply_scalar(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                       float s, mica_function2 f);

#ifdef __cplusplus
}
#endif
#endif
