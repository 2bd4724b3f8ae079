/* Timing one thing: calls in batches long enough for the clock, and the median of many batches. */
#ifndef MICA_BENCH_CLOCK_H
#define MICA_BENCH_CLOCK_H

#include <mica/base.h>

#define CLOCK_MOST_SAMPLES 2048

typedef mica_status clock_fn(void *work);

typedef struct clock_sample {
    double seconds; /* for one call */
    bool disturbed; /* the system gave a processor of ours to somebody else meanwhile; with one thread, which
                       waits for nobody, `seconds` is then the time that it had the processor */
} clock_sample;

typedef struct clocked {
    clock_fn *fn;
    void *work;
    int threads;         /* that fn uses */
    size_t batch;        /* calls in a sample */
    double call_seconds; /* roughly, from the beginning */
    size_t count;        /* samples taken; beyond CLOCK_MOST_SAMPLES they replace the oldest */
    clock_sample sample[CLOCK_MOST_SAMPLES];
} clocked;

double clock_seconds(void); /* since some moment */

/* Calls fn until it is warm, and settles how many calls make a sample of at least 200 microseconds. */
mica_status clock_begin(clocked *c, clock_fn *fn, void *work, int threads);

/* Times one batch of calls, and keeps nothing. */
mica_status clock_batch(clock_sample *out, const clocked *c);

/* Takes one sample. */
mica_status clock_take(clocked *c);

/* Whether there are enough samples that nothing disturbed. */
bool clock_clean(const clocked *c);

/* Of the samples so far, in seconds for one call: of the undisturbed ones if there are enough. */
double clock_median(clocked *c);
double clock_best(clocked *c);

#endif
