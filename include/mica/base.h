/* Base: status codes, errors, the context, allocators and their counters.
 *
 * A context holds everything a call needs besides its tensors: the last error message, the
 * worker threads, the kernels chosen for this CPU, and the workspace that operations take scratch from. Two
 * contexts share nothing, so two threads may use two contexts freely; one context serves one thread at a
 * time. */
#ifndef MICA_BASE_H
#define MICA_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MICA_API __attribute__((visibility("default")))
#else
#define MICA_API
#endif

/* The build and the packages take the version from here. */
#define MICA_VERSION_MAJOR 0
#define MICA_VERSION_MINOR 2
#define MICA_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* "0.2.0": of the library that is linked, which may be newer than this header. */
MICA_API const char *mica_version(void);

/* ---- Status ------------------------------------------------------------------------------------------ */

/* Every code with the text that its messages start with. */
#define MICA_STATUS_LIST(X)                                                                                \
    X(OK, "ok")                                                                                            \
    X(ERR_ARGUMENT, "argument error") /* a NULL pointer, an option out of range */                         \
    X(ERR_SHAPE, "shape error")       /* shapes are incompatible */                                        \
    X(ERR_DTYPE, "dtype error")       /* a dtype the operation does not support */                         \
    X(ERR_AXIS, "axis error")         /* an axis out of range, or listed twice */                          \
    X(ERR_INDEX, "index error")       /* an element index out of range */                                  \
    X(ERR_ALIAS, "alias error")       /* tensors overlap in a way the operation does not allow */          \
    X(ERR_MEMORY, "memory error")     /* an allocation failed, or a given block is too small */            \
    X(ERR_WORKSPACE,                                                                                       \
      "workspace error")          /* the context's workspace is too small; the message says by how much */ \
    X(ERR_STATE, "state error")   /* calls in an invalid order */                                          \
    X(ERR_IO, "file error")       /* the system could not open, read or write a file */                    \
    X(ERR_FORMAT, "format error") /* a file violates its format */                                         \
    X(ERR_DIVERGED, "training diverged") /* a loss that is infinite or NaN */

typedef enum mica_status {
#define MICA_STATUS_ENUM(code, words) MICA_##code,
    MICA_STATUS_LIST(MICA_STATUS_ENUM)
#undef MICA_STATUS_ENUM
        MICA_STATUS_COUNT
} mica_status;

/* The text of a status, "shape error"; "unknown status" for an invalid one. */
MICA_API const char *mica_status_text(mica_status status);

/* ---- Allocators -------------------------------------------------------------------------------------- */

/* Where a context gets its memory. `alignment` is a power of two. A failed allocation returns NULL.
 * `release` gets the size and alignment that were requested. */
typedef struct mica_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *block, size_t bytes, size_t alignment);
    void *user;
} mica_allocator;

/* Statistics of a context's allocator. */
typedef struct mica_heap_stats {
    uint64_t allocations;
    uint64_t releases;
    uint64_t failures;
    uint64_t total_bytes; /* of all allocations ever */
    uint64_t live_bytes;
    uint64_t peak_bytes; /* maximum of live_bytes */
} mica_heap_stats;

/* ---- Context ----------------------------------------------------------------------------------------- */

typedef struct mica_context mica_context;

typedef struct mica_context_opts {
    /* 0: one. At most MICA_MAX_THREADS. Results do not depend on it, unless a budget splits batches into parts
     * (mica_compile_opts.same_parts). */
    int threads;
    size_t workspace_bytes;          /* 0: MICA_DEFAULT_WORKSPACE */
    void *workspace;                 /* the caller's own workspace of workspace_bytes; NULL: allocated */
    const mica_allocator *allocator; /* NULL: malloc and free. Copied. */
    const char *isa;  /* "scalar", "avx2", "avx512", "neon"; NULL: $MICA_ISA, else the best available */
    bool no_winograd; /* no Winograd for 3 x 3 convolutions: slower, a little more accurate; see ops/conv.h */
} mica_context_opts;

#define MICA_MAX_THREADS 256

/* Enough for mica_matmul of any size with up to eight threads. */
#define MICA_DEFAULT_WORKSPACE ((size_t)4 << 20)

/* Creates a context. On failure *out is NULL and the status is all there is: no context holds a message. */
MICA_API mica_status mica_context_create(mica_context **out, const mica_context_opts *opts);

/* Creates a context inside `memory`, which the caller owns and which must outlive it: operations then allocate nothing.
 * What else allocates, such as building a net, takes what is left of `memory` behind the context, so that no heap is
 * needed: give more than is required. With less than 256 bytes left, or an allocator in opts, it takes that allocator.
 * If memory is NULL, only sets *bytes to the size required; if *bytes is less than that, fails with
 * MICA_ERR_MEMORY and also sets it. A workspace not given in opts is part of the block. More than one thread is
 * refused, since the system allocates thread stacks. */
MICA_API mica_status mica_context_place(mica_context **out, void *memory, size_t *bytes,
                                        const mica_context_opts *opts);

/* Stops the threads and frees the memory. NULL is allowed. */
MICA_API void mica_context_destroy(mica_context *ctx);

/* The status and text of the last call that failed; MICA_OK and "" if none has failed. The text is
 * valid until the next failure. */
MICA_API mica_status mica_context_status(const mica_context *ctx);
MICA_API const char *mica_error(const mica_context *ctx);

MICA_API int mica_context_threads(const mica_context *ctx);
MICA_API const char *mica_context_isa(const mica_context *ctx);
MICA_API mica_heap_stats mica_context_heap(const mica_context *ctx);

/* ---- Workspace --------------------------------------------------------------------------------------- */

/* Some operations need scratch memory. They never allocate it: they take it from the context's workspace, and fail
 * with MICA_ERR_WORKSPACE if that is too small. To find out beforehand how much a call needs, make the call
 * while measuring:
 *
 *     mica_measure_begin(ctx);
 *     mica_conv2d(ctx, &y, &x, &w, &b, &opts);     // checks its arguments, accesses no data (which may be NULL)
 *     size_t bytes = mica_measure_end(ctx);        // the maximum over the calls in between
 */
MICA_API void mica_measure_begin(mica_context *ctx);
MICA_API size_t mica_measure_end(mica_context *ctx);

/* Floating-point operations of all calls since measuring began: matrix products, convolutions, attention and
 * recurrent cells. Memory-bound operations count as 0. */
MICA_API double mica_measure_flops(const mica_context *ctx);

/* Grows the workspace to at least this size, using the allocator. */
MICA_API mica_status mica_workspace_reserve(mica_context *ctx, size_t bytes);

/* Uses the caller's block from now on; it must outlive its use. NULL with 0 removes the workspace. */
MICA_API mica_status mica_workspace_give(mica_context *ctx, void *block, size_t bytes);

MICA_API size_t mica_workspace_bytes(const mica_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
