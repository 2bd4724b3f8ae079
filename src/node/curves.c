/* Activations whose gradients are made of other operations. */
#include "node/gradient.h"
#include "node/sample.h"

static mica_status infer(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    return mica_infer_like(i, 0, 0);
}

static mica_curve_opts of(const void *opts) { return *(const mica_curve_opts *)opts; }

/* ---- Gradients ---- */

static mica_value one(mica_grad *g, const mica_op *op, mica_value a)
{
    return mica_grad_value(g, op, &a, 1, NULL);
}

static mica_value by(mica_grad *g, const mica_op *op, mica_value a, float s)
{
    return mica_grad_value(g, op, &a, 1, &(mica_scalar_opts){s});
}

static mica_value two(mica_grad *g, const mica_op *op, mica_value a, mica_value b)
{
    return mica_grad_value(g, op, (mica_value[]){a, b}, 2, NULL);
}

static void give_product(mica_grad *g, mica_value slope)
{
    mica_grad_give(g, 0, &mica_op_mul, (mica_value[]){g->dout[0], slope}, 2, NULL);
}

/* t + x (1 - t^2) sigmoid(x), t = tanh(softplus(x)) */
static void mish_gradient(mica_grad *g)
{
    mica_value x = g->in[0], t = one(g, &mica_op_tanh, one(g, &mica_op_softplus, x));
    mica_value rest = by(g, &mica_op_rsub_scalar, one(g, &mica_op_square, t), 1.0f);
    rest = two(g, &mica_op_mul, rest, one(g, &mica_op_silu, x));
    give_product(g, two(g, &mica_op_add, t, rest));
}

/* (1 - |y|)^2 */
static void softsign_gradient(mica_grad *g)
{
    mica_value rest = by(g, &mica_op_rsub_scalar, one(g, &mica_op_abs, g->out[0]), 1.0f);
    give_product(g, one(g, &mica_op_square, rest));
}

/* 1 where x > 0, else exp(x / alpha): that of elu from y / alpha, whose alpha is 1 */
static void celu_gradient(mica_grad *g)
{
    mica_value scaled = by(g, &mica_op_scale, g->out[0], 1.0f / of(g->opts).alpha);
    mica_grad_give(g, 0, &mica_op_elu_backward, (mica_value[]){g->dout[0], scaled}, 2,
                   &(mica_scalar_opts){1.0f});
}

/* gamma times that of elu */
static void selu_gradient(mica_grad *g)
{
    mica_curve_opts o = of(g->opts);
    mica_value scaled = by(g, &mica_op_scale, g->out[0], 1.0f / o.beta),
               dy = by(g, &mica_op_scale, g->dout[0], o.beta);
    mica_grad_give(g, 0, &mica_op_elu_backward, (mica_value[]){dy, scaled}, 2, &(mica_scalar_opts){o.alpha});
}

/* alpha where 0 < y < 1, which is where there is a whole number on either side of y */
static void hard_sigmoid_gradient(mica_grad *g)
{
    mica_value inside = two(g, &mica_op_sub, one(g, &mica_op_ceil, g->out[0]),
                            one(g, &mica_op_floor, g->out[0]));
    give_product(g, by(g, &mica_op_scale, inside, of(g->opts).alpha));
}

/* 1 where a > from, else 0 */
static mica_value above(mica_grad *g, mica_value a, float from)
{
    return one(g, &mica_op_sign, one(g, &mica_op_relu, by(g, &mica_op_sub_scalar, a, from)));
}

static void thresholded_relu_gradient(mica_grad *g)
{
    give_product(g, above(g, g->in[0], of(g->opts).alpha));
}

static void shrink_gradient(mica_grad *g)
{
    give_product(g, above(g, one(g, &mica_op_abs, g->in[0]), of(g->opts).beta));
}

/* s + alpha x s (1 - s), s = sigmoid(alpha x) */
static void swish_gradient(mica_grad *g)
{
    float alpha = of(g->opts).alpha;
    mica_value s = one(g, &mica_op_sigmoid, by(g, &mica_op_scale, g->in[0], alpha));
    mica_value rest = two(g, &mica_op_mul, g->out[0], by(g, &mica_op_rsub_scalar, s, 1.0f));
    give_product(g, two(g, &mica_op_add, s, by(g, &mica_op_scale, rest, alpha)));
}

/* dx = dy where x > 0, else dy slope; dslope = 0 where x > 0, else dy x */
static void prelu_gradient(mica_grad *g)
{
    mica_value x = g->in[0], dy = g->dout[0];
    mica_value positive = two(g, &mica_op_mul, dy, above(g, x, 0.0f)),
               rest = two(g, &mica_op_sub, dy, positive);
    if (mica_grad_wants(g, 1))
        mica_grad_give_summed(g, 1, &mica_op_mul, (mica_value[]){rest, x}, 2, NULL);
    if (mica_grad_wants(g, 0))
        mica_grad_give_summed(g, 0, &mica_op_add,
                              (mica_value[]){positive, two(g, &mica_op_mul, rest, g->in[1])}, 2, NULL);
}

/* ---- Samples: away from corners ---- */

static void any_sample(mica_op_sample *s)
{
    mica_sample_one(s, -2.0, 2.0);
    if (s->opts != NULL)
        *(mica_curve_opts *)s->opts = (mica_curve_opts){0.5f * (float)mica_op_sample_int(s, 1, 3), 1.5f};
}

static void bare_sample(mica_op_sample *s) { mica_sample_one(s, -2.0, 2.0); }

static void away_sample(mica_op_sample *s)
{
    mica_sample_away(s);
    *(mica_curve_opts *)s->opts = (mica_curve_opts){0.75f, 1.5f};
}

static void slope_sample(mica_op_sample *s) /* within, or on either side */
{
    mica_sample_one(s, -0.4, 0.4);
    *(mica_curve_opts *)s->opts = (mica_curve_opts){0.5f, 0.5f * (float)mica_op_sample_int(s, -2, 3) + 0.02f};
}

static void beyond_sample(mica_op_sample *s)
{
    mica_sample_one(s, -1.0, 1.0);
    *(mica_curve_opts *)s->opts = (mica_curve_opts){mica_sample_chance(s) ? 1.5f : -1.5f, 0.0f};
}

static void shrink_sample(mica_op_sample *s)
{
    mica_sample_away(s);
    *(mica_curve_opts *)s->opts = (mica_curve_opts){0.25f, mica_sample_chance(s) ? 0.1f : 1.5f};
}

static void prelu_sample(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 3, dims);
    mica_op_sample_shape(s, 0, rank, dims);
    mica_sample_repeated(s, 1, rank, dims);
    mica_sample_range(s, 0, mica_sample_chance(s) ? 0.2 : -1.0, 0.0);
    s->high[0] = s->low[0] > 0.0 ? 1.0 : -0.2;
}

/* ---- Entries ---- */

static const mica_field alpha_fields[] = {MICA_FIELD(mica_curve_opts, alpha, FLOAT, "alpha, as it is")};
static const mica_field both_fields[] = {
    MICA_FIELD(mica_curve_opts, alpha, FLOAT, "alpha, as it is; of shrink, the bias"),
    MICA_FIELD(mica_curve_opts, beta, FLOAT, "beta; of selu, gamma; of shrink, where it begins")};

#define ENTRY(op, words, samples, ...)                                             \
    const mica_op mica_op_##op = {.name = #op,                                     \
                                  .family = "activation",                          \
                                  .about = words,                                  \
                                  .flags = MICA_OP_CHEAP,                          \
                                  .ins = 1,                                        \
                                  .outs = 1,                                       \
                                  .in_place = {1},                                 \
                                  .infer = infer,                                  \
                                  .run = op##_run,                                 \
                                  .gradient = MICA_GRADIENT(op##_gradient),        \
                                  .passes = MICA_LAYOUTS(mica_elementwise_passes), \
                                  .sample = MICA_SAMPLE(samples),                  \
                                  __VA_ARGS__}
#define RUN(op, ...)                                               \
    static mica_status op##_run(const mica_call *c)                \
    {                                                              \
        return mica_##op(c->ctx, c->out[0], c->in[0] __VA_ARGS__); \
    }
#define NO_OPTIONS     .opts_bytes = 0
#define ALPHA          .opts_bytes = sizeof(mica_curve_opts), MICA_FIELD_LIST(alpha_fields)
#define BOTH           .opts_bytes = sizeof(mica_curve_opts), MICA_FIELD_LIST(both_fields)
#define BARE(op)       RUN(op, )
#define WITH_ALPHA(op) RUN(op, , of(c->opts).alpha)
#define WITH_BOTH(op)  RUN(op, , of(c->opts).alpha, of(c->opts).beta)

/* clang-format off */
BARE(mish) ENTRY(mish, "a tanh(softplus(a))", bare_sample, NO_OPTIONS);
BARE(softsign) ENTRY(softsign, "a / (1 + |a|)", mica_sample_away, NO_OPTIONS);
WITH_ALPHA(celu) ENTRY(celu, "a where a > 0, else alpha (exp(a / alpha) - 1)", any_sample, ALPHA);
WITH_BOTH(selu) ENTRY(selu, "beta a where a > 0, else beta alpha (exp(a) - 1)", away_sample, BOTH);
WITH_BOTH(hard_sigmoid) ENTRY(hard_sigmoid, "alpha a + beta, clamped to [0, 1]", slope_sample, BOTH);
WITH_ALPHA(thresholded_relu) ENTRY(thresholded_relu, "a where a > alpha, else 0", beyond_sample, ALPHA);
WITH_BOTH(shrink) ENTRY(shrink, "alpha nearer to 0 where |a| > beta, else 0", shrink_sample, BOTH);
WITH_ALPHA(swish) ENTRY(swish, "a sigmoid(alpha a)", any_sample, ALPHA);
/* clang-format on */

static mica_status infer_prelu(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_F32));
    return mica_infer_broadcast(i, 0, 0, 1);
}

static mica_status prelu_run(const mica_call *c) { return mica_prelu(c->ctx, c->out[0], c->in[0], c->in[1]); }

const mica_op mica_op_prelu = {.name = "prelu",
                               .family = "activation",
                               .about = "x where x > 0, else x * slope",
                               .flags = MICA_OP_CHEAP,
                               .ins = 2,
                               .outs = 1,
                               .names = (const char *const[]){"x", "slope", "y"},
                               .in_place = {3},
                               .infer = infer_prelu,
                               .run = prelu_run,
                               .gradient = MICA_GRADIENT(prelu_gradient),
                               .sample = MICA_SAMPLE(prelu_sample)};
