/* Training steps by several ranks: how long they take, and how much of what travels is hidden behind backward. */
#ifndef MICA_BENCH_RANKS_H
#define MICA_BENCH_RANKS_H

#include <mica/ranks.h>

#include "bench/bench.h"

/* What the wire did since the program began. */
typedef struct bench_wire_use {
    double waited;       /* seconds in calls that wait */
    double polled;       /* seconds in calls that start messages and look for them */
    uint64_t heap_calls; /* of its own */
} bench_wire_use;

typedef struct bench_wire {
    const mica_transport *transport; /* NULL: this process alone */
    bench_wire_use (*use)(void);
} bench_wire;

/* By all ranks at once, with the same options; rank 0 writes. Returns as bench_run does. */
int bench_ranks(const bench_options *options, const bench_wire *wire);

#endif
