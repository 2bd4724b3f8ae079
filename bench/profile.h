/* Where the time of a net's step goes: each node held against the roofline. */
#ifndef MICA_BENCH_PROFILE_H
#define MICA_BENCH_PROFILE_H

#include <stdio.h>

#include "bench/bench.h"
#include "bench/timing.h"

typedef struct profile_subject {
    const char *name;
    mica_net *net;
    timing_fn *step; /* sets the inputs and runs one step, or forward */
    void *work;      /* for it */
} profile_subject;

/* Measures and prints: a line for each thing that a step runs, then sums by kind and phase. */
mica_status profile_print(FILE *out, const profile_subject *subject, const bench_peak *peak,
                          const bench_timing *timing);

/* The same of a net that is built: compiles it, for training or for inference, and binds it. */
mica_status profile_net(FILE *out, const char *name, mica_net *net, const mica_compile_opts *opts,
                        const bench_timing *timing);

#endif
