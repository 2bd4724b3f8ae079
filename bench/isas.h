/* Cases on every instruction set that this processor runs, side by side. */
#ifndef MICA_BENCH_ISAS_H
#define MICA_BENCH_ISAS_H

#include <stdio.h>

#include "bench/bench.h"

/* Measures each of the rows with each number of threads, the sets by turns until that decides it, and prints the best
 * time of each set and how many times as fast the first, the library's own choice, is as the next. Returns on how many
 * rows it is slower; -1 after a failure, with a message on stderr. */
int isas_print(FILE *out, const bench_case *const *rows, size_t count, const bench_options *options);

#endif
