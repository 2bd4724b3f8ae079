/* Work split into numbered blocks, run by the context's threads.
 *
 * How work is split depends only on its size, not on the number of threads, unless no summation order changes;
 * and every block writes only its own part. Each thread starts with its own share and then helps the
 * others, so which thread runs a block varies; the result is bit-identical either way. */
#ifndef MICA_SRC_BASE_PARALLEL_H
#define MICA_SRC_BASE_PARALLEL_H

#include "base/context.h"
#include "base/size.h"

/* Does block `block`. `thread` is 0 to threads - 1: an index for scratch that threads must not share. */
typedef void mica_block_fn(void *work, size_t block, int thread);

/* Runs fn for blocks 0 to blocks - 1 and returns when all are done; with ctx == NULL on this thread alone. Does not
 * allocate. */
void mica_parallel(mica_context *ctx, size_t blocks, mica_block_fn *fn, void *work);

/* The same for work of so many multiply-adds: where there are few of them, nobody is woken up for it; where
 * there are so few that handing over would take as long, the calling thread does it alone. */
void mica_parallel_sums(mica_context *ctx, double sums, size_t blocks, mica_block_fn *fn, void *work);

/* Elements of a block, at least `least`, where each element is by itself: all of them with one thread, and with more
 * about eight blocks for each. Blocks cost little, but a kernel starts anew in each. */
static inline size_t mica_block_elements(const mica_context *ctx, size_t count, size_t least)
{
#if !defined(MICA_SMALL)
    size_t blocks = ctx->threads == 1 ? 1 : 8 * (size_t)ctx->threads;
    if (count > blocks * least)
        return least * (count / (blocks * least) + (blocks == 1));
#else
    (void)ctx, (void)count;
#endif
    return least;
}

/* Around a stretch of many calls, as a step of a net is: whoever has woken up for one of them stays awake for the
 * next, however long the caller works alone in between. Nests. */
void mica_parallel_begin(mica_context *ctx);
void mica_parallel_end(mica_context *ctx);

/* Starts threads - 1 workers; they wait in mica_parallel's stead between calls. */
mica_status mica_crew_start(mica_context *ctx, int threads);
void mica_crew_stop(mica_context *ctx);

#endif
