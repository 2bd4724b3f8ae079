#include "bench/limit.h"

#define TRIAL_SAMPLES 6 /* to see which limit it is */

mica_status limit_begin_fma(limit *l, mica_context *ctx)
{
    l->kind = BENCH_LIMIT_FMA;
    l->fma = fma_probe_make(ctx);
    l->work = l->fma.flops;
    l->ways = 1;
    return timing_begin(&l->clock[0], fma_probe_run, &l->fma, mica_context_threads(ctx));
}

mica_status limit_begin_copy(limit *l, mica_context *ctx, double bytes)
{
    l->kind = BENCH_LIMIT_COPY;
    BENCH_TRY(copy_probe_make(&l->copy[0], ctx, bytes));
    l->work = 2.0 * (double)l->copy[0].count * sizeof(float);
    l->copy[1] = l->copy[0];
    l->copy[1].plain = true;
    l->ways = 2;
    for (int way = 0; way < l->ways; way++)
        BENCH_TRY(timing_begin(&l->clock[way], copy_probe_run, &l->copy[way], mica_context_threads(ctx)));
    return MICA_OK;
}

/* Of quantized weights: products of bytes, or reading them. */
static mica_status begin_quantized(limit *l, const bench_state *s)
{
    l->ways = 1;
    if (s->flops > 0.0) {
        l->kind = BENCH_LIMIT_INT8;
        l->fma = byte_probe_make(s->ctx);
        l->work = l->fma.flops;
        return timing_begin(&l->clock[0], fma_probe_run, &l->fma, mica_context_threads(s->ctx));
    }
    l->kind = BENCH_LIMIT_READ;
    BENCH_TRY(read_probe_make(&l->read, s->ctx, s->bytes));
    l->work = (double)l->read.count * sizeof(float);
    return timing_begin(&l->clock[0], read_probe_run, &l->read, mica_context_threads(s->ctx));
}

mica_status limit_begin(limit *l, const bench_state *s, const bench_peak *peak)
{
    if (s->quantized)
        return begin_quantized(l, s);
    double copy_seconds = 0.0, fma_seconds = s->flops / (1e9 * peak->gflops);
    if (s->bytes > 0.0) {
        BENCH_TRY(limit_begin_copy(l, s->ctx, s->bytes));
        for (int i = 0; i < TRIAL_SAMPLES; i++)
            BENCH_TRY(limit_take(l));
        copy_seconds = l->work / limit_rate(l, true);
    }
    if (fma_seconds <= copy_seconds * s->repeats)
        return MICA_OK; /* also where there is neither */
    limit_end(l);
    return limit_begin_fma(l, s->ctx);
}

mica_status limit_take(limit *l)
{
    if (l->ways == 0)
        return MICA_OK;
    l->turn = (l->turn + 1) % l->ways;
    return timing_take(&l->clock[l->turn]);
}

bool limit_clean(const limit *l)
{
    bool clean = true;
    for (int way = 0; way < l->ways; way++)
        clean = clean && timing_clean(&l->clock[way]);
    return clean;
}

double limit_rate(limit *l, bool best)
{
    double rate = 0.0;
    for (int way = 0; way < l->ways; way++) {
        double seconds = best ? timing_best(&l->clock[way]) : timing_median(&l->clock[way]);
        if (seconds > 0.0 && l->work / seconds > rate)
            rate = l->work / seconds;
    }
    return rate;
}

void limit_end(limit *l)
{
    read_probe_release(&l->read);
    copy_probe_release(&l->copy[0]); /* the other has the same memory */
    l->copy[1] = l->copy[0];
    l->kind = BENCH_LIMIT_NONE;
    l->ways = 0;
}
