/* How time and memory grow with a net's sizes. */
#ifndef MICA_BENCH_GROWTH_H
#define MICA_BENCH_GROWTH_H

#include <stdio.h>

#include "bench/bench.h"

/* Measures every series whose name the filters choose (none: all) and prints a line for each. Returns how many grew
 * beyond their bound; -1 after a failure, of which the context has the text. */
int growth_print(FILE *out, mica_context *ctx, const bench_options *options);

#endif
