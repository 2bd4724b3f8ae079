/* The limit that a row is held against, sampled in turns with it. */
#ifndef MICA_BENCH_LIMIT_H
#define MICA_BENCH_LIMIT_H

#include "bench/bench.h"
#include "bench/probe.h"

#define LIMIT_MOST_WAYS 2

typedef struct limit {
    bench_limit kind;
    double work; /* of one call of a probe: flops or bytes */
    fma_probe fma;
    copy_probe copy[LIMIT_MOST_WAYS]; /* memcpy, and the plain loop, over the same memory */
    read_probe read;
    timed_calls clock[LIMIT_MOST_WAYS]; /* of each way to reach the limit: the faster one counts */
    int ways, turn;
} limit;

mica_status limit_begin_fma(limit *l, mica_context *ctx);
mica_status limit_begin_copy(limit *l, mica_context *ctx, double bytes);

/* The one that allows less: `flops` at the peak, or moving `bytes` as often as `repeats`. None if all are 0. */
mica_status limit_begin(limit *l, const bench_state *s, const bench_peak *peak);

/* One sample, of each way in turn: were both taken at once, over the same memory, the second would find it
 * warmer than a row ever does. */
mica_status limit_take(limit *l);
bool limit_clean(const limit *l);

/* Flops or bytes in a second: by the medians of the samples, or by the best of them. */
double limit_rate(limit *l, bool best);

void limit_end(limit *l);

#endif
