/* LSTM over a sequence: forward, and forward with backward through time. size: { steps, batch, inputs, hidden } */
#include "bench/bench.h"

enum { Y, X, W_IH, W_HH, B_IH, B_HH, H_0, C_0, H_N, C_N };      /* forward */
enum { GATES = 10, CELLS, DY, DX, DW_IH, DW_HH, DB_IH, DB_HH }; /* with backward, besides */

/* The products alone: 2 flops for every weight, step and sequence. */
static double product_flops(const bench_state *s)
{
    const mica_index *size = s->row->size;
    return 2.0 * (double)(size[0] * size[1]) * (double)(4 * size[3]) * (double)(size[2] + size[3]);
}

/* As networks start with, so that neither states nor gradients grow from step to step. */
static mica_status small_weights(bench_state *s)
{
    for (int k = W_IH; k <= B_HH; k++)
        BENCH_TRY(mica_scale(s->ctx, &s->t[k], &s->t[k], 1.0f / 16.0f));
    return MICA_OK;
}

static mica_status forward_setup(bench_state *s)
{
    mica_index steps = s->row->size[0], batch = s->row->size[1], inputs = s->row->size[2],
               hidden = s->row->size[3];
    BENCH_TRY(BENCH_TENSOR(s, steps, batch, hidden));
    BENCH_TRY(BENCH_TENSOR(s, steps, batch, inputs));
    BENCH_TRY(BENCH_TENSOR(s, 4 * hidden, inputs));
    BENCH_TRY(BENCH_TENSOR(s, 4 * hidden, hidden));
    BENCH_TRY(BENCH_TENSOR(s, 4 * hidden));
    BENCH_TRY(BENCH_TENSOR(s, 4 * hidden));
    for (int k = H_0; k <= C_N; k++)
        BENCH_TRY(BENCH_TENSOR(s, batch, hidden));
    s->flops = product_flops(s);
    return small_weights(s);
}

static mica_recurrent_weights weights(const bench_state *s)
{
    return (mica_recurrent_weights){&s->t[W_IH], &s->t[W_HH], &s->t[B_IH], &s->t[B_HH]};
}

static mica_status forward(bench_state *s)
{
    mica_recurrent_weights w = weights(s);
    return mica_lstm(
        s->ctx, &s->t[Y], &s->t[X], &w,
        &(mica_recurrent_opts){.h_0 = &s->t[H_0], .c_0 = &s->t[C_0], .h_n = &s->t[H_N], .c_n = &s->t[C_N]});
}

static mica_status both_setup(bench_state *s)
{
    mica_index steps = s->row->size[0], batch = s->row->size[1], inputs = s->row->size[2],
               hidden = s->row->size[3];
    BENCH_TRY(forward_setup(s));
    BENCH_TRY(BENCH_TENSOR(s, steps, batch, 4 * hidden));
    BENCH_TRY(BENCH_TENSOR(s, steps, batch, hidden));
    BENCH_TRY(BENCH_TENSOR(s, steps, batch, hidden));
    BENCH_TRY(BENCH_TENSOR(s, steps, batch, inputs));
    BENCH_TRY(BENCH_TENSOR(s, 4 * hidden, inputs));
    BENCH_TRY(BENCH_TENSOR(s, 4 * hidden, hidden));
    BENCH_TRY(BENCH_TENSOR(s, 4 * hidden));
    BENCH_TRY(BENCH_TENSOR(s, 4 * hidden));
    s->flops = 3.0 * product_flops(s);
    return MICA_OK;
}

static mica_status both(bench_state *s)
{
    mica_recurrent_weights w = weights(s);
    mica_recurrent_opts opts = {.gates = &s->t[GATES], .cells = &s->t[CELLS]};
    BENCH_TRY(mica_lstm(s->ctx, &s->t[Y], &s->t[X], &w, &opts));
    mica_recurrent_grads grads = {.x = &s->t[DX],
                                  .w_ih = &s->t[DW_IH],
                                  .w_hh = &s->t[DW_HH],
                                  .b_ih = &s->t[DB_IH],
                                  .b_hh = &s->t[DB_HH],
                                  .gates = &s->t[GATES]};
    mica_recurrent_dout dout = {.y = &s->t[DY]};
    mica_recurrent_saved saved = {.x = &s->t[X], .y = &s->t[Y], .gates = &s->t[GATES], .cells = &s->t[CELLS]};
    return mica_lstm_backward(s->ctx, &grads, &dout, &saved, &w);
}

static const bench_case cases[] = {
    {"lstm_1x16_128_256_fwd", forward_setup, forward, {1, 16, 128, 256}},
    {"lstm_1x1_128_256_fwd", forward_setup, forward, {1, 1, 128, 256}},
    {"lstm_32x1_100_128_fwd", forward_setup, forward, {32, 1, 100, 128}},
    {"lstm_32x8_100_128_fwd", forward_setup, forward, {32, 8, 100, 128}},
    {"lstm_64x16_128_256_fwd", forward_setup, forward, {64, 16, 128, 256}},
    {"lstm_64x16_128_256_fwd_bwd", both_setup, both, {64, 16, 128, 256}},
};

BENCH_FAMILY(recurrent, cases);
