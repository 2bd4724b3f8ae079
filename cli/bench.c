/* mica bench: the options; bench/ does the work. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "cli/verb.h"

#define DEFAULT_SECONDS 0.3
#define QUICK_SECONDS   0.01

typedef struct settings {
    const char *threads, *json, *compare;
    double seconds;
    bool quick, list, check, profile, serve;
} settings;

static const verb_option options[] = {
    {.name = "--threads",
     OPTION_TEXT,
     offsetof(settings, threads),
     "N[,N...]",
     "run every case with so many threads (1); several numbers: with each in turn"},
    {.name = "--json", OPTION_TEXT, offsetof(settings, json), "FILE", "also write the results to FILE"},
    {.name = "--compare",
     OPTION_TEXT,
     offsetof(settings, compare),
     "FILE",
     "show every row beside an earlier run's --json file"},
    {.name = "--seconds",
     OPTION_NUMBER,
     offsetof(settings, seconds),
     "S",
     "measure each case for S seconds (0.3)"},
    {.name = "--quick",
     OPTION_FLAG,
     offsetof(settings, quick),
     NULL,
     "a rough look: a few samples of each case"},
    {.name = "--check",
     OPTION_FLAG,
     offsetof(settings, check),
     NULL,
     "end with 1 if a case makes a heap call"},
    {.name = "--profile",
     OPTION_FLAG,
     offsetof(settings, profile),
     NULL,
     "of the cases that are nets: each node's time, against the roofline"},
    {.name = "--list", OPTION_FLAG, offsetof(settings, list), NULL, "only print the names of the cases"},
    {.name = "--serve",
     OPTION_FLAG,
     offsetof(settings, serve),
     NULL,
     "measure what lines on stdin ask for, as ./dev bench --peers does"},
};

static const char details[] =
    "A FILTER picks the cases whose name contains it; with several, any of them.\n"
    "\n"
    "Each row: the median and the best time of one operation; GFLOP/s and GB/s at the\n"
    "median; how near that is to what this machine can do, \"fma\" being multiply-adds at\n"
    "full rate and \"copy\" a copy that moves as many bytes as the row must, measured in turns\n"
    "with it; and heap calls and bytes per operation, counted in front of malloc.\n"
    "MICA_ISA=scalar, avx2, avx512 or neon chooses the kernels.\n"
    "\n"
    "Ends with 1 also if a case allocates under --check.";

/* "1,2,4" into out->threads. */
static bool read_threads(bench_options *out, const char *text)
{
    const char *at = text;
    out->thread_counts = 0;
    do {
        char *end;
        long threads = strtol(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0') || threads < 1 || threads > MICA_MAX_THREADS) {
            usage_error(&verb_bench, "--threads takes numbers from 1 to %d, as in 1,2; not \"%s\"",
                        MICA_MAX_THREADS, text);
            return false;
        }
        if (out->thread_counts == BENCH_MOST_THREAD_COUNTS) {
            usage_error(&verb_bench, "--threads takes at most %d numbers", BENCH_MOST_THREAD_COUNTS);
            return false;
        }
        out->threads[out->thread_counts++] = (int)threads;
        at = *end == ',' ? end + 1 : end;
        if (*end == '\0')
            return true;
    } while (true);
}

static int run(int argc, char **argv)
{
    settings set = {.threads = "1", .seconds = -1.0};
    int filters = options_read(&verb_bench, &set, argc, argv);
    if (filters < 0)
        return EXIT_USAGE;
    bench_options chosen = {.filters = argv,
                            .filter_count = (size_t)filters,
                            .json = set.json,
                            .compare = set.compare,
                            .list = set.list,
                            .check = set.check,
                            .profile = set.profile,
                            .serve = set.serve};
    if (!read_threads(&chosen, set.threads))
        return EXIT_USAGE;
    chosen.timing.min_samples = set.quick ? 2 : 5;
    chosen.timing.seconds = set.seconds >= 0.0 ? set.seconds : set.quick ? QUICK_SECONDS : DEFAULT_SECONDS;
    return bench_run(&chosen);
}

const verb verb_bench = {
    .name = "bench",
    .arguments = "[FILTER...] [OPTIONS]",
    .summary = "measures the operations: time, share of this machine's peak, heap calls",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .examples =
        (const verb_example[]){
            {"bench sgemm --threads 1,2", "matrix products, with one thread and with two"},
            {"bench --quick --json before.json", "a rough look at every case, kept in a file"},
            {"bench --quick --compare before.json", "the same again beside the earlier figures"},
            {"bench --profile gpt_step", "where the time of a training step goes, node by node"},
            {NULL, NULL},
        },
};
