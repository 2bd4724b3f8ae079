/* mica bench: the options; bench/ does the work. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/netfile.h>

#include "bench/bench.h"
#include "bench/hop.h"
#include "bench/latency.h"
#include "bench/profile.h"
#include "bench/ranks.h"
#include "bench/text.h"
#include "cli/net/argument.h"
#include "cli/onnx/net.h"
#include "cli/onnx/onnx.h"
#include "cli/ranks.h"
#include "cli/verb.h"

#define DEFAULT_SECONDS 0.3
#define QUICK_SECONDS   0.01
#define TEXT_SECONDS    3.0 /* of a row: a prompt may take one */
#define MOST_PROMPT     (1 << 20)
#define DEFAULT_BATCH   32

typedef struct settings {
    const char *threads, *json, *compare, *text, *prompts, *cost, *exactly;
    double seconds;
    int64_t batch, decode, calls;
    option_list set;
    int prepare;
    bool quick, list, ops, check, profile, growth, isas, paths, int8, serve, ranks, hop, latency;
} settings;

static const verb_option options[] = {
    {.name = "--threads",
     OPTION_TEXT,
     offsetof(settings, threads),
     "N[,N...]",
     "number of threads; with a list, run every case with each in turn (1)"},
    {.name = "--json", OPTION_TEXT, offsetof(settings, json), "FILE", "also write the results to FILE"},
    {.name = "--compare",
     OPTION_TEXT,
     offsetof(settings, compare),
     "FILE",
     "compare every row with an earlier run's --json file"},
    {.name = "--seconds",
     OPTION_NUMBER,
     offsetof(settings, seconds),
     "S",
     "measure each case for S seconds (0.3)"},
    {.name = "--quick",
     OPTION_FLAG,
     offsetof(settings, quick),
     NULL,
     "rough results: only a few samples of each case"},
    {.name = "--check",
     OPTION_FLAG,
     offsetof(settings, check),
     NULL,
     "exit with 1 if a case makes a heap call"},
    {.name = "--growth",
     OPTION_FLAG,
     offsetof(settings, growth),
     NULL,
     "measure how time and memory scale with batch, width, length and depth; exit with 1 if they grow "
     "faster than the work"},
    {.name = "--isas",
     OPTION_FLAG,
     offsetof(settings, isas),
     NULL,
     "run each case on every instruction set of this processor, by turns; exit with 1 if the one that Mica "
     "chooses is slower on some"},
    {.name = "--paths",
     OPTION_FLAG,
     offsetof(settings, paths),
     NULL,
     "convolutions of known nets: the time of every path that fits, and how far the chosen one is from the "
     "best"},
    {.name = "--int8",
     OPTION_FLAG,
     offsetof(settings, int8),
     NULL,
     "compare lenet and resnet-small in float and in int8; exit with 1 if int8 is less than twice as fast (on "
     "processors with VNNI)"},
    {.name = "--profile",
     OPTION_FLAG,
     offsetof(settings, profile),
     NULL,
     "for cases that are nets, or a NET: time per node, compared with the roofline"},
    {.name = "--batch",
     OPTION_COUNT,
     offsetof(settings, batch),
     "N",
     "with --profile NET: batch size (32, or what is written into an ONNX model)",
     .least = 1,
     .most = 1 << 24},
    {.name = "--set",
     OPTION_LIST,
     offsetof(settings, set),
     "NAME=NUMBER",
     "with --profile NET: a constant of the net; of an ONNX model, a size or an input"},
    PREPARE_OPTION(offsetof(settings, prepare),
                   "with --profile NET that is run: prepare its weights first (yes)"),
    {.name = "--list", OPTION_FLAG, offsetof(settings, list), NULL, "only print the names of the cases"},
    {.name = "--ops",
     OPTION_FLAG,
     offsetof(settings, ops),
     NULL,
     "the rows op_NAME, one for every operation, instead of the others"},
    {.name = "--ranks",
     OPTION_FLAG,
     offsetof(settings, ranks),
     NULL,
     "under mpirun: training steps of all ranks together, and how much of the exchange backward hides"},
    {.name = "--text",
     OPTION_TEXT,
     offsetof(settings, text),
     "MODEL",
     "a public text model: time of prompts and of generation, share of the read bandwidth"},
    {.name = "--prompt",
     OPTION_TEXT,
     offsetof(settings, prompts),
     "N[,N...]",
     "with --text: tokens of the prompts; 0: none (128,512)"},
    {.name = "--decode",
     OPTION_COUNT,
     offsetof(settings, decode),
     "N",
     "with --text: tokens to generate; 0: none (64)",
     .least = 0,
     .most = MOST_PROMPT},
    {.name = "--cost",
     OPTION_TEXT,
     offsetof(settings, cost),
     "HOW",
     "what counts instructions and bytes from memory for --json: perf (the processor's counters, where there are "
     "any) or callgrind (valgrind, one thread)"},
    {.name = "--exactly", OPTION_TEXT, offsetof(settings, exactly), "NAME", "only the case of this name"},
    {.name = "--calls",
     OPTION_COUNT,
     offsetof(settings, calls),
     "N",
     "call each case N times and measure nothing: for other profilers",
     .least = 1,
     .most = 1 << 30},
    {.name = "--latency",
     OPTION_FLAG,
     offsetof(settings, latency),
     NULL,
     "single runs of a small controller: median, p99, p99.9 and the worst of 100,000"},
    {.name = "--hop",
     OPTION_FLAG,
     offsetof(settings, hop),
     NULL,
     "only the time that a cache line takes from one processor to another"},
    {.name = "--serve",
     OPTION_FLAG,
     offsetof(settings, serve),
     NULL,
     "serve measurements over stdin and stdout, for ./dev bench --peers"},
};

static const char details[] =
    "A FILTER selects the cases whose name contains it; several select the union. Rows op_NAME, one\n"
    "for every operation, only run with --ops or a FILTER that begins with op_.\n"
    "\n"
    "Each row: the median and the best time of one operation; GFLOP/s and GB/s at the\n"
    "median; the share of what this machine can do, \"fma\" being multiply-adds at\n"
    "full rate and \"copy\" a copy that moves as many bytes as the row must, interleaved\n"
    "with it; and heap calls and bytes per operation, counted by interposing malloc.\n"
    "MICA_ISA=scalar, avx2, avx512 or neon selects the kernels.\n"
    "\n"
    "With --profile, a FILTER may also be a NET, which is then trained for a few steps, or run\n"
    "if it has no loss:\n"
    "  mlp, lenet, resnet-small, lstm, gpt-tiny, keywords, FILE.net, FILE.safetensors, FILE.onnx\n"
    "\n"
    "With --ranks: the median and the best time of a step, rows per second of all ranks; the time that a\n"
    "rank waits if nothing is sent before backward has ended (exchange), the time that it still waits\n"
    "if gradients leave as they are done (waited), the time of starting messages and of looking for them\n"
    "meanwhile (polled), and the share of the exchange that backward hides (1 - waited / exchange).\n"
    "Both ways are measured by turns, and waiting in the fastest quarter of the rounds. Gradients are\n"
    "summed in a fixed order, as with --shares of mica train, or in any.\n"
    "\n"
    "Also exits with 1 if a case allocates under --check, or if time per unit of work or memory\n"
    "grows too fast under --growth.";

/* "1,2,4" into out[most]. Returns how many there are, or 0 after a message. */
static int read_numbers(int64_t *out, int most, const char *option, const char *text, int64_t least,
                        int64_t greatest)
{
    const char *at = text;
    for (int count = 0; count < most; at++) {
        char *end;
        out[count] = strtoll(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0') || out[count] < least || out[count] > greatest) {
            usage_error(&verb_bench,
                        "%s takes numbers from %" PRId64 " to %" PRId64 ", as in 1,2; not \"%s\"", option,
                        least, greatest, text);
            return 0;
        }
        count++;
        at = end;
        if (*end == '\0')
            return count;
    }
    usage_error(&verb_bench, "%s takes at most %d numbers", option, most);
    return 0;
}

static int read_threads(int *threads, const char *text)
{
    int64_t numbers[BENCH_MOST_THREAD_COUNTS];
    int count = read_numbers(numbers, BENCH_MOST_THREAD_COUNTS, "--threads", text, 1, MICA_MAX_THREADS);
    for (int i = 0; i < count; i++)
        threads[i] = (int)numbers[i];
    return count;
}

/* ---- Text models ---- */

static int run_text(const settings *set, const bench_options *chosen)
{
    int64_t prompts[BENCH_MOST_PROMPTS];
    bench_text_options text = {.model = set->text,
                               .json = set->json,
                               .thread_counts = chosen->thread_counts,
                               .decode = (mica_index)set->decode,
                               .seconds = set->seconds >= 0.0 ? set->seconds
                                          : set->quick        ? 0.0
                                                              : TEXT_SECONDS};
    memcpy(text.threads, chosen->threads, sizeof text.threads);
    int count = read_numbers(prompts, BENCH_MOST_PROMPTS, "--prompt", set->prompts, 0, MOST_PROMPT);
    if (count == 0)
        return EXIT_USAGE;
    for (int i = 0; i < count; i++)
        if (prompts[i] > 0)
            text.prompts[text.prompt_count++] = (mica_index)prompts[i];
    return bench_text(&text);
}

/* ---- Profiles of nets ---- */

/* Whether --profile is to look at a net, and not at cases whose name contains this. */
static bool is_net(const char *what)
{
    return mica_netfile_builtin(what) != NULL || strpbrk(what, "./") != NULL || strcmp(what, "-") == 0;
}

static int profile_one(const char *what, int threads, const settings *set, const bench_timing *timing)
{
    mica_context *ctx;
    mica_net *net = NULL;
    mica_netfile_info info;
    if (mica_context_create(&ctx, &(mica_context_opts){.threads = threads}) != MICA_OK) {
        fprintf(stderr, "mica bench: cannot create a context with %d threads\n", threads);
        return EXIT_FAILED;
    }
    mica_index own = set->batch < 0 && is_onnx(what) ? onnx_batch_of(ctx, what) : 0;
    mica_netfile_opts opts = {.batch = own > 0          ? own
                                       : set->batch > 0 ? (mica_index)set->batch
                                                        : DEFAULT_BATCH};
    int code = net_build(&net, &info, &verb_bench, ctx, what, &set->set, &opts);
    bool training = info.task != MICA_TASK_NONE;
    mica_optimizer adam = {.kind = MICA_ADAM};
    mica_compile_opts how = {.train = training,
                             .optimizer = training ? &adam : NULL,
                             .prepare = !training && set->prepare == PREPARE_YES};
    if (code == EXIT_OK && profile_net(stdout, what, net, &how, timing) != MICA_OK) {
        fprintf(stderr, "mica bench: %s: %s\n", what, mica_error(ctx));
        code = EXIT_FAILED;
    }
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return code;
}

/* Nets among the filters are profiled and taken out of them. */
static int profile_nets(bench_options *chosen, char **filters, const settings *set)
{
    size_t left = 0, nets = 0;
    for (size_t i = 0; i < chosen->filter_count; i++) {
        if (!is_net(filters[i])) {
            filters[left++] = filters[i];
            continue;
        }
        nets++;
        for (int k = 0; k < chosen->thread_counts; k++) {
            int code = profile_one(filters[i], chosen->threads[k], set, &chosen->timing);
            if (code != EXIT_OK)
                return code;
        }
    }
    chosen->filter_count = left;
    return nets > 0 && left == 0 ? EXIT_OK : bench_run(chosen);
}

static bench_wire_use use_of_wire(void)
{
    wire_use use = ranks_use();
    return (bench_wire_use){.waited = use.waited, .polled = use.polled, .heap_calls = use.heap_calls};
}

static int run(int argc, char **argv)
{
    settings set = {.threads = "1", .seconds = -1.0, .batch = -1, .prompts = "128,512", .decode = 64};
    int filters = options_read(&verb_bench, &set, argc, argv);
    if (filters < 0)
        return EXIT_USAGE;
    bench_options chosen = {.filters = argv,
                            .filter_count = (size_t)filters,
                            .json = set.json,
                            .compare = set.compare,
                            .exactly = set.exactly,
                            .calls = (long)set.calls,
                            .valgrind = set.cost != NULL && strcmp(set.cost, "callgrind") == 0,
                            .list = set.list,
                            .ops = set.ops,
                            .check = set.check,
                            .profile = set.profile,
                            .growth = set.growth,
                            .isas = set.isas,
                            .paths = set.paths,
                            .int8 = set.int8,
                            .serve = set.serve};
    chosen.thread_counts = read_threads(chosen.threads, set.threads);
    if (chosen.thread_counts == 0)
        return EXIT_USAGE;
    if (set.set.count > 0 && !set.profile)
        return usage_error(&verb_bench, "--set needs --profile NET");
    if (set.cost != NULL && !chosen.valgrind && strcmp(set.cost, "perf") != 0)
        return usage_error(&verb_bench, "--cost takes perf or callgrind, not \"%s\"", set.cost);
    if (set.hop)
        return bench_hop_print();
    if (set.latency)
        return bench_latency(&chosen, set.quick);
    if (set.text != NULL)
        return run_text(&set, &chosen);
    chosen.timing.min_samples = set.quick ? 2 : 5;
    chosen.timing.seconds = set.seconds >= 0.0 ? set.seconds : set.quick ? QUICK_SECONDS : DEFAULT_SECONDS;
    if (set.ranks)
        return bench_ranks(&chosen, &(bench_wire){.transport = ranks_wire(), .use = use_of_wire});
    return set.profile ? profile_nets(&chosen, argv, &set) : bench_run(&chosen);
}

const verb verb_bench = {
    .name = "bench",
    .arguments = "[FILTER...] [OPTIONS]",
    .summary = "benchmark the operations: time, share of this machine's peak, heap calls",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .ranked_with = "--ranks",
    .examples =
        (const verb_example[]){
            {"bench sgemm --threads 1,2", "matrix products, with one and with two threads"},
            {"bench --quick --json before.json", "rough results for every case, saved to a file"},
            {"bench --quick --compare before.json", "run again and compare with the earlier results"},
            {"bench op_softmax op_sum", "single operations, on large samples from their entries"},
            {"bench --growth", "check that time per unit of work stays constant as nets grow"},
            {"bench --paths vgg --threads 1,2",
             "which path the convolutions of a net take, and whether it is the best"},
            {"bench --int8 --threads 1,2", "how much faster nets run in int8"},
            {"bench --latency", "how long single runs of a small controller take, and the longest of them"},
            {"bench --ranks", "under mpirun: steps of all ranks together"},
            {"bench --text model.gguf --threads 1,2", "prompts and generation of a public text model"},
            {"bench --profile gpt_step", "where the time of a training step goes, by call"},
            {"bench --profile my.net --batch 64", "the same for your own net"},
            {"bench --profile bert.onnx --batch 1 --set sequence=128", "of a run of an ONNX model"},
            {NULL, NULL},
        },
};
