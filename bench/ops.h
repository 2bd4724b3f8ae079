/* Rows for every operation of the list: op_NAME, each on a sample of its entry's, made large. */
#ifndef MICA_BENCH_OPS_H
#define MICA_BENCH_OPS_H

#include "bench/bench.h"

/* One block with the rows and their names, for the caller to free; NULL without memory. */
bench_case *bench_op_rows(size_t *count);

#endif
