/* The crew: every block exactly once, whatever the number of threads, and no heap call after it started. */
#include <stdatomic.h>
#include <string.h>

#include "base/parallel.h"
#include "test.h"

#define BLOCKS 1000

typedef struct tally {
    atomic_int done[BLOCKS];
    atomic_int bad_thread;
    int threads;
} tally;

static void mark(void *work, size_t block, int thread)
{
    tally *t = work;
    atomic_fetch_add(&t->done[block], 1);
    if (thread < 0 || thread >= t->threads)
        atomic_fetch_add(&t->bad_thread, 1);
}

TEST(parallel_does_every_block_once)
{
    static tally t;
    for (int threads = 1; threads <= 4; threads++) {
        mica_context *ctx = test_context(threads);
#if !defined(MICA_NO_THREADS)
        CHECK(mica_context_threads(ctx) == threads);
#endif
        for (size_t blocks = 0; blocks <= BLOCKS; blocks = blocks * 3 + 1) {
            memset(&t, 0, sizeof t);
            t.threads = threads;
            mica_parallel(ctx, blocks, mark, &t);
            for (size_t i = 0; i < BLOCKS; i++)
                CHECK(t.done[i] == (i < blocks ? 1 : 0));
            CHECK(t.bad_thread == 0);
        }
    }
}

TEST(parallel_does_not_allocate)
{
    static tally t;
    mica_context *ctx = test_context(3);
    t.threads = 3;
    test_heap before = test_heap_now();
    for (int i = 0; i < 2000; i++)
        mica_parallel(ctx, 7, mark, &t);
    CHECK(test_heap_now().calls == before.calls);
}

/* A stretch changes when threads sleep, and nothing else: calls within it, after it and in one that is nested. */
TEST(parallel_stretches_nest)
{
    static tally t;
    mica_context *ctx = test_context(3);
    for (int depth = 0; depth < 3; depth++)
        mica_parallel_begin(ctx);
    for (int depth = 3; depth >= 0; depth--) {
        memset(&t, 0, sizeof t);
        t.threads = 3;
        mica_parallel(ctx, BLOCKS, mark, &t);
        for (size_t i = 0; i < BLOCKS; i++)
            CHECK(t.done[i] == 1);
        if (depth > 0)
            mica_parallel_end(ctx);
    }
}
