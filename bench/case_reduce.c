/* Reductions. size: { rows, columns, axis } */
#include "bench/bench.h"

static mica_status setup(bench_state *s)
{
    const mica_index *size = s->row->size;
    BENCH_TRY(BENCH_TENSOR(s, size[2] == 0 ? size[1] : size[0]));
    return BENCH_TENSOR(s, size[0], size[1]);
}

static mica_status sum(bench_state *s)
{
    mica_reduce_opts over = {.axes = {(int)s->row->size[2]}, .count = 1};
    return mica_sum(s->ctx, &s->t[0], &s->t[1], &over);
}

static mica_status amax(bench_state *s)
{
    mica_reduce_opts over = {.axes = {(int)s->row->size[2]}, .count = 1};
    return mica_amax(s->ctx, &s->t[0], &s->t[1], &over);
}

static const bench_case cases[] = {
    {"sum_rows_4096x512", setup, sum, {4096, 512, 1}},
    {"sum_columns_4096x512", setup, sum, {4096, 512, 0}},
    {"amax_rows_4096x512", setup, amax, {4096, 512, 1}},
};

BENCH_FAMILY(reduce, cases);
