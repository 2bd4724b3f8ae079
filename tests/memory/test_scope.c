/* Scopes: what is rented goes back, in any nesting, once. */
#include <stdio.h>
#include <string.h>

#include "memory/pool.h"
#include "oom.h"

static void *rent(mica_context *ctx, const mica_scope *scope, size_t bytes)
{
    void *buffer = NULL;
    CHECK_OK(ctx, mica_scope_rent(ctx, &buffer, scope, bytes));
    return buffer;
}

static size_t rented(mica_pool *pool) { return mica_pool_statistics(pool).rented; }

TEST(scope_returns_what_was_rented)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool;
    mica_scope scope;
    CHECK_OK(ctx, mica_pool_create(ctx, &pool, NULL));
    CHECK_OK(ctx, mica_scope_begin(ctx, &scope, pool));
    for (size_t i = 0; i < 10; i++)
        memset(rent(ctx, &scope, 100 * i), 1, 100 * i);
    mica_tensor t;
    CHECK_OK(ctx, mica_scope_rent_tensor(ctx, &t, &scope, MICA_F32, 1, (mica_index[]){100}));
    CHECK(t.dim[0] == 100 && rented(pool) == 11);
    mica_scope copy = scope;
    mica_scope_end(&scope);
    CHECK(rented(pool) == 0 && mica_pool_statistics(pool).returns == 11);
    mica_scope_end(&scope);
    mica_scope_end(&copy);
    CHECK(mica_pool_statistics(pool).returns == 11);

    /* A new scope takes over the old one's record; the old handle must not touch it. */
    mica_scope other;
    CHECK_OK(ctx, mica_scope_begin(ctx, &other, pool));
    CHECK(other.record == scope.record);
    (void)rent(ctx, &other, 1);
    mica_scope_end(&scope);
    CHECK(rented(pool) == 1);
    mica_scope_end(&other);
    CHECK(rented(pool) == 0);
    mica_pool_destroy(pool);
}

TEST(scope_outer_ends_inner)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool;
    mica_scope outer, left, right, deep;
    CHECK_OK(ctx, mica_pool_create(ctx, &pool, NULL));
    for (int order = 0; order < 4; order++) {
        CHECK_OK(ctx, mica_scope_begin(ctx, &outer, pool));
        CHECK_OK(ctx, mica_scope_nest(ctx, &left, &outer));
        CHECK_OK(ctx, mica_scope_nest(ctx, &right, &outer));
        CHECK_OK(ctx, mica_scope_nest(ctx, &deep, &left));
        const mica_scope *all[] = {&outer, &left, &right, &deep};
        for (int i = 0; i < 4; i++)
            (void)rent(ctx, all[i], 100);
        switch (order) {
        case 0: /* innermost first */
            mica_scope_end(&deep);
            CHECK(rented(pool) == 3);
            mica_scope_end(&right);
            mica_scope_end(&left);
            CHECK(rented(pool) == 1);
            break;
        case 1:
            mica_scope_end(&left);
            CHECK(rented(pool) == 2);
            (void)rent(ctx, &right, 100);
            break;
        case 2:
            mica_scope_end(&right);
            CHECK(rented(pool) == 3);
            break;
        default: /* the outermost alone */
            break;
        }
        mica_scope_end(&outer);
        CHECK(rented(pool) == 0);
        for (int i = 0; i < 4; i++) {
            void *buffer = NULL;
            mica_scope_end(all[i]);
            CHECK(mica_scope_rent(ctx, &buffer, all[i], 1) == MICA_ERR_STATE);
        }
    }
    mica_pool_destroy(pool);
}

TEST(scope_buffers_may_leave_early)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool;
    mica_scope outer, inner;
    CHECK_OK(ctx, mica_pool_create(ctx, &pool, NULL));
    CHECK_OK(ctx, mica_scope_begin(ctx, &outer, pool));
    CHECK_OK(ctx, mica_scope_nest(ctx, &inner, &outer));
    void *buffer[5];
    for (int i = 0; i < 5; i++)
        buffer[i] = rent(ctx, &inner, 100);
    /* Last, first and middle of the list. */
    CHECK_OK(ctx, mica_pool_return(ctx, pool, buffer[4]));
    CHECK_OK(ctx, mica_pool_return(ctx, pool, buffer[0]));
    CHECK_OK(ctx, mica_pool_return(ctx, pool, buffer[2]));
    CHECK(rented(pool) == 2);
    CHECK(mica_pool_return(ctx, pool, buffer[2]) == MICA_ERR_STATE);
    CHECK_OK(ctx, mica_scope_keep(ctx, &inner, buffer[1]));
    mica_scope_end(&inner);
    CHECK(rented(pool) == 1);
    CHECK_OK(ctx, mica_scope_keep(ctx, &outer, buffer[1]));
    mica_scope_end(&outer);
    CHECK(rented(pool) == 1);
    CHECK_OK(ctx, mica_pool_return(ctx, pool, buffer[1]));
    CHECK(rented(pool) == 0);
    mica_pool_destroy(pool);
}

TEST(scope_errors)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool;
    mica_scope scope, nested, ended, none = {0};
    CHECK_OK(ctx, mica_pool_create(ctx, &pool, NULL));
    CHECK_OK(ctx, mica_scope_begin(ctx, &scope, pool));
    CHECK_OK(ctx, mica_scope_begin(ctx, &ended, pool));
    mica_scope_end(&ended);
    mica_scope_end(&none);
    const mica_scope *bad[] = {&ended, &none};
    for (int i = 0; i < 2; i++) {
        void *buffer = NULL;
        CHECK_ERROR(ctx, mica_scope_rent(ctx, &buffer, bad[i], 10), MICA_ERR_STATE,
                    "state error: scope_rent: the scope has ended");
        CHECK_ERROR(ctx, mica_scope_nest(ctx, &nested, bad[i]), MICA_ERR_STATE,
                    "state error: scope_nest: the scope has ended");
        CHECK_ERROR(ctx, mica_scope_keep(ctx, bad[i], &scope), MICA_ERR_STATE,
                    "state error: scope_keep: the scope has ended");
        CHECK(buffer == NULL && nested.pool == NULL);
    }
    void *loose = NULL;
    char text[100];
    CHECK_OK(ctx, mica_pool_rent(ctx, &loose, pool, 10));
    (void)snprintf(text, sizeof text, "argument error: scope_keep: %p is not a buffer of this scope", loose);
    CHECK_ERROR(ctx, mica_scope_keep(ctx, &scope, loose), MICA_ERR_ARGUMENT, text);
    CHECK_ERROR(ctx, mica_scope_rent(ctx, &loose, &scope, SIZE_MAX), MICA_ERR_MEMORY,
                "memory error: scope_rent: 18446744073709551615 bytes exceed the largest possible buffer");
    mica_pool_destroy(pool); /* with the scope still open */
}

TEST(scope_makes_no_heap_call_once_warm)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool;
    CHECK_OK(ctx, mica_pool_create(ctx, &pool, NULL));
    for (int i = 0; i < 2; i++) {
        test_heap before = test_heap_now();
        for (int j = 0; j < 100; j++) {
            mica_scope outer, inner;
            CHECK_OK(ctx, mica_scope_begin(ctx, &outer, pool));
            CHECK_OK(ctx, mica_scope_nest(ctx, &inner, &outer));
            for (size_t k = 1; k < 10; k++)
                (void)rent(ctx, k % 2 ? &outer : &inner, 300 * k);
            mica_scope_end(&outer);
        }
        if (i == 1)
            CHECK(test_heap_now().calls == before.calls && test_heap_now().frees == before.frees);
    }
    mica_pool_destroy(pool);
}

TEST(scope_clears_what_it_returns)
{
    mica_context *ctx = test_context(1);
    mica_pool *pool;
    CHECK_OK(ctx, mica_pool_create(ctx, &pool, &(mica_pool_opts){.clear = true}));
    for (int round = 0; round < 2; round++) {
        mica_scope scope;
        CHECK_OK(ctx, mica_scope_begin(ctx, &scope, pool));
        for (int i = 0; i < 3; i++) {
            unsigned char *buffer = rent(ctx, &scope, 200), any = 0;
            for (int j = 0; j < 200; j++)
                any |= buffer[j];
            CHECK(any == 0);
            memset(buffer, 0xaa, 200);
        }
        mica_scope_end(&scope);
    }
    CHECK(mica_pool_statistics(pool).hits == 3);
    mica_pool_destroy(pool);
}

/* Deeper than the records that a pool starts with. */
static mica_status scope_work(const mica_allocator *allocator, void *context)
{
    enum { DEPTH = 20 };
    mica_context *ctx = context;
    mica_pool *pool = NULL;
    mica_scope scope[DEPTH];
    mica_status status = mica_pool_create(ctx, &pool, &(mica_pool_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    status = mica_scope_begin(ctx, &scope[0], pool);
    for (int i = 0; status == MICA_OK && i < DEPTH; i++) {
        void *buffer;
        if (i > 0)
            status = mica_scope_nest(ctx, &scope[i], &scope[i - 1]);
        if (status == MICA_OK)
            status = mica_scope_rent(ctx, &buffer, &scope[i], 100);
    }
    if (status != MICA_OK)
        CHECK(strncmp(mica_error(ctx), "memory error: scope_", 20) == 0);
    mica_scope_end(&scope[0]);
    CHECK(rented(pool) == 0);
    mica_pool_destroy(pool);
    return status;
}

TEST(scope_out_of_memory_at_every_allocation) { CHECK(test_oom(scope_work, test_context(1)) == 1 + 20 + 1); }
