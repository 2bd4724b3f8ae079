/* LSTM, GRU and RNN over sequences, back through time. */
#include <string.h>

#include "export/emit.h"

enum { X, W_IH, W_HH, B_IH, B_HH, H, H_BEFORE, C, C_BEFORE };
enum { Y, STEPS, GATES, CELLS };
enum { DY, BACK_X, BACK_STEPS, BACK_W_IH, BACK_W_HH, BACK_GATES, BACK_CELLS, H_0, C_0 };
enum { DX, DW_IH, DW_HH, DB_IH, DB_HH, DGATES };

static const char *or_null(emitter *e, int i) { return i < e->c->ins ? in_name(e, i) : "0"; }
static const char *out_or_null(emitter *e, int k) { return k < e->c->outs ? out_name(e, k) : "0"; }
static bool is_cell(const call *c, const char *name) { return strncmp(c->name, name, strlen(name)) == 0; }
static bool last_only(const call *c) { return call_int(c, "last", 0) != 0; }

/* Steps are [batch, time, hidden] as y, [time, batch, hidden] on their own. */
static void emit_shape(emitter *e, const value *x, int hidden, bool time_first)
{
    int batch = (int)x->dim[0], time = (int)x->dim[1];
    emit(e, "static const struct recurrent_shape shape = {");
    emit(e, "    .batch = %d, .time = %d, .inputs = %d, .hidden = %d, .steps_time = %d, .steps_batch = %d,",
         batch, time, (int)x->dim[2], hidden, time_first ? batch * hidden : hidden,
         time_first ? hidden : time * hidden);
    emit(e, "};");
}

/* A state that is kept: a step starts where the one before ended, and keeps where it started for its backward. */
static bool emit_state(emitter *e, const call *c)
{
    bool kept = c->ins > H && c->in[H] != NONE, moves = kept && c->phase != MICA_PHASE_RECOMPUTE;
    for (int i = H; moves && i <= (is_cell(c, "lstm") ? C : H); i += 2)
        emit(e, "memcpy(%s, %s, %zu * sizeof *%s);", in_name(e, i + 1), in_name(e, i), in_value(e, i)->count,
             in_name(e, i));
    return moves;
}

static void emit_forward(emitter *e, const call *c)
{
    const value *x = in_value(e, X);
    int hidden = (int)in_value(e, W_HH)->dim[1];
    bool last = last_only(c), moves = emit_state(e, c);
    const char *kind = c->name, *steps = last ? out_or_null(e, STEPS) : out_name(e, Y);
    const char *h_n = last ? out_name(e, Y) : moves ? in_name(e, H) : "0";
    use_kernel(e, kind);
    emit_shape(e, x, hidden, last);
    emit(e, "const struct recurrent_weights weights = {%s, %s, %s, %s};", in_name(e, W_IH), in_name(e, W_HH),
         or_null(e, B_IH), or_null(e, B_HH));
    if (is_cell(c, "lstm"))
        emit(e, "lstm(%s, %s, %s, %s, %s, %s, &weights, %s, %s, &shape, %s);", steps, out_or_null(e, GATES),
             out_or_null(e, CELLS), h_n, moves ? in_name(e, C) : "0", in_name(e, X), or_null(e, H_BEFORE),
             or_null(e, C_BEFORE), scratch_name(e));
    else if (is_cell(c, "gru"))
        emit(e, "gru(%s, %s, %s, %s, &weights, %s, &shape, %s);", steps, out_or_null(e, GATES), h_n,
             in_name(e, X), or_null(e, H_BEFORE), scratch_name(e));
    else
        emit(e, "rnn(%s, %s, %s, &weights, %s, &shape, %d, %s);", steps, h_n, in_name(e, X),
             or_null(e, H_BEFORE), call_int(c, "relu", 0), scratch_name(e));
    if (moves && last)
        emit(e, "memcpy(%s, %s, %zu * sizeof *%s);", in_name(e, H), out_name(e, Y), in_value(e, H)->count,
             in_name(e, H));
}

static size_t forward_scratch(const graph *g, const call *c)
{
    return 3 * (size_t)g->values[c->in[W_HH]].dim[1];
}

static void emit_backward(emitter *e, const call *c)
{
    const value *x = in_value(e, BACK_X);
    int hidden = (int)in_value(e, BACK_W_HH)->dim[1], last = last_only(c);
    use_kernel(e, c->name);
    emit_shape(e, x, hidden, last);
    emit(e, "const struct recurrent_grads grads = {%s, %s, %s, %s, %s};", out_name(e, DX), out_name(e, DW_IH),
         out_name(e, DW_HH), out_name(e, DB_IH), out_name(e, DB_HH));
    emit(e, "const struct recurrent_weights weights = {%s, %s, 0, 0};", in_name(e, BACK_W_IH),
         in_name(e, BACK_W_HH));
    if (is_cell(c, "lstm"))
        emit(e, "lstm_backward(&grads, %s, %s, %s, %s, %s, %s, &weights, %s, %s, &shape, %d, %s);",
             out_name(e, DGATES), in_name(e, DY), in_name(e, BACK_X), in_name(e, BACK_STEPS),
             in_name(e, BACK_GATES), in_name(e, BACK_CELLS), or_null(e, H_0), or_null(e, C_0), last,
             scratch_name(e));
    else if (is_cell(c, "gru"))
        emit(e, "gru_backward(&grads, %s, %s, %s, %s, %s, &weights, %s, &shape, %d, %s);",
             out_name(e, DGATES), in_name(e, DY), in_name(e, BACK_X), in_name(e, BACK_STEPS),
             in_name(e, BACK_GATES), or_null(e, H_0), last, scratch_name(e));
    else
        emit(e, "rnn_backward(&grads, %s, %s, %s, &weights, %s, &shape, %d, %d, %s);", in_name(e, DY),
             in_name(e, BACK_X), in_name(e, BACK_STEPS), or_null(e, H_0), call_int(c, "relu", 0), last,
             scratch_name(e));
}

static size_t backward_scratch(const graph *g, const call *c)
{
    return 2 * (size_t)g->values[c->in[BACK_W_HH]].dim[1];
}

#define WEIGHTS (1u << DW_IH | 1u << DW_HH | 1u << DB_IH | 1u << DB_HH)

const export_op export_recurrent_ops[] = {
    {.name = "lstm", .emit = emit_forward, .scratch = forward_scratch},
    {.name = "lstm_backward", .emit = emit_backward, .only_adds = WEIGHTS, .scratch = backward_scratch},
    {.name = "gru", .emit = emit_forward, .scratch = forward_scratch},
    {.name = "gru_backward", .emit = emit_backward, .only_adds = WEIGHTS, .scratch = backward_scratch},
    {.name = "rnn", .emit = emit_forward, .scratch = forward_scratch},
    {.name = "rnn_backward", .emit = emit_backward, .only_adds = WEIGHTS, .scratch = backward_scratch},
    {.name = NULL},
};
