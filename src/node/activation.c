/* Activations: dx = dy f'(x), from the output if that is enough, else from the input. */
#include "node/entry.h"

static mica_status infer(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    return mica_infer_like(i, 0, 0);
}

/* A backward: dx from dy and what the forward had or made. */
static mica_status infer_backward(mica_infer *i) { return mica_infer_like(i, 0, 1); }

static float slope_of(const mica_call *c) { return ((const mica_scalar_opts *)c->opts)->s; }

/* The gradient of an activation whose backward reads `kept`, the value in[0] or out[0] of the forward. */
#define GRADIENT(op, kept)                                                                                  \
    static void op##_gradient(mica_grad *g)                                                                 \
    {                                                                                                       \
        mica_grad_give(g, 0, &mica_op_##op##_backward, (mica_value[]){g->dout[0], g->kept[0]}, 2, g->opts); \
    }

#define ENTRIES(op, CODE, more, words, options, list, count)                       \
    const mica_op mica_op_##op = {.name = #op,                                     \
                                  .family = "activation",                          \
                                  .about = words,                                  \
                                  .flags = MICA_OP_CHEAP | (more),                 \
                                  .activation = MICA_##CODE,                       \
                                  .ins = 1,                                        \
                                  .outs = 1,                                       \
                                  .opts_bytes = options,                           \
                                  .fields = list,                                  \
                                  .field_count = count,                            \
                                  .in_place = {1},                                 \
                                  .infer = infer,                                  \
                                  .run = op##_run,                                 \
                                  .passes = MICA_LAYOUTS(mica_elementwise_passes), \
                                  .gradient = MICA_GRADIENT(op##_gradient)};       \
    const mica_op mica_op_##op##_backward = {.name = #op "_backward",              \
                                             .family = "activation",               \
                                             .about = "the gradient of " #op,      \
                                             .ins = 2,                             \
                                             .outs = 1,                            \
                                             .opts_bytes = options,                \
                                             .fields = list,                       \
                                             .field_count = count,                 \
                                             .in_place = {3},                      \
                                             .infer = infer_backward,              \
                                             .run = op##_run_back};

#define PLAIN(op, CODE, more, kept, words)                                                             \
    GRADIENT(op, kept)                                                                                 \
    static mica_status op##_run(const mica_call *c) { return mica_##op(c->ctx, c->out[0], c->in[0]); } \
    static mica_status op##_run_back(const mica_call *c)                                               \
    {                                                                                                  \
        return mica_##op##_backward(c->ctx, c->out[0], c->in[0], c->in[1]);                            \
    }                                                                                                  \
    ENTRIES(op, CODE, more, words, 0, NULL, 0)

static const mica_field slope_field[] = {
    MICA_FIELD(mica_scalar_opts, s, FLOAT, "slope below 0; of elu, alpha")};

#define SLOPED(op, CODE, words)                                                          \
    GRADIENT(op, out)                                                                    \
    static mica_status op##_run(const mica_call *c)                                      \
    {                                                                                    \
        return mica_##op(c->ctx, c->out[0], c->in[0], slope_of(c));                      \
    }                                                                                    \
    static mica_status op##_run_back(const mica_call *c)                                 \
    {                                                                                    \
        return mica_##op##_backward(c->ctx, c->out[0], c->in[0], c->in[1], slope_of(c)); \
    }                                                                                    \
    ENTRIES(op, CODE, 0, words, sizeof(mica_scalar_opts), slope_field, 1)

PLAIN(relu, RELU, MICA_OP_RISES, out, "max(a, 0)")
PLAIN(relu6, RELU6, MICA_OP_RISES, out, "min(max(a, 0), 6)")
SLOPED(leaky_relu, LEAKY_RELU, "a where a > 0, else s * a")
SLOPED(elu, ELU, "a where a > 0, else s (exp(a) - 1)")
PLAIN(sigmoid, SIGMOID, 0, out, "1 / (1 + exp(-a))")
PLAIN(tanh, TANH, 0, out, "the hyperbolic tangent")
PLAIN(softplus, SOFTPLUS, 0, in, "log(1 + exp(a))")
PLAIN(silu, SILU, 0, in, "a sigmoid(a)")
PLAIN(gelu, GELU, 0, in, "a Phi(a), Phi the normal distribution")
PLAIN(gelu_tanh, GELU_TANH, 0, in, "gelu, by tanh")
PLAIN(hard_swish, HARD_SWISH, 0, in, "a relu6(a + 3) / 6")

const mica_op *const mica_activation_ops[MICA_ACTIVATION_COUNT] = {
#define ACTIVATION_OP(CODE, name) [MICA_##CODE] = MICA_HAS_##name ? &mica_op_##name : NULL,
    MICA_ACTIVATION_LIST(ACTIVATION_OP)
#undef ACTIVATION_OP
};

/* ---- Softmax and log-softmax: along an axis, from the output ---- */

static const mica_field axis_field[] = {
    MICA_FIELD(mica_axis_opts, axis, INT, "the axis; negative counts from the end")};

static mica_status softmax_infer(mica_infer *i)
{
    int axis;
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_axis(i, 0, ((const mica_axis_opts *)i->opts)->axis, &axis));
    return mica_infer_like(i, 0, 0);
}

static bool softmax_mixes(const mica_infer *i)
{
    int axis = ((const mica_axis_opts *)i->opts)->axis;
    return axis == 0 || axis == -i->in[0]->rank;
}

#define SOFTMAX(op, words)                                                                      \
    GRADIENT(op, out)                                                                           \
    static mica_status op##_run(const mica_call *c)                                             \
    {                                                                                           \
        return mica_##op(c->ctx, c->out[0], c->in[0], ((const mica_axis_opts *)c->opts)->axis); \
    }                                                                                           \
    static mica_status op##_run_back(const mica_call *c)                                        \
    {                                                                                           \
        return mica_##op##_backward(c->ctx, c->out[0], c->in[0], c->in[1],                      \
                                    ((const mica_axis_opts *)c->opts)->axis);                   \
    }                                                                                           \
    const mica_op mica_op_##op = {.name = #op,                                                  \
                                  .family = "activation",                                       \
                                  .about = words,                                               \
                                  .flags = MICA_OP_CHEAP,                                       \
                                  .ins = 1,                                                     \
                                  .outs = 1,                                                    \
                                  .opts_bytes = sizeof(mica_axis_opts),                         \
                                  MICA_FIELD_LIST(axis_field),                                  \
                                  .in_place = {1},                                              \
                                  .infer = softmax_infer,                                       \
                                  .run = op##_run,                                              \
                                  .gradient = MICA_GRADIENT(op##_gradient),                     \
                                  .mixes = softmax_mixes};                                      \
    const mica_op mica_op_##op##_backward = {.name = #op "_backward",                           \
                                             .family = "activation",                            \
                                             .about = "the gradient of " #op,                   \
                                             .ins = 2,                                          \
                                             .outs = 1,                                         \
                                             .opts_bytes = sizeof(mica_axis_opts),              \
                                             MICA_FIELD_LIST(axis_field),                       \
                                             .in_place = {3},                                   \
                                             .infer = infer_backward,                           \
                                             .run = op##_run_back,                              \
                                             .mixes = softmax_mixes};

SOFTMAX(softmax, "exp(a) / sum of exp(a), along an axis")
SOFTMAX(log_softmax, "a - log of the sum of exp(a), along an axis")
