/* Cases of LSTM, GRU and RNN. All three share one numbering; what a cell does not have is absent. The
 * gradients' reference are differences of a model in double precision. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op_memory.h"

enum { LSTM, GRU, RNN };

static int cell_of(const op_call *c)
{
    return c->op->name[0] == 'l' ? LSTM : c->op->name[0] == 'g' ? GRU : RNN;
}

/* ---- The model ---- */

typedef struct model {
    int cell;
    size_t steps, batch, inputs, hidden, gates, kept;
    bool relu;
    double *x, *w_ih, *w_hh, *b_ih, *b_hh, *h_0, *c_0; /* biases and states may be NULL */
    double *nudge;                  /* [T, N, kept], added to what goes into the gates, or NULL */
    double *y, *h, *c;              /* out: [T, N, H], [N, H] after the last step */
    double *all_gates, *cells;      /* out, or NULL */
    const double *dy, *dh_n, *dc_n; /* what the loss weighs with, or NULL */
} model;

static model model_of(const op_call *c, int x, int y)
{
    static const size_t blocks[] = {4, 3, 1}, kept[] = {4, 4, 1};
    const mica_index *a = c->tensor[x].dim;
    model m = {.cell = cell_of(c), .steps = (size_t)a[0], .batch = (size_t)a[1], .inputs = (size_t)a[2]};
    m.hidden = (size_t)c->tensor[y].dim[2];
    m.gates = blocks[m.cell] * m.hidden;
    m.kept = kept[m.cell] * m.hidden;
    m.relu = c->i[0] != 0;
    m.h = calloc(m.batch * m.hidden + 1, sizeof *m.h);
    m.c = calloc(m.batch * m.hidden + 1, sizeof *m.c);
    return m;
}

static void model_free(model *m)
{
    free(m->h);
    free(m->c);
}

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

static double affine(const double *w, const double *x, const double *b, size_t row, size_t count)
{
    double sum = b != NULL ? b[row] : 0.0;
    for (size_t i = 0; i < count; i++)
        sum += w[row * count + i] * x[i];
    return sum;
}

/* One element of the new state, from the state before (all of it) and that of the cell. */
static double cell_element(const model *m, size_t row, const double *before, double *c, size_t k)
{
    const double *x = m->x + row * m->inputs, *nudge = m->nudge != NULL ? m->nudge + row * m->kept : NULL;
    size_t hidden = m->hidden;
    double in[4] = {0}, from[4] = {0}, kept[4] = {0}, h;
    for (size_t g = 0; g < m->gates / hidden; g++) {
        in[g] = affine(m->w_ih, x, m->b_ih, g * hidden + k, m->inputs);
        from[g] = affine(m->w_hh, before, m->b_hh, g * hidden + k, hidden);
    }
    for (size_t g = 0; nudge != NULL && g < m->kept / hidden; g++)
        *(m->cell == GRU && g == 3 ? &from[2] : &in[g]) += nudge[g * hidden + k];
    if (m->cell == LSTM) {
        for (int g = 0; g < 4; g++)
            kept[g] = g == 2 ? tanh(in[g] + from[g]) : sigmoid(in[g] + from[g]);
        *c = kept[1] * *c + kept[0] * kept[2];
        h = kept[3] * tanh(*c);
    } else if (m->cell == GRU) {
        kept[0] = sigmoid(in[0] + from[0]);
        kept[1] = sigmoid(in[1] + from[1]);
        kept[2] = tanh(in[2] + kept[0] * from[2]);
        kept[3] = from[2];
        h = (1.0 - kept[1]) * kept[2] + kept[1] * before[k];
    } else {
        h = m->relu ? fmax(0.0, in[0] + from[0]) : tanh(in[0] + from[0]);
    }
    for (size_t g = 0; m->all_gates != NULL && g < m->kept / hidden; g++)
        m->all_gates[row * m->kept + g * hidden + k] = kept[g];
    return h;
}

static void forward(const model *m)
{
    size_t state = m->batch * m->hidden;
    for (size_t i = 0; i < state; i++) {
        m->h[i] = m->h_0 != NULL ? m->h_0[i] : 0.0;
        m->c[i] = m->c_0 != NULL ? m->c_0[i] : 0.0;
    }
    for (size_t t = 0; t < m->steps; t++) {
        for (size_t n = 0; n < m->batch; n++)
            for (size_t k = 0; k < m->hidden; k++)
                m->y[(t * m->batch + n) * m->hidden + k] = cell_element(
                    m, t * m->batch + n, m->h + n * m->hidden, &m->c[n * m->hidden + k], k);
        memcpy(m->h, m->y + t * state, state * sizeof *m->h);
        if (m->cells != NULL)
            memcpy(m->cells + t * state, m->c, state * sizeof *m->c);
    }
}

/* ---- Forward ---- */

enum { Y, H_N, C_N, GATES, CELLS, X, W_IH, W_HH, B_IH, B_HH, H_0, C_0, FORWARD_COUNT };

typedef struct shapes {
    mica_index steps, batch, inputs, hidden;
} shapes;

static shapes draw_shapes(op_call *c, test_random *r, int wide_percent)
{
    shapes s = {test_int(r, test_chance(r, 4) ? 0 : 1, 4), test_int(r, test_chance(r, 4) ? 0 : 1, 3),
                test_int(r, test_chance(r, 4) ? 0 : 1, 4), test_int(r, test_chance(r, 4) ? 0 : 1, 4)};
    if (test_chance(r, wide_percent)) { /* more than a vector */
        s.hidden = test_int(r, 8, 18);
        s.steps = test_int(r, 1, 3);
    }
    if (c->large) { /* threads share steps, or have sequences of their own: some, or some again and again */
        static const mica_index batch[] = {12, 40, 72};
        s = (shapes){4, batch[test_int(r, 0, 2)], 40, 128};
    }
    c->i[0] = cell_of(c) == RNN && test_chance(r, 40);
    return s;
}

static void draw_forward(op_call *c, test_random *r)
{
    shapes s = draw_shapes(c, r, 30);
    int cell = cell_of(c);
    mica_index gates = (cell == LSTM ? 4 : cell == GRU ? 3 : 1) * s.hidden;
    mica_index state[] = {s.batch, s.hidden};
    op_tensor(c, Y, MICA_F32, 3, (mica_index[]){s.steps, s.batch, s.hidden});
    op_tensor(c, CELLS, MICA_F32, 3, (mica_index[]){s.steps, s.batch, s.hidden});
    op_tensor(c, GATES, MICA_F32, 3, (mica_index[]){s.steps, s.batch, 4 * s.hidden});
    op_tensor(c, X, MICA_F32, 3, (mica_index[]){s.steps, s.batch, s.inputs});
    op_tensor(c, W_IH, MICA_F32, 2, (mica_index[]){gates, s.inputs});
    op_tensor(c, W_HH, MICA_F32, 2, (mica_index[]){gates, s.hidden});
    op_tensor(c, B_IH, MICA_F32, 1, &gates);
    op_tensor(c, B_HH, MICA_F32, 1, &gates);
    static const int states[] = {H_N, C_N, H_0, C_0},
                     optional[] = {Y, H_N, C_N, GATES, CELLS, B_IH, B_HH, H_0, C_0};
    for (int i = 0; i < 4; i++)
        op_tensor(c, states[i], MICA_F32, 2, state);
    for (int i = 0; i < 9; i++)
        c->absent[optional[i]] = test_chance(r, 30);
    if (cell != LSTM)
        c->absent[C_N] = c->absent[CELLS] = c->absent[C_0] = true;
    if (cell == RNN)
        c->absent[GATES] = true;
    if (c->absent[Y])
        c->absent[H_N] = false;
}

static mica_status run_forward(mica_context *ctx, const op_call *c)
{
    mica_recurrent_weights w = {OP(c, W_IH), OP(c, W_HH), OP(c, B_IH), OP(c, B_HH)};
    mica_recurrent_opts o = {.h_0 = OP(c, H_0),
                             .c_0 = OP(c, C_0),
                             .h_n = OP(c, H_N),
                             .c_n = OP(c, C_N),
                             .gates = OP(c, GATES),
                             .cells = OP(c, CELLS),
                             .relu = c->i[0] != 0};
    int cell = cell_of(c);
    return cell == LSTM  ? mica_lstm(ctx, OP(c, Y), OP(c, X), &w, &o)
           : cell == GRU ? mica_gru(ctx, OP(c, Y), OP(c, X), &w, &o)
                         : mica_rnn(ctx, OP(c, Y), OP(c, X), &w, &o);
}

static double *given(const op_call *c, double *const *v, int tensor)
{
    return c->absent[tensor] ? NULL : v[tensor];
}

static void reference_forward(const op_call *c, double *const *v)
{
    model m = model_of(c, X, Y);
    double *unwanted = calloc(op_count(c, Y) + 1, sizeof *unwanted);
    m.x = v[X];
    m.y = c->absent[Y] ? unwanted : v[Y];
    m.w_ih = v[W_IH];
    m.w_hh = v[W_HH];
    m.b_ih = given(c, v, B_IH);
    m.b_hh = given(c, v, B_HH);
    m.h_0 = given(c, v, H_0);
    m.c_0 = given(c, v, C_0);
    m.all_gates = given(c, v, GATES);
    m.cells = given(c, v, CELLS);
    forward(&m);
    if (!c->absent[H_N])
        memcpy(v[H_N], m.h, m.batch * m.hidden * sizeof(double));
    if (!c->absent[C_N])
        memcpy(v[C_N], m.c, m.batch * m.hidden * sizeof(double));
    free(unwanted);
    model_free(&m);
}

#define FORWARD_CASE(op)                                                                                   \
    OP_CASE(op) = {                                                                                        \
        .names = {"y", "h_n", "c_n", "gates", "cells", "x", "w_ih", "w_hh", "b_ih", "b_hh", "h_0", "c_0"}, \
        .outs = 5,                                                                                         \
        .ins = 7,                                                                                          \
        .optional = OP_BIT(Y) | OP_BIT(H_N) | OP_BIT(C_N) | OP_BIT(GATES) | OP_BIT(CELLS) | OP_BIT(B_IH) | \
                    OP_BIT(B_HH) | OP_BIT(H_0) | OP_BIT(C_0),                                              \
        .any_shape = OP_BIT(X),                                                                            \
        /* more steps, where none of them is kept */ .draw = draw_forward,                                 \
        .run = run_forward,                                                                                \
        .reference = reference_forward,                                                                    \
        .tolerance = 2e-5}

FORWARD_CASE(lstm);
FORWARD_CASE(gru);
FORWARD_CASE(rnn);

/* ---- Backward ---- */

enum {
    B_DGATES,
    B_DX,
    B_DW_IH,
    B_DW_HH,
    B_DB_IH,
    B_DB_HH,
    B_DH_0,
    B_DC_0,
    B_DY,
    B_DH_N,
    B_DC_N,
    B_X,
    B_H_0,
    B_C_0,
    B_W_IH,
    B_W_HH,
    B_Y,
    B_GATES,
    B_CELLS,
};

static void draw_backward(op_call *c, test_random *r)
{
    shapes s = draw_shapes(c, r, 4);
    int cell = cell_of(c);
    mica_index gates = (cell == LSTM ? 4 : cell == GRU ? 3 : 1) * s.hidden;
    mica_index kept[] = {s.steps, s.batch, (cell == RNN ? 1 : 4) * s.hidden},
               x[] = {s.steps, s.batch, s.inputs};
    mica_index y[] = {s.steps, s.batch, s.hidden}, w_ih[] = {gates, s.inputs}, w_hh[] = {gates, s.hidden};
    const mica_index *dims[] = {kept,  x, w_ih,  w_hh,  &gates, &gates, y + 1, y + 1, y, y + 1,
                                y + 1, x, y + 1, y + 1, w_ih,   w_hh,   y,     kept,  y};
    static const int rank[] = {3, 3, 2, 2, 1, 1, 2, 2, 3, 2, 2, 3, 2, 2, 2, 2, 3, 3, 3};
    for (int k = 0; k <= B_CELLS; k++)
        op_tensor(c, k, MICA_F32, rank[k], dims[k]);
    for (int k = B_DGATES; k <= B_DC_N; k++)
        c->absent[k] = test_chance(r, 25);
    c->absent[B_H_0] = test_chance(r, 30);
    c->absent[B_C_0] = test_chance(r, 30);
    if (cell != LSTM)
        c->absent[B_DC_0] = c->absent[B_DC_N] = c->absent[B_C_0] = c->absent[B_CELLS] = true;
    if (cell == RNN)
        c->absent[B_GATES] = true;
    bool none = true;
    for (int k = B_DGATES; k <= B_DC_0; k++)
        none = none && c->absent[k];
    if (none)
        c->absent[B_DX] = false;
    c->i[1] = test_chance(r, 40); /* add to the weights' gradients */
}

/* Backward is not told the biases: any will do. */
static void set_biases(double *b_ih, double *b_hh, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        b_ih[i] = 0.3 * sin((double)i);
        b_hh[i] = 0.3 * cos(2.0 * (double)i);
    }
}

/* y, gates and cells are those of the inputs before them. */
static void fill_backward(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value[i] = test_normal(r);
    if (tensor < B_Y)
        return;
    model m = model_of(c, B_X, B_DY);
    double *in[B_CELLS + 1] = {0}, *bias[2];
    for (int k = B_X; k <= B_W_HH; k++) {
        in[k] = calloc(op_count(c, k) + 1, sizeof(double));
        if (!c->absent[k])
            op_read(&c->tensor[k], in[k]);
    }
    for (int k = 0; k < 2; k++)
        bias[k] = calloc(m.gates + 1, sizeof(double));
    double *y = calloc(m.steps * m.batch * m.hidden + 1, sizeof *y);
    set_biases(bias[0], bias[1], m.gates);
    m.x = in[B_X];
    m.w_ih = in[B_W_IH];
    m.w_hh = in[B_W_HH];
    m.b_ih = bias[0];
    m.b_hh = bias[1];
    m.h_0 = c->absent[B_H_0] ? NULL : in[B_H_0];
    m.c_0 = c->absent[B_C_0] ? NULL : in[B_C_0];
    m.y = tensor == B_Y ? value : y;
    m.all_gates = tensor == B_GATES ? value : NULL;
    m.cells = tensor == B_CELLS ? value : NULL;
    forward(&m);
    for (int k = B_X; k <= B_W_HH; k++)
        free(in[k]);
    free(bias[0]);
    free(bias[1]);
    free(y);
    model_free(&m);
}

static mica_status run_backward(mica_context *ctx, const op_call *c)
{
    mica_recurrent_grads g = {.x = OP(c, B_DX),
                              .w_ih = OP(c, B_DW_IH),
                              .w_hh = OP(c, B_DW_HH),
                              .b_ih = OP(c, B_DB_IH),
                              .b_hh = OP(c, B_DB_HH),
                              .h_0 = OP(c, B_DH_0),
                              .c_0 = OP(c, B_DC_0),
                              .gates = OP(c, B_DGATES),
                              .add_weights = c->i[1] != 0};
    mica_recurrent_dout d = {OP(c, B_DY), OP(c, B_DH_N), OP(c, B_DC_N)};
    mica_recurrent_saved s = {.x = OP(c, B_X),
                              .y = OP(c, B_Y),
                              .gates = OP(c, B_GATES),
                              .cells = OP(c, B_CELLS),
                              .h_0 = OP(c, B_H_0),
                              .c_0 = OP(c, B_C_0),
                              .relu = c->i[0] != 0};
    mica_recurrent_weights w = {.w_ih = OP(c, B_W_IH), .w_hh = OP(c, B_W_HH)};
    int cell = cell_of(c);
    return cell == LSTM  ? mica_lstm_backward(ctx, &g, &d, &s, &w)
           : cell == GRU ? mica_gru_backward(ctx, &g, &d, &s, &w)
                         : mica_rnn_backward(ctx, &g, &d, &s, &w);
}

static double loss_of(void *user)
{
    const model *m = user;
    size_t state = m->batch * m->hidden;
    double loss = 0.0;
    forward(m);
    for (size_t i = 0; m->dy != NULL && i < m->steps * state; i++)
        loss += m->dy[i] * m->y[i];
    for (size_t i = 0; m->dh_n != NULL && i < state; i++)
        loss += m->dh_n[i] * m->h[i];
    for (size_t i = 0; m->dc_n != NULL && i < state; i++)
        loss += m->dc_n[i] * m->c[i];
    return loss;
}

static void difference(const op_call *c, double *const *v, int tensor, double *x, model *m)
{
    if (c->absent[tensor])
        return;
    size_t count = op_count(c, tensor);
    double *gradient = calloc(count + 1, sizeof *gradient);
    op_numeric_gradient(gradient, x, count, loss_of, m);
    bool add = c->i[1] != 0 && tensor >= B_DW_IH && tensor <= B_DB_HH;
    for (size_t i = 0; i < count; i++)
        v[tensor][i] = gradient[i] + (add ? v[tensor][i] : 0.0);
    free(gradient);
}

static void reference_backward(const op_call *c, double *const *v)
{
    model m = model_of(c, B_X, B_DY);
    size_t state = m.batch * m.hidden, rows = m.steps * m.batch;
    double *memory = calloc(2 * m.gates + 2 * state + rows * (m.hidden + m.kept) + 1, sizeof *memory);
    m.b_ih = memory;
    m.b_hh = m.b_ih + m.gates;
    m.h_0 = m.b_hh + m.gates;
    m.c_0 = m.h_0 + state;
    m.y = m.c_0 + state;
    m.nudge = m.y + rows * m.hidden;
    set_biases(m.b_ih, m.b_hh, m.gates);
    if (!c->absent[B_H_0])
        memcpy(m.h_0, v[B_H_0], state * sizeof(double));
    if (!c->absent[B_C_0])
        memcpy(m.c_0, v[B_C_0], state * sizeof(double));
    m.x = v[B_X];
    m.w_ih = v[B_W_IH];
    m.w_hh = v[B_W_HH];
    m.dy = given(c, v, B_DY);
    m.dh_n = given(c, v, B_DH_N);
    m.dc_n = given(c, v, B_DC_N);
    double *by[] = {m.nudge, m.x, m.w_ih, m.w_hh, m.b_ih, m.b_hh, m.h_0, m.c_0};
    for (int k = B_DGATES; k <= B_DC_0; k++)
        difference(c, v, k, by[k], &m);
    free(memory);
    model_free(&m);
}

#define BACKWARD_CASE(op, more_optional)                                                                \
    OP_CASE(op) = {.names = {"dgates", "dx", "dw_ih", "dw_hh", "db_ih", "db_hh", "dh_0", "dc_0", "dy",  \
                             "dh_n", "dc_n", "x", "h_0", "c_0", "w_ih", "w_hh", "y", "gates", "cells"}, \
                   .outs = 8,                                                                           \
                   .ins = 11,                                                                           \
                   .in_place = OP_BIT(B_GATES),                                                         \
                   .optional = (OP_BIT(B_X) - 1) | OP_BIT(B_H_0) | OP_BIT(B_C_0) | (more_optional),     \
                   .reads_outs = OP_BIT(B_DW_IH) | OP_BIT(B_DW_HH) | OP_BIT(B_DB_IH) | OP_BIT(B_DB_HH), \
                   .draws = 120,                                                                        \
                   .draw = draw_backward,                                                               \
                   .fill = fill_backward,                                                               \
                   .run = run_backward,                                                                 \
                   .reference = reference_backward,                                                     \
                   .tolerance = 1e-4}

BACKWARD_CASE(lstm_backward, 0u);
BACKWARD_CASE(gru_backward, OP_BIT(B_CELLS));
BACKWARD_CASE(rnn_backward, OP_BIT(B_CELLS) | OP_BIT(B_GATES));
