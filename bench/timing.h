/* Timing one thing: calls in batches long enough for the clock, and the median of many batches. */
#ifndef MICA_BENCH_TIMING_H
#define MICA_BENCH_TIMING_H

#include <mica/base.h>

#define TIMING_MOST_SAMPLES 2048

typedef mica_status timing_fn(void *work);

typedef struct timing_sample {
    double seconds; /* for one call */
    bool disturbed; /* the system gave a processor of ours to somebody else meanwhile; with one thread, which
                       waits for nobody, `seconds` is then the time that it had the processor */
} timing_sample;

typedef struct timed_calls {
    timing_fn *fn;
    void *work;
    int threads;         /* that fn uses */
    size_t batch;        /* calls in a sample */
    double call_seconds; /* roughly, from the beginning */
    size_t count;        /* samples taken; beyond TIMING_MOST_SAMPLES they replace the oldest */
    timing_sample sample[TIMING_MOST_SAMPLES];
} timed_calls;

/* Calls fn until it is warm, and settles how many calls make a sample of at least 200 microseconds. */
mica_status timing_begin(timed_calls *c, timing_fn *fn, void *work, int threads);

/* Times one batch of calls, and keeps nothing. */
mica_status timing_batch(timing_sample *out, const timed_calls *c);

/* Takes one sample. */
mica_status timing_take(timed_calls *c);

/* Whether there are enough samples that nothing disturbed. */
bool timing_clean(const timed_calls *c);

/* Of the samples so far, in seconds for one call: of the undisturbed ones if there are enough. */
double timing_median(timed_calls *c);
double timing_best(timed_calls *c);

#endif
