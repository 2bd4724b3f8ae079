/* Every path of a convolution against the one that is chosen. */
#ifndef MICA_BENCH_PATHS_H
#define MICA_BENCH_PATHS_H

#include "bench/bench.h"

/* Convolutions of known nets: no batch, which is 1, 8 and 32 of each. Padding keeps the size, up to the stride. */
typedef struct paths_shape {
    const char *net;
    mica_index in, out; /* channels */
    mica_index rows, columns;
    mica_index kernel[2];
    mica_index stride;
    mica_index groups;
} paths_shape;

extern const paths_shape paths_shapes[];
extern const size_t paths_shape_count;

/* Measures every path that fits each shape that the filters choose (none: all), forward and both gradients, and prints
 * a line for each, and how far what is chosen is from the best over all of them. Returns as bench_run does. */
int bench_paths(const bench_options *options);

#endif
