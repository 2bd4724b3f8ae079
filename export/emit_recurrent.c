/* LSTM, GRU and RNN over sequences, back through time. */
#include <stdio.h>
#include <string.h>

#include "export/emit.h"

enum { X, W_IH, W_HH, B_IH, B_HH, H, H_BEFORE, C, C_BEFORE, H_0, C_0 };
enum { Y, STEPS, GATES, CELLS, H_N, C_N };
enum { DY, BACK_X, BACK_STEPS, BACK_W_IH, BACK_W_HH, BACK_GATES, BACK_CELLS, BACK_H_0, BACK_C_0, DH_N, DC_N };
enum { DX, DW_IH, DW_HH, DB_IH, DB_HH, DGATES, DH_0, DC_0 };

static const char *or_null(emitter *e, int i) { return i < e->c->ins ? in_name(e, i) : "0"; }
static const char *out_or_null(emitter *e, int k) { return k < e->c->outs ? out_name(e, k) : "0"; }
static bool is_cell(const call *c, const char *name) { return strncmp(c->name, name, strlen(name)) == 0; }
static bool last_only(const call *c) { return call_int(c, "last", 0) != 0; }

/* How x and steps are walked: they have the order of x, but for steps on their own, [time, batch, hidden]. */
typedef struct order {
    int batch, time, inputs, hidden;
    int x_time, x_batch, steps_time, steps_batch;
    int x_start, steps_start; /* where the first time lies */
} order;

static order order_of(const call *c, const value *x, int hidden)
{
    bool time_first = call_int(c, "time_first", 0) != 0, back = call_int(c, "reverse", 0) != 0;
    bool alone = last_only(c);
    int time = (int)x->dim[time_first ? 0 : 1], batch = (int)x->dim[time_first ? 1 : 0];
    order o = {.batch = batch, .time = time, .inputs = (int)x->dim[2], .hidden = hidden};
    int x_time = time_first ? batch : 1, x_batch = time_first ? 1 : time;
    o.x_time = x_time * o.inputs, o.x_batch = x_batch * o.inputs;
    o.steps_time = (alone ? batch : x_time) * hidden, o.steps_batch = (alone ? 1 : x_batch) * hidden;
    if (back) {
        o.x_start = (time - 1) * o.x_time;
        o.x_time = -o.x_time;
    }
    if (back && !alone) {
        o.steps_start = (time - 1) * o.steps_time;
        o.steps_time = -o.steps_time;
    }
    return o;
}

static void emit_shape(emitter *e, const order *o)
{
    emit(e, "static const struct recurrent_shape shape = {");
    emit(e, "    .batch = %d, .time = %d, .inputs = %d, .hidden = %d,", o->batch, o->time, o->inputs,
         o->hidden);
    emit(e, "    .x_time = %d, .x_batch = %d, .steps_time = %d, .steps_batch = %d,", o->x_time, o->x_batch,
         o->steps_time, o->steps_batch);
    emit(e, "};");
}

/* "name + start"; of nothing, nothing. */
typedef struct place {
    char text[96];
} place;

static place place_of(const char *name, int start)
{
    place p;
    if (start == 0 || strcmp(name, "0") == 0)
        snprintf(p.text, sizeof p.text, "%s", name);
    else
        snprintf(p.text, sizeof p.text, "%s + %d", name, start);
    return p;
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

static bool has_input(const call *c, int i) { return i < c->ins && c->in[i] != NONE; }

/* A final state that is read as a value, where it was written elsewhere. */
static void emit_final(emitter *e, int k, const char *from, bool elsewhere)
{
    if (k >= e->c->outs || e->c->out[k] == NONE || !elsewhere)
        return;
    emit(e, "memcpy(%s, %s, %zu * sizeof *%s);", out_name(e, k), from, out_value(e, k)->count,
         out_name(e, k));
}

static void emit_forward(emitter *e, const call *c)
{
    order o = order_of(c, in_value(e, X), (int)in_value(e, W_HH)->dim[1]);
    bool last = last_only(c), moves = emit_state(e, c);
    place x = place_of(in_name(e, X), o.x_start),
          steps = place_of(last ? out_or_null(e, STEPS) : out_name(e, Y), o.steps_start);
    const char *h_n = last ? out_name(e, Y) : moves ? in_name(e, H) : out_or_null(e, H_N);
    const char *h_0 = has_input(c, H_0) ? in_name(e, H_0) : or_null(e, H_BEFORE);
    const char *c_0 = has_input(c, C_0) ? in_name(e, C_0) : or_null(e, C_BEFORE);
    use_kernel(e, c->name);
    emit_shape(e, &o);
    emit(e, "const struct recurrent_weights weights = {%s, %s, %s, %s};", in_name(e, W_IH), in_name(e, W_HH),
         or_null(e, B_IH), or_null(e, B_HH));
    if (is_cell(c, "lstm"))
        emit(e, "lstm(%s, %s, %s, %s, %s, %s, &weights, %s, %s, &shape, %s);", steps.text,
             out_or_null(e, GATES), out_or_null(e, CELLS), h_n, moves ? in_name(e, C) : out_or_null(e, C_N),
             x.text, h_0, c_0, scratch_name(e));
    else if (is_cell(c, "gru"))
        emit(e, "gru(%s, %s, %s, %s, &weights, %s, &shape, %s);", steps.text, out_or_null(e, GATES), h_n,
             x.text, h_0, scratch_name(e));
    else
        emit(e, "rnn(%s, %s, %s, &weights, %s, &shape, %d, %s);", steps.text, h_n, x.text, h_0,
             call_int(c, "relu", 0), scratch_name(e));
    if (moves && last)
        emit(e, "memcpy(%s, %s, %zu * sizeof *%s);", in_name(e, H), out_name(e, Y), in_value(e, H)->count,
             in_name(e, H));
    emit_final(e, H_N, last ? out_name(e, Y) : in_name(e, H), last || moves);
    emit_final(e, C_N, in_name(e, C), moves);
}

static size_t forward_scratch(const graph *g, const call *c)
{
    return 3 * (size_t)g->values[c->in[W_HH]].dim[1];
}

static void emit_backward(emitter *e, const call *c)
{
    order o = order_of(c, in_value(e, BACK_X), (int)in_value(e, BACK_W_HH)->dim[1]);
    int last = last_only(c);
    place x = place_of(in_name(e, BACK_X), o.x_start), dx = place_of(out_name(e, DX), o.x_start),
          steps = place_of(in_name(e, BACK_STEPS), o.steps_start),
          dy = place_of(in_name(e, DY), last ? 0 : o.steps_start);
    use_kernel(e, c->name);
    emit_shape(e, &o);
    emit(e, "const struct recurrent_grads grads = {%s, %s, %s, %s, %s, %s, %s, %s, %s};", dx.text,
         out_name(e, DW_IH), out_name(e, DW_HH), out_name(e, DB_IH), out_name(e, DB_HH), out_or_null(e, DH_0),
         out_or_null(e, DC_0), or_null(e, DH_N), or_null(e, DC_N));
    emit(e, "const struct recurrent_weights weights = {%s, %s, 0, 0};", in_name(e, BACK_W_IH),
         in_name(e, BACK_W_HH));
    if (is_cell(c, "lstm"))
        emit(e, "lstm_backward(&grads, %s, %s, %s, %s, %s, %s, &weights, %s, %s, &shape, %d, %s);",
             out_name(e, DGATES), dy.text, x.text, steps.text, in_name(e, BACK_GATES), in_name(e, BACK_CELLS),
             or_null(e, BACK_H_0), or_null(e, BACK_C_0), last, scratch_name(e));
    else if (is_cell(c, "gru"))
        emit(e, "gru_backward(&grads, %s, %s, %s, %s, %s, &weights, %s, &shape, %d, %s);",
             out_name(e, DGATES), dy.text, x.text, steps.text, in_name(e, BACK_GATES), or_null(e, BACK_H_0),
             last, scratch_name(e));
    else
        emit(e, "rnn_backward(&grads, %s, %s, %s, &weights, %s, &shape, %d, %d, %s);", dy.text, x.text,
             steps.text, or_null(e, BACK_H_0), call_int(c, "relu", 0), last, scratch_name(e));
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
