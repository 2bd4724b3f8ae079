/* The crew: worker threads that take numbered blocks of the caller's work.
 *
 * Every thread has a share of a job: consecutive blocks, and the same ones the next time, so that their data is
 * still in its caches. A thread that finishes its share takes blocks from the others.
 *
 * Handing over work costs cache line transfers between cores, some 50 to 150 ns each. So a share is one cache line
 * with everything a worker needs to start; a waiting worker polls only its own; and the caller starts its first block
 * without waiting for its stores.
 *
 * A share is open while its `tickets` has blocks left. Workers spin on it for a short while, since the next
 * call is usually microseconds away, and then sleep; within a stretch (mica_parallel_begin) they do not
 * sleep, since waking one costs its caller some ten microseconds, and the worker's first block may come later
 * still. The caller takes blocks like any worker and waits only for blocks that have been started, so a
 * worker that wakes up late, or misses a job while falling asleep, delays nobody. */
#include "base/parallel.h"

static void alone(size_t blocks, mica_block_fn *fn, void *work)
{
    for (size_t block = 0; block < blocks; block++)
        fn(work, block, 0);
}

#if defined(MICA_NO_THREADS)

mica_status mica_crew_start(mica_context *ctx, int threads)
{
    return mica_fail(ctx, MICA_ERR_ARGUMENT, "context: %d threads requested, but this build has no threads",
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

void mica_parallel_sums(mica_context *ctx, double sums, size_t blocks, mica_block_fn *fn, void *work)
{
    (void)sums;
    mica_parallel(ctx, blocks, fn, work);
}

#else

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

/* Pauses of a waiting worker before it looks at the shares of others, too, and before it sleeps (some 200
 * microseconds); and of one that waits on, or of a waiting caller, before it lets other programs run. */
#define SPINS_BEFORE_LOOK  64
#define SPINS_BEFORE_SLEEP 10000
#define SPINS_BEFORE_YIELD 4000

/* Multiply-adds worth handing over to a thread that waits, some two microseconds of work; worth waking one
 * that sleeps, some twenty; and, in smaller jobs, worth a wakening for those to come. */
#define SUMS_WORTH_SHARING 1e5
#define SUMS_WORTH_WAKING  1e6
#define SUMS_OF_MANY_JOBS  2e7

typedef struct share {
    /* High half: the next block. Low half: the end. One word, so that a block is never taken from one job and held
     * against the size of another. */
    _Alignas(MICA_ALIGN) _Atomic uint64_t tickets;
    /* The job. Written before the tickets are, and read only by a holder of one of them. */
    mica_block_fn *fn;
    void *work;
} share;

typedef struct worker {
    share share;
    pthread_t thread;
    mica_crew *crew;
    int index; /* 1 to workers; 0 is the caller, who needs no thread */
} worker;

struct mica_crew {
    _Alignas(MICA_ALIGN) atomic_size_t done; /* blocks of this job that workers have finished */

    _Alignas(MICA_ALIGN) atomic_uint sleeping;
    atomic_bool stop;
    atomic_bool stretch; /* within one */
    int depth;           /* of stretches: the caller's */
    double missed;       /* sums of jobs too small to wake somebody for, since the last time: the caller's */

    pthread_mutex_t mutex; /* guards falling asleep */
    pthread_cond_t wake;

    int workers;     /* those asked for: running ones read it, so it never changes */
    int started;     /* of them, to be joined: the caller's */
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

static inline bool is_open(share *s)
{
    return has_work(atomic_load_explicit(&s->tickets, memory_order_relaxed));
}

static bool any_is_open(mica_crew *crew)
{
    for (int i = 0; i <= crew->workers; i++)
        if (is_open(&crew->worker[i].share))
            return true;
    return false;
}

/* Returns how many blocks it did. */
static size_t take_share(share *from, int thread)
{
    size_t taken = 0;
    while (is_open(from)) {
        uint64_t ticket = atomic_fetch_add_explicit(&from->tickets, ONE_TICKET, memory_order_acq_rel);
        if (!has_work(ticket))
            break;
        from->fn(from->work, (size_t)(ticket >> 32), thread);
        taken++;
    }
    return taken;
}

/* A worker's own share, then those of the others, from the next on. What was done is counted share by share: until
 * then the job, and so every share of it, stays. */
static void take_blocks(mica_crew *crew, int thread)
{
    int threads = crew->workers + 1;
    for (int i = 0; i < threads; i++) {
        size_t taken = take_share(&crew->worker[(thread + i) % threads].share, thread);
        if (taken > 0)
            atomic_fetch_add_explicit(&crew->done, taken, memory_order_release);
    }
}

/* The caller's share has one block at least, the first, and comes without it: the caller has taken that. */
static void deal_out(mica_crew *crew, size_t blocks, mica_block_fn *fn, void *work)
{
    size_t threads = (size_t)crew->workers + 1;
    for (size_t i = threads; i-- > 0;) {
        share *s = &crew->worker[i].share;
        uint64_t begin = i == 0 ? 1 : mica_div_up(blocks * i, threads),
                 end = mica_div_up(blocks * (i + 1), threads);
        s->fn = fn;
        s->work = work;
        atomic_store_explicit(&s->tickets, begin << 32 | end, memory_order_release);
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
static void await_work(mica_crew *crew, share *own)
{
    for (int spins = 0, idle = 0; idle < SPINS_BEFORE_SLEEP; idle++) {
        /* Its own blocks may be taken already while the others' are not. */
        bool looks_around = idle % SPINS_BEFORE_LOOK == 0;
        if (looks_around ? any_is_open(crew) || atomic_load_explicit(&crew->stop, memory_order_relaxed)
                         : is_open(own))
            return;
        if (looks_around && atomic_load_explicit(&crew->stretch, memory_order_relaxed))
            idle = 0;
        wait_on(spins);
        spins += spins < SPINS_BEFORE_YIELD;
    }
    pthread_mutex_lock(&crew->mutex);
    atomic_fetch_add(&crew->sleeping, 1);
    while (!any_is_open(crew) && !atomic_load(&crew->stop))
        pthread_cond_wait(&crew->wake, &crew->mutex);
    atomic_fetch_sub(&crew->sleeping, 1);
    pthread_mutex_unlock(&crew->mutex);
}

static void wake_sleepers(mica_crew *crew)
{
    pthread_mutex_lock(&crew->mutex);
    pthread_cond_broadcast(&crew->wake);
    pthread_mutex_unlock(&crew->mutex);
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    while (!atomic_load_explicit(&self->crew->stop, memory_order_relaxed)) {
        await_work(self->crew, &self->share);
        take_blocks(self->crew, self->index);
    }
    return NULL;
}

static void share_out(mica_crew *crew, size_t blocks, mica_block_fn *fn, void *work, bool wakes)
{
    atomic_store_explicit(&crew->done, 0, memory_order_relaxed);
    deal_out(crew, blocks, fn, work);
    if (wakes && atomic_load_explicit(&crew->sleeping, memory_order_relaxed) > 0)
        wake_sleepers(crew);
    fn(work, 0, 0);
    size_t left = blocks - 1;
    for (int i = 0; i <= crew->workers; i++)
        left -= take_share(&crew->worker[i].share, 0);
    for (int spins = 0; atomic_load_explicit(&crew->done, memory_order_acquire) < left;) {
        wait_on(spins);
        spins += spins < SPINS_BEFORE_YIELD;
    }
}

/* The crew, where a job of so many blocks can be shared. */
static mica_crew *crew_for(mica_context *ctx, size_t blocks)
{
    return ctx != NULL && blocks >= 2 && blocks <= MOST_BLOCKS ? ctx->crew : NULL;
}

void mica_parallel(mica_context *ctx, size_t blocks, mica_block_fn *fn, void *work)
{
    mica_crew *crew = crew_for(ctx, blocks);
    if (crew == NULL)
        alone(blocks, fn, work);
    else
        share_out(crew, blocks, fn, work, true);
}

/* Whether sleepers are woken for a job: for a large one, and when small ones come in numbers. */
static bool wakes_for(mica_crew *crew, double sums)
{
    if (sums >= SUMS_WORTH_WAKING)
        return true;
    if (atomic_load_explicit(&crew->sleeping, memory_order_relaxed) > 0)
        crew->missed += sums;
    if (crew->missed < SUMS_OF_MANY_JOBS)
        return false;
    crew->missed = 0.0;
    return true;
}

void mica_parallel_sums(mica_context *ctx, double sums, size_t blocks, mica_block_fn *fn, void *work)
{
    mica_crew *crew = crew_for(ctx, blocks);
    if (crew == NULL || sums < SUMS_WORTH_SHARING)
        alone(blocks, fn, work);
    else
        share_out(crew, blocks, fn, work, wakes_for(crew, sums));
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
        if (pthread_create(&w->thread, NULL, worker_main, w) !=
            0) /* those that run are stopped with the context */
            return mica_fail(ctx, MICA_ERR_MEMORY, "context: cannot create thread %d of %d", i + 1, threads);
        crew->started = i;
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
    for (int i = 1; i <= crew->started; i++)
        pthread_join(crew->worker[i].thread, NULL);
    pthread_cond_destroy(&crew->wake);
    pthread_mutex_destroy(&crew->mutex);
    mica_release(ctx, crew, crew_bytes(ctx->threads - 1));
    ctx->crew = NULL;
    ctx->threads = 1;
}

#endif
