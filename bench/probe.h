/* The limits that rows are held against, as things to be timed. */
#ifndef MICA_BENCH_PROBE_H
#define MICA_BENCH_PROBE_H

#include "bench/timing.h"

/* Multiply-adds by all threads of a context. */
typedef struct fma_probe {
    mica_context *ctx;
    size_t blocks;
    double flops; /* of one call */
    bool bytes;   /* products of bytes in integers, else of floats */
} fma_probe;

fma_probe fma_probe_make(mica_context *ctx);
fma_probe byte_probe_make(mica_context *ctx);
mica_status fma_probe_run(void *probe);

/* A copy by all threads of a context. There are two ways to copy, and the faster one is the limit: the C
 * library's memcpy, which knows when to store past the cache, and a plain loop of vectors. */
typedef struct copy_probe {
    mica_context *ctx;
    float *dst, *src;
    size_t count; /* elements */
    bool plain;   /* the loop, else memcpy */
} copy_probe;

/* `bytes`: read and written together, so half of it is copied. */
mica_status copy_probe_make(copy_probe *out, mica_context *ctx, double bytes);
mica_status copy_probe_run(void *probe);
void copy_probe_release(copy_probe *probe);

/* Reading by all threads of a context: what a product with weights that are read once cannot exceed. */
typedef struct read_probe {
    mica_context *ctx;
    float *data;
    size_t count; /* elements */
} read_probe;

mica_status read_probe_make(read_probe *out, mica_context *ctx, double bytes);
mica_status read_probe_run(void *probe);
void read_probe_release(read_probe *probe);

#endif
