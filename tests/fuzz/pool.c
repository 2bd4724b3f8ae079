/* A pool and its scopes against a model: who holds which buffer, what it contains, and what must be refused.
 *
 * Every rented buffer is filled with a byte of its own, which must still be there when it goes back: buffers
 * that overlap, or one handed out twice, show. The allocator refuses when the input says so. */
#include <string.h>

#include "fuzz.h"

enum { MOST_BUFFERS = 24, MOST_SCOPES = 8, OUTSIDE = -1 };

typedef struct buffer {
    uint8_t *data; /* NULL: free entry */
    size_t bytes;
    uint8_t fill;
    int scope; /* OUTSIDE: the caller returns it */
} buffer;

typedef struct scope {
    mica_scope handle;
    bool open;
    int outer;
} scope;

typedef struct state {
    mica_context *ctx;
    mica_pool *pool;
    bytes *in;
    buffer buffers[MOST_BUFFERS];
    scope scopes[MOST_SCOPES];
    uint8_t last_fill;
    size_t live_bytes; /* that the allocator gave */
    int until_refusal; /* allocations that still succeed; negative: all do */
    bool refused;
} state;

static void *allocate(void *user, size_t size, size_t alignment)
{
    state *s = user;
    if (s->until_refusal == 0) {
        s->refused = true;
        return NULL;
    }
    s->until_refusal -= s->until_refusal > 0;
    s->live_bytes += size;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *block, size_t size, size_t alignment)
{
    (void)alignment;
    ((state *)user)->live_bytes -= size;
    free(block);
}

static void insist_intact(const buffer *b)
{
    for (size_t i = 0; i < b->bytes; i++)
        INSIST(b->data[i] == b->fill);
}

static buffer *free_entry(state *s)
{
    for (int i = 0; i < MOST_BUFFERS; i++)
        if (s->buffers[i].data == NULL)
            return &s->buffers[i];
    return NULL;
}

static scope *any_scope(state *s) { return &s->scopes[take(s->in, 0, MOST_SCOPES - 1)]; }
static buffer *any_buffer(state *s) { return &s->buffers[take(s->in, 0, MOST_BUFFERS - 1)]; }

static void rent(state *s)
{
    buffer *entry = free_entry(s);
    int index = take(s->in, OUTSIDE, MOST_SCOPES - 1);
    size_t size = (size_t)take(s->in, 0, 255) << take(s->in, 0, 6);
    if (entry == NULL)
        return;
    const scope *in = index == OUTSIDE ? NULL : &s->scopes[index];
    void *data = NULL;
    s->refused = false;
    mica_status status = in == NULL ? mica_pool_rent(s->ctx, &data, s->pool, size)
                                    : mica_scope_rent(s->ctx, &data, &in->handle, size);
    if (in != NULL && !in->open) {
        INSIST(status == MICA_ERR_STATE);
        return;
    }
    INSIST(status == (s->refused ? MICA_ERR_MEMORY : MICA_OK));
    if (status != MICA_OK)
        return;
    INSIST((uintptr_t)data % 64 == 0);
    *entry = (buffer){data, size, ++s->last_fill, index};
    memset(data, entry->fill, size);
}

static void give_back(state *s)
{
    buffer *b = any_buffer(s);
    if (b->data == NULL)
        return;
    insist_intact(b);
    INSIST(mica_pool_return(s->ctx, s->pool, b->data + 1) != MICA_OK); /* not where a buffer begins */
    INSIST(mica_pool_return(s->ctx, s->pool, b->data) == MICA_OK);
    INSIST(mica_pool_return(s->ctx, s->pool, b->data) != MICA_OK); /* twice */
    b->data = NULL;
}

static void give_foreign(state *s)
{
    static _Alignas(64) uint8_t foreign[64];
    INSIST(mica_pool_return(s->ctx, s->pool, foreign) == MICA_ERR_ARGUMENT);
    INSIST(mica_pool_return(s->ctx, s->pool, NULL) == MICA_ERR_ARGUMENT);
}

static void begin_scope(state *s)
{
    scope *inner = any_scope(s);
    int outer = take(s->in, OUTSIDE, MOST_SCOPES - 1);
    if (inner->open || (outer != OUTSIDE && inner == &s->scopes[outer]))
        return;
    s->refused = false;
    mica_status status = outer == OUTSIDE ? mica_scope_begin(s->ctx, &inner->handle, s->pool)
                                          : mica_scope_nest(s->ctx, &inner->handle, &s->scopes[outer].handle);
    if (outer != OUTSIDE && !s->scopes[outer].open) {
        INSIST(status == MICA_ERR_STATE);
        return;
    }
    INSIST(status == (s->refused ? MICA_ERR_MEMORY : MICA_OK));
    inner->open = status == MICA_OK;
    inner->outer = outer;
}

static void model_end(state *s, int index)
{
    for (int i = 0; i < MOST_SCOPES; i++)
        if (s->scopes[i].open && s->scopes[i].outer == index)
            model_end(s, i);
    for (int i = 0; i < MOST_BUFFERS; i++) {
        buffer *b = &s->buffers[i];
        if (b->data == NULL || b->scope != index)
            continue;
        insist_intact(b);
        b->data = NULL;
    }
    s->scopes[index].open = false;
}

static void end_scope(state *s)
{
    scope *one = any_scope(s);
    mica_scope copy = one->handle;
    if (one->open)
        model_end(s, (int)(one - s->scopes));
    mica_scope_end(&one->handle);
    mica_scope_end(&copy);
}

static void keep(state *s)
{
    const scope *one = any_scope(s);
    buffer *b = any_buffer(s);
    mica_status status = mica_scope_keep(s->ctx, &one->handle, b->data);
    bool right = one->open && b->data != NULL && b->scope == one - s->scopes;
    INSIST((status == MICA_OK) == right);
    if (right)
        b->scope = one->outer;
}

static void trim(state *s)
{
    size_t most = (size_t)take(s->in, 0, 255) << 8;
    mica_pool_trim(s->pool, most);
    INSIST(mica_pool_statistics(s->pool).pooled_bytes <= most);
}

static void refuse_soon(state *s) { s->until_refusal = take(s->in, -1, 4); }

static void (*const actions[])(state *) = {rent,      rent,      rent, give_back, give_foreign, begin_scope,
                                           end_scope, end_scope, keep, trim,      refuse_soon};

static void insist_counted(const state *s)
{
    mica_pool_stats stats = mica_pool_statistics(s->pool);
    size_t rented = 0;
    for (int i = 0; i < MOST_BUFFERS; i++)
        rented += s->buffers[i].data != NULL;
    INSIST(stats.rented == rented);
    INSIST(stats.rents == stats.hits + stats.allocations);
    INSIST(stats.rents - stats.returns == rented);
    INSIST(mica_pool_heap(s->pool).live_bytes == s->live_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mica_context *ctx; /* made once: the fuzzer calls millions of times */
    if (ctx == NULL)
        INSIST(mica_context_create(&ctx, NULL) == MICA_OK);
    bytes in = {data, size};
    state s = {.ctx = ctx, .in = &in, .until_refusal = -1};
    mica_allocator allocator = {allocate, release, &s};
    INSIST(mica_pool_create(ctx, &s.pool,
                            &(mica_pool_opts){.limit = (size_t)take(&in, 0, 3),
                                              .clear = take(&in, 0, 1) == 1,
                                              .allocator = &allocator}) == MICA_OK);
    while (in.left > 0) {
        actions[take(&in, 0, sizeof actions / sizeof actions[0] - 1)](&s);
        insist_counted(&s);
    }
    for (int i = 0; i < MOST_BUFFERS; i++)
        if (s.buffers[i].data != NULL)
            insist_intact(&s.buffers[i]);
    mica_pool_destroy(s.pool);
    INSIST(s.live_bytes == 0);
    return 0;
}
