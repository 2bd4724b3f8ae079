/* Measuring one case: set up, warm up, then samples of the case and of its limit in turns.
 *
 * The speed of a shared machine changes from second to second. A case and the probe that it is held against
 * are sampled alternately, so that both see the same machine and their ratio means something. */
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "bench/bench.h"
#include "bench/cost.h"
#include "host/heap.h"
#include "bench/measure.h"
#include "host/clock.h"

#define MOST_PATIENCE 3 /* times the time for a case, where others use the processor */

const char *bench_limit_name(bench_limit kind)
{
    static const char *const names[] = {"none", "fma", "copy", "int8", "read"};
    return names[kind];
}

/* ---- Tensors of a case ---- */

static void fill(float *data, size_t count, uint32_t seed)
{
    uint32_t state = seed * 2654435761u + 1u;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (float)(state >> 8) * 0x1p-23f - 1.0f;
    }
}

mica_status bench_tensor(bench_state *s, mica_dtype dtype, int rank, const mica_index *dims)
{
    if (s->tensors == BENCH_MOST_TENSORS)
        return mica_fail(s->ctx, MICA_ERR_STATE, "more than %d tensors in a case", BENCH_MOST_TENSORS);
    mica_tensor *t = &s->t[s->tensors];
    BENCH_TRY(mica_tensor_init(s->ctx, t, NULL, dtype, rank, dims));
    size_t bytes = mica_tensor_bytes(t);
    t->data = aligned_alloc(MICA_ALIGN, mica_align_up(bytes > 0 ? bytes : 1));
    if (t->data == NULL)
        return mica_fail(s->ctx, MICA_ERR_MEMORY, "no %zu bytes for a tensor", bytes);
    s->tensors++;
    if (dtype == MICA_F32)
        fill(t->data, mica_tensor_count(t), (uint32_t)s->tensors);
    else
        memset(t->data, 0, bytes);
    s->bytes += (double)bytes;
    return MICA_OK;
}

mica_status bench_turn(bench_state *s, int tensor)
{
    mica_tensor *t = &s->t[tensor], as_it_was = *t;
    size_t bytes = mica_tensor_bytes(t);
    as_it_was.data = malloc(bytes);
    if (as_it_was.data == NULL)
        return mica_fail(s->ctx, MICA_ERR_MEMORY, "no %zu bytes to turn a matrix", bytes);
    memcpy(as_it_was.data, t->data, bytes);
    t->stride[0] = 1;
    t->stride[1] = t->dim[0];
    mica_status status = mica_copy(s->ctx, t, &as_it_was);
    free(as_it_was.data);
    return status;
}

void bench_close(bench_state *s)
{
    for (int i = 0; i < s->tensors; i++)
        free(s->t[i].data);
    mica_net_destroy(s->net);
    mica_pool_destroy(s->pool);
    free(s->scratch);
}

/* ---- The machine ---- */

mica_status bench_measure_peak(bench_peak *out, mica_context *ctx, const bench_timing *timing)
{
    limit *fma = calloc(2, sizeof *fma);
    if (fma == NULL)
        return mica_fail(ctx, MICA_ERR_MEMORY, "no memory for the samples");
    limit *copy = fma + 1;
    mica_status status = limit_begin_fma(fma, ctx);
    if (status == MICA_OK)
        status = limit_begin_copy(copy, ctx, (double)BENCH_PROBE_BYTES);
    double end = clock_seconds() + timing->seconds;
    for (int i = 0; status == MICA_OK && (i < timing->min_samples || clock_seconds() < end); i++) {
        status = limit_take(fma);
        if (status == MICA_OK)
            status = limit_take(copy);
    }
    if (status == MICA_OK)
        *out = (bench_peak){mica_context_threads(ctx), 1e-9 * limit_rate(fma, false),
                            1e-9 * limit_rate(copy, false)};
    limit_end(copy);
    free(fma);
    return status;
}

/* ---- A case ---- */

static mica_status run_case(void *work)
{
    bench_state *s = work;
    return s->row->run(s);
}

/* Asks how much scratch the case takes, and sees that the context has it. */
static mica_status reserve_workspace(bench_state *s)
{
    mica_measure_begin(s->ctx);
    mica_status status = s->row->run(s);
    size_t bytes = mica_measure_end(s->ctx);
    BENCH_TRY(status);
    return mica_workspace_reserve(s->ctx, bytes);
}

/* A disturbed case gets more time, but not without end. */
static bool wants_more(const bench_timing *timing, const timed_calls *timed, int samples, double seconds)
{
    if (samples < timing->min_samples || seconds < timing->seconds)
        return true;
    return !timing_clean(timed) && seconds < MOST_PATIENCE * timing->seconds;
}

static mica_status take_samples(bench_result *out, timed_calls *timed, limit *against,
                                const bench_timing *timing)
{
    heap_counts used = {0};
    double start = clock_seconds();
    for (int i = 0; wants_more(timing, timed, i, clock_seconds() - start); i++) {
        heap_counts before = heap_now();
        BENCH_TRY(timing_take(timed));
        heap_counts after = heap_now();
        used.calls += after.calls - before.calls;
        used.bytes += after.bytes - before.bytes;
        BENCH_TRY(limit_take(against));
    }
    double operations = (double)timed->count * (double)timed->batch;
    out->allocs = (double)used.calls / operations;
    out->bytes = (double)used.bytes / operations;
    return MICA_OK;
}

double bench_work(const bench_timed *open)
{
    const bench_state *s = &open->state;
    bool computes = open->against.kind == BENCH_LIMIT_FMA || open->against.kind == BENCH_LIMIT_INT8;
    return computes ? s->flops : s->bytes * s->repeats;
}

static void summarize(bench_result *out, bench_timed *open)
{
    const bench_state *s = &open->state;
    limit *against = &open->against;
    out->disturbed = !timing_clean(&open->timed);
    double seconds = timing_median(&open->timed);
    out->name = s->row->name;
    out->threads = mica_context_threads(s->ctx);
    out->ns = 1e9 * seconds;
    out->ns_min = 1e9 * timing_best(&open->timed);
    out->gflops = 1e-9 * s->flops / seconds;
    out->gbs = 1e-9 * s->bytes * s->repeats / seconds;
    out->limit = against->kind;
    if (against->kind != BENCH_LIMIT_NONE) {
        bool rough = out->disturbed || !limit_clean(against);
        double took = rough ? out->ns_min : out->ns;
        out->percent = 100.0 * (1e9 * bench_work(open) / took) / limit_rate(against, rough);
    }
}

mica_status bench_open(bench_state *out, mica_context *ctx, const bench_case *row)
{
    *out = (bench_state){.row = row, .ctx = ctx, .repeats = 1.0};
    BENCH_TRY(row->setup(out));
    return reserve_workspace(out);
}

void bench_end(bench_timed *open)
{
    if (open == NULL)
        return;
    limit_end(&open->against);
    bench_close(&open->state);
    free(open);
}

mica_status bench_begin(bench_timed **out, mica_context *ctx, const bench_case *row, const bench_peak *peak)
{
    *out = NULL;
    bench_timed *open = calloc(1, sizeof *open);
    if (open == NULL)
        return mica_fail(ctx, MICA_ERR_MEMORY, "no memory for the samples");
    mica_status status = bench_open(&open->state, ctx, row);
    if (status == MICA_OK)
        status = limit_begin(&open->against, &open->state, peak);
    if (status == MICA_OK)
        status = timing_begin(&open->timed, run_case, &open->state, mica_context_threads(ctx));
    if (status == MICA_OK)
        *out = open;
    else
        bench_end(open);
    return status;
}

mica_status bench_measure(bench_result *out, mica_context *ctx, const bench_case *row, const bench_peak *peak,
                          const bench_timing *timing)
{
    *out = (bench_result){0};
    bench_timed *open;
    BENCH_TRY(bench_begin(&open, ctx, row, peak));
    mica_status status = take_samples(out, &open->timed, &open->against, timing);
    cost counted = {COST_UNKNOWN, COST_UNKNOWN};
    if (status == MICA_OK)
        status = cost_count(&counted, &open->timed);
    out->instructions = counted.instructions;
    out->moved = counted.moved;
    if (status == MICA_OK)
        summarize(out, open);
    bench_end(open);
    return status;
}
