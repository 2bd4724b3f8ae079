/* Element-wise operations on a tensor and scalars. */
#include <math.h>

#include "node/gradient.h"
#include "node/sample.h"

static mica_status infer(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    return mica_infer_like(i, 0, 0);
}

static float s_of(const void *opts) { return ((const mica_scalar_opts *)opts)->s; }

/* ---- Gradients ---- */

static void shift_gradient(mica_grad *g) { mica_grad_pass(g, 0, g->dout[0]); }
static void rsub_scalar_gradient(mica_grad *g) { mica_grad_give(g, 0, &mica_op_neg, g->dout, 1, NULL); }
static void scale_gradient(mica_grad *g) { mica_grad_give(g, 0, &mica_op_scale, g->dout, 1, g->opts); }
static void div_scalar_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_div_scalar, g->dout, 1, g->opts);
}

/* y = s / a: dx = -dy y / a */
static void rdiv_scalar_gradient(mica_grad *g)
{
    mica_value t = mica_grad_value(g, &mica_op_div, (mica_value[]){g->out[0], g->in[0]}, 2, NULL);
    t = mica_grad_value(g, &mica_op_mul, (mica_value[]){t, g->dout[0]}, 2, NULL);
    mica_grad_give(g, 0, &mica_op_neg, &t, 1, NULL);
}

/* dx = dy s a^(s - 1); 0 for s = 0, where a^-1 may be infinite */
static void pow_scalar_gradient(mica_grad *g)
{
    float s = s_of(g->opts);
    if (s == 0.0f) {
        mica_grad_give(g, 0, &mica_op_zeros, NULL, 0, NULL);
        return;
    }
    mica_value t = mica_grad_value(g, &mica_op_pow_scalar, g->in, 1, &(mica_scalar_opts){s - 1.0f});
    t = mica_grad_value(g, &mica_op_mul, (mica_value[]){t, g->dout[0]}, 2, NULL);
    mica_grad_give(g, 0, &mica_op_scale, &t, 1, &(mica_scalar_opts){s});
}

/* dx = dy where low <= a <= high, else 0: where clamping changes nothing. Takes no memory, as the result holds what
 * lies between. */
static mica_status run_clamp_backward(const mica_call *c)
{
    const mica_clamp_opts *opts = c->opts;
    const mica_tensor *dx = c->out[0], *dy = c->in[0], *a = c->in[1];
    float nothing = 0.0f;
    mica_tensor zero = mica_0d(&nothing);
    MICA_TRY(mica_clamp(c->ctx, dx, a, opts->low, opts->high));
    MICA_TRY(mica_eq(c->ctx, dx, dx, a));
    return mica_where(c->ctx, dx, dx, dy, &zero);
}

static const mica_field clamp_fields[] = {MICA_FIELD(mica_clamp_opts, low, FLOAT, "lower bound"),
                                          MICA_FIELD(mica_clamp_opts, high, FLOAT, "upper bound")};

static const mica_op clamp_backward = {.name = "clamp_backward",
                                       .about = "dy where a is within the range, else 0",
                                       .ins = 2,
                                       .outs = 1,
                                       .names = (const char *const[]){"dy", "a", "dx"},
                                       .opts_bytes = sizeof(mica_clamp_opts),
                                       MICA_FIELD_LIST(clamp_fields),
                                       .run = run_clamp_backward};

static void give_within(mica_grad *g, float low, float high)
{
    if (low <= high) /* else one of them is NaN, and so is every result */
        mica_grad_give(g, 0, &clamp_backward, (mica_value[]){g->dout[0], g->in[0]}, 2,
                       &(mica_clamp_opts){low, high});
}

/* Where a and s are equal, a counts as taken. */
static void min_scalar_gradient(mica_grad *g) { give_within(g, -INFINITY, s_of(g->opts)); }
static void max_scalar_gradient(mica_grad *g) { give_within(g, s_of(g->opts), INFINITY); }

static void clamp_gradient(mica_grad *g)
{
    const mica_clamp_opts *opts = g->opts;
    give_within(g, opts->low, opts->high);
}

/* ---- Samples: away from corners and poles ---- */

static void any_sample(mica_op_sample *s)
{
    mica_sample_one(s, -1.0, 1.0);
    ((mica_scalar_opts *)s->opts)->s = 0.5f * (float)mica_op_sample_int(s, 1, 4);
}

static void positive_sample(mica_op_sample *s)
{
    mica_sample_one(s, 0.5, 1.5);
    ((mica_scalar_opts *)s->opts)->s = 0.5f * (float)mica_op_sample_int(s, -4, 4);
}

static void corner_sample(mica_op_sample *s)
{
    mica_sample_one(s, -1.0, 1.0);
    ((mica_scalar_opts *)s->opts)->s = mica_sample_chance(s) ? 1.5f : -1.5f;
}

static void clamp_sample(mica_op_sample *s)
{
    mica_sample_one(s, -1.0, 1.0);
    float low = (float)mica_op_sample_int(s, -1, 1) * 3.0f - 1.5f; /* above, around or below all values */
    *(mica_clamp_opts *)s->opts = (mica_clamp_opts){low, low + 3.0f};
}

/* ---- Entries ---- */

static const mica_field scalar_field[] = {MICA_FIELD(mica_scalar_opts, s, FLOAT, "the scalar")};

#define RUN(op)                                                       \
    static mica_status op##_run(const mica_call *c)                   \
    {                                                                 \
        return mica_##op(c->ctx, c->out[0], c->in[0], s_of(c->opts)); \
    }

#define ENTRY(op, words, grad, samples, addable)                                   \
    const mica_op mica_op_##op = {.name = #op,                                     \
                                  .family = "elementwise",                         \
                                  .about = words,                                  \
                                  .flags = MICA_OP_CHEAP,                          \
                                  .ins = 1,                                        \
                                  .outs = 1,                                       \
                                  .opts_bytes = sizeof(mica_scalar_opts),          \
                                  MICA_FIELD_LIST(scalar_field),                   \
                                  .in_place = {1},                                 \
                                  .adds = addable,                                 \
                                  .infer = infer,                                  \
                                  .run = op##_run,                                 \
                                  .gradient = MICA_GRADIENT(grad),                 \
                                  .passes = MICA_LAYOUTS(mica_elementwise_passes), \
                                  .sample = MICA_SAMPLE(samples)};

#define SCALAR(op, words, grad, samples) RUN(op) ENTRY(op, words, grad, samples, 0)

/* Used by many gradients, so it can add. */
static mica_status scale_run(const mica_call *c)
{
    if (c->add & 1u)
        return mica_add_scaled(c->ctx, c->out[0], c->out[0], c->in[0], s_of(c->opts));
    return mica_scale(c->ctx, c->out[0], c->in[0], s_of(c->opts));
}

/* clang-format off */
SCALAR(add_scalar, "a + s", shift_gradient, any_sample)
SCALAR(sub_scalar, "a - s", shift_gradient, any_sample)
SCALAR(rsub_scalar, "s - a", rsub_scalar_gradient, any_sample)
ENTRY(scale, "a * s", scale_gradient, any_sample, 1)
SCALAR(div_scalar, "a / s", div_scalar_gradient, any_sample)
SCALAR(rdiv_scalar, "s / a", rdiv_scalar_gradient, positive_sample)
SCALAR(min_scalar, "the minimum of a and s", min_scalar_gradient, corner_sample)
SCALAR(max_scalar, "the maximum of a and s", max_scalar_gradient, corner_sample)
SCALAR(pow_scalar, "a to the power s", pow_scalar_gradient, positive_sample)
/* clang-format on */

static mica_status clamp_infer(mica_infer *i)
{
    const mica_clamp_opts *opts = i->opts;
    if (!(opts->low <= opts->high))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "low is %g, high is %g: expected low <= high",
                               (double)opts->low, (double)opts->high);
    return infer(i);
}

static mica_status clamp_run(const mica_call *c)
{
    const mica_clamp_opts *opts = c->opts;
    return mica_clamp(c->ctx, c->out[0], c->in[0], opts->low, opts->high);
}

const mica_op mica_op_clamp = {.name = "clamp",
                               .family = "elementwise",
                               .about = "a clamped to [low, high]",
                               .flags = MICA_OP_CHEAP,
                               .ins = 1,
                               .outs = 1,
                               .opts_bytes = sizeof(mica_clamp_opts),
                               MICA_FIELD_LIST(clamp_fields),
                               .in_place = {1},
                               .infer = clamp_infer,
                               .run = clamp_run,
                               .gradient = MICA_GRADIENT(clamp_gradient),
                               .passes = MICA_LAYOUTS(mica_elementwise_passes),
                               .sample = MICA_SAMPLE(clamp_sample)};
