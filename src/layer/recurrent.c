/* LSTM, GRU and RNN over sequences [N, T, F]. The operations count time first: they see permuted views. */
#include <math.h>
#include <stdio.h>

#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"
#include "layer/scope.h"

typedef mica_status forward_fn(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                               const mica_recurrent_weights *weights, const mica_recurrent_opts *opts);
typedef mica_status backward_fn(mica_context *ctx, const mica_recurrent_grads *grads,
                                const mica_recurrent_dout *dout, const mica_recurrent_saved *saved,
                                const mica_recurrent_weights *weights);

typedef struct cell_kind {
    mica_index blocks; /* of the weights */
    bool gated;        /* keeps its gates for backward */
    bool cells;        /* has a state c besides h */
} cell_kind;

static const cell_kind lstm_cell = {.blocks = 4, .gated = true, .cells = true},
                       gru_cell = {.blocks = 3, .gated = true}, rnn_cell = {.blocks = 1};

/* What a node asks for, in this order. */
enum { W_IH, W_HH, B_IH, B_HH };   /* parameters */
enum { H, H_BEFORE, C, C_BEFORE }; /* states: after the last step, and before it, for its backward */

static mica_status infer_parameters(mica_infer *infer, const cell_kind *cell, mica_index features)
{
    const mica_net_recurrent_opts *opts = infer->opts;
    mica_index rows = cell->blocks * opts->units;
    mica_init uniform = {MICA_INIT_UNIFORM, 1.0f / sqrtf((float)opts->units)};
    MICA_TRY(mica_infer_parameter(infer, "weight_ih", 2, (mica_index[]){rows, features}, uniform));
    MICA_TRY(mica_infer_parameter(infer, "weight_hh", 2, (mica_index[]){rows, opts->units}, uniform));
    if (opts->no_bias)
        return MICA_OK;
    MICA_TRY(mica_infer_parameter(infer, "bias_ih", 1, &rows, uniform));
    return mica_infer_parameter(infer, "bias_hh", 1, &rows, uniform);
}

static mica_status infer_states(mica_infer *infer, const cell_kind *cell, mica_index batch, mica_index units)
{
    static const char *const names[] = {"h", "h_before", "c", "c_before"};
    for (int i = 0; i < (cell->cells ? 4 : 2); i++)
        MICA_TRY(mica_infer_state(infer, names[i], MICA_F32, 2, (mica_index[]){batch, units}, 0.0f));
    return MICA_OK;
}

static mica_status infer_with(mica_infer *infer, const cell_kind *cell)
{
    const mica_net_recurrent_opts *opts = infer->opts;
    const mica_tensor *x = infer->in[0];
    mica_index units = opts->units;
    if (x->rank != 3 || x->dtype != MICA_F32)
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected f32 [batch, time, features]");
    if (units < 1 || units > INT32_MAX)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "units is %td: expected 1 to %d", units, INT32_MAX);
    mica_index batch = x->dim[0], time = x->dim[1];
    MICA_TRY(infer_parameters(infer, cell, x->dim[2]));
    if (opts->keep_state)
        MICA_TRY(infer_states(infer, cell, batch, units));
    if (cell->gated)
        MICA_TRY(mica_infer_saved(infer, MICA_F32, 3, (mica_index[]){time, batch, 4 * units}));
    if (cell->cells)
        MICA_TRY(mica_infer_saved(infer, MICA_F32, 3, (mica_index[]){time, batch, units}));
    if (!opts->last)
        return mica_infer_output(infer, MICA_F32, 3, (mica_index[]){batch, time, units});
    MICA_TRY(mica_infer_saved(infer, MICA_F32, 3, (mica_index[]){time, batch, units}));
    return mica_infer_output(infer, MICA_F32, 2, (mica_index[]){batch, units});
}

/* ---- Steps ---- */

/* A step's tensors as the operations take them. */
typedef struct arranged {
    mica_tensor x, steps; /* [T, N, F] and [T, N, units] */
    const mica_tensor *y; /* steps; NULL where only the last is wanted and there will be no backward */
    const mica_tensor *gates, *cells, *h_0, *c_0;
    mica_recurrent_weights weights;
} arranged;

static mica_status arrange(arranged *a, const mica_step *s, const cell_kind *cell)
{
    const mica_net_recurrent_opts *opts = s->opts;
    int saved = 0;
    a->gates = cell->gated ? s->saved[saved++] : NULL;
    a->cells = cell->cells ? s->saved[saved++] : NULL;
    a->h_0 = s->state[H_BEFORE]; /* NULL where no state is kept */
    a->c_0 = s->state[C_BEFORE];
    a->weights = (mica_recurrent_weights){s->param[W_IH], s->param[W_HH], s->param[B_IH], s->param[B_HH]};
    MICA_TRY(mica_view_transpose(s->ctx, &a->x, s->in[0], 0, 1));
    a->y = opts->last ? s->saved[saved] : &a->steps;
    return opts->last ? MICA_OK : mica_view_transpose(s->ctx, &a->steps, s->out, 0, 1);
}

static mica_status forward_with(const mica_step *s, const cell_kind *cell, forward_fn *forward)
{
    const mica_net_recurrent_opts *opts = s->opts;
    arranged a;
    MICA_TRY(arrange(&a, s, cell));
    bool moves = opts->keep_state && !s->again;
    for (int i = H; moves && i <= (cell->cells ? C : H); i += 2)
        MICA_TRY(mica_copy(s->ctx, s->state[i + 1], s->state[i]));
    mica_recurrent_opts how = {.h_0 = a.h_0,
                               .c_0 = a.c_0,
                               .h_n = opts->last ? s->out
                                      : moves    ? s->state[H]
                                                 : NULL,
                               .c_n = moves ? s->state[C] : NULL,
                               .gates = a.gates,
                               .cells = a.cells,
                               .relu = opts->relu};
    MICA_TRY(forward(s->ctx, a.y, &a.x, &a.weights, &how));
    return moves && opts->last ? mica_copy(s->ctx, s->state[H], s->out) : MICA_OK;
}

static mica_status backward_with(const mica_step *s, const cell_kind *cell, backward_fn *backward)
{
    const mica_net_recurrent_opts *opts = s->opts;
    arranged a;
    mica_tensor dx, dy;
    MICA_TRY(arrange(&a, s, cell));
    if (s->din[0] != NULL)
        MICA_TRY(mica_view_transpose(s->ctx, &dx, s->din[0], 0, 1));
    if (!opts->last)
        MICA_TRY(mica_view_transpose(s->ctx, &dy, s->dout, 0, 1));
    mica_recurrent_grads grads = {.x = s->din[0] != NULL ? &dx : NULL,
                                  .w_ih = s->dparam[W_IH],
                                  .w_hh = s->dparam[W_HH],
                                  .b_ih = s->dparam[B_IH],
                                  .b_hh = s->dparam[B_HH],
                                  .gates = a.gates}; /* nobody reads them after this */
    for (int i = W_IH; i <= B_HH; i++)
        grads.add_weights = grads.add_weights ||
                            s->add_dparam[i]; /* no other node shares them: all or none */
    mica_recurrent_dout dout = {.y = opts->last ? NULL : &dy, .h_n = opts->last ? s->dout : NULL};
    mica_recurrent_saved saved = {.x = &a.x,
                                  .y = a.y,
                                  .gates = a.gates,
                                  .cells = a.cells,
                                  .h_0 = a.h_0,
                                  .c_0 = a.c_0,
                                  .relu = opts->relu};
    return backward(s->ctx, &grads, &dout, &saved, &a.weights);
}

/* ---- Tables and builders ---- */

enum {
    FLAGS = MICA_LAYER_READS_INPUTS | MICA_LAYER_READS_OUTPUT | MICA_LAYER_ADDS_PARAMETERS |
            MICA_LAYER_BACKWARD_SAVED
};

/* One node for each of the stacked layers, named "name.0", "name.1", ... where there are several. */
static mica_value build(mica_net *net, mica_value x, const mica_layer *layer,
                        const mica_net_recurrent_opts *opts)
{
    static const mica_net_recurrent_opts defaults = {0};
    mica_net_recurrent_opts o = opts != NULL ? *opts : defaults;
    if (o.layers < 0)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "%s: %d layers", layer->name, o.layers);
    if (o.layers <= 1)
        return mica_net_add(net, layer, &o, &x, 1);
    mica_enter_block(net, o.name, layer->name);
    for (int i = 0; i < o.layers; i++) {
        mica_net_recurrent_opts one = o;
        char name[16];
        (void)snprintf(name, sizeof name, "%d", i);
        one.name = name;
        one.last = o.last && i == o.layers - 1;
        x = mica_net_add(net, layer, &one, &x, 1);
    }
    mica_net_leave(net);
    return x;
}

#define RECURRENT(op)                                                                                      \
    static mica_status op##_infer(mica_infer *infer) { return infer_with(infer, &op##_cell); }             \
    static mica_status op##_forward(const mica_step *s) { return forward_with(s, &op##_cell, mica_##op); } \
    static mica_status op##_backward(const mica_step *s)                                                   \
    {                                                                                                      \
        return backward_with(s, &op##_cell, mica_##op##_backward);                                         \
    }                                                                                                      \
    static const mica_layer op##_layer = {#op,        FLAGS,        sizeof(mica_net_recurrent_opts),       \
                                          op##_infer, op##_forward, op##_backward};                        \
    mica_value mica_net_##op(mica_net *net, mica_value x, const mica_net_recurrent_opts *opts)             \
    {                                                                                                      \
        return build(net, x, &op##_layer, opts);                                                           \
    }

RECURRENT(lstm)
RECURRENT(gru)
RECURRENT(rnn)
