/* Element-wise rows. size: { elements, calls in one operation } */
#include "bench/bench.h"

static mica_status add_setup(bench_state *s)
{
    for (int i = 0; i < 3; i++)
        BENCH_TRY(BENCH_TENSOR(s, s->row->size[0]));
    s->repeats = (double)s->row->size[1];
    return MICA_OK;
}

static mica_status add_run(bench_state *s)
{
    for (mica_index i = 0; i < s->row->size[1]; i++)
        BENCH_TRY(mica_add(s->ctx, &s->t[0], &s->t[1], &s->t[2]));
    return MICA_OK;
}

static const bench_case cases[] = {
    {"add_1m", add_setup, add_run, {1 << 20, 1}},
    {"add_into_dst_1000x512", add_setup, add_run, {512, 1000}},
};

BENCH_FAMILY(elementwise, cases);
