/* LSTM, GRU and RNN over sequences x [N, T, F]. The C operations count time first: they see permuted views.
 *
 * If h is given, the state is kept from step to step: a forward starts from it and updates it after the last of
 * the T time steps. h_before is the initial state, for the backward and for recomputation. Gradients do not flow
 * into the previous step. */
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
enum { X, W_IH, W_HH, B_IH, B_HH, H, H_BEFORE, C, C_BEFORE };
enum { Y, STEPS, GATES, CELLS };

/* Backward. `steps` are the forward's y or steps. Gradients of what went into the gates may lie over the gates. */
enum { DY, BACK_X, BACK_STEPS, BACK_W_IH, BACK_W_HH, BACK_GATES, BACK_CELLS, H_0, C_0 };
enum { DX, DW_IH, DW_HH, DB_IH, DB_HH, DGATES };

static bool last_only(const void *opts) { return ((const mica_sequence_opts *)opts)->last; }

/* ---- Infer ---- */

static mica_status check_inputs(mica_infer *i, const cell_kind *cell)
{
    const mica_tensor *x = i->in[X], *w_hh = i->in[W_HH];
    if (x->rank != 3 || x->dtype != MICA_F32)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 [batch, time, features]");
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
    for (int state = H; state <= C_BEFORE; state++)
        MICA_TRY(mica_infer_expect(i, state, 2, (mica_index[]){x->dim[0], units}));
    return MICA_OK;
}

static mica_status infer_with(mica_infer *i, const cell_kind *cell)
{
    MICA_TRY(check_inputs(i, cell));
    mica_index batch = i->in[X]->dim[0], time = i->in[X]->dim[1], units = i->in[W_HH]->dim[1];
    if (last_only(i->opts))
        MICA_TRY(mica_infer_out(i, Y, MICA_F32, 2, (mica_index[]){batch, units}));
    else
        MICA_TRY(mica_infer_out(i, Y, MICA_F32, 3, (mica_index[]){batch, time, units}));
    if (last_only(i->opts))
        MICA_TRY(mica_infer_out(i, STEPS, MICA_F32, 3, (mica_index[]){time, batch, units}));
    if (cell->gated)
        MICA_TRY(mica_infer_out(i, GATES, MICA_F32, 3, (mica_index[]){time, batch, 4 * units}));
    if (cell->cells)
        MICA_TRY(mica_infer_out(i, CELLS, MICA_F32, 3, (mica_index[]){time, batch, units}));
    return MICA_OK;
}

static mica_status infer_back(mica_infer *i)
{
    mica_index rows = i->in[BACK_W_HH]->dim[0];
    MICA_TRY(mica_infer_like(i, DX, BACK_X));
    MICA_TRY(mica_infer_like(i, DW_IH, BACK_W_IH));
    MICA_TRY(mica_infer_like(i, DW_HH, BACK_W_HH));
    MICA_TRY(mica_infer_out(i, DB_IH, MICA_F32, 1, &rows));
    MICA_TRY(mica_infer_out(i, DB_HH, MICA_F32, 1, &rows));
    if (i->op->outs <= DGATES)
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
    MICA_TRY(mica_view_transpose(c->ctx, &x, in[X], 0, 1));
    if (!opts->last)
        MICA_TRY(mica_view_transpose(c->ctx, &steps, c->out[Y], 0, 1));
    bool moves = in[H] != NULL && !c->again;
    for (int i = H; moves && i <= (cell->cells ? C : H); i += 2)
        MICA_TRY(mica_copy(c->ctx, in[i + 1], in[i]));
    mica_recurrent_opts how = {.h_0 = in[H_BEFORE],
                               .c_0 = in[C_BEFORE],
                               .h_n = opts->last ? c->out[Y]
                                      : moves    ? in[H]
                                                 : NULL,
                               .c_n = moves ? in[C] : NULL,
                               .gates = cell->gated ? c->out[GATES] : NULL,
                               .cells = cell->cells ? c->out[CELLS] : NULL,
                               .relu = opts->relu};
    MICA_TRY(forward(c->ctx, opts->last ? c->out[STEPS] : &steps, &x,
                     &(mica_recurrent_weights){in[W_IH], in[W_HH], in[B_IH], in[B_HH]}, &how));
    return moves && opts->last ? mica_copy(c->ctx, in[H], c->out[Y]) : MICA_OK;
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
    MICA_TRY(mica_view_transpose(c->ctx, &x, c->in[BACK_X], 0, 1));
    if (c->out[DX] != NULL)
        MICA_TRY(mica_view_transpose(c->ctx, &dx, c->out[DX], 0, 1));
    if (!opts->last) {
        MICA_TRY(mica_view_transpose(c->ctx, &steps, &steps, 0, 1));
        MICA_TRY(mica_view_transpose(c->ctx, &dy, &dy, 0, 1));
    }
    mica_recurrent_grads grads = {.x = c->out[DX] != NULL ? &dx : NULL,
                                  .w_ih = c->out[DW_IH],
                                  .w_hh = c->out[DW_HH],
                                  .b_ih = c->out[DB_IH],
                                  .b_hh = c->out[DB_HH],
                                  .gates = cell->gated ? c->out[DGATES] : NULL};
    MICA_TRY(settle_add(c, &grads.add_weights));
    mica_recurrent_dout dout = {.y = opts->last ? NULL : &dy, .h_n = opts->last ? &dy : NULL};
    mica_recurrent_saved saved = {.x = &x,
                                  .y = &steps,
                                  .gates = c->in[BACK_GATES],
                                  .cells = c->in[BACK_CELLS],
                                  .h_0 = c->in[H_0],
                                  .c_0 = c->in[C_0],
                                  .relu = opts->relu};
    return backward(c->ctx, &grads, &dout, &saved,
                    &(mica_recurrent_weights){.w_ih = c->in[BACK_W_IH], .w_hh = c->in[BACK_W_HH]});
}

/* ---- Gradient ---- */

static void give(mica_grad *g, const cell_kind *cell, const mica_op *backward)
{
    mica_value in[] = {[DY] = g->dout[Y],
                       [BACK_X] = g->in[X],
                       [BACK_STEPS] = last_only(g->opts) ? g->out[STEPS] : g->out[Y],
                       [BACK_W_IH] = g->in[W_IH],
                       [BACK_W_HH] = g->in[W_HH],
                       [BACK_GATES] = cell->gated ? g->out[GATES] : 0,
                       [BACK_CELLS] = cell->cells ? g->out[CELLS] : 0,
                       [H_0] = g->in[H_BEFORE],
                       [C_0] = g->in[C_BEFORE]};
    if (g->dout[Y] != 0)
        mica_grad_give_all(g, (int[]){X, W_IH, W_HH, B_IH, B_HH, -1}, cell->gated ? 6 : 5, backward, in, 9,
                           g->opts);
}

/* ---- Samples ---- */

static void sample_with(mica_op_sample *s, const cell_kind *cell)
{
    mica_index x[] = {mica_op_sample_int(s, 1, 3), mica_op_sample_int(s, 1, 4), mica_op_sample_int(s, 1, 4)};
    mica_index units = mica_op_sample_int(s, 1, 4), rows = cell->blocks * units;
    ((mica_sequence_opts *)s->opts)->last = mica_sample_chance(s);
    mica_op_sample_shape(s, X, 3, x);
    mica_op_sample_shape(s, W_IH, 2, (mica_index[]){rows, x[2]});
    mica_op_sample_shape(s, W_HH, 2, (mica_index[]){rows, units});
    mica_op_sample_shape(s, B_IH, 1, &rows);
    mica_op_sample_shape(s, B_HH, 1, &rows);
    s->ins = mica_sample_chance(s) ? 5 : 3;
}

/* ---- Entries ---- */

static const mica_field fields[] = {
    MICA_FIELD(mica_sequence_opts, last, BOOL, "only the last step's output"),
    MICA_FIELD(mica_sequence_opts, relu, BOOL, "rnn: relu instead of tanh"),
};
enum { GATED_FIELDS = 1, RNN_FIELDS = 2 };

#define INPUTS      "x", "w_ih", "w_hh", "b_ih", "b_hh", "h", "h_before", "c", "c_before"
#define BACK_INPUTS "dy", "x", "steps", "w_ih", "w_hh", "gates", "cells", "h_0", "c_0"

#define RECURRENT(op, words, outputs, described)                                                          \
    static mica_status op##_infer(mica_infer *i) { return infer_with(i, &op##_cell); }                    \
    static mica_status op##_run(const mica_call *c) { return run_with(c, &op##_cell, mica_##op); }        \
    static mica_status op##_run_back(const mica_call *c)                                                  \
    {                                                                                                     \
        return run_back_with(c, &op##_cell, mica_##op##_backward);                                        \
    }                                                                                                     \
    static void op##_gradient(mica_grad *g) { give(g, &op##_cell, &mica_op_##op##_backward); }            \
    static void op##_sample(mica_op_sample *s) { sample_with(s, &op##_cell); }                            \
    const mica_op mica_op_##op = {.name = #op,                                                            \
                                  .family = "recurrent",                                                  \
                                  .about = words,                                                         \
                                  .ins = 3,                                                               \
                                  .optional_ins = 6,                                                      \
                                  .outs = outputs,                                                        \
                                  .optional_outs = 1u << STEPS | 1u << GATES | 1u << CELLS,               \
                                  .fixed_outs = 1u << STEPS | 1u << GATES | 1u << CELLS,                  \
                                  .names = (const char *const[]){INPUTS, "y", "steps", "gates", "cells"}, \
                                  .opts_bytes = sizeof(mica_sequence_opts),                               \
                                  .fields = fields,                                                       \
                                  .field_count = described,                                               \
                                  .writes = 1u << H | 1u << H_BEFORE | 1u << C | 1u << C_BEFORE,          \
                                  .infer = op##_infer,                                                    \
                                  .run = op##_run,                                                        \
                                  .gradient = MICA_GRADIENT(op##_gradient),                               \
                                  .sample = MICA_SAMPLE(op##_sample)};                                    \
    const mica_op mica_op_##op##_backward = {                                                             \
        .name = #op "_backward",                                                                          \
        .family = "recurrent",                                                                            \
        .about = "the gradients of " #op ", back through time",                                           \
        .ins = 5,                                                                                         \
        .optional_ins = 4,                                                                                \
        .outs = outputs > GATES ? 6 : 5,                                                                  \
        .optional_outs = 1u << DX | 1u << DW_IH | 1u << DW_HH | 1u << DB_IH | 1u << DB_HH,                \
        .names = (const char *const[]){BACK_INPUTS, "dx", "dw_ih", "dw_hh", "db_ih", "db_hh", "dgates"},  \
        .opts_bytes = sizeof(mica_sequence_opts),                                                         \
        .fields = fields,                                                                                 \
        .field_count = described,                                                                         \
        .in_place = {[DGATES] = 1u << BACK_GATES},                                                        \
        .adds = 1u << DW_IH | 1u << DW_HH | 1u << DB_IH | 1u << DB_HH,                                    \
        .infer = infer_back,                                                                              \
        .run = op##_run_back};

RECURRENT(lstm, "a long short-term memory over sequences", 4, GATED_FIELDS)
RECURRENT(gru, "a gated recurrent unit over sequences", 3, GATED_FIELDS)
RECURRENT(rnn, "a plain recurrent network over sequences", 2, RNN_FIELDS)
