/* The crew: worker threads that take numbered blocks of the caller's work.
 *
 * Every thread has a share of a job: blocks that follow one another, and the same ones the next time, so that it finds
 * in its own caches what it has left there. Who has done his share takes from the others'.
 *
 * A job is open while the `tickets` word of a share has blocks left. Workers spin on them for a short while, since the
 * next call is usually microseconds away, and then sleep; within a stretch (mica_parallel_begin) they do not sleep,
 * since waking one costs its caller some ten microseconds, and the worker's first block may come later still. The
 * caller takes blocks like everyone else and waits only for blocks that somebody has begun, so a worker that wakes
 * up late delays nobody. */
#include "base/parallel.h"

/* Some twenty microseconds of one thread. */
#define SUMS_WORTH_SHARING 1e6

static void alone(size_t blocks, mica_block_fn *fn, void *work)
{
    for (size_t block = 0; block < blocks; block++)
        fn(work, block, 0);
}

void mica_parallel_sums(mica_context *ctx, double sums, size_t blocks, mica_block_fn *fn, void *work)
{
    if (sums < SUMS_WORTH_SHARING)
        alone(blocks, fn, work);
    else
        mica_parallel(ctx, blocks, fn, work);
}

#if defined(MICA_NO_THREADS)

mica_status mica_crew_start(mica_context *ctx, int threads)
{
    return mica_fail(ctx, MICA_ERR_ARGUMENT, "context: %d threads asked for, but this build has none",
                     threads);
}

void mica_crew_stop(mica_context *ctx) { (void)ctx; }
void mica_parallel_begin(mica_context *ctx) { (void)ctx; }
void mica_parallel_end(mica_context *ctx) { (void)ctx; }

void mica_parallel(mica_context *ctx, size_t blocks, mica_block_fn *fn, void *work)
{
    (void)ctx;
    alone(blocks, fn, work);
}

#else

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

/* Pauses of a waiting worker before it sleeps (some 200 microseconds); and of one that must not sleep, or of a
 * waiting caller, before it lets other programs run. */
#define SPINS_BEFORE_SLEEP 10000
#define SPINS_BEFORE_YIELD 20000

typedef struct worker {
    /* The share. High half: its next block. Low half: its end. One word, so that a block is never taken from one job
     * and held against the size of another. */
    _Alignas(MICA_ALIGN) _Atomic uint64_t tickets;
    pthread_t thread;
    mica_crew *crew;
    int index; /* 1 to workers; 0 is the caller, who needs no thread */
} worker;

struct mica_crew {
    /* The job. Written before the tickets are, and read only by a holder of one of them. */
    mica_block_fn *fn;
    void *work;

    _Alignas(MICA_ALIGN) atomic_size_t done; /* blocks of this job that are finished */
    atomic_uint sleeping;
    atomic_bool stop;
    atomic_bool stretch; /* within one */
    int depth;           /* of stretches: the caller's */

    pthread_mutex_t mutex; /* guards falling asleep */
    pthread_cond_t wake;

    int workers;
    worker worker[]; /* workers + 1 */
};

#define MOST_BLOCKS INT32_MAX /* in one job; far above what any job is cut into */
#define ONE_TICKET  ((uint64_t)1 << 32)

static inline bool has_work(uint64_t tickets) { return (tickets >> 32) < (uint32_t)tickets; }

static inline void cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Whether any share has blocks left. */
static bool is_open(mica_crew *crew)
{
    for (int i = 0; i <= crew->workers; i++)
        if (has_work(atomic_load(&crew->worker[i].tickets)))
            return true;
    return false;
}

static void take_share(mica_crew *crew, worker *from, int thread)
{
    while (has_work(atomic_load_explicit(&from->tickets, memory_order_relaxed))) {
        uint64_t ticket = atomic_fetch_add_explicit(&from->tickets, ONE_TICKET, memory_order_acq_rel);
        if (!has_work(ticket))
            return;
        crew->fn(crew->work, (size_t)(ticket >> 32), thread);
        atomic_fetch_add_explicit(&crew->done, 1, memory_order_release);
    }
}

/* His own share, then those of the others, from the next on. */
static void take_blocks(mica_crew *crew, int thread)
{
    for (int i = thread; i <= crew->workers; i++)
        take_share(crew, &crew->worker[i], thread);
    for (int i = 0; i < thread; i++)
        take_share(crew, &crew->worker[i], thread);
}

static void deal_out(mica_crew *crew, size_t blocks)
{
    size_t threads = (size_t)crew->workers + 1;
    for (size_t i = 0; i < threads; i++) {
        uint64_t begin = blocks * i / threads, end = blocks * (i + 1) / threads;
        atomic_store(&crew->worker[i].tickets, begin << 32 | end);
    }
}

/* Pauses a moment; now and then, of a wait that has become long, lets other programs run. */
static inline void wait_on(int spins)
{
    if (spins < SPINS_BEFORE_YIELD)
        cpu_pause();
    else
        sched_yield();
}

/* Returns when there is work, or the crew is to stop. */
static void await_work(mica_crew *crew)
{
    for (int spins = 0, idle = 0; idle < SPINS_BEFORE_SLEEP; idle++) {
        if (is_open(crew) || atomic_load_explicit(&crew->stop, memory_order_relaxed))
            return;
        if (atomic_load_explicit(&crew->stretch, memory_order_relaxed))
            idle = 0;
        wait_on(spins);
        spins += spins < SPINS_BEFORE_YIELD;
    }
    pthread_mutex_lock(&crew->mutex);
    atomic_fetch_add(&crew->sleeping, 1);
    while (!is_open(crew) && !atomic_load(&crew->stop))
        pthread_cond_wait(&crew->wake, &crew->mutex);
    atomic_fetch_sub(&crew->sleeping, 1);
    pthread_mutex_unlock(&crew->mutex);
}

/* After `tickets` or `stop` changed. Both that change and this load are sequentially consistent, as are a
 * worker's count of itself and its look at them: either it sees the change or we see it asleep. */
static void wake_sleepers(mica_crew *crew)
{
    if (atomic_load(&crew->sleeping) > 0) {
        pthread_mutex_lock(&crew->mutex);
        pthread_cond_broadcast(&crew->wake);
        pthread_mutex_unlock(&crew->mutex);
    }
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    while (!atomic_load_explicit(&self->crew->stop, memory_order_relaxed)) {
        await_work(self->crew);
        take_blocks(self->crew, self->index);
    }
    return NULL;
}

void mica_parallel(mica_context *ctx, size_t blocks, mica_block_fn *fn, void *work)
{
    mica_crew *crew = ctx != NULL ? ctx->crew : NULL;
    if (crew == NULL || blocks < 2 || blocks > MOST_BLOCKS) {
        alone(blocks, fn, work);
        return;
    }
    crew->fn = fn;
    crew->work = work;
    atomic_store_explicit(&crew->done, 0, memory_order_relaxed);
    deal_out(crew, blocks);
    wake_sleepers(crew);
    take_blocks(crew, 0);
    for (int spins = 0; atomic_load_explicit(&crew->done, memory_order_acquire) < blocks;) {
        wait_on(spins);
        spins += spins < SPINS_BEFORE_YIELD;
    }
}

void mica_parallel_begin(mica_context *ctx)
{
    if (ctx->crew != NULL && ctx->crew->depth++ == 0)
        atomic_store_explicit(&ctx->crew->stretch, true, memory_order_relaxed);
}

void mica_parallel_end(mica_context *ctx)
{
    if (ctx->crew != NULL && --ctx->crew->depth == 0)
        atomic_store_explicit(&ctx->crew->stretch, false, memory_order_relaxed);
}

static size_t crew_bytes(int workers) { return sizeof(mica_crew) + ((size_t)workers + 1) * sizeof(worker); }

mica_status mica_crew_start(mica_context *ctx, int threads)
{
    int wanted = threads - 1;
    mica_crew *crew = mica_allocate(ctx, crew_bytes(wanted));
    if (crew == NULL)
        return ctx->status;
    memset(crew, 0, crew_bytes(wanted));
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->wake, NULL);
    crew->workers = wanted;
    ctx->crew = crew;
    ctx->threads = threads;
    for (int i = 1; i <= wanted; i++) {
        worker *w = &crew->worker[i];
        w->crew = crew;
        w->index = i;
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0) {
            crew->workers = i - 1; /* those that run are stopped with the context */
            return mica_fail(ctx, MICA_ERR_MEMORY, "context: the system refused thread %d of %d", i + 1,
                             threads);
        }
    }
    return MICA_OK;
}

void mica_crew_stop(mica_context *ctx)
{
    mica_crew *crew = ctx->crew;
    if (crew == NULL)
        return;
    atomic_store(&crew->stop, true);
    wake_sleepers(crew);
    for (int i = 1; i <= crew->workers; i++)
        pthread_join(crew->worker[i].thread, NULL);
    pthread_cond_destroy(&crew->wake);
    pthread_mutex_destroy(&crew->mutex);
    mica_release(ctx, crew, crew_bytes(ctx->threads - 1));
    ctx->crew = NULL;
    ctx->threads = 1;
}

#endif
