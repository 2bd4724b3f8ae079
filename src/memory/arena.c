/* Arenas: a block and its fill level. */
#include <mica/memory.h>

#include "base/context.h"

mica_status mica_arena_over(mica_context *ctx, mica_arena *out, void *block, size_t bytes)
{
    if (block == NULL && bytes > 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "arena_over: block is NULL, bytes is %zu", bytes);
    *out = (mica_arena){.block = block, .bytes = bytes};
    return MICA_OK;
}

mica_status mica_arena_create(mica_context *ctx, mica_arena *out, size_t bytes)
{
    *out = (mica_arena){0};
    if (bytes == 0)
        return MICA_OK;
    void *block = mica_allocate(ctx, bytes);
    if (block == NULL)
        return ctx->status;
    *out = (mica_arena){.block = block, .bytes = bytes, .owned = true};
    return MICA_OK;
}

void mica_arena_destroy(mica_context *ctx, mica_arena *arena)
{
    if (arena == NULL)
        return;
    if (arena->owned)
        mica_release(ctx, arena->block, arena->bytes);
    *arena = (mica_arena){0};
}

/* Bytes to skip so that the next one is aligned. Of the address, not of the offset: a caller's block may
 * start anywhere. */
static size_t padding(const mica_arena *arena, size_t alignment)
{
    return (size_t)(-((uintptr_t)arena->block + arena->used) & (alignment - 1));
}

mica_status mica_arena_take(mica_context *ctx, void **out, mica_arena *arena, size_t bytes, size_t alignment)
{
    if (alignment == 0)
        alignment = MICA_ALIGN;
    if ((alignment & (alignment - 1)) != 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "arena_take: alignment is %zu, not a power of two",
                         alignment);
    size_t left = arena->bytes - arena->used;
    size_t skip = padding(arena, alignment);
    if (bytes > left)
        return mica_fail(ctx, MICA_ERR_MEMORY, "arena has %zu of %zu bytes left, %zu requested", left,
                         arena->bytes, bytes);
    if (skip > left - bytes)
        return mica_fail(ctx, MICA_ERR_MEMORY,
                         "arena has %zu of %zu bytes left, %zu requested and %zu more to align them to %zu",
                         left, arena->bytes, bytes, skip, alignment);
    *out = arena->block != NULL ? (char *)arena->block + arena->used + skip : NULL;
    arena->used += skip + bytes;
    if (arena->used > arena->peak)
        arena->peak = arena->used;
    return MICA_OK;
}

mica_status mica_arena_take_tensor(mica_context *ctx, mica_tensor *out, mica_arena *arena, mica_dtype dtype,
                                   int rank, const mica_index *dims)
{
    mica_tensor t;
    MICA_TRY(mica_tensor_init(ctx, &t, NULL, dtype, rank, dims));
    MICA_TRY(mica_arena_take(ctx, &t.data, arena, mica_tensor_bytes(&t), 0));
    *out = t;
    return MICA_OK;
}

size_t mica_arena_mark(const mica_arena *arena) { return arena->used; }

mica_status mica_arena_release(mica_context *ctx, mica_arena *arena, size_t mark)
{
    if (mark > arena->used)
        return mica_fail(ctx, MICA_ERR_STATE,
                         "arena_release: the mark is at %zu, but only %zu bytes are in use", mark,
                         arena->used);
    arena->used = mark;
    return MICA_OK;
}

size_t mica_arena_remaining(const mica_arena *arena) { return arena->bytes - arena->used; }
