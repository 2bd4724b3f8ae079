/* Measuring one case: set up, warm up, then samples of the case and of its limit in turns.
 *
 * The speed of a shared machine changes from second to second. A case and the probe that it is held against
 * are sampled alternately, so that both see the same machine and their ratio means something. */
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "bench/bench.h"
#include "bench/heap.h"
#include "bench/probe.h"

#define MOST_PATIENCE 3 /* times the time for a case, where others use the processor */
#define TRIAL_SAMPLES 5 /* to choose between limits, or between ways to copy */

const char *bench_limit_name(bench_limit limit)
{
    static const char *const names[] = {"none", "fma", "copy"};
    return names[limit];
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

static void release(bench_state *s)
{
    for (int i = 0; i < s->tensors; i++)
        free(s->t[i].data);
    mica_pool_destroy(s->pool);
    free(s->scratch);
}

/* ---- Limits ---- */

typedef struct limit {
    bench_limit kind;
    double work; /* of one call of the probe: flops or bytes */
    fma_probe fma;
    copy_probe copy;
    clocked clock;
} limit;

static mica_status trial(double *best, clocked *c, clock_fn *fn, void *work)
{
    BENCH_TRY(clock_begin(c, fn, work));
    for (int i = 0; i < TRIAL_SAMPLES; i++)
        BENCH_TRY(clock_take(c));
    *best = clock_best(c);
    return MICA_OK;
}

static mica_status begin_fma(limit *l, mica_context *ctx)
{
    l->kind = BENCH_LIMIT_FMA;
    l->fma = fma_probe_make(ctx);
    l->work = l->fma.flops;
    return clock_begin(&l->clock, fma_probe_run, &l->fma);
}

/* Tries both ways to copy and stays with the faster; its time for the bytes goes to *best. */
static mica_status begin_copy(limit *l, double *best, mica_context *ctx, double bytes)
{
    l->kind = BENCH_LIMIT_COPY;
    BENCH_TRY(copy_probe_make(&l->copy, ctx, bytes));
    l->work = 2.0 * (double)l->copy.count * sizeof(float);
    double library, plain;
    BENCH_TRY(trial(&library, &l->clock, copy_probe_run, &l->copy));
    l->copy.plain = true;
    BENCH_TRY(trial(&plain, &l->clock, copy_probe_run, &l->copy));
    l->copy.plain = plain <= library;
    *best = plain <= library ? plain : library;
    return clock_begin(&l->clock, copy_probe_run, &l->copy);
}

/* The limit that allows the least is the one that counts. */
static mica_status begin_limit(limit *l, const bench_state *s, const bench_peak *peak)
{
    double copy_seconds = 0.0, fma_seconds = s->flops / (1e9 * peak->gflops);
    if (s->bytes > 0.0)
        BENCH_TRY(begin_copy(l, &copy_seconds, s->ctx, s->bytes));
    if (fma_seconds <= copy_seconds * s->repeats)
        return MICA_OK; /* also where there is neither */
    copy_probe_release(&l->copy);
    return begin_fma(l, s->ctx);
}

mica_status bench_measure_peak(bench_peak *out, mica_context *ctx, const bench_timing *timing)
{
    limit *fma = calloc(2, sizeof *fma);
    if (fma == NULL)
        return mica_fail(ctx, MICA_ERR_MEMORY, "no memory for the samples");
    limit *copy = fma + 1;
    double best;
    mica_status status = begin_fma(fma, ctx);
    if (status == MICA_OK)
        status = begin_copy(copy, &best, ctx, (double)BENCH_PROBE_BYTES);
    double end = clock_seconds() + timing->seconds;
    for (int i = 0; status == MICA_OK && (i < timing->min_samples || clock_seconds() < end); i++) {
        status = clock_take(&fma->clock);
        if (status == MICA_OK)
            status = clock_take(&copy->clock);
    }
    if (status == MICA_OK)
        *out = (bench_peak){mica_context_threads(ctx), 1e-9 * fma->work / clock_median(&fma->clock),
                            1e-9 * copy->work / clock_median(&copy->clock)};
    copy_probe_release(&copy->copy);
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
static bool wants_more(const bench_timing *timing, const clocked *timed, int samples, double seconds)
{
    if (samples < timing->min_samples || seconds < timing->seconds)
        return true;
    return !clock_clean(timed) && seconds < MOST_PATIENCE * timing->seconds;
}

static mica_status take_samples(bench_result *out, clocked *timed, limit *against, const bench_timing *timing)
{
    heap_counts used = {0};
    double start = clock_seconds();
    for (int i = 0; wants_more(timing, timed, i, clock_seconds() - start); i++) {
        heap_counts before = heap_now();
        BENCH_TRY(clock_take(timed));
        heap_counts after = heap_now();
        used.calls += after.calls - before.calls;
        used.bytes += after.bytes - before.bytes;
        if (against->kind != BENCH_LIMIT_NONE)
            BENCH_TRY(clock_take(&against->clock));
    }
    double operations = (double)timed->count * (double)timed->batch;
    out->allocs = (double)used.calls / operations;
    out->bytes = (double)used.bytes / operations;
    return MICA_OK;
}

static void summarize(bench_result *out, const bench_state *s, clocked *timed, limit *against)
{
    out->disturbed = !clock_clean(timed);
    double seconds = clock_median(timed), bytes = s->bytes * s->repeats;
    out->name = s->row->name;
    out->threads = mica_context_threads(s->ctx);
    out->ns = 1e9 * seconds;
    out->ns_min = 1e9 * clock_best(timed);
    out->gflops = 1e-9 * s->flops / seconds;
    out->gbs = 1e-9 * bytes / seconds;
    out->limit = against->kind;
    if (against->kind != BENCH_LIMIT_NONE) {
        double work = against->kind == BENCH_LIMIT_FMA ? s->flops : bytes;
        bool rough = out->disturbed || !clock_clean(&against->clock);
        double took = rough ? clock_best(timed) : seconds;
        double limit_took = rough ? clock_best(&against->clock) : clock_median(&against->clock);
        out->percent = 100.0 * (work / took) / (against->work / limit_took);
    }
}

mica_status bench_measure(bench_result *out, mica_context *ctx, const bench_case *row, const bench_peak *peak,
                          const bench_timing *timing)
{
    *out = (bench_result){0};
    bench_state s = {.row = row, .ctx = ctx, .repeats = 1.0};
    clocked *timed = calloc(1, sizeof *timed);
    limit *against = calloc(1, sizeof *against);
    mica_status status = timed == NULL || against == NULL
                             ? mica_fail(ctx, MICA_ERR_MEMORY, "no memory for the samples")
                             : row->setup(&s);
    if (status == MICA_OK)
        status = reserve_workspace(&s);
    if (status == MICA_OK)
        status = begin_limit(against, &s, peak);
    if (status == MICA_OK)
        status = clock_begin(timed, run_case, &s);
    if (status == MICA_OK) {
        if (against->kind != BENCH_LIMIT_NONE)
            clock_match(&against->clock, timed);
        status = take_samples(out, timed, against, timing);
    }
    if (status == MICA_OK)
        summarize(out, &s, timed, against);
    if (against != NULL)
        copy_probe_release(&against->copy);
    free(against);
    free(timed);
    release(&s);
    return status;
}
