#include "bench/timing.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "host/clock.h"

#define SHORTEST_SAMPLE 200e-6 /* seconds; the clock itself takes some tens of nanoseconds */
#define LONG_CALL       10e-3  /* seconds; such a call warms up in a small part of itself */
#define ROUGH_TRIES     8
#define ROUGH_SECONDS   50e-3
#define LARGEST_BATCH   ((size_t)1 << 24)
#define ENOUGH          3 /* undisturbed samples to trust them alone */

/* How often the system took a processor away from a thread of ours. */
static long interruptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

mica_status timing_batch(timing_sample *out, const timed_calls *c)
{
    long before = interruptions();
    double own_start = clock_cpu_seconds(), start = clock_seconds();
    for (size_t i = 0; i < c->batch; i++) {
        mica_status status = c->fn(c->work);
        if (status != MICA_OK)
            return status;
    }
    double seconds = clock_seconds() - start, own = clock_cpu_seconds() - own_start;
    out->disturbed = interruptions() != before;
    out->seconds = (out->disturbed && c->threads == 1 ? own : seconds) / (double)c->batch;
    return MICA_OK;
}

/* The best of a few batches, or the first that nothing disturbed: one interruption must not settle how long a
 * call takes. */
static mica_status time_roughly(timing_sample *out, const timed_calls *c)
{
    *out = (timing_sample){.seconds = INFINITY, .disturbed = true};
    double start = clock_seconds();
    for (int i = 0; i < ROUGH_TRIES && out->disturbed && clock_seconds() - start < ROUGH_SECONDS; i++) {
        timing_sample sample;
        mica_status status = timing_batch(&sample, c);
        if (status != MICA_OK)
            return status;
        if (sample.seconds < out->seconds || !sample.disturbed)
            *out = sample;
    }
    return MICA_OK;
}

mica_status timing_begin(timed_calls *c, timing_fn *fn, void *work, int threads)
{
    *c = (timed_calls){.fn = fn, .work = work, .threads = threads, .batch = 1};
    mica_status status = fn(work); /* the first call finds everything cold */
    timing_sample last = {0};
    for (; status == MICA_OK; c->batch *= 2) {
        status = time_roughly(&last, c);
        if (last.seconds * (double)c->batch >= SHORTEST_SAMPLE || c->batch >= LARGEST_BATCH)
            break;
    }
    c->call_seconds = last.seconds;
    return status;
}

mica_status timing_take(timed_calls *c)
{
    /* Something else was timed since the last sample: one call brings our own data back into the caches. */
    mica_status status = c->call_seconds < LONG_CALL ? c->fn(c->work) : MICA_OK;
    if (status == MICA_OK)
        status = timing_batch(&c->sample[c->count % TIMING_MOST_SAMPLES], c);
    if (status == MICA_OK)
        c->count++;
    return status;
}

static size_t kept(const timed_calls *c)
{
    return c->count < TIMING_MOST_SAMPLES ? c->count : TIMING_MOST_SAMPLES;
}

static size_t clean_samples(const timed_calls *c)
{
    size_t clean = 0;
    for (size_t i = 0; i < kept(c); i++)
        clean += !c->sample[i].disturbed;
    return clean;
}

bool timing_clean(const timed_calls *c) { return clean_samples(c) >= ENOUGH; }

static int by_time(const void *a, const void *b)
{
    const timing_sample *x = a, *y = b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

static int undisturbed_first(const void *a, const void *b)
{
    const timing_sample *x = a, *y = b;
    return x->disturbed != y->disturbed ? x->disturbed - y->disturbed : by_time(a, b);
}

/* Sorts those that count to the front, and returns how many. */
static size_t sort_samples(timed_calls *c)
{
    bool clean = timing_clean(c);
    qsort(c->sample, kept(c), sizeof c->sample[0], clean ? undisturbed_first : by_time);
    return clean ? clean_samples(c) : kept(c);
}

double timing_median(timed_calls *c)
{
    size_t n = sort_samples(c);
    if (n == 0)
        return 0.0;
    return 0.5 * (c->sample[(n - 1) / 2].seconds + c->sample[n / 2].seconds);
}

double timing_best(timed_calls *c) { return sort_samples(c) > 0 ? c->sample[0].seconds : 0.0; }
