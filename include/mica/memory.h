/* Memory that is allocated once and reused: arenas, buffer pools, and scopes over a pool. */
#ifndef MICA_MEMORY_H
#define MICA_MEMORY_H

#include <mica/base.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arena ------------------------------------------------------------------------------------------- */

/* One block from which memory is taken in order and released in reverse. An arena is a value: it may be copied
 * or placed anywhere. It serves one thread at a time. Read its fields freely; only the calls change them. */
typedef struct mica_arena {
    void *block;
    size_t bytes; /* of the block */
    size_t used;  /* from its start, including padding */
    size_t peak;  /* maximum of `used` */
    bool owned;   /* the block came from a context's allocator */
} mica_arena;

/* Over the caller's block, of any alignment, which must outlive the arena. */
MICA_API mica_status mica_arena_over(mica_context *ctx, mica_arena *out, void *block, size_t bytes);

/* Over a block from the context's allocator; mica_arena_destroy with the same context frees it. */
MICA_API mica_status mica_arena_create(mica_context *ctx, mica_arena *out, size_t bytes);

/* Empties the arena, and frees its block if the arena owns it. May be called twice. */
MICA_API void mica_arena_destroy(mica_context *ctx, mica_arena *arena);

/* Takes bytes at an alignment, a power of two (0: 64, a cache line). The memory is not cleared. Fails, and changes
 * nothing, if it does not fit. Zero bytes give an aligned pointer that must not be dereferenced. */
MICA_API mica_status mica_arena_take(mica_context *ctx, void **out, mica_arena *arena, size_t bytes,
                                     size_t alignment);

/* Takes a contiguous tensor. Its elements are uninitialized. */
MICA_API mica_status mica_arena_take_tensor(mica_context *ctx, mica_tensor *out, mica_arena *arena,
                                            mica_dtype dtype, int rank, const mica_index *dims);

/* The current position of the arena. Releasing to a mark releases everything taken after it. */
MICA_API size_t mica_arena_mark(const mica_arena *arena);
MICA_API mica_status mica_arena_release(mica_context *ctx, mica_arena *arena, size_t mark);

MICA_API size_t mica_arena_remaining(const mica_arena *arena);

/* ---- Pool -------------------------------------------------------------------------------------------- */

/* Reusable buffers. Any number of threads may share a pool, each calling with its
 * own context, which only carries the error text; the memory comes from the pool's own allocator.
 *
 * A request is served by the smallest class that holds it: 256 bytes (64 f32 elements), 512, 1024, ... 256
 * KiB (65,536 elements), and above that four classes to each doubling, so that large buffers waste at most a
 * fifth. The surplus is never visible: a rented tensor has the requested shape.
 *
 * A rent that finds a free buffer of its class makes no heap call. */
typedef struct mica_pool mica_pool;

typedef struct mica_pool_opts {
    size_t limit; /* unused buffers kept in each class; 0: MICA_POOL_LIMIT. The rest is freed. */
    bool clear;   /* zero new and returned buffers, so that every rented buffer is zero */
    const mica_allocator *allocator; /* NULL: malloc and free. Copied. Called by one thread at a time; it must
                                        not call the pool. */
} mica_pool_opts;

#define MICA_POOL_LIMIT 32

MICA_API mica_status mica_pool_create(mica_context *ctx, mica_pool **out, const mica_pool_opts *opts);

/* Frees all its memory, including rented buffers and open scopes. NULL is allowed. */
MICA_API void mica_pool_destroy(mica_pool *pool);

/* Rents at least `bytes` bytes, aligned to 64. */
MICA_API mica_status mica_pool_rent(mica_context *ctx, void **out, mica_pool *pool, size_t bytes);

/* Rents a contiguous tensor. Its elements are uninitialized (unless the pool clears). */
MICA_API mica_status mica_pool_rent_tensor(mica_context *ctx, mica_tensor *out, mica_pool *pool,
                                           mica_dtype dtype, int rank, const mica_index *dims);

/* Takes a buffer back. A pointer that is not a rented buffer of this pool (a foreign one, one into the middle
 * of a buffer, or one that has already been returned) is an error and nothing happens. A stale pointer to a
 * buffer that has been rented again since cannot be detected. */
MICA_API mica_status mica_pool_return(mica_context *ctx, mica_pool *pool, void *buffer);
MICA_API mica_status mica_pool_return_tensor(mica_context *ctx, mica_pool *pool, const mica_tensor *t);

/* Frees unused buffers, large ones first, until at most `bytes` of them are left. Returns the bytes freed. */
MICA_API size_t mica_pool_trim(mica_pool *pool, size_t bytes);

/* All unused ones. */
MICA_API size_t mica_pool_clear(mica_pool *pool);

/* Bytes are those of whole buffers, which may be more than was requested. */
typedef struct mica_pool_stats {
    uint64_t rents;
    uint64_t returns;
    uint64_t hits;        /* rents served by a pooled buffer */
    uint64_t allocations; /* rents that needed a new one */
    uint64_t releases;    /* buffers freed */
    size_t rented;        /* buffers currently rented */
    size_t rented_bytes;
    size_t pooled; /* buffers currently unused */
    size_t pooled_bytes;
    size_t peak_bytes; /* maximum of rented_bytes + pooled_bytes */
} mica_pool_stats;

MICA_API mica_pool_stats mica_pool_statistics(mica_pool *pool);

/* Everything that went through the pool's allocator, its own records included. */
MICA_API mica_heap_stats mica_pool_heap(mica_pool *pool);

/* ---- Scope ------------------------------------------------------------------------------------------- */

/* Everything rented in a scope goes back to the pool when the scope ends:
 *
 *     mica_scope scope;
 *     mica_scope_begin(ctx, &scope, pool);
 *     ... mica_scope_rent_tensor(ctx, &t, &scope, MICA_F32, 2, dims) ...
 *     mica_scope_end(&scope);
 *
 * A scope is a handle: copies refer to the same scope, and a handle may outlive its scope (but not the
 * pool). A scope nested in another ends with it at the latest. Scopes of a pool may be used by several
 * threads. */
typedef struct mica_scope {
    mica_pool *pool;
    void *record;
    uint64_t serial; /* no two scopes of a pool have the same */
} mica_scope;

MICA_API mica_status mica_scope_begin(mica_context *ctx, mica_scope *out, mica_pool *pool);

/* Begins a scope inside `outer`. *out may not be *outer. */
MICA_API mica_status mica_scope_nest(mica_context *ctx, mica_scope *out, const mica_scope *outer);

/* Returns what was rented in the scope, and ends the scopes nested in it first. Ending it again, or ending a
 * zeroed handle, does nothing. */
MICA_API void mica_scope_end(const mica_scope *scope);

/* Like the pool's functions, but in the scope. Such a buffer may also be returned earlier, by mica_pool_return. */
MICA_API mica_status mica_scope_rent(mica_context *ctx, void **out, const mica_scope *scope, size_t bytes);
MICA_API mica_status mica_scope_rent_tensor(mica_context *ctx, mica_tensor *out, const mica_scope *scope,
                                            mica_dtype dtype, int rank, const mica_index *dims);

/* Lets a buffer outlive the scope it was rented in: it moves to the enclosing scope, and from the outermost to
 * the caller, who then returns it. */
MICA_API mica_status mica_scope_keep(mica_context *ctx, const mica_scope *scope, void *buffer);

#ifdef __cplusplus
}
#endif
#endif
