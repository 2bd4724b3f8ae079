#include "bench/clock.h"

#include <stdlib.h>
#include <time.h>

#define SHORTEST_SAMPLE 200e-6 /* seconds; the clock itself takes some tens of nanoseconds */
#define WARM_CALLS      2
#define LARGEST_BATCH   ((size_t)1 << 24)

double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static mica_status time_batch(double *seconds, const clocked *c)
{
    double start = clock_seconds();
    for (size_t i = 0; i < c->batch; i++) {
        mica_status status = c->fn(c->work);
        if (status != MICA_OK)
            return status;
    }
    *seconds = clock_seconds() - start;
    return MICA_OK;
}

mica_status clock_begin(clocked *c, clock_fn *fn, void *work)
{
    *c = (clocked){.fn = fn, .work = work, .batch = 1};
    double seconds = 0.0;
    for (int i = 0; i < WARM_CALLS; i++) {
        mica_status status = time_batch(&seconds, c);
        if (status != MICA_OK)
            return status;
        if (seconds > 100 * SHORTEST_SAMPLE) /* long calls have warmed up by the end of the first */
            break;
    }
    while (seconds < SHORTEST_SAMPLE && c->batch < LARGEST_BATCH) {
        c->batch *= 2;
        mica_status status = time_batch(&seconds, c);
        if (status != MICA_OK)
            return status;
    }
    return MICA_OK;
}

mica_status clock_sample(clocked *c)
{
    double seconds;
    mica_status status = time_batch(&seconds, c);
    if (status == MICA_OK)
        c->sample[c->count++ % CLOCK_MOST_SAMPLES] = seconds / (double)c->batch;
    return status;
}

static size_t kept(const clocked *c) { return c->count < CLOCK_MOST_SAMPLES ? c->count : CLOCK_MOST_SAMPLES; }

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double clock_median(clocked *c)
{
    size_t n = kept(c);
    if (n == 0)
        return 0.0;
    qsort(c->sample, n, sizeof c->sample[0], by_size);
    return n % 2 == 1 ? c->sample[n / 2] : 0.5 * (c->sample[n / 2 - 1] + c->sample[n / 2]);
}

double clock_best(const clocked *c)
{
    double best = c->count > 0 ? c->sample[0] : 0.0;
    for (size_t i = 1; i < kept(c); i++)
        if (c->sample[i] < best)
            best = c->sample[i];
    return best;
}
