/* Element-wise operations on one tensor: gradients from the output if that is enough, else from the input. */
#include "node/entry.h"
#include "node/sample.h"
#include "node/typed.h"

static mica_status infer(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    return mica_infer_like(i, 0, 0);
}

/* ---- Gradients ---- */

static mica_value one(mica_grad *g, const mica_op *op, mica_value a)
{
    return mica_grad_value(g, op, &a, 1, NULL);
}

static mica_value two(mica_grad *g, const mica_op *op, mica_value a, mica_value b)
{
    return mica_grad_value(g, op, (mica_value[]){a, b}, 2, NULL);
}

static void give(mica_grad *g, const mica_op *op, mica_value a, mica_value b)
{
    mica_grad_give(g, 0, op, (mica_value[]){a, b}, 2, NULL);
}

static void give_scaled(mica_grad *g, mica_value a, float s)
{
    mica_grad_give(g, 0, &mica_op_scale, &a, 1, &(mica_scalar_opts){s});
}

static void give_negative(mica_grad *g, mica_value a) { mica_grad_give(g, 0, &mica_op_neg, &a, 1, NULL); }

static mica_value plus_one(mica_grad *g, mica_value a)
{
    return mica_grad_value(g, &mica_op_add_scalar, &a, 1, &(mica_scalar_opts){1.0f});
}

/* -dy */
static void neg_gradient(mica_grad *g) { give_negative(g, g->dout[0]); }
/* dy sign(a), which is 0 at 0 */
static void abs_gradient(mica_grad *g) { give(g, &mica_op_mul, g->dout[0], one(g, &mica_op_sign, g->in[0])); }
/* 2 a dy */
static void square_gradient(mica_grad *g)
{
    give_scaled(g, two(g, &mica_op_mul, g->in[0], g->dout[0]), 2.0f);
}
/* dy / y / 2 */
static void sqrt_gradient(mica_grad *g) { give_scaled(g, two(g, &mica_op_div, g->dout[0], g->out[0]), 0.5f); }

/* -dy y^3 / 2 */
static void rsqrt_gradient(mica_grad *g)
{
    mica_value cube = two(g, &mica_op_mul, one(g, &mica_op_square, g->out[0]), g->out[0]);
    give_scaled(g, two(g, &mica_op_mul, cube, g->dout[0]), -0.5f);
}

/* -dy y^2 */
static void reciprocal_gradient(mica_grad *g)
{
    give_negative(g, two(g, &mica_op_mul, one(g, &mica_op_square, g->out[0]), g->dout[0]));
}

/* dy y */
static void exp_gradient(mica_grad *g) { give(g, &mica_op_mul, g->dout[0], g->out[0]); }
/* dy (y + 1) */
static void expm1_gradient(mica_grad *g) { give(g, &mica_op_mul, g->dout[0], plus_one(g, g->out[0])); }
/* dy / a */
static void log_gradient(mica_grad *g) { give(g, &mica_op_div, g->dout[0], g->in[0]); }
/* dy / (a + 1) */
static void log1p_gradient(mica_grad *g) { give(g, &mica_op_div, g->dout[0], plus_one(g, g->in[0])); }
/* dy cos(a) */
static void sin_gradient(mica_grad *g) { give(g, &mica_op_mul, g->dout[0], one(g, &mica_op_cos, g->in[0])); }

/* -dy sin(a) */
static void cos_gradient(mica_grad *g)
{
    give_negative(g, two(g, &mica_op_mul, one(g, &mica_op_sin, g->in[0]), g->dout[0]));
}

/* dy exp(-a^2) 2 / sqrt(pi) */
static void erf_gradient(mica_grad *g)
{
    mica_value t = one(g, &mica_op_neg, one(g, &mica_op_square, g->in[0]));
    t = two(g, &mica_op_mul, one(g, &mica_op_exp, t), g->dout[0]);
    give_scaled(g, t, 1.1283791671f);
}

/* dy (1 + y^2) */
static void tan_gradient(mica_grad *g)
{
    give(g, &mica_op_mul, g->dout[0], plus_one(g, one(g, &mica_op_square, g->out[0])));
}

/* sign a^2 + b */
static mica_value around_square(mica_grad *g, float sign, float b)
{
    mica_value square = one(g, &mica_op_square, g->in[0]);
    const mica_op *op = sign < 0.0f ? &mica_op_rsub_scalar : &mica_op_add_scalar;
    return mica_grad_value(g, op, &square, 1, &(mica_scalar_opts){b});
}

/* dy / sqrt(1 - a^2) */
static void asin_gradient(mica_grad *g)
{
    give(g, &mica_op_mul, g->dout[0], one(g, &mica_op_rsqrt, around_square(g, -1.0f, 1.0f)));
}

/* -dy / sqrt(1 - a^2) */
static void acos_gradient(mica_grad *g)
{
    give_negative(g, two(g, &mica_op_mul, g->dout[0], one(g, &mica_op_rsqrt, around_square(g, -1.0f, 1.0f))));
}

/* dy / (1 + a^2) */
static void atan_gradient(mica_grad *g) { give(g, &mica_op_div, g->dout[0], around_square(g, 1.0f, 1.0f)); }
/* dy cosh(a) */
static void sinh_gradient(mica_grad *g)
{
    give(g, &mica_op_mul, g->dout[0], one(g, &mica_op_cosh, g->in[0]));
}
/* dy sinh(a) */
static void cosh_gradient(mica_grad *g)
{
    give(g, &mica_op_mul, g->dout[0], one(g, &mica_op_sinh, g->in[0]));
}

/* dy / sqrt(a^2 + 1) */
static void asinh_gradient(mica_grad *g)
{
    give(g, &mica_op_mul, g->dout[0], one(g, &mica_op_rsqrt, around_square(g, 1.0f, 1.0f)));
}

/* dy / sqrt(a^2 - 1) */
static void acosh_gradient(mica_grad *g)
{
    give(g, &mica_op_mul, g->dout[0], one(g, &mica_op_rsqrt, around_square(g, 1.0f, -1.0f)));
}

/* dy / (1 - a^2) */
static void atanh_gradient(mica_grad *g) { give(g, &mica_op_div, g->dout[0], around_square(g, -1.0f, 1.0f)); }

/* ---- Samples ---- */

static void any_sample(mica_op_sample *s) { mica_sample_one(s, -2.0, 2.0); }
static void positive_sample(mica_op_sample *s) { mica_sample_one(s, 0.5, 1.5); }
static void above_sample(mica_op_sample *s) { mica_sample_one(s, -0.5, 1.5); }
static void inner_sample(mica_op_sample *s) { mica_sample_one(s, -0.8, 0.8); }
static void outer_sample(mica_op_sample *s) { mica_sample_one(s, 1.2, 3.0); }

/* ---- Entries ---- */

#define RUN(op) \
    static mica_status op##_run(const mica_call *c) { return mica_##op(c->ctx, c->out[0], c->in[0]); }

#define ENTRY(op, words, grad, samples, addable, infers)                           \
    const mica_op mica_op_##op = {.name = #op,                                     \
                                  .family = "elementwise",                         \
                                  .about = words,                                  \
                                  .flags = MICA_OP_CHEAP,                          \
                                  .ins = 1,                                        \
                                  .outs = 1,                                       \
                                  .in_place = {1},                                 \
                                  .adds = addable,                                 \
                                  .infer = infers,                                 \
                                  .run = op##_run,                                 \
                                  .gradient = MICA_GRADIENT(grad),                 \
                                  .passes = MICA_LAYOUTS(mica_elementwise_passes), \
                                  .sample = MICA_SAMPLE(samples)};

/* Of the types that the operation is computed in; gradients only of f32. */
#define TYPES(op)                                             \
    static mica_status op##_infer(mica_infer *i)              \
    {                                                         \
        MICA_TRY(mica_infer_computed(i, 0, MICA_TYPED_##op)); \
        return mica_infer_like(i, 0, 0);                      \
    }
#define GRADES(op)                              \
    static void op##_f32_gradient(mica_grad *g) \
    {                                           \
        if (mica_grad_in_f32(g))                \
            op##_gradient(g);                   \
    }

#define UNARY(op, words, samples) RUN(op) ENTRY(op, words, op##_gradient, samples, 0, infer)
#define TYPED(op, words, samples) \
    RUN(op) TYPES(op) GRADES(op) ENTRY(op, words, op##_f32_gradient, samples, 0, op##_infer)
/* Its gradient is 0. */
#define STEPS(op, words) RUN(op) TYPES(op) ENTRY(op, words, NULL, any_sample, 0, op##_infer)

/* Used by many gradients, so it can add. */
static mica_status neg_run(const mica_call *c)
{
    if (c->add & 1u)
        return mica_sub(c->ctx, c->out[0], c->out[0], c->in[0]);
    return mica_neg(c->ctx, c->out[0], c->in[0]);
}

/* clang-format off */
TYPES(neg) GRADES(neg) ENTRY(neg, "-a", neg_f32_gradient, any_sample, 1, neg_infer)
TYPED(abs, "|a|", mica_sample_away)
STEPS(sign, "-1, 0 or 1")
TYPED(square, "a * a", any_sample)
TYPED(sqrt, "the square root", positive_sample)
UNARY(rsqrt, "1 / the square root", positive_sample)
UNARY(reciprocal, "1 / a", positive_sample)
STEPS(floor, "the largest integer not above a")
STEPS(ceil, "the smallest integer not below a")
STEPS(round, "the nearest integer, ties to even")
UNARY(exp, "e to the power a", any_sample)
UNARY(expm1, "exp(a) - 1, accurate near 0", any_sample)
UNARY(log, "the natural logarithm", positive_sample)
UNARY(log1p, "log(1 + a), accurate near 0", above_sample)
UNARY(sin, "the sine of a in radians", any_sample)
UNARY(cos, "the cosine of a in radians", any_sample)
UNARY(erf, "the error function", any_sample)
UNARY(tan, "the tangent of a in radians", inner_sample)
UNARY(asin, "the angle with sine a", inner_sample)
UNARY(acos, "the angle with cosine a", inner_sample)
UNARY(atan, "the angle with tangent a", any_sample)
UNARY(sinh, "the hyperbolic sine", any_sample)
UNARY(cosh, "the hyperbolic cosine", any_sample)
UNARY(asinh, "the inverse of sinh", any_sample)
UNARY(acosh, "the inverse of cosh", outer_sample)
UNARY(atanh, "the inverse of tanh", inner_sample)
    /* clang-format on */
