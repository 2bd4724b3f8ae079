/* Scopes: trees of records in the pool, each with the list of buffers rented in it. */
#include "base/allocate.h"
#include "memory/pool.h"

/* ---- Lists ---- */

void mica_scope_link(mica_scope_record *scope, mica_buffer *buffer)
{
    buffer->scope = scope;
    buffer->previous = NULL;
    buffer->next = scope->buffers;
    if (buffer->next != NULL)
        buffer->next->previous = buffer;
    scope->buffers = buffer;
}

void mica_scope_unlink(mica_buffer *buffer)
{
    if (buffer->scope != NULL) {
        if (buffer->previous != NULL)
            buffer->previous->next = buffer->next;
        else
            buffer->scope->buffers = buffer->next;
        if (buffer->next != NULL)
            buffer->next->previous = buffer->previous;
    }
    buffer->scope = NULL;
    buffer->next = buffer->previous = NULL;
}

static void nest(mica_scope_record *outer, mica_scope_record *scope)
{
    scope->outer = outer;
    if (outer == NULL)
        return;
    scope->next = outer->inner;
    if (scope->next != NULL)
        scope->next->previous = scope;
    outer->inner = scope;
}

static void unnest(const mica_scope_record *scope)
{
    if (scope->next != NULL)
        scope->next->previous = scope->previous;
    if (scope->previous != NULL)
        scope->previous->next = scope->next;
    else if (scope->outer != NULL)
        scope->outer->inner = scope->next;
}

/* ---- Records ---- */

static void drop_record(mica_pool *pool, mica_scope_record *scope)
{
    *scope = (mica_scope_record){.next = pool->unused_scopes};
    pool->unused_scopes = scope;
}

void mica_scope_slab_add(mica_pool *pool, mica_scope_slab *slab)
{
    for (size_t i = sizeof slab->record / sizeof slab->record[0]; i-- > 0;)
        drop_record(pool, &slab->record[i]);
}

static mica_scope_record *take_record(mica_pool *pool)
{
    if (pool->unused_scopes == NULL) {
        mica_scope_slab *slab = mica_heap_take(&pool->allocator, &pool->heap, sizeof *slab);
        if (slab == NULL)
            return NULL;
        slab->next = pool->more_slabs;
        pool->more_slabs = slab;
        mica_scope_slab_add(pool, slab);
    }
    mica_scope_record *scope = pool->unused_scopes;
    pool->unused_scopes = scope->next;
    *scope = (mica_scope_record){.serial = ++pool->last_serial};
    return scope;
}

/* The record of a scope that has not ended, else NULL. */
static mica_scope_record *open_record(const mica_scope *scope)
{
    mica_scope_record *record = scope->record;
    return record != NULL && record->serial == scope->serial ? record : NULL;
}

/* ---- The public calls ---- */

static mica_status begin(mica_context *ctx, mica_scope *out, mica_pool *pool, mica_scope_record *outer,
                         const char *call)
{
    mica_scope_record *record = take_record(pool);
    if (record == NULL)
        return mica_fail(ctx, MICA_ERR_MEMORY, "%s: cannot allocate %zu bytes", call,
                         sizeof(mica_scope_slab));
    nest(outer, record);
    *out = (mica_scope){pool, record, record->serial};
    return MICA_OK;
}

mica_status mica_scope_begin(mica_context *ctx, mica_scope *out, mica_pool *pool)
{
    *out = (mica_scope){0};
    mica_lock_take(&pool->lock);
    mica_status status = begin(ctx, out, pool, NULL, "scope_begin");
    mica_lock_drop(&pool->lock);
    return status;
}

static mica_status fail_ended(mica_context *ctx, const char *call)
{
    return mica_fail(ctx, MICA_ERR_STATE, "%s: the scope has ended", call);
}

mica_status mica_scope_nest(mica_context *ctx, mica_scope *out, const mica_scope *outer)
{
    *out = (mica_scope){0};
    mica_pool *pool = outer->pool;
    if (pool == NULL)
        return fail_ended(ctx, "scope_nest");
    mica_lock_take(&pool->lock);
    mica_scope_record *around = open_record(outer);
    mica_status status = around != NULL ? begin(ctx, out, pool, around, "scope_nest")
                                        : fail_ended(ctx, "scope_nest");
    mica_lock_drop(&pool->lock);
    return status;
}

/* Ends a scope without scopes in it: its buffers go in front of *list. Returns the scope around it. */
static mica_scope_record *end_innermost(mica_pool *pool, mica_scope_record *scope, mica_buffer **list)
{
    while (scope->buffers != NULL) {
        mica_buffer *buffer = scope->buffers;
        mica_buffer_detach(pool, buffer);
        buffer->next = *list;
        *list = buffer;
    }
    mica_scope_record *outer = scope->outer;
    unnest(scope);
    drop_record(pool, scope);
    return outer;
}

void mica_scope_end(const mica_scope *scope)
{
    mica_pool *pool = scope != NULL ? scope->pool : NULL;
    if (pool == NULL)
        return;
    mica_lock_take(&pool->lock);
    mica_buffer *list = NULL;
    for (mica_scope_record *at = open_record(scope); at != NULL && open_record(scope) != NULL;) {
        while (at->inner != NULL)
            at = at->inner;
        at = end_innermost(pool, at, &list);
    }
    mica_buffers_shelve(pool, list);
    mica_lock_drop(&pool->lock);
}

mica_status mica_scope_rent(mica_context *ctx, void **out, const mica_scope *scope, size_t bytes)
{
    mica_pool *pool = scope->pool;
    if (pool == NULL)
        return fail_ended(ctx, "scope_rent");
    bool fresh = false;
    mica_buffer *buffer = NULL;
    mica_lock_take(&pool->lock);
    mica_scope_record *record = open_record(scope);
    if (record == NULL)
        (void)fail_ended(ctx, "scope_rent");
    else
        buffer = mica_buffer_rent(ctx, pool, bytes, &fresh, "scope_rent");
    if (buffer != NULL)
        mica_scope_link(record, buffer);
    mica_lock_drop(&pool->lock);
    if (buffer == NULL)
        return ctx->status;
    *out = mica_buffer_hand_out(pool, buffer, fresh);
    return MICA_OK;
}

mica_status mica_scope_rent_tensor(mica_context *ctx, mica_tensor *out, const mica_scope *scope,
                                   mica_dtype dtype, int rank, const mica_index *dims)
{
    mica_tensor t;
    MICA_TRY(mica_tensor_init(ctx, &t, NULL, dtype, rank, dims));
    MICA_TRY(mica_scope_rent(ctx, &t.data, scope, mica_tensor_bytes(&t)));
    *out = t;
    return MICA_OK;
}

mica_status mica_scope_keep(mica_context *ctx, const mica_scope *scope, void *data)
{
    mica_pool *pool = scope->pool;
    if (pool == NULL)
        return fail_ended(ctx, "scope_keep");
    mica_lock_take(&pool->lock);
    mica_scope_record *record = open_record(scope);
    mica_buffer *buffer = mica_buffer_find(pool, data);
    bool inside = record != NULL && buffer != NULL && buffer->scope == record;
    if (inside) {
        mica_scope_unlink(buffer);
        if (record->outer != NULL)
            mica_scope_link(record->outer, buffer);
    }
    mica_lock_drop(&pool->lock);
    if (record == NULL)
        return fail_ended(ctx, "scope_keep");
    if (!inside)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "scope_keep: %p is not a buffer of this scope", data);
    return MICA_OK;
}
