/* The context's internals. */
#ifndef MICA_SRC_BASE_CONTEXT_H
#define MICA_SRC_BASE_CONTEXT_H

#include <mica/base.h>

#include "base/block_heap.h"

#if defined(MICA_SMALL)
#define MICA_ERROR_TEXT 256
#else
#define MICA_ERROR_TEXT 512
#endif

/* What every block that the library asks for, or lays out, is aligned to: a cache line, and the widest
 * vector. */
#if defined(MICA_SMALL)
#define MICA_ALIGN 16
#else
#define MICA_ALIGN 64
#endif

typedef struct mica_crew mica_crew;       /* worker threads: parallel.h */
typedef struct mica_kernels mica_kernels; /* for one instruction set: kernel/kernels.h */
struct mica_conv_probe;                   /* ops/conv/probe.h */

struct mica_context {
    mica_status status;
    char error[MICA_ERROR_TEXT];

    mica_allocator allocator;
    mica_heap_stats heap;

    const mica_kernels *kernels;
    size_t second_cache; /* bytes of it that a core has */
    mica_crew *crew;     /* NULL with one thread */
    int threads;
    bool no_winograd;
    struct mica_conv_probe *conv_probe; /* for benchmarks and tests, or NULL */

    void *workspace;
    size_t workspace_bytes;
    bool workspace_owned;
    bool placed;          /* in the caller's memory: never released */
    mica_block_heap rest; /* of that memory, where it is more than the context takes */

    bool trusted; /* the tensors of calls were checked when a net was compiled: a step does not do so again */
    bool
        one_size; /* calls come in no smaller sizes than they were measured with: scratch is for these alone */
    bool prepares; /* a net chooses layouts, and will prepare its weights when it is bound */
    bool measuring;
    size_t measured; /* the most scratch that a call asked for since measuring began */
    double flops;    /* and their arithmetic: mica_measure_flops */
};

/* mica_context_create and mica_context_place, with the kernels given: src/kernel chooses them. NULL is an argument
 * error, as then the options name a set that is not there. */
mica_status mica_context_create_with(mica_context **out, const mica_context_opts *opts,
                                     const mica_kernels *kernels);
mica_status mica_context_place_with(mica_context **out, void *memory, size_t *bytes,
                                    const mica_context_opts *opts, const mica_kernels *kernels);

/* For operations: what a call multiplies and adds, once its arguments are checked. */
static inline void mica_count_flops(mica_context *ctx, double flops)
{
    if (ctx->measuring)
        ctx->flops += flops;
}

/* Records a failure, "words: message", and returns its status. */
mica_status mica_fail(mica_context *ctx, mica_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The one place where the library's heap calls are made and counted. NULL, with an error recorded, when
 * refused. */
void *mica_allocate(mica_context *ctx, size_t bytes);
void mica_release(mica_context *ctx, void *block, size_t bytes);

/* Passes a failure up. */
#define MICA_TRY(call)                        \
    do {                                      \
        mica_status mica_try_status = (call); \
        if (mica_try_status != MICA_OK)       \
            return mica_try_status;           \
    } while (0)

/* Rounds up to a multiple of MICA_ALIGN. */
static inline size_t mica_align_up(size_t bytes)
{
    return (bytes + (MICA_ALIGN - 1)) & ~(size_t)(MICA_ALIGN - 1);
}

#endif
