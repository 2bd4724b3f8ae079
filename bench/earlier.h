/* An earlier run, from its JSON file. */
#ifndef MICA_BENCH_EARLIER_H
#define MICA_BENCH_EARLIER_H

#include "bench/bench.h"

typedef struct bench_earlier {
    bench_result *results; /* names lie in the text that was read */
    size_t count;
    size_t error_at; /* where in the text reading failed, and why */
    char error[160];
} bench_earlier;

/* Reads the whole text, which need not be terminated and is changed: strings are decoded in place. False, with the
 * error set and no results, if it is not the JSON of a run. */
bool earlier_read(bench_earlier *out, char *text, size_t length);
void earlier_release(bench_earlier *earlier);

#endif
