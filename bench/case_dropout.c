/* Dropout at a rate of one half. size: { rows, columns } */
#include "bench/bench.h"

#define RATE 0.5f

static mica_status setup(bench_state *s)
{
    const mica_index *size = s->row->size;
    BENCH_TRY(BENCH_TENSOR(s, size[0], size[1]));
    BENCH_TRY(BENCH_TENSOR(s, size[0], size[1]));
    return bench_tensor(s, MICA_U8, 2, size); /* the mask */
}

static mica_status forward(bench_state *s)
{
    mica_dropout_opts opts = {.rate = RATE, .random = {.seed = 1}};
    return mica_dropout(s->ctx, &s->t[0], &s->t[2], &s->t[1], &opts);
}

static mica_status backward_setup(bench_state *s)
{
    BENCH_TRY(setup(s));
    return forward(s); /* the mask that backward reads */
}

static mica_status backward(bench_state *s)
{
    return mica_dropout_backward(s->ctx, &s->t[0], &s->t[1], &s->t[2], RATE);
}

static const bench_case cases[] = {
    {"dropout_32x512_fwd", setup, forward, {32, 512}},
    {"dropout_32x512_bwd", backward_setup, backward, {32, 512}},
};

BENCH_FAMILY(dropout, cases);
