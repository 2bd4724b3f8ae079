/* Contexts, on the heap or in the caller's memory, and their workspace. */
#include <string.h>

#include "base/allocate.h"
#include "base/cpu.h"
#include "base/parallel.h"

/* What the options come to once their zeros are filled in. */
typedef struct settings {
    int threads;
    bool no_winograd;
    const mica_kernels *kernels;
    mica_allocator allocator;
    void *workspace;
    size_t workspace_bytes;
} settings;

static mica_status settle(settings *out, const mica_context_opts *opts, const mica_kernels *kernels)
{
    static const mica_context_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    if (opts->threads < 0 || opts->threads > MICA_MAX_THREADS)
        return MICA_ERR_ARGUMENT;
    if (opts->workspace != NULL &&
        (opts->workspace_bytes == 0 || (uintptr_t)opts->workspace % MICA_ALIGN != 0))
        return MICA_ERR_ARGUMENT;

    out->threads = opts->threads > 0 ? opts->threads : 1;
    out->no_winograd = opts->no_winograd;
    out->allocator = opts->allocator != NULL ? *opts->allocator : mica_system_allocator;
    if (out->allocator.allocate == NULL || out->allocator.release == NULL)
        return MICA_ERR_ARGUMENT;
    out->workspace = opts->workspace;
    out->workspace_bytes = opts->workspace_bytes > 0 ? opts->workspace_bytes : MICA_DEFAULT_WORKSPACE;
    out->kernels = kernels;
    return kernels != NULL ? MICA_OK : MICA_ERR_ARGUMENT;
}

static void fill(mica_context *ctx, const settings *s)
{
    memset(ctx, 0, sizeof *ctx);
    ctx->allocator = s->allocator;
    ctx->kernels = s->kernels;
    ctx->second_cache = mica_second_cache();
    ctx->threads = 1;
    ctx->no_winograd = s->no_winograd;
    ctx->workspace = s->workspace;
    ctx->workspace_bytes = s->workspace != NULL ? s->workspace_bytes : 0;
}

mica_status mica_context_create_with(mica_context **out, const mica_context_opts *opts,
                                     const mica_kernels *kernels)
{
    if (out == NULL)
        return MICA_ERR_ARGUMENT;
    *out = NULL;
    settings s;
    MICA_TRY(settle(&s, opts, kernels));

    mica_heap_stats heap = {0};
    mica_context *ctx = mica_heap_take(&s.allocator, &heap, sizeof *ctx);
    if (ctx == NULL)
        return MICA_ERR_MEMORY;
    fill(ctx, &s);
    ctx->heap = heap;

    mica_status status = MICA_OK;
    if (s.workspace == NULL)
        status = mica_workspace_reserve(ctx, s.workspace_bytes);
    if (status == MICA_OK && s.threads > 1)
        status = mica_crew_start(ctx, s.threads);
    if (status != MICA_OK) {
        mica_context_destroy(ctx);
        return status;
    }
    *out = ctx;
    return MICA_OK;
}

mica_status mica_context_place_with(mica_context **out, void *memory, size_t *bytes,
                                    const mica_context_opts *opts, const mica_kernels *kernels)
{
    if (bytes == NULL || (memory != NULL && out == NULL))
        return MICA_ERR_ARGUMENT;
    settings s;
    MICA_TRY(settle(&s, opts, kernels));
    if (s.threads > 1)
        return MICA_ERR_ARGUMENT;

    /* The block: [ context, rounded up | workspace, unless the caller gave one | the rest: a heap ] */
    size_t own = mica_align_up(sizeof(mica_context));
    if (s.workspace_bytes > SIZE_MAX - own - MICA_ALIGN)
        return MICA_ERR_MEMORY;
    size_t needed = own + (s.workspace == NULL ? mica_align_up(s.workspace_bytes) : 0);
    if (memory == NULL) {
        *bytes = needed;
        return MICA_OK;
    }
    *out = NULL;
    if ((uintptr_t)memory % MICA_ALIGN != 0)
        return MICA_ERR_ARGUMENT;
    if (*bytes < needed) {
        *bytes = needed; /* there is no context yet that could hold a message */
        return MICA_ERR_MEMORY;
    }

    mica_context *ctx = memory;
    if (s.workspace == NULL)
        s.workspace = (char *)memory + own;
    fill(ctx, &s);
    ctx->placed = true;
    if (*bytes - needed >= MICA_BLOCK_HEAP_LEAST && (opts == NULL || opts->allocator == NULL))
        ctx->allocator = mica_block_heap_begin(&ctx->rest, (char *)memory + needed, *bytes - needed);
    *out = ctx;
    return MICA_OK;
}

void mica_context_destroy(mica_context *ctx)
{
    if (ctx == NULL)
        return;
    mica_crew_stop(ctx);
    (void)mica_workspace_give(ctx, NULL, 0);
    if (ctx->placed)
        return;
    mica_allocator allocator = ctx->allocator;
    mica_heap_stats heap = ctx->heap;
    mica_heap_return(&allocator, &heap, ctx, sizeof *ctx);
}

int mica_context_threads(const mica_context *ctx) { return ctx->threads; }

/* ---- Workspace ---- */

void mica_measure_begin(mica_context *ctx)
{
    ctx->measuring = true;
    ctx->measured = 0;
    ctx->flops = 0.0;
}

size_t mica_measure_end(mica_context *ctx)
{
    ctx->measuring = false;
    return ctx->measured;
}

double mica_measure_flops(const mica_context *ctx) { return ctx->flops; }

mica_status mica_workspace_give(mica_context *ctx, void *block, size_t bytes)
{
    if ((uintptr_t)block % MICA_ALIGN != 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "workspace_give: the block must be aligned to %d bytes",
                         MICA_ALIGN);
    if (block == NULL && bytes > 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "workspace_give: block is NULL, bytes is %zu", bytes);
    if (ctx->workspace_owned)
        mica_release(ctx, ctx->workspace, ctx->workspace_bytes);
    ctx->workspace = block;
    ctx->workspace_bytes = bytes;
    ctx->workspace_owned = false;
    return MICA_OK;
}

mica_status mica_workspace_reserve(mica_context *ctx, size_t bytes)
{
    if (bytes <= ctx->workspace_bytes)
        return MICA_OK;
    void *block = mica_allocate(ctx, bytes);
    if (block == NULL)
        return ctx->status;
    (void)mica_workspace_give(ctx, block, bytes);
    ctx->workspace_owned = true;
    return MICA_OK;
}

size_t mica_workspace_bytes(const mica_context *ctx) { return ctx->workspace_bytes; }
