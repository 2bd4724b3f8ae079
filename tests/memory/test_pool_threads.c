/* One pool hammered by several threads, each with a context of its own. */
#include <stdatomic.h>
#include <string.h>

#include "test.h"

#if defined(MICA_NO_THREADS)

TEST(pool_shared_by_threads) { test_skip("a build without threads"); }

#else

#include <pthread.h>

#define THREADS 4
#define ROUNDS  3000
#define HANDS   8 /* buffers that a thread holds at once */

/* What the threads share. A buffer laid into a slot is returned by whoever finds it there. */
typedef struct shared {
    mica_pool *pool;
    _Atomic(void *) slot[16];
    atomic_int faults;
} shared;

typedef struct hammer {
    shared *shared;
    int number;
    mica_context *ctx;
    test_random random;
    unsigned char *held[HANDS];
    size_t bytes[HANDS];
} hammer;

static void expect(hammer *h, bool ok)
{
    if (!ok)
        atomic_fetch_add(&h->shared->faults, 1);
}

static void put_back(hammer *h, void *buffer)
{
    expect(h, mica_pool_return(h->ctx, h->shared->pool, buffer) == MICA_OK);
}

/* Nobody else has written to a held buffer. */
static void check_mark(hammer *h, const unsigned char *buffer, size_t bytes)
{
    expect(h, buffer[0] == h->number && buffer[bytes - 1] == h->number);
}

static void rent_or_return(hammer *h, int hand)
{
    if (h->held[hand] != NULL) {
        check_mark(h, h->held[hand], h->bytes[hand]);
        void *found = h->held[hand];
        if (test_chance(&h->random, 30))
            found = atomic_exchange(&h->shared->slot[test_int(&h->random, 0, 15)], found);
        if (found != NULL)
            put_back(h, found);
        h->held[hand] = NULL;
        return;
    }
    void *buffer = NULL;
    h->bytes[hand] = (size_t)test_int(&h->random, 1, 3000);
    expect(h, mica_pool_rent(h->ctx, &buffer, h->shared->pool, h->bytes[hand]) == MICA_OK);
    h->held[hand] = buffer;
    memset(buffer, h->number, h->bytes[hand]);
}

static void use_scopes(hammer *h)
{
    mica_scope outer, inner;
    expect(h, mica_scope_begin(h->ctx, &outer, h->shared->pool) == MICA_OK);
    expect(h, mica_scope_nest(h->ctx, &inner, &outer) == MICA_OK);
    for (int i = 0; i < 4; i++) {
        void *buffer = NULL;
        expect(h, mica_scope_rent(h->ctx, &buffer, i % 2 ? &inner : &outer, 700) == MICA_OK);
        memset(buffer, h->number, 700);
    }
    mica_scope_end(&outer);
    mica_scope_end(&inner);
}

static void *hammer_main(void *argument)
{
    hammer *h = argument;
    expect(h, mica_context_create(&h->ctx, NULL) == MICA_OK);
    h->random = test_seed((uint64_t)h->number);
    for (int round = 0; round < ROUNDS; round++) {
        rent_or_return(h, test_int(&h->random, 0, HANDS - 1));
        if (test_chance(&h->random, 5))
            use_scopes(h);
        if (test_chance(&h->random, 2))
            (void)mica_pool_trim(h->shared->pool, 4096);
        if (test_chance(&h->random, 5)) { /* a fault in one thread stays that thread's */
            expect(h, mica_pool_return(h->ctx, h->shared->pool, h) == MICA_ERR_ARGUMENT);
            expect(h, mica_context_status(h->ctx) == MICA_ERR_ARGUMENT);
        }
    }
    for (int hand = 0; hand < HANDS; hand++)
        if (h->held[hand] != NULL)
            put_back(h, h->held[hand]);
    mica_context_destroy(h->ctx);
    return NULL;
}

static void hammer_pool(const mica_pool_opts *opts)
{
    mica_context *ctx = test_context(1);
    shared s = {0};
    CHECK_OK(ctx, mica_pool_create(ctx, &s.pool, opts));
    hammer hammers[THREADS] = {{0}};
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        hammers[i].shared = &s;
        hammers[i].number = i + 1;
        REQUIRE(pthread_create(&thread[i], NULL, hammer_main, &hammers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 16; i++)
        if (s.slot[i] != NULL)
            CHECK_OK(ctx, mica_pool_return(ctx, s.pool, s.slot[i]));
    CHECK(s.faults == 0);
    mica_pool_stats stats = mica_pool_statistics(s.pool);
    CHECK(stats.rented == 0 && stats.rented_bytes == 0 && stats.rents == stats.returns);
    CHECK(stats.hits + stats.allocations == stats.rents);
    CHECK(stats.pooled == stats.allocations - stats.releases);
    CHECK(mica_pool_clear(s.pool) == stats.pooled_bytes);
    mica_pool_destroy(s.pool);
}

TEST(pool_shared_by_threads)
{
    hammer_pool(NULL);
    hammer_pool(&(mica_pool_opts){.limit = 2, .clear = true});
}

#endif
