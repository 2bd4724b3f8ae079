/* Recurrent backward through time: step by step from the last, the cell's gradient and its product with W_hh,
 * which is the gradient of the state before; then the gradients of weights and inputs, each as one product
 * over all steps. */
#include "ops/recurrent.h"

#include <string.h>

#include "ops/contiguous.h"

/* Sequences that are enough for a thread of their own. Fewer than forward: threads that share a step would need each
 * other's gradients of all gates. */
#define LEAST_ROWS 8

/* The states before each step as the rows of one matrix [T N, H]: h_0, then y but for its last step. */
typedef struct states_before {
    const mica_tensor *y;
    const float *h_0; /* NULL: zeros */
    size_t batch, hidden;
} states_before;

typedef struct backward_job {
    mica_recurrent r;
    mica_recurrent_step step;
    const mica_tensor *dy, *y; /* with contiguous rows; dy may be NULL */
    const mica_tensor *w_ih, *w_hh, *dw_ih, *dw_hh, *db_ih, *db_hh;
    float *x, *gates, *cells, *h_0, *c_0; /* contiguous, as all that follow */
    float *dx, *dh_0, *dc_0, *dh_n, *dc_n;
    float *dgates;  /* [T, N, kept] */
    float *dh, *dc; /* [N, H] */
    float *dhidden; /* [2, N, hidden_stride], of even and odd steps; NULL: the product takes dgates */
    float *sums;    /* [groups, kept], of dgates; NULL: not wanted */
    float beta;     /* of the weights' gradients */
    bool dgates_given;
} backward_job;

static size_t gemm_scratch(mica_context *ctx, const mica_recurrent *r)
{
    size_t rows = r->steps * r->batch;
    size_t bytes = mica_gemm_most_scratch(ctx, r->batch, r->hidden, r->gates);
    bytes = mica_most(bytes, mica_gemm_most_scratch(ctx, rows, r->inputs, r->gates));
    bytes = mica_most(bytes, mica_gemm_most_scratch(ctx, r->gates, r->inputs, rows));
    return mica_most(bytes, mica_gemm_most_scratch(ctx, r->gates, r->hidden, rows));
}

static size_t groups(const mica_recurrent *r) { return mica_div_up(r->batch, MICA_CELL_GROUP); }

/* Rows of dhidden lie a little apart, so that those of a tile are not all in the same set of the first cache. */
static size_t hidden_stride(const mica_recurrent *r) { return r->gates + MICA_ALIGN / sizeof(float); }

static size_t lay_out_backward(mica_context *ctx, backward_job *j, void *scratch)
{
    const mica_recurrent *r = &j->r;
    mica_pieces p = {.base = scratch};
    if (!j->dgates_given)
        j->dgates = mica_piece(&p, r->steps * r->batch * r->kept);
    j->dh = mica_piece(&p, r->batch * r->hidden);
    j->dc = mica_piece(&p, r->batch * r->hidden);
    if (j->db_ih != NULL || j->db_hh != NULL)
        j->sums = mica_piece(&p, groups(r) * r->kept);
    bool packs = mica_recurrent_packs(r);
    if (packs || r->cell == MICA_CELL_GRU)
        j->dhidden = mica_piece(&p, 2 * r->batch * hidden_stride(r));
    if (packs)
        j->step.product.panels = mica_piece(&p, mica_recurrent_panels(ctx, r, 0));
    j->step.gemm_scratch = mica_piece(&p, gemm_scratch(ctx, r) / sizeof(float));
    return p.used;
}

/* ---- Through time ---- */

/* Row 0 of step t of a contiguous [T, N, columns]. */
static mica_cell_rows rows_at(const mica_recurrent *r, float *data, size_t columns, size_t t)
{
    return (mica_cell_rows){data != NULL ? data + t * r->batch * columns : NULL, (ptrdiff_t)columns};
}

/* The gradient of step t's cell, after the product that brings it what step t + 1 left: dh = dhidden W_hh, besides
 * what the GRU passes by it. */
static void run_step(mica_context *ctx, backward_job *j, size_t t)
{
    const mica_recurrent *r = &j->r;
    mica_cell_step *s = &j->step.cell;
    s->dgates = rows_at(r, j->dgates, r->kept, t);
    s->dhidden = rows_at(r, j->dhidden, hidden_stride(r), t % 2);
    s->gates = rows_at(r, j->gates, r->kept, t);
    s->c = rows_at(r, j->cells, r->hidden, t);
    s->h = mica_recurrent_rows(j->y, t);
    s->before = t > 0 ? mica_recurrent_rows(j->y, t - 1) : rows_at(r, j->h_0, r->hidden, 0);
    s->c_before = t > 0 ? rows_at(r, j->cells, r->hidden, t - 1) : rows_at(r, j->c_0, r->hidden, 0);
    if (j->dy != NULL)
        s->dy = mica_recurrent_rows(j->dy, t);
    mica_recurrent_run(ctx, &j->step);
    j->step.product.from = j->dhidden != NULL ? s->dhidden : s->dgates;
    j->step.product.to = s->dh;
}

static void copy_or_zero(float *to, const float *from, size_t count)
{
    if (from != NULL)
        memcpy(to, from, count * sizeof *to);
    else
        memset(to, 0, count * sizeof *to);
}

static void set_step(mica_context *ctx, backward_job *j)
{
    const mica_recurrent *r = &j->r;
    const mica_recurrent_kernels *kernels = MICA_FAMILY(ctx->kernels, recurrent);
    mica_recurrent_product *p = &j->step.product;
    j->step.kernel = r->cell == MICA_CELL_LSTM  ? kernels->lstm_backward
                     : r->cell == MICA_CELL_GRU ? kernels->gru_backward
                                                : kernels->rnn_backward;
    j->step.cell.dh = rows_at(r, j->dh, r->hidden, 0);
    j->step.cell.dc = rows_at(r, j->dc, r->hidden, 0);
    j->step.cell.sums = rows_at(r, j->sums, r->kept, 0);
    p->weights = (mica_gemm_operand){
        .data = j->w_hh->data, .vector_stride = j->w_hh->stride[1], .k_stride = j->w_hh->stride[0]};
    p->runs = 1;
    p->k = r->gates;
    p->beta = r->cell == MICA_CELL_GRU ? 1.0f : 0.0f;
}

static void run_rows(mica_context *ctx, const void *job, size_t row, size_t rows)
{
    backward_job j = *(const backward_job *)job;
    j.step.row = row;
    j.step.rows = rows;
    for (size_t t = j.r.steps; t-- > 0;)
        run_step(ctx, &j, t);
    if (j.dh_0 != NULL) {
        j.step.kernel = NULL;
        mica_recurrent_run(ctx, &j.step);
    }
}

static void run_steps(mica_context *ctx, backward_job *j)
{
    const mica_recurrent *r = &j->r;
    size_t state = r->batch * r->hidden;
    if (state == 0)
        return;
    copy_or_zero(j->dh, j->dh_n, state);
    copy_or_zero(j->dc, j->dc_n, state);
    if (j->sums != NULL)
        memset(j->sums, 0, groups(r) * r->kept * sizeof(float));
    set_step(ctx, j);
    mica_recurrent_start(ctx, r, &j->step);
    mica_recurrent_each(ctx, r, LEAST_ROWS, run_rows, j);
    if (j->dh_0 != NULL)
        memcpy(j->dh_0, j->dh, state * sizeof(float));
    if (j->dc_0 != NULL)
        memcpy(j->dc_0, j->dc, state * sizeof(float));
}

/* ---- Over all steps ---- */

/* dx = dgates W_ih */
static void run_inputs(mica_context *ctx, const backward_job *j)
{
    const mica_recurrent *r = &j->r;
    mica_gemm g = {
        .m = r->steps * r->batch,
        .n = r->inputs,
        .k = r->gates,
        .a = {.data = j->dgates, .vector_stride = (ptrdiff_t)r->kept, .k_stride = 1},
        .b = {.data = j->w_ih->data, .vector_stride = j->w_ih->stride[1], .k_stride = j->w_ih->stride[0]},
        .c = j->dx,
        .row_stride = (ptrdiff_t)r->inputs,
        .column_stride = 1,
        .alpha = 1.0f};
    mica_gemm_run(ctx, &g, j->step.gemm_scratch);
}

/* Rows first .. first + rows - 1 of a weight's gradient: dW = dgatesT b, from that many columns of dgates. */
static void run_weight(mica_context *ctx, const backward_job *j, const mica_tensor *dw,
                       const mica_gemm_operand *b, size_t first, size_t rows, size_t column)
{
    const mica_recurrent *r = &j->r;
    mica_gemm g = {.m = rows,
                   .n = (size_t)dw->dim[1],
                   .k = r->steps * r->batch,
                   .a = {.data = j->dgates + column, .vector_stride = 1, .k_stride = (ptrdiff_t)r->kept},
                   .b = *b,
                   .c = (float *)dw->data + (mica_index)first * dw->stride[0],
                   .row_stride = dw->stride[0],
                   .column_stride = dw->stride[1],
                   .alpha = 1.0f,
                   .beta = j->beta};
    mica_gemm_run(ctx, &g, j->step.gemm_scratch);
}

/* By h' W_hhT + b_hh: the GRU's gradient of m lies in the last block. */
static void run_hidden_weight(mica_context *ctx, const backward_job *j, const mica_tensor *dw,
                              const mica_gemm_operand *b)
{
    const mica_recurrent *r = &j->r;
    if (r->cell != MICA_CELL_GRU) {
        run_weight(ctx, j, dw, b, 0, r->gates, 0);
        return;
    }
    run_weight(ctx, j, dw, b, 0, 2 * r->hidden, 0);
    run_weight(ctx, j, dw, b, 2 * r->hidden, r->hidden, 3 * r->hidden);
}

static void pack_states(const void *source, float *panel, size_t width, size_t first, size_t count, size_t k0,
                        size_t k)
{
    const states_before *s = source;
    for (size_t p = k0; p < k0 + k; p++, panel += width) {
        size_t t = p / s->batch, n = p % s->batch;
        const float *row = s->h_0 != NULL ? s->h_0 + n * s->hidden : NULL;
        if (t > 0) {
            mica_cell_rows rows = mica_recurrent_rows(s->y, t - 1);
            row = rows.data + (ptrdiff_t)n * rows.stride;
        }
        copy_or_zero(panel, row != NULL ? row + first : NULL, count);
        memset(panel + count, 0, (width - count) * sizeof *panel);
    }
}

/* The sums over all rows of dgates, which the steps have added up by groups. */
static void run_bias(const backward_job *j, const mica_tensor *db, bool by_hidden)
{
    const mica_recurrent *r = &j->r;
    for (size_t i = 0; db != NULL && i < r->gates; i++) {
        bool is_m = by_hidden && r->cell == MICA_CELL_GRU && i >= 2 * r->hidden;
        const float *part = j->sums + i + (is_m ? r->hidden : 0);
        float sum = 0.0f, *to = (float *)db->data + (mica_index)i * db->stride[0];
        for (size_t k = 0; k < groups(r); k++)
            sum += part[k * r->kept];
        *to = j->beta != 0.0f ? sum + *to : sum;
    }
}

static void run_weights(mica_context *ctx, const backward_job *j)
{
    const mica_recurrent *r = &j->r;
    states_before before = {.y = j->y, .h_0 = j->h_0, .batch = r->batch, .hidden = r->hidden};
    mica_gemm_operand x = {.data = j->x, .vector_stride = 1, .k_stride = (ptrdiff_t)r->inputs};
    mica_gemm_operand states = {.pack = pack_states, .source = &before};
    if (j->dw_ih != NULL)
        run_weight(ctx, j, j->dw_ih, &x, 0, r->gates, 0);
    if (j->dw_hh != NULL)
        run_hidden_weight(ctx, j, j->dw_hh, &states);
    run_bias(j, j->db_ih, false);
    run_bias(j, j->db_hh, true);
}

/* ---- The operations ---- */

/* The arguments as checked: those made contiguous; those whose rows are, and the others. */
enum { DGATES, DX, DH_0, DC_0, DH_N, DC_N, X, GATES, CELLS, H_0, C_0 };
enum { DY = C_0 + 1, Y, W_IH, W_HH, DW_IH, DW_HH, DB_IH, DB_HH, ARGS };

static mica_status check_backward(mica_context *ctx, const char *op, mica_recurrent *r, mica_cell cell,
                                  const mica_arg *args, const mica_recurrent_weights *weights)
{
    MICA_TRY(mica_check_args(ctx, op, args, ARGS));
    MICA_TRY(mica_recurrent_check(ctx, op, r, cell, args[X].tensor, args[Y].tensor, weights));
    static const int states[] = {DH_0, DC_0, DH_N, DC_N, H_0, C_0};
    for (int i = 0; i < 6; i++)
        MICA_TRY(mica_recurrent_check_state(ctx, op, r, &args[states[i]], &args[X]));
    MICA_TRY(mica_recurrent_check_steps(ctx, op, r, &args[DX], r->inputs, &args[X]));
    MICA_TRY(mica_recurrent_check_steps(ctx, op, r, &args[DY], r->hidden, &args[X]));
    MICA_TRY(mica_recurrent_check_steps(ctx, op, r, &args[CELLS], r->hidden, &args[X]));
    MICA_TRY(mica_recurrent_check_steps(ctx, op, r, &args[GATES], r->kept, &args[X]));
    MICA_TRY(mica_recurrent_check_steps(ctx, op, r, &args[DGATES], r->kept, &args[X]));
    if (args[DW_IH].tensor != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "dw_ih", args[DW_IH].tensor, "w_ih", args[W_IH].tensor));
    if (args[DW_HH].tensor != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "dw_hh", args[DW_HH].tensor, "w_hh", args[W_HH].tensor));
    for (int i = DB_IH; i <= DB_HH; i++)
        if (args[i].tensor != NULL)
            MICA_TRY(mica_check_shape(ctx, op, args[i].name, args[i].tensor, 1,
                                      (mica_index[]){(mica_index)r->gates}, "w_hh", args[W_HH].tensor));
    return MICA_OK;
}

/* The given structs as one table; what the cell does not have is left out. */
static void fill_args(mica_arg args[ARGS], mica_cell cell, const mica_recurrent_grads *g,
                      const mica_recurrent_dout *d, const mica_recurrent_saved *s,
                      const mica_recurrent_weights *w)
{
    const unsigned out = MICA_ARG_OUT | MICA_ARG_OPTIONAL, in = MICA_ARG_OPTIONAL;
    bool lstm = cell == MICA_CELL_LSTM, gated = cell != MICA_CELL_RNN;
    const mica_arg all[ARGS] = {
        [DGATES] = {"dgates", g->gates, out, 0},
        [DX] = {"dx", g->x, out, 0},
        [DH_0] = {"dh_0", g->h_0, out, 0},
        [DC_0] = {"dc_0", lstm ? g->c_0 : NULL, out, 0},
        [DH_N] = {"dh_n", d->h_n, in, 0},
        [DC_N] = {"dc_n", lstm ? d->c_n : NULL, in, 0},
        [X] = {"x", s->x, 0, 0},
        [GATES] = {"gates", gated ? s->gates : NULL, MICA_ARG_IN_PLACE | (gated ? 0 : in), 0},
        [CELLS] = {"cells", lstm ? s->cells : NULL, lstm ? 0 : in, 0},
        [H_0] = {"h_0", s->h_0, in, 0},
        [C_0] = {"c_0", lstm ? s->c_0 : NULL, in, 0},
        [DY] = {"dy", d->y, in, 0},
        [Y] = {"y", s->y, 0, 0},
        [W_IH] = {"w_ih", w->w_ih, 0, 0},
        [W_HH] = {"w_hh", w->w_hh, 0, 0},
        [DW_IH] = {"dw_ih", g->w_ih, out, 0},
        [DW_HH] = {"dw_hh", g->w_hh, out, 0},
        [DB_IH] = {"db_ih", g->b_ih, out, 0},
        [DB_HH] = {"db_hh", g->b_hh, out, 0},
    };
    memcpy(args, all, sizeof all);
}

static void take_data(backward_job *j, void *const data[DY])
{
    j->dgates = data[DGATES];
    j->dx = data[DX];
    j->dh_0 = data[DH_0];
    j->dc_0 = data[DC_0];
    j->dh_n = data[DH_N];
    j->dc_n = data[DC_N];
    j->x = data[X];
    j->gates = data[GATES];
    j->cells = data[CELLS];
    j->h_0 = data[H_0];
    j->c_0 = data[C_0];
}

static mica_status backward(mica_context *ctx, const char *op, mica_cell cell,
                            const mica_recurrent_grads *grads, const mica_recurrent_dout *dout,
                            const mica_recurrent_saved *saved, const mica_recurrent_weights *weights)
{
    if (grads == NULL || dout == NULL || saved == NULL || weights == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", op,
                         grads == NULL   ? "grads"
                         : dout == NULL  ? "dout"
                         : saved == NULL ? "saved"
                                         : "weights");
    mica_arg args[ARGS];
    fill_args(args, cell, grads, dout, saved, weights);
    backward_job j = {.step.cell.relu = saved->relu,
                      .w_ih = weights->w_ih,
                      .w_hh = weights->w_hh,
                      .dw_ih = grads->w_ih,
                      .dw_hh = grads->w_hh,
                      .db_ih = grads->b_ih,
                      .db_hh = grads->b_hh,
                      .beta = grads->add_weights ? 1.0f : 0.0f,
                      .dgates_given = grads->gates != NULL};
    MICA_TRY(check_backward(ctx, op, &j.r, cell, args, weights));
    mica_count_flops(ctx, 2.0 * mica_recurrent_flops(&j.r, j.r.hidden) +
                              (grads->x != NULL ? 2.0 : 1.0) * mica_recurrent_flops(&j.r, j.r.inputs));
    mica_contiguous dense, rows;
    mica_contiguous_plan(&dense, args, DY);
    mica_tensor rows_copies[2];
    mica_contiguous_plan_rows(&rows, rows_copies, args + DY, 2);
    void *scratch;
    MICA_START(ctx, op, dense.bytes + rows.bytes + lay_out_backward(ctx, &j, NULL), &scratch);
    scratch = mica_contiguous_load(&rows, mica_contiguous_load(&dense, scratch));
    j.dy = mica_contiguous_tensor(&rows, 0);
    j.y = mica_contiguous_tensor(&rows, 1);
    take_data(&j, dense.data);
    (void)lay_out_backward(ctx, &j, scratch);
    run_steps(ctx, &j);
    run_weights(ctx, &j);
    if (j.dx != NULL)
        run_inputs(ctx, &j);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_lstm_backward(mica_context *ctx, const mica_recurrent_grads *grads,
                               const mica_recurrent_dout *dout, const mica_recurrent_saved *saved,
                               const mica_recurrent_weights *weights)
{
    return backward(ctx, "lstm_backward", MICA_CELL_LSTM, grads, dout, saved, weights);
}

mica_status mica_gru_backward(mica_context *ctx, const mica_recurrent_grads *grads,
                              const mica_recurrent_dout *dout, const mica_recurrent_saved *saved,
                              const mica_recurrent_weights *weights)
{
    return backward(ctx, "gru_backward", MICA_CELL_GRU, grads, dout, saved, weights);
}

mica_status mica_rnn_backward(mica_context *ctx, const mica_recurrent_grads *grads,
                              const mica_recurrent_dout *dout, const mica_recurrent_saved *saved,
                              const mica_recurrent_weights *weights)
{
    return backward(ctx, "rnn_backward", MICA_CELL_RNN, grads, dout, saved, weights);
}
