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

/* Whether blocks 0 to blocks - 1 were done once each, and no others; clears the tally. */
static bool is_done_once(tally *t, size_t blocks)
{
    bool once = t->bad_thread == 0;
    for (size_t i = 0; i < BLOCKS; i++)
        once = once && t->done[i] == (i < blocks ? 1 : 0);
    memset(t->done, 0, sizeof t->done);
    return once;
}

/* Fewer blocks than threads, as many, and more; as work that is worth waking somebody for, and as less. */
TEST(parallel_does_every_block_once)
{
    static tally t;
    for (int threads = 1; threads <= 4; threads++) {
        mica_context *ctx = test_context(threads);
        t.threads = threads;
#if !defined(MICA_NO_THREADS)
        CHECK(mica_context_threads(ctx) == threads);
#endif
        for (size_t blocks = 0; blocks <= BLOCKS; blocks += blocks / 3 + 1) {
            mica_parallel(ctx, blocks, mark, &t);
            CHECK(is_done_once(&t, blocks));
            for (double sums = 1e4; sums < 1e8; sums *= 10.0) {
                mica_parallel_sums(ctx, sums, blocks, mark, &t);
                CHECK(is_done_once(&t, blocks));
            }
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
    t.threads = 3;
    for (int depth = 0; depth < 3; depth++)
        mica_parallel_begin(ctx);
    for (int depth = 3; depth >= 0; depth--) {
        mica_parallel(ctx, BLOCKS, mark, &t);
        CHECK(is_done_once(&t, BLOCKS));
        if (depth > 0)
            mica_parallel_end(ctx);
    }
}

#if !defined(MICA_NO_THREADS)
#include <errno.h>
#include <pthread.h>

/* The linker puts this in front of the library's calls (tests/CMakeLists.txt): a system that has no thread left. */
static atomic_int threads_left = -1; /* -1: no limit */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument)
{
    if (threads_left == 0)
        return EAGAIN;
    threads_left -= threads_left > 0;
    return __real_pthread_create(thread, how, run, argument);
}

/* Those that have started look at the crew while the caller learns that there will be no more; the thread
 * sanitizer watches. */
TEST(parallel_threads_that_the_system_refuses)
{
    enum { THREADS = 8 };
    for (int turn = 0; turn < 40; turn++) {
        mica_context *ctx = NULL;
        threads_left = turn % THREADS;
        mica_status status = mica_context_create(&ctx, &(mica_context_opts){.threads = THREADS});
        bool enough = threads_left > 0 || turn % THREADS == THREADS - 1;
        threads_left = -1;
        CHECK(status == (enough ? MICA_OK : MICA_ERR_MEMORY) && (ctx != NULL) == enough);
        mica_context_destroy(ctx);
    }
}
#endif
