/* Rows for another program, which asks for them line by line. */
#ifndef MICA_BENCH_SERVE_H
#define MICA_BENCH_SERVE_H

#include <stdio.h>

#include "bench/bench.h"

/* The case of that name, or NULL. */
const bench_case *bench_find(const char *name);

/* Answers the lines of `in` until it ends. */
void bench_serve(mica_context *ctx, const bench_peak *peak, FILE *in, FILE *out);

#endif
