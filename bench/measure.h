/* A case that is set up and warm, with the limit that it is held against. */
#ifndef MICA_BENCH_MEASURE_H
#define MICA_BENCH_MEASURE_H

#include "bench/limit.h"

typedef struct bench_timed {
    bench_state state;
    timed_calls timed;
    limit against;
} bench_timed;

/* Sets the case up and settles its sample. On failure *out is NULL, and the context has the text. */
mica_status bench_begin(bench_timed **out, mica_context *ctx, const bench_case *row, const bench_peak *peak);
void bench_end(bench_timed *open); /* or NULL */

/* The work of one operation in the unit of its limit: flops or bytes. */
double bench_work(const bench_timed *open);

#endif
