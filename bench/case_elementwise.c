/* Element-wise rows. size: { elements, calls in one operation } */
#include "bench/bench.h"

static mica_status setup(bench_state *s, int tensors)
{
    s->repeats = (double)s->row->size[1];
    for (int i = 0; i < tensors; i++)
        BENCH_TRY(BENCH_TENSOR(s, s->row->size[0]));
    return MICA_OK;
}

static mica_status unary_setup(bench_state *s) { return setup(s, 2); }
static mica_status binary_setup(bench_state *s) { return setup(s, 3); }

static mica_status add_run(bench_state *s)
{
    for (mica_index i = 0; i < s->row->size[1]; i++)
        BENCH_TRY(mica_add(s->ctx, &s->t[0], &s->t[1], &s->t[2]));
    return MICA_OK;
}

static mica_status copy_run(bench_state *s) { return mica_copy(s->ctx, &s->t[0], &s->t[1]); }
static mica_status scale_run(bench_state *s) { return mica_scale(s->ctx, &s->t[0], &s->t[1], 1.5f); }
static mica_status relu_run(bench_state *s) { return mica_relu(s->ctx, &s->t[0], &s->t[1]); }
static mica_status exp_run(bench_state *s) { return mica_exp(s->ctx, &s->t[0], &s->t[1]); }

static const bench_case cases[] = {
    {"add_1m", binary_setup, add_run, {1 << 20, 1}},
    {"copy_1m", unary_setup, copy_run, {1 << 20, 1}},
    {"scale_1m", unary_setup, scale_run, {1 << 20, 1}},
    {"relu_1m", unary_setup, relu_run, {1 << 20, 1}},
    {"exp_1m", unary_setup, exp_run, {1 << 20, 1}},
    {"add_into_dst_1000x512", binary_setup, add_run, {512, 1000}},
};

BENCH_FAMILY(elementwise, cases);
