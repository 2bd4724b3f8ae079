/* What an operation costs besides time: instructions, and bytes that came from beyond the last cache. */
#ifndef MICA_BENCH_COST_H
#define MICA_BENCH_COST_H

#include "bench/timing.h"

#define COST_UNKNOWN (-1.0)

typedef struct cost {
    double instructions, moved; /* of one operation; COST_UNKNOWN */
} cost;

/* The processor's own counters, of this process and all threads that it makes from here on. Returns NULL, or why there
 * are none. cost_end closes them. */
const char *cost_begin(void);
void cost_end(void);

/* Counts a batch of calls. Unknown where there are no counters. */
mica_status cost_count(cost *out, const timed_calls *calls);

/* Runs `mica bench --exactly NAME --calls` under valgrind with one thread, with few and with more calls: the difference
 * is theirs. NULL, or why that failed. */
const char *cost_by_valgrind(cost *out, const char *name);

#endif
