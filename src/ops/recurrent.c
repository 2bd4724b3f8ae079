/* Recurrent forward: the inputs' part of all gates in one product, then step by step the state's part, added by a
 * product with W_hh, and the cell; or both parts at once in each step, as recurrent_joined.c has it. */
#include "ops/recurrent_forward.h"

#include <string.h>

#include "ops/contiguous.h"

/* Sequences that are enough for a thread of their own: each reads all of W_hh from the third cache in every step. */
#define LEAST_ROWS 16

/* ---- Checks ---- */

mica_status mica_recurrent_check(mica_context *ctx, const char *op, mica_recurrent *r, mica_cell cell,
                                 const mica_tensor *x, const mica_tensor *y,
                                 const mica_recurrent_weights *weights)
{
    static const mica_index blocks[] = {4, 3, 1}, kept[] = {4, 4, 1};
    const mica_tensor *w_ih = weights->w_ih, *w_hh = weights->w_hh;
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 3, 3));
    MICA_TRY(mica_check_rank(ctx, op, "w_hh", w_hh, 2, 2));
    mica_index hidden = w_hh->dim[1], gates = blocks[cell] * hidden;
    MICA_TRY(mica_check_shape(ctx, op, "w_ih", w_ih, 2, (mica_index[]){gates, x->dim[2]}, "w_hh", w_hh));
    MICA_TRY(mica_check_shape(ctx, op, "w_hh", w_hh, 2, (mica_index[]){gates, hidden}, "w_ih", w_ih));
    if (y != NULL)
        MICA_TRY(mica_check_shape(ctx, op, "y", y, 3, (mica_index[]){x->dim[0], x->dim[1], hidden}, "x", x));
    *r = (mica_recurrent){.cell = cell,
                          .steps = (size_t)x->dim[0],
                          .batch = (size_t)x->dim[1],
                          .inputs = (size_t)x->dim[2],
                          .hidden = (size_t)hidden,
                          .blocks = (size_t)blocks[cell],
                          .gates = (size_t)gates,
                          .kept = (size_t)(kept[cell] * hidden)};
    return MICA_OK;
}

mica_status mica_recurrent_check_state(mica_context *ctx, const char *op, const mica_recurrent *r,
                                       const mica_arg *arg, const mica_arg *x)
{
    if (arg->tensor == NULL)
        return MICA_OK;
    return mica_check_shape(ctx, op, arg->name, arg->tensor, 2,
                            (mica_index[]){(mica_index)r->batch, (mica_index)r->hidden}, x->name, x->tensor);
}

mica_status mica_recurrent_check_steps(mica_context *ctx, const char *op, const mica_recurrent *r,
                                       const mica_arg *arg, size_t columns, const mica_arg *x)
{
    if (arg->tensor == NULL)
        return MICA_OK;
    mica_index dims[] = {(mica_index)r->steps, (mica_index)r->batch, (mica_index)columns};
    return mica_check_shape(ctx, op, arg->name, arg->tensor, 3, dims, x->name, x->tensor);
}

/* ---- Forward ---- */

static size_t gates_stride(const mica_recurrent_forward *j)
{
    return j->r.kept + (!j->all_gates && mica_recurrent_joins(j) ? MICA_RECURRENT_APART : 0);
}

/* Hands out the scratch behind the arguments' copies. */
static size_t lay_out_forward(mica_context *ctx, mica_recurrent_forward *j, void *scratch)
{
    const mica_recurrent *r = &j->r;
    const bool joins = mica_recurrent_joins(j);
    mica_pieces p = {.base = scratch};
    if (!j->all_gates)
        j->gates = mica_piece(&p, (joins ? 1 : r->steps) * r->batch * gates_stride(j));
    if (joins && !mica_recurrent_dots(r))
        j->joined = mica_piece(&p, 2 * r->batch * mica_recurrent_joined_stride(r));
    if (!j->all_cells && r->cell == MICA_CELL_LSTM)
        j->cells = mica_piece(&p, r->batch * r->hidden);
    if (!j->all_steps)
        j->two = mica_piece(&p, 2 * r->batch * r->hidden);
    if (r->cell == MICA_CELL_GRU)
        j->from_hidden = mica_piece(&p, r->batch * r->gates);
    else
        j->bias = mica_piece(&p, r->gates);
    if (joins && mica_recurrent_dots(r))
        return p.used;
    if (joins) {
        size_t floats = mica_recurrent_panels(ctx, r, r->inputs);
        j->step.product.panels = mica_piece(&p, mica_least(floats, MICA_RECURRENT_JOINED_FLOATS));
        return p.used;
    }
    if (mica_recurrent_packs(r))
        j->step.product.panels = mica_piece(&p, mica_recurrent_panels(ctx, r, 0));
    size_t all = mica_gemm_most_scratch(ctx, r->steps * r->batch, r->gates, r->inputs);
    size_t one = mica_gemm_most_scratch(ctx, r->batch, r->gates, r->hidden);
    j->step.gemm_scratch = mica_piece(&p, mica_most(all, one) / sizeof(float));
    return p.used;
}

#if !defined(MICA_SMALL)
/* Of the same with so many sequences, which join, or do not. */
static size_t scratch_of(mica_context *ctx, const mica_recurrent_forward *j, size_t batch, bool joins,
                         bool dots)
{
    mica_recurrent_forward other = *j;
    other.joins = joins;
    other.r.dots = dots;
    other.r.batch = mica_least(batch, j->r.batch);
    return lay_out_forward(ctx, &other, NULL);
}
#endif

/* What all that are no larger need: with fewer sequences, or steps, they do not join and need more; with fewer inputs,
 * or units, they may join. And some may read the weights as they lie, unlike a single sequence. */
static size_t forward_scratch(mica_context *ctx, mica_recurrent_forward *j)
{
    size_t bytes = lay_out_forward(ctx, j, NULL);
#if !defined(MICA_SMALL)
    if (mica_recurrent_may_join(&j->r)) {
        mica_recurrent_forward one = *j;
        one.joins = false;
        one.r.steps = 1;
        bytes = mica_most(bytes, lay_out_forward(ctx, &one, NULL));
        bytes = mica_most(bytes, scratch_of(ctx, j, MICA_RECURRENT_JOINED_ROWS - 1, false, j->r.dots));
        bytes = mica_most(bytes, scratch_of(ctx, j, j->r.batch, true, j->r.dots));
    }
    if (mica_recurrent_may_dot(ctx, j)) {
        bytes = mica_most(bytes,
                          scratch_of(ctx, j, MICA_RECURRENT_DOTS_BATCH, j->r.cell != MICA_CELL_GRU, true));
        bytes = mica_most(bytes, scratch_of(ctx, j, 1, false, false));
    }
#endif
    return bytes;
}

/* The bias that the inputs' product adds. What the state's would add to the same gates comes with it, so that no
 * step has to. */
static const float *input_bias(mica_context *ctx, const mica_recurrent_forward *j)
{
    if (j->r.cell == MICA_CELL_GRU || j->b_hh == NULL)
        return j->b_ih;
    if (j->b_ih == NULL)
        return j->b_hh;
    MICA_KERNEL(ctx->kernels, map, add)(j->bias, (const float *const[]){j->b_ih, j->b_hh}, j->r.gates, NULL);
    return j->bias;
}

/* gates = x W_ihT + b, for all steps at once */
static void run_inputs(mica_context *ctx, const mica_recurrent_forward *j)
{
    const mica_recurrent *r = &j->r;
    mica_gemm g = {
        .m = r->steps * r->batch,
        .n = r->gates,
        .k = r->inputs,
        .a = {.data = j->x, .vector_stride = (ptrdiff_t)r->inputs, .k_stride = 1},
        .b = {.data = j->w_ih->data, .vector_stride = j->w_ih->stride[0], .k_stride = j->w_ih->stride[1]},
        .c = j->gates,
        .row_stride = (ptrdiff_t)r->kept,
        .column_stride = 1,
        .alpha = 1.0f,
        .column_bias = input_bias(ctx, j)};
    mica_gemm_run(ctx, &g, j->step.gemm_scratch);
}

/* gates += h' W_hhT; the GRU's are kept apart, with b_hh */
static void set_product(mica_recurrent_forward *j)
{
    const mica_tensor *w = j->w_hh;
    mica_recurrent_product *p = &j->step.product;
    bool apart = j->r.cell == MICA_CELL_GRU;
    p->weights = (mica_gemm_operand){
        .data = w->data, .vector_stride = w->stride[0], .k_stride = w->stride[1]};
    p->runs = j->r.blocks;
    p->k = j->r.hidden;
    p->beta = apart ? 0.0f : 1.0f;
    p->bias = apart ? j->b_hh : NULL;
#if !defined(MICA_SMALL)
    p->dots = j->r.dots;
#endif
}

/* Those of step t: where nobody keeps them and the inputs are joined, every step has the same. */
static mica_cell_rows gates_at(const mica_recurrent_forward *j, size_t t)
{
    size_t stride = gates_stride(j);
    bool one = !j->all_gates && mica_recurrent_joins(j);
    return (mica_cell_rows){j->gates + (one ? 0 : t) * j->r.batch * stride, (ptrdiff_t)stride};
}

static void run_step(mica_context *ctx, mica_recurrent_forward *j, size_t t)
{
    const mica_recurrent *r = &j->r;
    ptrdiff_t hidden = (ptrdiff_t)r->hidden;
    mica_cell_step *s = &j->step.cell;
    mica_recurrent_product *p = &j->step.product;
    s->gates = gates_at(j, t);
    s->before = t > 0 ? s->h : (mica_cell_rows){j->h_0, hidden};
    s->c_before = t > 0 ? s->c : (mica_cell_rows){j->c_0, hidden};
    s->h = j->y != NULL ? mica_recurrent_rows(j->y, t)
                        : (mica_cell_rows){j->two + t % 2 * r->batch * r->hidden, hidden};
    if (r->cell == MICA_CELL_LSTM)
        s->c = (mica_cell_rows){j->cells + (j->all_cells ? t * r->batch * r->hidden : 0), hidden};
    p->from = s->before;
    if (r->cell == MICA_CELL_GRU)
        p->to = s->from_hidden;
    else if (p->from.data != NULL) /* zeros add nothing */
        p->to = s->gates;
    if (mica_recurrent_joins(j))
        mica_recurrent_join_step(j, t);
    mica_recurrent_run(ctx, &j->step);
}

/* The state after the last step, or before the first where there is none. */
static void copy_state(float *to, const mica_cell_rows *from, const mica_recurrent_forward *j)
{
    size_t hidden = j->r.hidden, end = j->step.row + j->step.rows;
    for (size_t i = j->step.row; to != NULL && i < end; i++) {
        if (from->data != NULL)
            memmove(to + i * hidden, from->data + (ptrdiff_t)i * from->stride, hidden * sizeof(float));
        else
            memset(to + i * hidden, 0, hidden * sizeof(float));
    }
}

static void run_rows(mica_context *ctx, const void *job, size_t row, size_t rows)
{
    mica_recurrent_forward j = *(const mica_recurrent_forward *)job;
    mica_cell_step *s = &j.step.cell;
    ptrdiff_t hidden = (ptrdiff_t)j.r.hidden;
    j.step.row = row;
    j.step.rows = rows;
    s->from_hidden = (mica_cell_rows){j.from_hidden, (ptrdiff_t)j.r.gates};
    s->h = (mica_cell_rows){j.h_0, hidden};
    s->c = (mica_cell_rows){j.c_0, hidden};
    if (mica_recurrent_joins(&j))
        mica_recurrent_join_first(&j);
    for (size_t t = 0; t < j.r.steps; t++)
        run_step(ctx, &j, t);
    copy_state(j.h_n, &s->h, &j);
    copy_state(j.c_n, &s->c, &j);
}

static void run_forward(mica_context *ctx, mica_recurrent_forward *j)
{
    const mica_recurrent *r = &j->r;
    j->step.kernel = mica_recurrent_kernel(ctx, r->cell);
    set_product(j);
    if (mica_recurrent_joins(j))
        mica_recurrent_join_product(j, input_bias(ctx, j));
    else
        run_inputs(ctx, j);
    mica_recurrent_start(ctx, r, &j->step);
    mica_recurrent_each(ctx, r, LEAST_ROWS, run_rows, j);
}

/* The arguments as checked: y, then those that are made contiguous, then the weights. */
enum { Y, H_N, C_N, GATES, CELLS, X, B_IH, B_HH, H_0, C_0, W_IH, W_HH, ARGS };

static mica_status check_forward(mica_context *ctx, const char *op, mica_recurrent *r, mica_cell cell,
                                 const mica_arg *args, const mica_recurrent_weights *weights)
{
    MICA_TRY(mica_check_args(ctx, op, args, ARGS));
    MICA_TRY(mica_recurrent_check(ctx, op, r, cell, args[X].tensor, args[Y].tensor, weights));
    static const int states[] = {H_N, C_N, H_0, C_0};
    for (int i = 0; i < 4; i++)
        MICA_TRY(mica_recurrent_check_state(ctx, op, r, &args[states[i]], &args[X]));
    for (int i = B_IH; i <= B_HH; i++)
        if (args[i].tensor != NULL)
            MICA_TRY(mica_check_shape(ctx, op, args[i].name, args[i].tensor, 1,
                                      (mica_index[]){(mica_index)r->gates}, "w_hh", weights->w_hh));
    MICA_TRY(mica_recurrent_check_steps(ctx, op, r, &args[GATES], r->kept, &args[X]));
    return mica_recurrent_check_steps(ctx, op, r, &args[CELLS], r->hidden, &args[X]);
}

/* Points the job at its arguments: y by `rows`, all others up to the weights by `dense`. */
static void set_data(mica_recurrent_forward *j, const mica_contiguous *rows, const mica_contiguous *dense)
{
    j->y = mica_contiguous_tensor(rows, 0);
    j->h_n = dense->data[H_N - 1];
    j->c_n = dense->data[C_N - 1];
    j->gates = dense->data[GATES - 1];
    j->cells = dense->data[CELLS - 1];
    j->x = dense->data[X - 1];
    j->b_ih = dense->data[B_IH - 1];
    j->b_hh = dense->data[B_HH - 1];
    j->h_0 = dense->data[H_0 - 1];
    j->c_0 = dense->data[C_0 - 1];
}

static mica_status forward(mica_context *ctx, const char *op, mica_cell cell, const mica_tensor *y,
                           const mica_tensor *x, const mica_recurrent_weights *weights,
                           const mica_recurrent_opts *opts)
{
    mica_recurrent_weights no_weights = {0};
    mica_recurrent_opts none = {0}, o = opts != NULL ? *opts : none;
    const mica_recurrent_weights *w = weights != NULL ? weights : &no_weights;
    if (cell != MICA_CELL_LSTM)
        o.c_0 = o.c_n = o.cells = NULL;
    if (cell == MICA_CELL_RNN)
        o.gates = NULL;
    const unsigned out = MICA_ARG_OUT | MICA_ARG_OPTIONAL, state = MICA_ARG_OPTIONAL | MICA_ARG_IN_PLACE;
    mica_arg args[ARGS] = {
        [Y] = {"y", y, out, 0},
        [H_N] = {"h_n", o.h_n, out, 0},
        [C_N] = {"c_n", o.c_n, out, 0},
        [GATES] = {"gates", o.gates, out, 0},
        [CELLS] = {"cells", o.cells, out, 0},
        [X] = {"x", x, 0, 0},
        [B_IH] = {"b_ih", w->b_ih, MICA_ARG_OPTIONAL, 0},
        [B_HH] = {"b_hh", w->b_hh, MICA_ARG_OPTIONAL, 0},
        [H_0] = {"h_0", o.h_0, state, 0},
        [C_0] = {"c_0", o.c_0, state, 0},
        [W_IH] = {"w_ih", w->w_ih, 0, 0},
        [W_HH] = {"w_hh", w->w_hh, 0, 0},
    };
    mica_recurrent_forward j = {.step.cell.relu = o.relu,
                                .w_ih = w->w_ih,
                                .w_hh = w->w_hh,
                                .all_steps = y != NULL,
                                .all_gates = o.gates != NULL,
                                .all_cells = o.cells != NULL};
    MICA_TRY(check_forward(ctx, op, &j.r, cell, args, w));
    mica_count_flops(ctx, mica_recurrent_flops(&j.r, j.r.inputs + j.r.hidden));
    mica_recurrent_choose_dots(ctx, &j);
    j.joins = mica_recurrent_may_join(&j.r) &&
              mica_recurrent_panels(ctx, &j.r, j.r.inputs) <= MICA_RECURRENT_JOINED_FLOATS;
    mica_contiguous rows, dense;
    mica_tensor rows_copies[1];
    mica_contiguous_plan_rows(&rows, rows_copies, args, 1);
    mica_contiguous_plan(&dense, args + 1, W_IH - 1);
    void *scratch;
    MICA_START(ctx, op, rows.bytes + dense.bytes + forward_scratch(ctx, &j), &scratch);
    scratch = mica_contiguous_load(&dense, mica_contiguous_load(&rows, scratch));
    set_data(&j, &rows, &dense);
    (void)lay_out_forward(ctx, &j, scratch);
    run_forward(ctx, &j);
    mica_contiguous_store(&rows);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_lstm(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                      const mica_recurrent_weights *weights, const mica_recurrent_opts *opts)
{
    return forward(ctx, "lstm", MICA_CELL_LSTM, y, x, weights, opts);
}

mica_status mica_gru(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                     const mica_recurrent_weights *weights, const mica_recurrent_opts *opts)
{
    return forward(ctx, "gru", MICA_CELL_GRU, y, x, weights, opts);
}

mica_status mica_rnn(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                     const mica_recurrent_weights *weights, const mica_recurrent_opts *opts)
{
    return forward(ctx, "rnn", MICA_CELL_RNN, y, x, weights, opts);
}
