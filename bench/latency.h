/* How long single runs of a small controller take, and how long the longest of them. */
#ifndef MICA_BENCH_LATENCY_H
#define MICA_BENCH_LATENCY_H

#include "bench/bench.h"

/* Prints the percentiles of single runs (--quick: fewer of them), and writes them to options->json. Returns what a
 * program should end with. */
int bench_latency(const bench_options *options, bool quick);

#endif
