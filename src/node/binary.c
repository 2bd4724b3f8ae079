/* Element-wise operations on two tensors, with broadcasting. The gradient of a broadcast operand is
 * summed. The gradient of b comes first, so that the gradient of a, the last to read dy, may overwrite it. */
#include "node/gradient.h"
#include "node/sample.h"
#include "node/typed.h"

static mica_status infer(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_F32));
    return mica_infer_broadcast(i, 0, 0, 1);
}

/* Of the types that the operation is computed in. */
static mica_status infer_typed(mica_infer *i, mica_typed_code code)
{
    MICA_TRY(mica_infer_computed(i, 0, code));
    return mica_infer_broadcast(i, 0, 0, 1);
}

static mica_value product(mica_grad *g, mica_value a, mica_value b)
{
    return mica_grad_value(g, &mica_op_mul, (mica_value[]){a, b}, 2, NULL);
}

/* ---- Gradients ---- */

/* da = dy, db = dy */
static void add_gradient(mica_grad *g)
{
    mica_grad_pass_summed(g, 1, g->dout[0]);
    mica_grad_pass_summed(g, 0, g->dout[0]);
}

/* da = dy, db = -dy */
static void sub_gradient(mica_grad *g)
{
    mica_grad_give_summed(g, 1, &mica_op_neg, g->dout, 1, NULL);
    mica_grad_pass_summed(g, 0, g->dout[0]);
}

/* da = dy b, db = dy a */
static void mul_gradient(mica_grad *g)
{
    mica_grad_give_summed(g, 1, &mica_op_mul, (mica_value[]){g->dout[0], g->in[0]}, 2, NULL);
    mica_grad_give_summed(g, 0, &mica_op_mul, (mica_value[]){g->dout[0], g->in[1]}, 2, NULL);
}

/* da = dy / b, db = -da y */
static void div_gradient(mica_grad *g)
{
    mica_value ins[] = {g->dout[0], g->in[1]};
    if (!mica_grad_wants(g, 1)) {
        mica_grad_give_summed(g, 0, &mica_op_div, ins, 2, NULL);
        return;
    }
    mica_value da = mica_grad_value(g, &mica_op_div, ins, 2, NULL);
    mica_value t = product(g, da, g->out[0]);
    mica_grad_give_summed(g, 1, &mica_op_neg, &t, 1, NULL);
    mica_grad_pass_summed(g, 0, da);
}

/* All of dy goes to the one that was taken: to a where they are equal. */
static void choice_gradient(mica_grad *g, const mica_op *takes_a)
{
    if (mica_grad_wants(g, 0) || mica_grad_wants(g, 1))
        mica_grad_give_choice(g, 0, 1,
                              mica_grad_value(g, takes_a, g->in, 2, &(mica_compare_opts){.mask = true}));
}

static void min_gradient(mica_grad *g) { choice_gradient(g, &mica_op_le); }
static void max_gradient(mica_grad *g) { choice_gradient(g, &mica_op_ge); }

/* da = dy b a^(b - 1), 0 where b is 0; db = dy y log(a), with 0 for the logarithm where a is 0 */
static void pow_gradient(mica_grad *g)
{
    mica_value dy = g->dout[0], a = g->in[0], b = g->in[1];
    if (mica_grad_wants(g, 1)) {
        mica_value log_a = mica_grad_part(g, mica_grad_value(g, &mica_op_log, &a, 1, NULL), a, false);
        mica_value slope = product(g, g->out[0], log_a);
        mica_grad_give_summed(g, 1, &mica_op_mul, (mica_value[]){dy, slope}, 2, NULL);
    }
    if (mica_grad_wants(g, 0)) {
        mica_value less = mica_grad_value(g, &mica_op_sub_scalar, &b, 1, &(mica_scalar_opts){1.0f});
        mica_value power = mica_grad_value(g, &mica_op_pow, (mica_value[]){a, less}, 2, NULL);
        mica_value slope = mica_grad_part(g, product(g, power, b), b, false);
        mica_grad_give_summed(g, 0, &mica_op_mul, (mica_value[]){dy, slope}, 2, NULL);
    }
}

/* da = dy, db = -dy floor(a / b) = dy (y - a) / b; the quotient steps, which no gradient shows */
static void mod_gradient(mica_grad *g)
{
    if (mica_grad_wants(g, 1)) {
        mica_value whole = mica_grad_value(g, &mica_op_sub, (mica_value[]){g->out[0], g->in[0]}, 2, NULL);
        whole = mica_grad_value(g, &mica_op_div, (mica_value[]){whole, g->in[1]}, 2, NULL);
        mica_grad_give_summed(g, 1, &mica_op_mul, (mica_value[]){g->dout[0], whole}, 2, NULL);
    }
    mica_grad_pass_summed(g, 0, g->dout[0]);
}

static void fmod_gradient(mica_grad *g) { mod_gradient(g); }

/* da = dy, db = s dy */
static void add_scaled_gradient(mica_grad *g)
{
    mica_grad_give_summed(g, 1, &mica_op_scale, g->dout, 1, g->opts);
    mica_grad_pass_summed(g, 0, g->dout[0]);
}

/* da = (1 - s) dy, db = s dy */
static void lerp_gradient(mica_grad *g)
{
    const mica_scalar_opts *opts = g->opts;
    mica_grad_give_summed(g, 1, &mica_op_scale, g->dout, 1, opts);
    mica_grad_give_summed(g, 0, &mica_op_scale, g->dout, 1, &(mica_scalar_opts){1.0f - opts->s});
}

/* ---- Samples ---- */

static void away_from_0(mica_op_sample *s) /* a divisor */
{
    mica_sample_broadcast(s);
    mica_sample_range(s, 1, 0.5, 1.5);
}

static void apart(mica_op_sample *s) /* either may be the larger, but not by little */
{
    mica_sample_broadcast(s);
    mica_sample_range(s, (int)mica_op_sample_int(s, 0, 1), 1.2, 2.0);
}

static void positive(mica_op_sample *s)
{
    mica_sample_broadcast(s);
    mica_sample_range(s, 0, 0.5, 1.5);
    mica_sample_range(s, 1, -2.0, 2.0);
}

static void between(mica_op_sample *s) /* quotients that are not near a whole number */
{
    mica_sample_broadcast(s);
    mica_sample_range(s, 0, 2.3, 2.7);
    mica_sample_range(s, 1, 0.95, 1.05);
}

static void scalar_sample(mica_op_sample *s)
{
    mica_sample_broadcast(s);
    ((mica_scalar_opts *)s->opts)->s = 0.25f * (float)mica_op_sample_int(s, -6, 6);
}

/* ---- Entries ---- */

#define BINARY(op, words, samples)                                                           \
    static mica_status op##_run(const mica_call *c)                                          \
    {                                                                                        \
        return mica_##op(c->ctx, c->out[0], c->in[0], c->in[1]);                             \
    }                                                                                        \
    static mica_status op##_infer(mica_infer *i) { return infer_typed(i, MICA_TYPED_##op); } \
    static void op##_f32_gradient(mica_grad *g)                                              \
    {                                                                                        \
        if (mica_grad_in_f32(g))                                                             \
            op##_gradient(g);                                                                \
    }                                                                                        \
    const mica_op mica_op_##op = {.name = #op,                                               \
                                  .family = "elementwise",                                   \
                                  .about = words,                                            \
                                  .flags = MICA_OP_CHEAP,                                    \
                                  .ins = 2,                                                  \
                                  .outs = 1,                                                 \
                                  .in_place = {3},                                           \
                                  .infer = op##_infer,                                       \
                                  .run = op##_run,                                           \
                                  .gradient = MICA_GRADIENT(op##_f32_gradient),              \
                                  .passes = MICA_LAYOUTS(mica_elementwise_passes),           \
                                  .sample = MICA_SAMPLE(samples)};

static const mica_field scalar_field[] = {MICA_FIELD(mica_scalar_opts, s, FLOAT, "the factor")};

#define BINARY_SCALAR(op, words)                                                                         \
    static mica_status op##_run(const mica_call *c)                                                      \
    {                                                                                                    \
        return mica_##op(c->ctx, c->out[0], c->in[0], c->in[1], ((const mica_scalar_opts *)c->opts)->s); \
    }                                                                                                    \
    const mica_op mica_op_##op = {.name = #op,                                                           \
                                  .family = "elementwise",                                               \
                                  .about = words,                                                        \
                                  .flags = MICA_OP_CHEAP,                                                \
                                  .ins = 2,                                                              \
                                  .outs = 1,                                                             \
                                  .opts_bytes = sizeof(mica_scalar_opts),                                \
                                  MICA_FIELD_LIST(scalar_field),                                         \
                                  .in_place = {3},                                                       \
                                  .infer = infer,                                                        \
                                  .run = op##_run,                                                       \
                                  .gradient = MICA_GRADIENT(op##_gradient),                              \
                                  .passes = MICA_LAYOUTS(mica_elementwise_passes),                       \
                                  .sample = MICA_SAMPLE(scalar_sample)};

/* clang-format off */
BINARY(add, "a + b", mica_sample_broadcast)
BINARY(sub, "a - b", mica_sample_broadcast)
BINARY(mul, "a * b", mica_sample_broadcast)
BINARY(div, "a / b", away_from_0)
BINARY(min, "the minimum of a and b", apart)
BINARY(max, "the maximum of a and b", apart)
BINARY(pow, "a to the power b", positive)
BINARY(mod, "the rest of a / b, with the sign of b", between)
BINARY(fmod, "the rest of a / b, with the sign of a", between)
BINARY_SCALAR(add_scaled, "a + s * b")
BINARY_SCALAR(lerp, "a + s * (b - a)")
/* clang-format on */
