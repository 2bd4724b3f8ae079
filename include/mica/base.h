/* Base: status codes, errors, the context, allocators and their counters.
 *
 * A context carries everything that a call needs besides its tensors: the text of the last error, the
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

/* Every code with the words that open its message. */
#define MICA_STATUS_LIST(X)                                                                                \
    X(OK, "ok")                                                                                            \
    X(ERR_ARGUMENT, "argument error") /* a null pointer, an option out of range */                         \
    X(ERR_SHAPE, "shape error")       /* shapes do not fit one another */                                  \
    X(ERR_DTYPE, "dtype error")       /* an element type the operation does not take */                    \
    X(ERR_AXIS, "axis error")         /* an axis out of range, or named twice */                           \
    X(ERR_INDEX, "index error")       /* an element index out of range */                                  \
    X(ERR_ALIAS, "alias error")       /* tensors share memory in a way that the operation forbids */       \
    X(ERR_MEMORY, "memory error")     /* the allocator refused, or a given block is too small */           \
    X(ERR_WORKSPACE,                                                                                       \
      "workspace error")          /* the context's workspace is too small; the message says by how much */ \
    X(ERR_STATE, "state error")   /* calls in an order that makes no sense */                              \
    X(ERR_IO, "file error")       /* the system could not open, read or write a file */                    \
    X(ERR_FORMAT, "format error") /* a file's bytes are not what its format demands */                     \
    X(ERR_DIVERGED, "training diverged") /* a loss that is infinite or NaN */

typedef enum mica_status {
#define MICA_STATUS_ENUM(code, words) MICA_##code,
    MICA_STATUS_LIST(MICA_STATUS_ENUM)
#undef MICA_STATUS_ENUM
        MICA_STATUS_COUNT
} mica_status;

/* The words of a code, "shape error"; "unknown status" for a number that is none. */
MICA_API const char *mica_status_text(mica_status status);

/* ---- Allocators -------------------------------------------------------------------------------------- */

/* Where a context gets its memory. `alignment` is a power of two. A failed allocation returns NULL.
 * `release` gets the size and alignment that were asked for. */
typedef struct mica_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *block, size_t bytes, size_t alignment);
    void *user;
} mica_allocator;

/* What went through a context's allocator so far. */
typedef struct mica_heap_stats {
    uint64_t allocations;
    uint64_t releases;
    uint64_t failures;
    uint64_t total_bytes; /* of all allocations ever */
    uint64_t live_bytes;
    uint64_t peak_bytes; /* the most that was live at once */
} mica_heap_stats;

/* ---- Context ----------------------------------------------------------------------------------------- */

typedef struct mica_context mica_context;

typedef struct mica_context_opts {
    int threads;                     /* 0: one. At most MICA_MAX_THREADS. Results do not depend on it. */
    size_t workspace_bytes;          /* 0: MICA_DEFAULT_WORKSPACE */
    void *workspace;                 /* the caller's own workspace of workspace_bytes; NULL: allocated */
    const mica_allocator *allocator; /* NULL: malloc and free. Copied. */
    const char *isa;  /* "scalar", "avx2", "avx512", "neon"; NULL: $MICA_ISA, else the best here */
    bool no_winograd; /* 3 x 3 convolutions by plain sums only, slower and a little more exact: ops/conv.h */
} mica_context_opts;

#define MICA_MAX_THREADS 256

/* Enough for mica_matmul of any size with up to eight threads. */
#define MICA_DEFAULT_WORKSPACE ((size_t)4 << 20)

/* Makes a context. On failure *out is NULL and the status says why (there is no context to hold a text). */
MICA_API mica_status mica_context_create(mica_context **out, const mica_context_opts *opts);

/* Makes a context inside `memory`, which stays the caller's and must outlive it: the library then allocates
 * nothing. With memory == NULL only *bytes is set, to what it takes. A workspace that opts does not give is
 * part of the block. More than one thread needs an allocator of the system for the threads' stacks and is
 * refused here. */
MICA_API mica_status mica_context_place(mica_context **out, void *memory, size_t *bytes,
                                        const mica_context_opts *opts);

/* Stops the threads and gives the memory back. NULL is fine. */
MICA_API void mica_context_destroy(mica_context *ctx);

/* The status and text of the last call that failed; MICA_OK and "" before one did. The text lives in the
 * context until the next failure. */
MICA_API mica_status mica_context_status(const mica_context *ctx);
MICA_API const char *mica_error(const mica_context *ctx);

MICA_API int mica_context_threads(const mica_context *ctx);
MICA_API const char *mica_context_isa(const mica_context *ctx);
MICA_API mica_heap_stats mica_context_heap(const mica_context *ctx);

/* ---- Workspace --------------------------------------------------------------------------------------- */

/* Some operations need scratch. They never allocate it: they take it from the context's workspace, and fail
 * with MICA_ERR_WORKSPACE when that is too small. To ask beforehand how much a call takes, make the call
 * while measuring:
 *
 *     mica_measure_begin(ctx);
 *     mica_conv2d(ctx, &y, &x, &w, &b, &opts);     // checks its arguments, touches no data (it may be NULL)
 *     size_t bytes = mica_measure_end(ctx);        // the most that any call in between takes
 */
MICA_API void mica_measure_begin(mica_context *ctx);
MICA_API size_t mica_measure_end(mica_context *ctx);

/* The multiplications and additions of all calls since measuring began, of matrix products, convolutions,
 * attention and recurrent cells. Operations that are bound by the memory they touch count none. */
MICA_API double mica_measure_flops(const mica_context *ctx);

/* Makes the workspace at least this large, through the allocator. */
MICA_API mica_status mica_workspace_reserve(mica_context *ctx, size_t bytes);

/* Uses the caller's block from now on. It must outlive its use; NULL with 0 takes the workspace away. */
MICA_API mica_status mica_workspace_give(mica_context *ctx, void *block, size_t bytes);

MICA_API size_t mica_workspace_bytes(const mica_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
