/* LSTM, GRU and RNN over sequences x [N, T, F]. The C operations count time first, from the first step on: they see
 * permuted and flipped views.
 *
 * If h is given, the state is kept from step to step: a forward starts from it and updates it after the last of
 * the T time steps. h_before is the initial state, for the backward and for recomputation. Gradients do not flow
 * into the previous step.
 *
 * If h_0 is given instead, it is a value like any other, and has a gradient. The final states h_n and c_n can be read
 * either way. */
#include "net/net.h"
#include "node/check.h"

typedef mica_status forward_fn(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                               const mica_recurrent_weights *weights, const mica_recurrent_opts *opts);
typedef mica_status backward_fn(mica_context *ctx, const mica_recurrent_grads *grads,
                                const mica_recurrent_dout *dout, const mica_recurrent_saved *saved,
                                const mica_recurrent_weights *weights);

typedef struct cell_kind {
    mica_index blocks; /* of the weights */
    bool gated;        /* keeps its gates for the backward */
    bool cells;        /* has a state c besides h */
} cell_kind;

static const cell_kind lstm_cell = {.blocks = 4, .gated = true, .cells = true},
                       gru_cell = {.blocks = 3, .gated = true}, rnn_cell = {.blocks = 1};

/* Forward. Time comes first in all outputs but y. steps: all outputs, where y is only the last. The RNN has no gates,
 * only the LSTM cells. */
enum { X, W_IH, W_HH, B_IH, B_HH, H, H_BEFORE, C, C_BEFORE, H_0, C_0 };
enum { Y, STEPS, GATES, CELLS, H_N, C_N };

/* Backward. `steps` are the forward's y or steps. Gradients of what went into the gates may lie over the gates. */
enum { DY, BACK_X, BACK_STEPS, BACK_W_IH, BACK_W_HH, BACK_GATES, BACK_CELLS, BACK_H_0, BACK_C_0, DH_N, DC_N };
enum { DX, DW_IH, DW_HH, DB_IH, DB_HH, DGATES, DH_0, DC_0 };

static mica_index batch_of(const void *opts, const mica_tensor *x)
{
    return x->dim[((const mica_sequence_opts *)opts)->time_first ? 1 : 0];
}

static mica_index time_of(const void *opts, const mica_tensor *x)
{
    return x->dim[((const mica_sequence_opts *)opts)->time_first ? 0 : 1];
}

/* x or y in the order of the steps. */
static mica_status in_order(mica_context *ctx, mica_tensor *out, const mica_tensor *t,
                            const mica_sequence_opts *opts)
{
    *out = *t;
    if (!opts->time_first)
        MICA_TRY(mica_view_transpose(ctx, out, out, 0, 1));
    return opts->reverse ? mica_view_flip(ctx, out, out, 0) : MICA_OK;
}

static bool mixes(const mica_infer *i) { return ((const mica_sequence_opts *)i->opts)->time_first; }

static bool last_only(const void *opts) { return ((const mica_sequence_opts *)opts)->last; }

/* ---- Infer ---- */

static mica_status check_inputs(mica_infer *i, const cell_kind *cell)
{
    const mica_tensor *x = i->in[X], *w_hh = i->in[W_HH];
    if (x->rank != 3 || x->dtype != MICA_F32)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 [%s, features]",
                               mixes(i) ? "time, batch" : "batch, time");
    if (w_hh->rank != 2 || w_hh->dim[1] < 1 || w_hh->dim[1] > INT32_MAX)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected weights w_hh [%td * units, units]", cell->blocks);
    mica_index units = w_hh->dim[1], rows = cell->blocks * units;
    MICA_TRY(mica_infer_expect(i, W_IH, 2, (mica_index[]){rows, x->dim[2]}));
    MICA_TRY(mica_infer_expect(i, W_HH, 2, (mica_index[]){rows, units}));
    MICA_TRY(mica_infer_expect(i, B_IH, 1, &rows));
    MICA_TRY(mica_infer_expect(i, B_HH, 1, &rows));
    bool kept = i->in[H] != NULL, cells = kept && cell->cells;
    if ((i->in[H_BEFORE] != NULL) != kept || (i->in[C] != NULL) != cells ||
        (i->in[C_BEFORE] != NULL) != cells)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "expected all of %s, or none of them",
                               cell->cells ? "h, h_before, c and c_before" : "h and h_before");
    if ((kept && i->in[H_0] != NULL) || (i->in[C_0] != NULL && (kept || !cell->cells)))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "expected h_0%s, or a state that is kept, not both",
                               cell->cells ? " and c_0" : " alone");
    for (int state = H; state <= C_0; state++)
        MICA_TRY(mica_infer_expect(i, state, 2, (mica_index[]){batch_of(i->opts, x), units}));
    return MICA_OK;
}

static mica_status infer_with(mica_infer *i, const cell_kind *cell)
{
    MICA_TRY(check_inputs(i, cell));
    mica_index batch = batch_of(i->opts, i->in[X]), time = time_of(i->opts, i->in[X]);
    mica_index units = i->in[W_HH]->dim[1], first = i->in[X]->dim[0], second = i->in[X]->dim[1];
    if (last_only(i->opts))
        MICA_TRY(mica_infer_out(i, Y, MICA_F32, 2, (mica_index[]){batch, units}));
    else
        MICA_TRY(mica_infer_out(i, Y, MICA_F32, 3, (mica_index[]){first, second, units}));
    if (last_only(i->opts))
        MICA_TRY(mica_infer_out(i, STEPS, MICA_F32, 3, (mica_index[]){time, batch, units}));
    if (cell->gated)
        MICA_TRY(mica_infer_out(i, GATES, MICA_F32, 3, (mica_index[]){time, batch, 4 * units}));
    if (cell->cells)
        MICA_TRY(mica_infer_out(i, CELLS, MICA_F32, 3, (mica_index[]){time, batch, units}));
    MICA_TRY(mica_infer_out(i, H_N, MICA_F32, 2, (mica_index[]){batch, units}));
    if (cell->cells)
        MICA_TRY(mica_infer_out(i, C_N, MICA_F32, 2, (mica_index[]){batch, units}));
    return MICA_OK;
}

static mica_status infer_back_with(mica_infer *i, const cell_kind *cell)
{
    mica_index rows = i->in[BACK_W_HH]->dim[0];
    mica_index state[] = {batch_of(i->opts, i->in[BACK_X]), i->in[BACK_W_HH]->dim[1]};
    MICA_TRY(mica_infer_like(i, DX, BACK_X));
    MICA_TRY(mica_infer_like(i, DW_IH, BACK_W_IH));
    MICA_TRY(mica_infer_like(i, DW_HH, BACK_W_HH));
    MICA_TRY(mica_infer_out(i, DB_IH, MICA_F32, 1, &rows));
    MICA_TRY(mica_infer_out(i, DB_HH, MICA_F32, 1, &rows));
    MICA_TRY(mica_infer_out(i, DH_0, MICA_F32, 2, state));
    if (cell->cells)
        MICA_TRY(mica_infer_out(i, DC_0, MICA_F32, 2, state));
    if (!cell->gated)
        return MICA_OK;
    if (i->in[BACK_GATES] == NULL)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "expected the gates of the forward");
    return mica_infer_like(i, DGATES, BACK_GATES);
}

/* ---- Run ---- */

static mica_status run_with(const mica_call *c, const cell_kind *cell, forward_fn *forward)
{
    const mica_sequence_opts *opts = c->opts;
    const mica_tensor *const *in = c->in;
    mica_tensor x, steps;
    MICA_TRY(in_order(c->ctx, &x, in[X], opts));
    if (!opts->last)
        MICA_TRY(in_order(c->ctx, &steps, c->out[Y], opts));
    bool moves = in[H] != NULL && !c->again;
    for (int i = H; moves && i <= (cell->cells ? C : H); i += 2)
        MICA_TRY(mica_copy(c->ctx, in[i + 1], in[i]));
    const mica_tensor *c_n = cell->cells ? c->out[C_N] : NULL;
    mica_recurrent_opts how = {.h_0 = in[H_0] != NULL ? in[H_0] : in[H_BEFORE],
                               .c_0 = in[C_0] != NULL ? in[C_0] : in[C_BEFORE],
                               .h_n = opts->last ? c->out[Y]
                                      : moves    ? in[H]
                                                 : c->out[H_N],
                               .c_n = moves ? in[C] : c_n,
                               .gates = cell->gated ? c->out[GATES] : NULL,
                               .cells = cell->cells ? c->out[CELLS] : NULL,
                               .relu = opts->relu};
    MICA_TRY(forward(c->ctx, opts->last ? c->out[STEPS] : &steps, &x,
                     &(mica_recurrent_weights){in[W_IH], in[W_HH], in[B_IH], in[B_HH]}, &how));
    if (moves && opts->last)
        MICA_TRY(mica_copy(c->ctx, in[H], c->out[Y]));
    if (c->out[H_N] != NULL && how.h_n != c->out[H_N])
        MICA_TRY(mica_copy(c->ctx, c->out[H_N], how.h_n));
    return c_n != NULL && moves ? mica_copy(c->ctx, c_n, in[C]) : MICA_OK;
}

/* The C operation adds to all gradients of weights and biases, or writes all of them: where both are asked for, those
 * to be written start at 0. */
static mica_status settle_add(const mica_call *c, bool *add)
{
    unsigned there = 0;
    for (int k = DW_IH; k <= DB_HH; k++)
        there |= c->out[k] != NULL ? 1u << k : 0u;
    *add = (c->add & there) != 0;
    for (int k = DW_IH; k <= DB_HH && *add; k++)
        if (c->out[k] != NULL && !(c->add & 1u << k))
            MICA_TRY(mica_zeros(c->ctx, c->out[k]));
    return MICA_OK;
}

static mica_status run_back_with(const mica_call *c, const cell_kind *cell, backward_fn *backward)
{
    const mica_sequence_opts *opts = c->opts;
    mica_tensor x, dx, steps = *c->in[BACK_STEPS], dy = *c->in[DY];
    MICA_TRY(in_order(c->ctx, &x, c->in[BACK_X], opts));
    if (c->out[DX] != NULL)
        MICA_TRY(in_order(c->ctx, &dx, c->out[DX], opts));
    if (!opts->last) {
        MICA_TRY(in_order(c->ctx, &steps, c->in[BACK_STEPS], opts));
        MICA_TRY(in_order(c->ctx, &dy, c->in[DY], opts));
    }
    mica_recurrent_grads grads = {.x = c->out[DX] != NULL ? &dx : NULL,
                                  .w_ih = c->out[DW_IH],
                                  .w_hh = c->out[DW_HH],
                                  .b_ih = c->out[DB_IH],
                                  .b_hh = c->out[DB_HH],
                                  .h_0 = c->out[DH_0],
                                  .c_0 = cell->cells ? c->out[DC_0] : NULL,
                                  .gates = cell->gated ? c->out[DGATES] : NULL};
    MICA_TRY(settle_add(c, &grads.add_weights));
    mica_recurrent_dout dout = {
        .y = opts->last ? NULL : &dy, .h_n = opts->last ? &dy : c->in[DH_N], .c_n = c->in[DC_N]};
    mica_recurrent_saved saved = {.x = &x,
                                  .y = &steps,
                                  .gates = c->in[BACK_GATES],
                                  .cells = c->in[BACK_CELLS],
                                  .h_0 = c->in[BACK_H_0],
                                  .c_0 = c->in[BACK_C_0],
                                  .relu = opts->relu};
    return backward(c->ctx, &grads, &dout, &saved,
                    &(mica_recurrent_weights){.w_ih = c->in[BACK_W_IH], .w_hh = c->in[BACK_W_HH]});
}

/* ---- Gradient ---- */

/* What the output contributes; nothing: zeros, of that shape. With `last`, y is h_n: their gradients are added. */
static mica_value gradient_of_y(mica_grad *g)
{
    mica_value y = g->dout[Y], h_n = g->dout[H_N];
    if (!last_only(g->opts))
        return y != 0 ? y : mica_grad_value(g, &mica_op_zeros, &g->out[Y], 1, NULL);
    if (y != 0 && h_n != 0)
        return mica_grad_value(g, &mica_op_add, (mica_value[]){y, h_n}, 2, NULL);
    if (y == 0 && h_n == 0)
        return mica_grad_value(g, &mica_op_zeros, &g->out[Y], 1, NULL);
    return y != 0 ? y : h_n;
}

static void give(mica_grad *g, const cell_kind *cell, const mica_op *backward)
{
    mica_value c_n = cell->cells ? g->dout[C_N] : 0;
    if (g->dout[Y] == 0 && g->dout[H_N] == 0 && c_n == 0)
        return;
    mica_value in[] = {[DY] = gradient_of_y(g),
                       [BACK_X] = g->in[X],
                       [BACK_STEPS] = last_only(g->opts) ? g->out[STEPS] : g->out[Y],
                       [BACK_W_IH] = g->in[W_IH],
                       [BACK_W_HH] = g->in[W_HH],
                       [BACK_GATES] = cell->gated ? g->out[GATES] : 0,
                       [BACK_CELLS] = cell->cells ? g->out[CELLS] : 0,
                       [BACK_H_0] = g->in[H_0] != 0 ? g->in[H_0] : g->in[H_BEFORE],
                       [BACK_C_0] = g->in[C_0] != 0 ? g->in[C_0] : g->in[C_BEFORE],
                       [DH_N] = last_only(g->opts) ? 0 : g->dout[H_N],
                       [DC_N] = c_n};
    mica_grad_give_all(g, (int[]){X, W_IH, W_HH, B_IH, B_HH, -1, H_0, C_0}, cell->cells ? 8 : 7, backward, in,
                       11, g->opts);
}

/* ---- Samples ---- */

static void sample_with(mica_op_sample *s, const cell_kind *cell)
{
    mica_index x[] = {mica_op_sample_int(s, 1, 3), mica_op_sample_int(s, 1, 4), mica_op_sample_int(s, 1, 4)};
    mica_index units = mica_op_sample_int(s, 1, 4), rows = cell->blocks * units;
    mica_sequence_opts *opts = s->opts;
    opts->last = mica_sample_chance(s);
    opts->reverse = mica_sample_chance(s);
    opts->time_first = mica_sample_chance(s);
    mica_index batch = x[opts->time_first ? 1 : 0];
    mica_op_sample_shape(s, X, 3, x);
    mica_op_sample_shape(s, W_IH, 2, (mica_index[]){rows, x[2]});
    mica_op_sample_shape(s, W_HH, 2, (mica_index[]){rows, units});
    mica_op_sample_shape(s, B_IH, 1, &rows);
    mica_op_sample_shape(s, B_HH, 1, &rows);
    s->ins = mica_sample_chance(s) ? 5 : 3;
    if (s->ins == 3 || mica_sample_chance(s))
        return;
    mica_op_sample_shape(s, H_0, 2, (mica_index[]){batch, units});
    mica_op_sample_shape(s, C_0, 2, (mica_index[]){batch, units});
    s->ins = cell->cells ? C_0 + 1 : H_0 + 1;
}

/* ---- Entries ---- */

static const mica_field fields[] = {
    MICA_FIELD(mica_sequence_opts, last, BOOL, "only the last step's output"),
    MICA_FIELD(mica_sequence_opts, reverse, BOOL, "from the last time step to the first"),
    MICA_FIELD(mica_sequence_opts, time_first, BOOL, "x and y are [T, N, ...], not [N, T, ...]"),
    MICA_FIELD(mica_sequence_opts, relu, BOOL, "rnn: relu instead of tanh"),
};
enum { GATED_FIELDS = 3, RNN_FIELDS = 4 };

#if !defined(MICA_SMALL)
static const mica_op_passes passes = {.pair = mica_recurrent_pair};
#endif

#define INPUTS       "x", "w_ih", "w_hh", "b_ih", "b_hh", "h", "h_before", "c", "c_before", "h_0", "c_0"
#define BACK_INPUTS  "dy", "x", "steps", "w_ih", "w_hh", "gates", "cells", "h_0", "c_0", "dh_n", "dc_n"
#define OUTPUTS      "y", "steps", "gates", "cells", "h_n", "c_n"
#define BACK_OUTPUTS "dx", "dw_ih", "dw_hh", "db_ih", "db_hh", "dgates", "dh_0", "dc_0"
#define FOR_BACKWARD (1u << STEPS | 1u << GATES | 1u << CELLS)

#define RECURRENT(op, words, outputs, described)                                                            \
    static mica_status op##_infer(mica_infer *i) { return infer_with(i, &op##_cell); }                      \
    static mica_status op##_run(const mica_call *c) { return run_with(c, &op##_cell, mica_##op); }          \
    static mica_status op##_infer_back(mica_infer *i) { return infer_back_with(i, &op##_cell); }            \
    static mica_status op##_run_back(const mica_call *c)                                                    \
    {                                                                                                       \
        return run_back_with(c, &op##_cell, mica_##op##_backward);                                          \
    }                                                                                                       \
    static void op##_gradient(mica_grad *g) { give(g, &op##_cell, &mica_op_##op##_backward); }              \
    static void op##_sample(mica_op_sample *s) { sample_with(s, &op##_cell); }                              \
    const mica_op mica_op_##op = {.name = #op,                                                              \
                                  .family = "recurrent",                                                    \
                                  .about = words,                                                           \
                                  .ins = 3,                                                                 \
                                  .optional_ins = C_0 - B_IH + 1,                                           \
                                  .outs = outputs,                                                          \
                                  .optional_outs = FOR_BACKWARD | 1u << H_N | 1u << C_N,                    \
                                  .fixed_outs = FOR_BACKWARD,                                               \
                                  .names = (const char *const[]){INPUTS, OUTPUTS},                          \
                                  .opts_bytes = sizeof(mica_sequence_opts),                                 \
                                  .fields = fields,                                                         \
                                  .field_count = described,                                                 \
                                  .writes = 1u << H | 1u << H_BEFORE | 1u << C | 1u << C_BEFORE,            \
                                  .infer = op##_infer,                                                      \
                                  .run = op##_run,                                                          \
                                  .gradient = MICA_GRADIENT(op##_gradient),                                 \
                                  .mixes = mixes,                                                           \
                                  .passes = MICA_LAYOUTS(passes),                                           \
                                  .sample = MICA_SAMPLE(op##_sample)};                                      \
    const mica_op mica_op_##op##_backward = {.name = #op "_backward",                                       \
                                             .family = "recurrent",                                         \
                                             .about = "the gradients of " #op ", back through time",        \
                                             .ins = 5,                                                      \
                                             .optional_ins = DC_N - BACK_GATES + 1,                         \
                                             .outs = (outputs) > C_N ? DC_0 + 1 : DH_0 + 1,                 \
                                             .optional_outs = op##_OPTIONAL,                                \
                                             .names = (const char *const[]){BACK_INPUTS, BACK_OUTPUTS},     \
                                             .opts_bytes = sizeof(mica_sequence_opts),                      \
                                             .fields = fields,                                              \
                                             .field_count = described,                                      \
                                             .in_place = {[DGATES] = 1u << BACK_GATES},                     \
                                             .adds = 1u << DW_IH | 1u << DW_HH | 1u << DB_IH | 1u << DB_HH, \
                                             .infer = op##_infer_back,                                      \
                                             .run = op##_run_back};

/* Gradients of the gates are always there where there are gates. */
enum {
    lstm_OPTIONAL = 0xff & ~(1u << DGATES),
    gru_OPTIONAL = lstm_OPTIONAL,
    rnn_OPTIONAL = 0xff,
};

RECURRENT(lstm, "a long short-term memory over sequences", C_N + 1, GATED_FIELDS)
RECURRENT(gru, "a gated recurrent unit over sequences", H_N + 1, GATED_FIELDS)
RECURRENT(rnn, "a plain recurrent network over sequences", H_N + 1, RNN_FIELDS)
