/* Two processes and one cache line, on which they answer each other. Virtual processors may share a cache or not, and
 * a host moves them: figures of several threads go with it. Processes, since the library may have been built without
 * threads. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "bench/hop.h"

#include <stdbool.h>
#include <stdio.h>

#if defined(__linux__)
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/clock.h"

#define TURNS        20000
#define SAMPLES      5
#define MOST_SECONDS 2.0 /* to wait for an answer that does not come: the other process may be gone */

static int stay_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

static int first_two(int processor[2])
{
    cpu_set_t set;
    int found = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET((size_t)i, &set))
            processor[found++] = i;
    return found;
}

/* Waits until the line says so. False: it takes too long. */
static bool await(atomic_int *line, int value)
{
    double end = 0.0;
    for (unsigned tries = 1; atomic_load_explicit(line, memory_order_acquire) != value; tries++) {
        if (tries % (1u << 16) != 0)
            continue;
        double now = clock_seconds();
        end = end > 0.0 ? end : now + MOST_SECONDS;
        if (now > end)
            return false;
    }
    return true;
}

/* One end asks: it writes odd numbers, and waits for the even ones that the other end writes. */
static bool ask(atomic_int *line, int from, int to)
{
    for (int i = from; i < to; i++) {
        atomic_store_explicit(line, 2 * i + 1, memory_order_release);
        if (!await(line, 2 * i + 2))
            return false;
    }
    return true;
}

static bool answer(atomic_int *line)
{
    for (int i = 0; i < TURNS; i++) {
        if (!await(line, 2 * i + 1))
            return false;
        atomic_store_explicit(line, 2 * i + 2, memory_order_release);
    }
    return 1;
}

/* The best of some samples, all in one conversation each. */
static double talk(atomic_int *line, const int processor[2])
{
    double best = -1.0;
    for (int sample = 0; sample < SAMPLES; sample++) {
        atomic_store(line, 0);
        pid_t other = fork();
        if (other == 0)
            _exit(stay_on(processor[1]) == 0 && answer(line) ? 0 : 1);
        if (other < 0)
            return -1.0;
        bool whole = ask(line, 0, 1); /* the other is awake */
        double start = clock_seconds();
        whole = whole && ask(line, 1, TURNS);
        double ns = 1e9 * (clock_seconds() - start) / (2.0 * (TURNS - 1));
        int status = 1;
        whole = waitpid(other, &status, 0) == other && status == 0 && whole;
        if (whole && (best < 0.0 || ns < best))
            best = ns;
    }
    return best;
}

double bench_hop(int processor[2])
{
    cpu_set_t before;
    if (first_two(processor) < 2 || sched_getaffinity(0, sizeof before, &before) != 0)
        return -1.0;
    atomic_int *line = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (line == MAP_FAILED)
        return -1.0;
    double ns = stay_on(processor[0]) == 0 ? talk(line, processor) : -1.0;
    (void)sched_setaffinity(0, sizeof before, &before);
    (void)munmap(line, 4096);
    return ns;
}
#else
double bench_hop(int processor[2])
{
    processor[0] = processor[1] = -1;
    return -1.0;
}
#endif

int bench_hop_print(void)
{
    int processor[2];
    double ns = bench_hop(processor);
    if (ns < 0.0) {
        fprintf(stderr, "mica bench: --hop: needs two processors\n");
        return 1;
    }
    printf("%.0f ns from processor %d to %d\n", ns, processor[0], processor[1]);
    return 0;
}
