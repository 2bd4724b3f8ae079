/* The pool: buffers by size class, identified by their address. */
#include "memory/pool.h"

#include <string.h>

#include "base/allocate.h"

#define RECORD MICA_BUFFER_RECORD

/* ---- Classes ---- */

static unsigned floor_log2(size_t x)
{
    return (unsigned)(sizeof(unsigned long long) * 8 - 1) - (unsigned)__builtin_clzll(x);
}

unsigned mica_pool_class_of(size_t bytes)
{
    if (bytes <= (size_t)1 << MICA_POOL_SMALLEST_BITS)
        return 0;
    unsigned octave = floor_log2(bytes - 1); /* 2^octave < bytes <= 2^(octave + 1) */
    if (octave < MICA_POOL_FINE_BITS)
        return octave + 1 - MICA_POOL_SMALLEST_BITS;
    unsigned quarter = (unsigned)((bytes - 1) >> (octave - 2)) - 4; /* 0 to 3 */
    return MICA_POOL_FINE_BITS - MICA_POOL_SMALLEST_BITS + 1 + 4 * (octave - MICA_POOL_FINE_BITS) + quarter;
}

size_t mica_pool_class_bytes(unsigned size_class)
{
    const unsigned coarse = MICA_POOL_FINE_BITS - MICA_POOL_SMALLEST_BITS + 1;
    if (size_class < coarse)
        return (size_t)1 << (MICA_POOL_SMALLEST_BITS + size_class);
    unsigned octave = MICA_POOL_FINE_BITS + (size_class - coarse) / 4;
    return (size_t)(5 + (size_class - coarse) % 4) << (octave - 2);
}

static size_t capacity(const mica_buffer *buffer) { return mica_pool_class_bytes(buffer->size_class); }

/* ---- The hash table of all buffers ---- */

static mica_buffer **bucket_of(const mica_pool *pool, const void *data)
{
    uint64_t hash = ((uint64_t)(uintptr_t)data / MICA_ALIGN) * 0x9e3779b97f4a7c15u;
    return &pool->bucket[hash >> (64 - pool->bucket_bits)];
}

static void table_add(mica_pool *pool, mica_buffer *buffer)
{
    mica_buffer **bucket = bucket_of(pool, mica_buffer_data(buffer));
    buffer->chain = *bucket;
    *bucket = buffer;
}

static void table_remove(mica_pool *pool, const mica_buffer *buffer)
{
    mica_buffer **link = bucket_of(pool, (const char *)buffer + RECORD);
    while (*link != buffer)
        link = &(*link)->chain;
    *link = buffer->chain;
}

mica_buffer *mica_buffer_find(const mica_pool *pool, const void *data)
{
    mica_buffer *buffer = *bucket_of(pool, data);
    while (buffer != NULL && mica_buffer_data(buffer) != data)
        buffer = buffer->chain;
    return buffer;
}

static void table_release(mica_pool *pool, mica_buffer **bucket, unsigned bits)
{
    if (bucket != pool->first_bucket)
        mica_heap_return(&pool->allocator, &pool->heap, bucket, sizeof(*bucket) << bits);
}

/* Doubles the table when it is full. Without the memory for that, its chains get longer and all still works. */
static void table_grow(mica_pool *pool)
{
    size_t count = (size_t)1 << pool->bucket_bits;
    if (pool->buffers < count)
        return;
    mica_buffer **old = pool->bucket;
    mica_buffer **bucket = mica_heap_take(&pool->allocator, &pool->heap, 2 * count * sizeof *bucket);
    if (bucket == NULL)
        return;
    memset(bucket, 0, 2 * count * sizeof *bucket);
    pool->bucket = bucket;
    pool->bucket_bits++;
    for (size_t i = 0; i < count; i++) {
        for (mica_buffer *buffer = old[i], *chain; buffer != NULL; buffer = chain) {
            chain = buffer->chain;
            table_add(pool, buffer);
        }
    }
    table_release(pool, old, pool->bucket_bits - 1);
}

/* ---- Buffers ---- */

static void release_buffer(mica_pool *pool, mica_buffer *buffer)
{
    table_remove(pool, buffer);
    pool->buffers--;
    pool->held -= capacity(buffer);
    pool->stats.releases++;
    mica_heap_return(&pool->allocator, &pool->heap, buffer, RECORD + capacity(buffer));
}

static mica_buffer *take_unused(mica_pool *pool, unsigned size_class)
{
    mica_pool_class *class = &pool->size_class[size_class];
    mica_buffer *buffer = class->unused;
    if (buffer == NULL)
        return NULL;
    class->unused = buffer->next;
    class->count--;
    pool->stats.pooled--;
    pool->stats.pooled_bytes -= capacity(buffer);
    return buffer;
}

static size_t trim(mica_pool *pool, size_t bytes)
{
    size_t before = pool->stats.pooled_bytes;
    for (unsigned i = MICA_POOL_CLASSES; i-- > 0;)
        while (pool->stats.pooled_bytes > bytes && pool->size_class[i].count > 0)
            release_buffer(pool, take_unused(pool, i));
    return before - pool->stats.pooled_bytes;
}

static mica_buffer *make_buffer(mica_pool *pool, unsigned size_class)
{
    size_t bytes = mica_pool_class_bytes(size_class);
    mica_buffer *buffer = mica_heap_take(&pool->allocator, &pool->heap, RECORD + bytes);
    if (buffer == NULL && trim(pool, 0) > 0) /* what lies unused in other classes may be what is missing */
        buffer = mica_heap_take(&pool->allocator, &pool->heap, RECORD + bytes);
    if (buffer == NULL)
        return NULL;
    *buffer = (mica_buffer){.size_class = size_class};
    table_grow(pool);
    table_add(pool, buffer);
    pool->buffers++;
    pool->held += bytes;
    if (pool->held > pool->stats.peak_bytes)
        pool->stats.peak_bytes = pool->held;
    return buffer;
}

mica_buffer *mica_buffer_rent(mica_context *ctx, mica_pool *pool, size_t bytes, bool *fresh, const char *call)
{
    if (bytes > MICA_POOL_MOST_BYTES) {
        (void)mica_fail(ctx, MICA_ERR_MEMORY, "%s: %zu bytes exceed the largest possible buffer", call,
                        bytes);
        return NULL;
    }
    unsigned size_class = mica_pool_class_of(bytes);
    mica_buffer *buffer = take_unused(pool, size_class);
    *fresh = buffer == NULL;
    if (*fresh)
        buffer = make_buffer(pool, size_class);
    if (buffer == NULL) {
        (void)mica_fail(ctx, MICA_ERR_MEMORY, "%s: cannot allocate %zu bytes", call,
                        RECORD + mica_pool_class_bytes(size_class));
        return NULL;
    }
    buffer->rented = true;
    pool->stats.rents++;
    pool->stats.allocations += *fresh;
    pool->stats.hits += !*fresh;
    pool->stats.rented++;
    pool->stats.rented_bytes += capacity(buffer);
    return buffer;
}

void *mica_buffer_hand_out(const mica_pool *pool, mica_buffer *buffer, bool fresh)
{
    void *data = mica_buffer_data(buffer);
    if (fresh && pool->clear)
        memset(data, 0, capacity(buffer));
    return data;
}

void mica_buffer_detach(mica_pool *pool, mica_buffer *buffer)
{
    mica_scope_unlink(buffer);
    buffer->rented = false;
    pool->stats.returns++;
    pool->stats.rented--;
    pool->stats.rented_bytes -= capacity(buffer);
}

static void shelve(mica_pool *pool, mica_buffer *buffer)
{
    mica_pool_class *class = &pool->size_class[buffer->size_class];
    if (class->count >= pool->limit) {
        release_buffer(pool, buffer);
        return;
    }
    buffer->next = class->unused;
    class->unused = buffer;
    class->count++;
    pool->stats.pooled++;
    pool->stats.pooled_bytes += capacity(buffer);
}

void mica_buffers_shelve(mica_pool *pool, mica_buffer *list)
{
    if (pool->clear && list != NULL) {
        mica_lock_drop(&pool->lock);
        for (mica_buffer *buffer = list; buffer != NULL; buffer = buffer->next)
            memset(mica_buffer_data(buffer), 0, capacity(buffer));
        mica_lock_take(&pool->lock);
    }
    for (mica_buffer *next; list != NULL; list = next) {
        next = list->next;
        shelve(pool, list);
    }
}

/* ---- The public calls ---- */

mica_status mica_pool_create(mica_context *ctx, mica_pool **out, const mica_pool_opts *opts)
{
    static const mica_pool_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    *out = NULL;
    mica_allocator allocator = opts->allocator != NULL ? *opts->allocator : mica_system_allocator;
    if (allocator.allocate == NULL || allocator.release == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "pool_create: the allocator lacks %s",
                         allocator.allocate == NULL ? "allocate" : "release");
    mica_heap_stats heap = {0};
    mica_pool *pool = mica_heap_take(&allocator, &heap, sizeof *pool);
    if (pool == NULL)
        return mica_fail(ctx, MICA_ERR_MEMORY, "pool_create: cannot allocate %zu bytes", sizeof *pool);
    memset(pool, 0, sizeof *pool);
    pool->allocator = allocator;
    pool->heap = heap;
    pool->limit = opts->limit > 0 ? opts->limit : MICA_POOL_LIMIT;
    pool->clear = opts->clear;
    pool->bucket = pool->first_bucket;
    pool->bucket_bits = floor_log2(MICA_POOL_FIRST_BUCKETS);
    mica_scope_slab_add(pool, &pool->first_slab);
    if (!mica_lock_init(&pool->lock)) {
        mica_heap_return(&allocator, &heap, pool, sizeof *pool);
        return mica_fail(ctx, MICA_ERR_MEMORY, "pool_create: cannot create a mutex");
    }
    *out = pool;
    return MICA_OK;
}

void mica_pool_destroy(mica_pool *pool)
{
    if (pool == NULL)
        return;
    for (size_t i = 0; i < (size_t)1 << pool->bucket_bits; i++)
        while (pool->bucket[i] != NULL)
            release_buffer(pool, pool->bucket[i]);
    table_release(pool, pool->bucket, pool->bucket_bits);
    for (mica_scope_slab *slab = pool->more_slabs, *next; slab != NULL; slab = next) {
        next = slab->next;
        mica_heap_return(&pool->allocator, &pool->heap, slab, sizeof *slab);
    }
    mica_lock_destroy(&pool->lock);
    mica_allocator allocator = pool->allocator;
    mica_heap_stats heap = pool->heap;
    mica_heap_return(&allocator, &heap, pool, sizeof *pool);
}

mica_status mica_pool_rent(mica_context *ctx, void **out, mica_pool *pool, size_t bytes)
{
    bool fresh;
    mica_lock_take(&pool->lock);
    mica_buffer *buffer = mica_buffer_rent(ctx, pool, bytes, &fresh, "pool_rent");
    mica_lock_drop(&pool->lock);
    if (buffer == NULL)
        return ctx->status;
    *out = mica_buffer_hand_out(pool, buffer, fresh);
    return MICA_OK;
}

mica_status mica_pool_rent_tensor(mica_context *ctx, mica_tensor *out, mica_pool *pool, mica_dtype dtype,
                                  int rank, const mica_index *dims)
{
    mica_tensor t;
    MICA_TRY(mica_tensor_init(ctx, &t, NULL, dtype, rank, dims));
    MICA_TRY(mica_pool_rent(ctx, &t.data, pool, mica_tensor_bytes(&t)));
    *out = t;
    return MICA_OK;
}

mica_status mica_pool_return(mica_context *ctx, mica_pool *pool, void *data)
{
    mica_lock_take(&pool->lock);
    mica_buffer *buffer = mica_buffer_find(pool, data);
    bool rented = buffer != NULL && buffer->rented;
    if (rented) {
        mica_buffer_detach(pool, buffer);
        mica_buffers_shelve(pool, buffer);
    }
    mica_lock_drop(&pool->lock);
    if (rented)
        return MICA_OK;
    if (buffer != NULL)
        return mica_fail(ctx, MICA_ERR_STATE, "pool_return: buffer %p has already been returned", data);
    return mica_fail(ctx, MICA_ERR_ARGUMENT, "pool_return: %p is not a buffer of this pool", data);
}

mica_status mica_pool_return_tensor(mica_context *ctx, mica_pool *pool, const mica_tensor *t)
{
    return mica_pool_return(ctx, pool, t->data);
}

size_t mica_pool_trim(mica_pool *pool, size_t bytes)
{
    mica_lock_take(&pool->lock);
    size_t released = trim(pool, bytes);
    mica_lock_drop(&pool->lock);
    return released;
}

size_t mica_pool_clear(mica_pool *pool) { return mica_pool_trim(pool, 0); }

mica_pool_stats mica_pool_statistics(mica_pool *pool)
{
    mica_lock_take(&pool->lock);
    mica_pool_stats stats = pool->stats;
    mica_lock_drop(&pool->lock);
    return stats;
}

mica_heap_stats mica_pool_heap(mica_pool *pool)
{
    mica_lock_take(&pool->lock);
    mica_heap_stats heap = pool->heap;
    mica_lock_drop(&pool->lock);
    return heap;
}
