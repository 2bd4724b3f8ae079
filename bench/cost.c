#define _GNU_SOURCE /* syscall */
#include "bench/cost.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 64.0

/* ---- The processor's counters ---- */

#if defined(__linux__)
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { INSTRUCTIONS, MISSES, COUNTERS };
static int counter[COUNTERS] = {-1, -1};

static int open_counter(uint64_t what)
{
    struct perf_event_attr about;
    memset(&about, 0, sizeof about);
    about.size = sizeof about;
    about.type = PERF_TYPE_HARDWARE;
    about.config = what;
    about.inherit = 1; /* threads of contexts that are made later */
    about.exclude_kernel = 1;
    about.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &about, 0, -1, -1, 0UL);
}

const char *cost_begin(void)
{
    counter[INSTRUCTIONS] = open_counter(PERF_COUNT_HW_INSTRUCTIONS);
    int why = errno;
    counter[MISSES] = counter[INSTRUCTIONS] >= 0 ? open_counter(PERF_COUNT_HW_CACHE_MISSES) : -1;
    if (counter[INSTRUCTIONS] >= 0)
        return NULL;
    return why == EACCES || why == EPERM
               ? "the system does not permit performance counters (perf_event_paranoid)"
           : why == ENOENT || why == ENODEV || why == EOPNOTSUPP
               ? "this processor or virtual machine exposes no performance counters"
               : "perf_event_open failed";
}

void cost_end(void)
{
    for (int i = 0; i < COUNTERS; i++) {
        if (counter[i] >= 0)
            (void)close(counter[i]);
        counter[i] = -1;
    }
}

static double read_counter(int which)
{
    uint64_t value = 0;
    bool read_all = counter[which] >= 0 && read(counter[which], &value, sizeof value) == sizeof value;
    return read_all ? (double)value : COST_UNKNOWN;
}

mica_status cost_count(cost *out, const timed_calls *calls)
{
    double before[COUNTERS], after;
    *out = (cost){COST_UNKNOWN, COST_UNKNOWN};
    if (counter[INSTRUCTIONS] < 0 || calls->batch == 0)
        return MICA_OK;
    for (int i = 0; i < COUNTERS; i++)
        before[i] = read_counter(i);
    for (size_t i = 0; i < calls->batch; i++) {
        mica_status status = calls->fn(calls->work);
        if (status != MICA_OK)
            return status;
    }
    after = read_counter(INSTRUCTIONS);
    if (before[INSTRUCTIONS] >= 0.0 && after >= 0.0)
        out->instructions = (after - before[INSTRUCTIONS]) / (double)calls->batch;
    after = read_counter(MISSES);
    if (before[MISSES] >= 0.0 && after >= 0.0)
        out->moved = LINE_BYTES * (after - before[MISSES]) / (double)calls->batch;
    return MICA_OK;
}
#else
const char *cost_begin(void) { return "this system has no performance counters that Mica knows"; }
void cost_end(void) {}

mica_status cost_count(cost *out, const timed_calls *calls)
{
    (void)calls;
    *out = (cost){COST_UNKNOWN, COST_UNKNOWN};
    return MICA_OK;
}
#endif

/* ---- Valgrind ---- */

enum { FEW = 1, MORE = 4, COLLECTED = 9 };

/* Its line "Collected : Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw". */
static bool read_collected(cost *out, const char *line)
{
    const char *at = strstr(line, "Collected :");
    double event[COLLECTED];
    if (at == NULL)
        return false;
    at += strlen("Collected :");
    for (int i = 0; i < COLLECTED; i++) {
        char *end;
        event[i] = strtod(at, &end);
        if (end == at)
            return false;
        at = end;
    }
    *out = (cost){event[0], LINE_BYTES * (event[7] + event[8])};
    return true;
}

static const char *run_under_valgrind(cost *out, const char *name, int calls)
{
    char self[512], command[1024], line[1024];
#if defined(__linux__)
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
#else
    long length = -1;
#endif
    if (length <= 0 || memchr(self, '\'', (size_t)length) != NULL)
        return "cannot find the program's own file";
    self[length] = '\0';
    int written = snprintf(
        command, sizeof command,
        "valgrind --tool=callgrind --cache-sim=yes --callgrind-out-file=/dev/null '%s' bench "
        "--exactly '%s' --calls %d 2>&1",
        self, name, calls);
    FILE *in = written > 0 && (size_t)written < sizeof command ? popen(command, "r") : NULL;
    if (in == NULL)
        return "valgrind could not be started";
    bool found = false;
    while (fgets(line, sizeof line, in) != NULL)
        found = read_collected(out, line) || found;
    return pclose(in) == 0 && found ? NULL : "valgrind could not run it: is it installed?";
}

const char *cost_by_valgrind(cost *out, const char *name)
{
    cost few, more;
    *out = (cost){COST_UNKNOWN, COST_UNKNOWN};
    const char *wrong = run_under_valgrind(&few, name, FEW);
    if (wrong == NULL)
        wrong = run_under_valgrind(&more, name, MORE);
    if (wrong != NULL)
        return wrong;
    /* What is done but once varies by some lines of the cache. */
    double moved = (more.moved - few.moved) / (MORE - FEW);
    *out = (cost){(more.instructions - few.instructions) / (MORE - FEW), moved > 0.0 ? moved : 0.0};
    return NULL;
}
