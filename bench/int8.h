/* Float nets against the same nets in int8. */
#ifndef MICA_BENCH_INT8_H
#define MICA_BENCH_INT8_H

#include <stdio.h>

#include "bench/bench.h"

#define INT8_LEAST_RATIO 2.0 /* of float's time to int8's, where the processor multiplies bytes (VNNI) */

/* Measures the pairs of bench_int8 whose names the filters choose, with each number of threads, a sample of floats and
 * one of bytes by turns, and prints the best time of a sample of the batch in both, and the ratio. Returns in how many
 * pairs int8 is not INT8_LEAST_RATIO times as fast, which without VNNI none has to be; -1 after a failure, with a
 * message on stderr; -2 if the filters choose none. */
int int8_print(FILE *out, const bench_options *options);

#endif
