/* Recurrent forward for inference, of weights that were packed before. Nothing is kept but what is asked for.
 *
 * Two directions over the same sequences are one call: each thread takes one of them, or some of its sequences, from
 * the product with the inputs to the last step, and threads meet at the end alone. */
#include <assert.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/recurrent.h"

#if !defined(MICA_SMALL)

/* Sequences that are enough for a thread of their own, as in recurrent.c. */
#define LEAST_ROWS 16

/* ---- Prepared weights ---- */

/* As they lie, each aligned: [ panels of W_ih | panels of W_hh | bias of the inputs' product | of the state's ]. All
 * but the GRU's have one bias, the sum of both. */
typedef struct prepared {
    float *inputs, *state, *input_bias, *state_bias; /* state_bias: the GRU's */
} prepared;

static size_t lay_out_weights(const mica_context *ctx, prepared *w, mica_cell cell, size_t inputs,
                              size_t hidden, void *base)
{
    static const size_t blocks[] = {4, 3, 1};
    size_t gates = blocks[cell] * hidden;
    mica_pieces p = {.base = base};
    w->inputs = mica_piece(&p, mica_gemm_packed_floats(ctx, gates, inputs, false));
    w->state = mica_piece(&p, mica_round_up(hidden, MICA_FAMILY(ctx->kernels, gemm)->tile_columns) * gates);
    w->input_bias = mica_piece(&p, gates);
    w->state_bias = cell == MICA_CELL_GRU ? mica_piece(&p, gates) : NULL;
    return p.used;
}

size_t mica_recurrent_prepared_floats(const mica_context *ctx, mica_cell cell, size_t inputs, size_t hidden)
{
    prepared w;
    return lay_out_weights(ctx, &w, cell, inputs, hidden, NULL) / sizeof(float);
}

static float bias_at(const mica_tensor *bias, size_t i)
{
    return bias != NULL ? ((const float *)bias->data)[(ptrdiff_t)i * bias->stride[0]] : 0.0f;
}

static void set_product(mica_recurrent_product *p, const mica_recurrent *r, const prepared *w)
{
    bool apart = r->cell == MICA_CELL_GRU;
    *p = (mica_recurrent_product){.runs = r->blocks,
                                  .k = r->hidden,
                                  .panels = w->state,
                                  .beta = apart ? 0.0f : 1.0f,
                                  .bias = w->state_bias};
}

mica_status mica_recurrent_prepare(mica_context *ctx, const mica_tensor *to, mica_cell cell,
                                   const mica_recurrent_weights *weights)
{
    const mica_tensor *w_ih = weights->w_ih, *w_hh = weights->w_hh;
    mica_recurrent r;
    mica_tensor x = mica_3d(NULL, 1, 1, w_ih->dim[1]);
    MICA_TRY(mica_recurrent_check(ctx, "recurrent_prepare", &r, cell, &x, NULL, weights));
    MICA_START(ctx, "recurrent_prepare", 0, NULL);
    prepared w;
    (void)lay_out_weights(ctx, &w, cell, r.inputs, r.hidden, to->data);
    mica_gemm_pack(ctx, w.inputs,
                   &(mica_gemm_operand){
                       .data = w_ih->data, .vector_stride = w_ih->stride[0], .k_stride = w_ih->stride[1]},
                   r.gates, r.inputs, false);
    mica_recurrent_step s = {.rows = 0};
    set_product(&s.product, &r, &w);
    s.product.weights = (mica_gemm_operand){
        .data = w_hh->data, .vector_stride = w_hh->stride[0], .k_stride = w_hh->stride[1]};
    mica_recurrent_start(ctx, &r, &s);
    for (size_t i = 0; i < r.gates; i++) {
        float state = bias_at(weights->b_hh, i);
        w.input_bias[i] = bias_at(weights->b_ih, i) + (w.state_bias != NULL ? 0.0f : state);
        if (w.state_bias != NULL)
            w.state_bias[i] = state;
    }
    return MICA_OK;
}

/* ---- One direction ---- */

/* Time steps and sequences of a tensor, which may lie either way round. */
typedef struct order {
    ptrdiff_t step, row; /* strides */
} order;

typedef struct way_job {
    mica_recurrent_step step;
    prepared weights;
    const mica_tensor *w_ih; /* as it lies: a single row of x is multiplied by that */
    const float *x;
    float *y;
    bool wants_y;
    float *h_0, *c_0, *h_n, *c_n; /* [N, H], or NULL */
    order y_order;
    bool reverse;
    float *gates;       /* as x, with `kept` for I */
    float *cells;       /* LSTM: [N, H] */
    float *two;         /* [2, N, H]: the last two steps' h, where there is no y */
    float *from_hidden; /* GRU: [N, 3 H] */
    void *gemm_scratch;
} way_job;

typedef struct whole_job {
    mica_context *ctx;
    mica_recurrent r;
    bool time_first;
    way_job way[MICA_RECURRENT_WAYS];
    int ways;
    size_t count;  /* sequences of a block */
    size_t blocks; /* of each direction */
    bool inputs;   /* a block does its direction's product with the inputs, too */
} whole_job;

static order order_of(const whole_job *j, size_t columns)
{
    ptrdiff_t steps = (ptrdiff_t)j->r.steps, batch = (ptrdiff_t)j->r.batch, row = (ptrdiff_t)columns;
    return j->time_first ? (order){batch * row, row} : (order){row, steps * row};
}

/* gates = x W_ihT + b, for all steps at once, in the order of x */
static mica_gemm input_product(const whole_job *j, const way_job *w)
{
    const mica_recurrent *r = &j->r;
    return (mica_gemm){.m = r->steps * r->batch,
                       .n = r->gates,
                       .k = r->inputs,
                       .a = {.data = w->x, .vector_stride = (ptrdiff_t)r->inputs, .k_stride = 1},
                       .b = {.data = w->w_ih->data,
                             .vector_stride = w->w_ih->stride[0],
                             .k_stride = w->w_ih->stride[1],
                             .packed = w->weights.inputs},
                       .c = w->gates,
                       .row_stride = (ptrdiff_t)r->kept,
                       .column_stride = 1,
                       .alpha = 1.0f,
                       .column_bias = w->weights.input_bias};
}

static void run_step(mica_context *ctx, const whole_job *j, way_job *w, size_t t)
{
    const mica_recurrent *r = &j->r;
    ptrdiff_t hidden = (ptrdiff_t)r->hidden, at = (ptrdiff_t)(w->reverse ? r->steps - 1 - t : t);
    order gates = order_of(j, r->kept);
    mica_cell_step *s = &w->step.cell;
    mica_recurrent_product *p = &w->step.product;
    s->gates = (mica_cell_rows){w->gates + at * gates.step, gates.row};
    s->before = s->h;
    s->c_before = s->c;
    s->h = w->wants_y ? (mica_cell_rows){w->y + at * w->y_order.step, w->y_order.row}
                      : (mica_cell_rows){w->two + t % 2 * r->batch * r->hidden, hidden};
    if (r->cell == MICA_CELL_LSTM)
        s->c = (mica_cell_rows){w->cells, hidden};
    p->from = s->before;
    if (r->cell == MICA_CELL_GRU)
        p->to = s->from_hidden;
    else if (p->from.data != NULL) /* zeros add nothing */
        p->to = s->gates;
    mica_recurrent_run(ctx, &w->step);
}

/* The state after the last step, or before the first where there is none. */
static void copy_state(float *to, const mica_cell_rows *from, const mica_recurrent_step *s)
{
    size_t hidden = s->cell.hidden;
    for (size_t i = s->row; to != NULL && i < s->row + s->rows; i++) {
        if (from->data != NULL)
            memmove(to + i * hidden, from->data + (ptrdiff_t)i * from->stride, hidden * sizeof(float));
        else
            memset(to + i * hidden, 0, hidden * sizeof(float));
    }
}

static void run_rows(mica_context *ctx, const whole_job *j, int number, size_t row, size_t rows)
{
    way_job w = j->way[number];
    mica_cell_step *s = &w.step.cell;
    ptrdiff_t hidden = (ptrdiff_t)j->r.hidden;
    w.step.row = row;
    w.step.rows = rows;
    s->from_hidden = (mica_cell_rows){w.from_hidden, (ptrdiff_t)j->r.gates};
    s->h = (mica_cell_rows){w.h_0, hidden};
    s->c = (mica_cell_rows){w.c_0, hidden};
    for (size_t t = 0; t < j->r.steps; t++)
        run_step(ctx, j, &w, t);
    copy_state(w.h_n, &s->h, &w.step);
    copy_state(w.c_n, &s->c, &w.step);
}

/* ---- All of them ---- */

static void way_block(void *work, size_t block, int thread)
{
    (void)thread;
    const whole_job *j = work;
    const way_job *w = &j->way[block / j->blocks];
    size_t row = block % j->blocks * j->count;
    if (j->inputs) {
        mica_gemm g = input_product(j, w);
        mica_gemm_run_serial(j->ctx, &g, w->gemm_scratch);
    }
    run_rows(NULL, j, (int)(block / j->blocks), row, mica_least(j->r.batch - row, j->count));
}

/* Each thread has blocks of its own, if they are enough for that, or threads share every step of one direction after
 * the other. */
static void run_all(mica_context *ctx, whole_job *j)
{
    const mica_recurrent *r = &j->r;
    size_t ways = (size_t)j->ways, threads = (size_t)ctx->threads;
    size_t share = mica_div_up(r->batch * ways, threads);
    j->count = mica_least(mica_round_up(mica_least(share, r->batch), MICA_CELL_GROUP),
                          MICA_RECURRENT_MOST_ROWS);
    j->blocks = mica_div_up(r->batch, j->count);
    mica_recurrent_step whole = j->way[0].step;
    whole.rows = r->batch;
    bool apart = threads <= ways || mica_recurrent_enough(r, share, LEAST_ROWS) ||
                 !mica_recurrent_shares(&whole);
    j->inputs = apart && j->blocks == 1 && threads <= ways;
    for (size_t k = 0; k < ways && !j->inputs; k++) {
        mica_gemm g = input_product(j, &j->way[k]);
        mica_gemm_run(ctx, &g, j->way[0].gemm_scratch);
    }
    if (apart)
        mica_parallel(ctx, ways * j->blocks, way_block, j);
    for (size_t k = 0; k < ways && !apart; k++)
        run_rows(ctx, j, (int)k, 0, r->batch);
}

static size_t lay_out(const mica_context *ctx, whole_job *j, void *scratch)
{
    const mica_recurrent *r = &j->r;
    mica_pieces p = {.base = scratch};
    mica_gemm g = input_product(j, &j->way[0]);
    g.b.packed =
        (const float *)(const void *)j; /* while measuring it counts that there are panels, not where */
    size_t serial = mica_align_up(mica_gemm_serial_scratch(ctx, &g)), ways = (size_t)j->ways;
    size_t bytes = mica_most(mica_gemm_scratch(ctx, &g), ways * serial);
    char *gemm = (char *)mica_piece(&p, bytes / sizeof(float));
    for (size_t k = 0; k < ways; k++) {
        way_job *w = &j->way[k];
        w->gemm_scratch = gemm != NULL ? gemm + k * serial : NULL;
        w->gates = mica_piece(&p, r->steps * r->batch * r->kept);
        w->cells = mica_piece(&p, r->cell == MICA_CELL_LSTM ? r->batch * r->hidden : 0);
        w->two = mica_piece(&p, !w->wants_y ? 2 * r->batch * r->hidden : 0);
        w->from_hidden = mica_piece(&p, r->cell == MICA_CELL_GRU ? r->batch * r->gates : 0);
    }
    return p.used;
}

static float *data_of(const mica_tensor *t) { return t != NULL ? t->data : NULL; }

static void set_way(const mica_context *ctx, whole_job *j, int number, const mica_recurrent_way *way,
                    const float *x, bool relu)
{
    const mica_recurrent *r = &j->r;
    way_job *w = &j->way[number];
    const mica_tensor *y = way->y;
    (void)lay_out_weights(ctx, &w->weights, r->cell, r->inputs, r->hidden, way->prepared->data);
    w->w_ih = way->w_ih;
    w->x = x;
    w->y = data_of(y);
    w->wants_y = y != NULL;
    w->h_0 = data_of(way->h_0);
    w->c_0 = r->cell == MICA_CELL_LSTM ? data_of(way->c_0) : NULL;
    w->h_n = data_of(way->h_n);
    w->c_n = r->cell == MICA_CELL_LSTM ? data_of(way->c_n) : NULL;
    w->reverse = way->reverse;
    if (y != NULL)
        w->y_order = j->time_first ? (order){y->stride[0], y->stride[1]}
                                   : (order){y->stride[1], y->stride[0]};
    set_product(&w->step.product, r, &w->weights);
    w->step.cell.relu = relu;
    w->step.kernel = r->cell == MICA_CELL_LSTM ? MICA_KERNEL(ctx->kernels, recurrent, lstm_plain)
                                               : mica_recurrent_kernel(ctx, r->cell);
}

static mica_status check_way(mica_context *ctx, const char *op, mica_recurrent *r, mica_cell cell,
                             const mica_tensor *x, const mica_recurrent_way *way, bool time_first)
{
    const unsigned out = MICA_ARG_OUT | MICA_ARG_OPTIONAL;
    const mica_arg args[] = {{"y", way->y, out, 0},
                             {"h_n", way->h_n, out, 0},
                             {"c_n", way->c_n, out, 0},
                             {"x", x, 0, 0},
                             {"prepared", way->prepared, 0, 0},
                             {"h_0", way->h_0, MICA_ARG_OPTIONAL, 0},
                             {"c_0", way->c_0, MICA_ARG_OPTIONAL, 0}};
    mica_recurrent_weights weights = {.w_ih = way->w_ih, .w_hh = way->w_hh};
    mica_tensor steps;
    MICA_TRY(mica_check_args(ctx, op, args, 7));
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 3, 3));
    MICA_TRY(mica_view_transpose(ctx, &steps, x, 0, time_first ? 0 : 1));
    MICA_TRY(mica_recurrent_check(ctx, op, r, cell, &steps, NULL, &weights));
    mica_index y[] = {x->dim[0], x->dim[1], (mica_index)r->hidden};
    mica_index floats = (mica_index)mica_recurrent_prepared_floats(ctx, cell, r->inputs, r->hidden);
    if (way->y != NULL)
        MICA_TRY(mica_check_shape(ctx, op, "y", way->y, 3, y, "x", x));
    MICA_TRY(mica_check_shape(ctx, op, "prepared", way->prepared, 1, &floats, "w_hh", way->w_hh));
    static const int states[] = {1, 2, 5, 6};
    for (int i = 0; i < 4; i++)
        MICA_TRY(mica_recurrent_check_state(ctx, op, r, &args[states[i]], &args[3]));
    assert(mica_tensor_contiguous(x) && (way->y == NULL || way->y->stride[2] == 1));
    return MICA_OK;
}

mica_status mica_recurrent_prepared(mica_context *ctx, const mica_tensor *x, const mica_recurrent_way *ways,
                                    int count, const mica_recurrent_prepared_opts *opts)
{
    static const char *const names[] = {"lstm_prepared", "gru_prepared", "rnn_prepared"};
    const char *op = names[opts->cell];
    whole_job j = {.ctx = ctx, .ways = count, .time_first = opts->time_first};
    for (int k = 0; k < count; k++)
        MICA_TRY(check_way(ctx, op, &j.r, opts->cell, x, &ways[k], opts->time_first));
    for (int k = 0; k < count; k++)
        set_way(ctx, &j, k, &ways[k], x->data, opts->relu);
    mica_count_flops(ctx, (double)count * mica_recurrent_flops(&j.r, j.r.inputs + j.r.hidden));
    void *scratch;
    MICA_START(ctx, op, lay_out(ctx, &j, NULL), &scratch);
    if (j.r.batch == 0)
        return MICA_OK;
    (void)lay_out(ctx, &j, scratch);
    for (int k = 0; k < count; k++)
        mica_recurrent_start(ctx, &j.r, &j.way[k].step);
    run_all(ctx, &j);
    return MICA_OK;
}

#endif
