/* Timing one thing: calls in batches long enough for the clock, and the median of many batches. */
#ifndef MICA_BENCH_CLOCK_H
#define MICA_BENCH_CLOCK_H

#include <mica/base.h>

#define CLOCK_MOST_SAMPLES 2048

typedef mica_status clock_fn(void *work);

typedef struct clocked {
    clock_fn *fn;
    void *work;
    size_t batch; /* calls in a sample */
    size_t count;
    double sample[CLOCK_MOST_SAMPLES]; /* seconds for one call */
} clocked;

double clock_seconds(void); /* since some moment */

/* Calls fn until it is warm, and settles how many calls make a sample of at least 200 microseconds. */
mica_status clock_begin(clocked *c, clock_fn *fn, void *work);

/* Takes one sample; beyond CLOCK_MOST_SAMPLES they replace the oldest. */
mica_status clock_sample(clocked *c);

/* Of the samples so far, in seconds for one call. */
double clock_median(clocked *c);
double clock_best(const clocked *c);

#endif
