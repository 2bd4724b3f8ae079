/* Rows about memory itself. size: { elements, buffers in one operation } */
#include "bench/bench.h"

#define MOST_RENTED 1000

static mica_status pool_setup(bench_state *s)
{
    return mica_pool_create(s->ctx, &s->pool, &(mica_pool_opts){.limit = MOST_RENTED});
}

/* One after another: each goes back before the next is rented. */
static mica_status pool_in_turn(bench_state *s)
{
    size_t bytes = (size_t)s->row->size[0] * sizeof(float);
    for (mica_index i = 0; i < s->row->size[1]; i++) {
        void *buffer;
        BENCH_TRY(mica_pool_rent(s->ctx, &buffer, s->pool, bytes));
        BENCH_TRY(mica_pool_return(s->ctx, s->pool, buffer));
    }
    return MICA_OK;
}

/* All at once, then all back. */
static mica_status pool_together(bench_state *s)
{
    size_t bytes = (size_t)s->row->size[0] * sizeof(float);
    void *buffer[MOST_RENTED];
    for (mica_index i = 0; i < s->row->size[1]; i++)
        BENCH_TRY(mica_pool_rent(s->ctx, &buffer[i], s->pool, bytes));
    for (mica_index i = 0; i < s->row->size[1]; i++)
        BENCH_TRY(mica_pool_return(s->ctx, s->pool, buffer[i]));
    return MICA_OK;
}

static mica_status scope_run(bench_state *s)
{
    mica_scope scope;
    size_t bytes = (size_t)s->row->size[0] * sizeof(float);
    BENCH_TRY(mica_scope_begin(s->ctx, &scope, s->pool));
    for (mica_index i = 0; i < s->row->size[1]; i++) {
        void *buffer;
        BENCH_TRY(mica_scope_rent(s->ctx, &buffer, &scope, bytes));
    }
    mica_scope_end(&scope);
    return MICA_OK;
}

static const bench_case cases[] = {
    {"pool_rent_return_1000x512", pool_setup, pool_in_turn, {512, 1000}},
    {"pool_rent_all_return_all_1000x512", pool_setup, pool_together, {512, MOST_RENTED}},
    {"pool_scope_1000x512", pool_setup, scope_run, {512, MOST_RENTED}},
};

BENCH_FAMILY(memory, cases);
