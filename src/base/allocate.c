/* The one place where the library touches the heap: the allocator hooks, and their counters. */
#if defined(MICA_HAVE_MADVISE)
#define _DEFAULT_SOURCE
#include <sys/mman.h>
#endif

#include <stdlib.h>

#include "base/allocate.h"

#if defined(MICA_SMALL)

/* C libraries of bare-metal systems have malloc at most. What it gives is moved up to the alignment, and the address
 * to be freed stands before it. */
static void *system_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    if (bytes > PTRDIFF_MAX - alignment - sizeof(void *))
        return NULL;
    char *given = malloc(bytes + alignment + sizeof(void *) - 1);
    if (given == NULL)
        return NULL;
    uintptr_t past = (uintptr_t)given + sizeof(void *);
    void **block = (void **)((past + alignment - 1) & ~(uintptr_t)(alignment - 1));
    block[-1] = given;
    return block;
}

static void system_release(void *user, void *block, size_t bytes, size_t alignment)
{
    (void)user;
    (void)bytes;
    (void)alignment;
    free(((void **)block)[-1]);
}

#else

#define HUGE_PAGE ((size_t)2 << 20)

/* Large blocks ask for huge pages: they are there at once instead of page by page, and few of them are looked up. Only
 * those that lie wholly within the block are asked for, so that no more than it becomes resident. */
static void *allocate_large(size_t bytes)
{
    if (bytes > PTRDIFF_MAX - HUGE_PAGE)
        return NULL;
    void *block = aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
#if defined(MICA_HAVE_MADVISE) && defined(MADV_HUGEPAGE)
    if (block != NULL)
        (void)madvise(block, bytes & ~(HUGE_PAGE - 1), MADV_HUGEPAGE); /* a wish: nothing depends on it */
#endif
    return block;
}

static void *system_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    if (bytes >= HUGE_PAGE)
        return allocate_large(bytes);
    if (bytes > PTRDIFF_MAX - alignment) /* no object is that large, and some debugging allocators abort */
        return NULL;
    /* aligned_alloc wants a multiple of the alignment. */
    return aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
}

static void system_release(void *user, void *block, size_t bytes, size_t alignment)
{
    (void)user;
    (void)bytes;
    (void)alignment;
    free(block);
}

#endif

const mica_allocator mica_system_allocator = {system_allocate, system_release, NULL};

void *mica_heap_take(const mica_allocator *allocator, mica_heap_stats *stats, size_t bytes)
{
    void *block = allocator->allocate(allocator->user, bytes, MICA_ALIGN);
    if (block == NULL) {
        stats->failures++;
        return NULL;
    }
    stats->allocations++;
    stats->total_bytes += bytes;
    stats->live_bytes += bytes;
    if (stats->live_bytes > stats->peak_bytes)
        stats->peak_bytes = stats->live_bytes;
    return block;
}

void mica_heap_return(const mica_allocator *allocator, mica_heap_stats *stats, void *block, size_t bytes)
{
    if (block == NULL)
        return;
    stats->releases++;
    stats->live_bytes -= bytes;
    allocator->release(allocator->user, block, bytes, MICA_ALIGN);
}

void *mica_allocate(mica_context *ctx, size_t bytes)
{
    void *block = mica_heap_take(&ctx->allocator, &ctx->heap, bytes);
    if (block == NULL)
        (void)mica_fail(ctx, MICA_ERR_MEMORY, "cannot allocate %zu bytes", bytes);
    return block;
}

void mica_release(mica_context *ctx, void *block, size_t bytes)
{
    mica_heap_return(&ctx->allocator, &ctx->heap, block, bytes);
}

mica_heap_stats mica_context_heap(const mica_context *ctx) { return ctx->heap; }
