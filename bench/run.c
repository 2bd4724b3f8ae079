/* The whole run: which cases, at which numbers of threads, and what becomes of the results. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/cost.h"
#include "bench/growth.h"
#include "bench/int8.h"
#include "bench/isas.h"
#include "bench/ops.h"
#include "bench/paths.h"
#include "bench/profile.h"
#include "bench/report.h"
#include "bench/serve.h"
#include "host/heap.h"
#include "mica_commit.h" /* made by the build */

static const bench_family *const families[] = {
#define ADDRESS(family) &bench_##family,
    BENCH_FAMILIES(ADDRESS)};
#define FAMILY_COUNT (sizeof families / sizeof families[0])

bool bench_chosen(const bench_options *options, const char *name)
{
    if (options->exactly != NULL)
        return strcmp(name, options->exactly) == 0;
    for (size_t i = 0; i < options->filter_count; i++)
        if (strstr(name, options->filters[i]) != NULL)
            return true;
    return options->filter_count == 0;
}

/* The same of the rows of single operations, which are many: only where they are asked for. */
static bool chosen_op(const bench_options *options, const char *name)
{
    if (options->exactly != NULL)
        return strcmp(name, options->exactly) == 0;
    for (size_t i = 0; i < options->filter_count; i++)
        if ((options->ops || strncmp(options->filters[i], "op_", 3) == 0) &&
            strstr(name, options->filters[i]) != NULL)
            return true;
    return options->filter_count == 0 && (options->ops || options->list);
}

/* The cases that the filters choose, in order. NULL without memory. */
static const bench_case **choose(const bench_options *options, size_t *count, bench_case *ops,
                                 size_t op_count)
{
    size_t all = op_count;
    for (size_t f = 0; f < FAMILY_COUNT; f++)
        all += families[f]->count;
    const bench_case **rows = calloc(all + 1, sizeof(bench_case *));
    *count = 0;
    for (size_t f = 0; rows != NULL && f < FAMILY_COUNT; f++)
        for (size_t i = 0; i < families[f]->count; i++)
            if (!options->ops && bench_chosen(options, families[f]->cases[i].name))
                rows[(*count)++] = &families[f]->cases[i];
    for (size_t i = 0; rows != NULL && i < op_count; i++)
        if (chosen_op(options, ops[i].name))
            rows[(*count)++] = &ops[i];
    return rows;
}

const bench_case *bench_find(const char *name)
{
    for (size_t f = 0; f < FAMILY_COUNT; f++)
        for (size_t i = 0; i < families[f]->count; i++)
            if (strcmp(families[f]->cases[i].name, name) == 0)
                return &families[f]->cases[i];
    return NULL;
}

/* The processor's name as Linux tells it. */
static void name_cpu(char *out, size_t size)
{
    snprintf(out, size, "unknown processor");
    FILE *in = fopen("/proc/cpuinfo", "r");
    if (in == NULL)
        return;
    char line[256];
    while (fgets(line, sizeof line, in) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        colon += strspn(colon, ": \t");
        snprintf(out, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    fclose(in);
}

typedef struct run {
    const bench_options *options;
    const bench_case **rows;
    size_t row_count;
    bench_machine machine;
    bench_result *results;
    size_t result_count;
    mica_context *context[BENCH_MOST_THREAD_COUNTS];
} run;

/* Before there are threads, so that theirs are counted, too. */
static void begin_counting(run *r)
{
    const char *wrong = r->options->valgrind ? NULL : cost_begin();
    r->machine.counted_by = r->options->valgrind ? "callgrind" : wrong == NULL ? "perf_event" : NULL;
    r->machine.not_counted = wrong;
}

static bool count_by_valgrind(run *r, bench_result *result)
{
    cost counted;
    const char *wrong = cost_by_valgrind(&counted, result->name);
    if (wrong != NULL)
        fprintf(stderr, "mica bench: --cost callgrind: %s: %s\n", result->name, wrong);
    result->instructions = counted.instructions;
    result->moved = counted.moved;
    r->machine.not_counted = wrong;
    return wrong == NULL;
}

static bool begin_contexts(run *r)
{
    for (int i = 0; i < r->options->thread_counts; i++) {
        int threads = r->options->threads[i];
        mica_status status = mica_context_create(&r->context[i], &(mica_context_opts){.threads = threads});
        if (status != MICA_OK) {
            const char *isa = getenv("MICA_ISA");
            fprintf(stderr, "mica bench: cannot create a context with %d thread%s%s%s: %s\n", threads,
                    threads == 1 ? "" : "s", isa != NULL ? " and MICA_ISA=" : "", isa != NULL ? isa : "",
                    mica_status_text(status));
            return false;
        }
        if (bench_measure_peak(&r->machine.peak[i], r->context[i], &r->options->timing) != MICA_OK) {
            fprintf(stderr, "mica bench: %s\n", mica_error(r->context[i]));
            return false;
        }
        r->machine.peaks++;
    }
    r->machine.isa = mica_context_isa(r->context[0]);
    return true;
}

static bool measure_rows(run *r)
{
    report_machine(stdout, &r->machine);
    report_head(stdout);
    for (size_t i = 0; i < r->row_count; i++) {
        for (int k = 0; k < r->options->thread_counts; k++) {
            bench_result *result = &r->results[r->result_count];
            if (bench_measure(result, r->context[k], r->rows[i], &r->machine.peak[k], &r->options->timing) !=
                MICA_OK) {
                fprintf(stderr, "mica bench: %s: %s\n", r->rows[i]->name, mica_error(r->context[k]));
                return false;
            }
            if (r->options->valgrind && !count_by_valgrind(r, result))
                return false;
            report_row(stdout, result);
            r->result_count++;
        }
    }
    return true;
}

/* For profilers of others: so many calls of each case, and nothing else. */
static int call_rows(const run *r)
{
    mica_context *ctx;
    if (mica_context_create(&ctx, &(mica_context_opts){.threads = r->options->threads[0]}) != MICA_OK) {
        fprintf(stderr, "mica bench: cannot create a context with %d threads\n", r->options->threads[0]);
        return 1;
    }
    mica_status status = MICA_OK;
    for (size_t i = 0; i < r->row_count && status == MICA_OK; i++) {
        bench_state s;
        status = bench_open(&s, ctx, r->rows[i]);
        for (long call = 0; call < r->options->calls && status == MICA_OK; call++)
            status = r->rows[i]->run(&s);
        bench_close(&s);
        if (status != MICA_OK)
            fprintf(stderr, "mica bench: %s: %s\n", r->rows[i]->name, mica_error(ctx));
    }
    mica_context_destroy(ctx);
    return status != MICA_OK;
}

static mica_status run_step(void *work)
{
    bench_state *s = work;
    return s->row->run(s);
}

/* Of the cases chosen, those that are nets. */
static int profile_rows(run *r)
{
    int nets = 0;
    report_machine(stdout, &r->machine);
    for (size_t i = 0; i < r->row_count; i++) {
        for (int k = 0; k < r->options->thread_counts; k++) {
            bench_state s;
            char name[128];
            (void)snprintf(name, sizeof name, "%s, threads: %d", r->rows[i]->name, r->options->threads[k]);
            mica_status status = bench_open(&s, r->context[k], r->rows[i]);
            if (status == MICA_OK && s.net != NULL) {
                profile_subject subject = {name, s.net, run_step, &s};
                status = profile_print(stdout, &subject, &r->machine.peak[k], &r->options->timing);
                nets++;
            }
            bench_close(&s);
            if (status != MICA_OK) {
                fprintf(stderr, "mica bench: %s: %s\n", r->rows[i]->name, mica_error(r->context[k]));
                return 1;
            }
        }
    }
    if (nets == 0)
        fprintf(stderr, "mica bench: none of these cases is a net (cnn, gpt, transformer, lstm_step)\n");
    return nets > 0 ? 0 : 2;
}

static void warn_of_disturbances(const run *r)
{
    size_t disturbed = 0;
    for (size_t i = 0; i < r->result_count; i++)
        disturbed += r->results[i].disturbed;
    if (disturbed > 0)
        fprintf(
            stderr,
            "mica bench: other programs ran during every sample of %zu of %zu rows (marked ~): with more than "
            "one thread their times are too long\n",
            disturbed, r->result_count);
}

/* Says on stderr which rows allocated. */
static bool none_allocates(const run *r)
{
    if (!heap_counted()) {
        fprintf(stderr, "mica bench: --check: this build cannot count heap calls\n");
        return false;
    }
    size_t guilty = 0;
    for (size_t i = 0; i < r->result_count; i++) {
        const bench_result *result = &r->results[i];
        if (result->allocs > 0.0 || result->bytes > 0.0) {
            guilty++;
            fprintf(stderr, "mica bench: %s, %d threads: %g heap calls, %g bytes per operation\n",
                    result->name, result->threads, result->allocs, result->bytes);
        }
    }
    return guilty == 0;
}

static int measure_all(run *r, const bench_comparison *earlier)
{
    const bench_options *options = r->options;
    r->machine.commit = MICA_COMMIT;
    name_cpu(r->machine.cpu, sizeof r->machine.cpu);
    begin_counting(r);
    r->results = calloc(r->row_count * (size_t)options->thread_counts, sizeof *r->results);
    if (r->results == NULL || !begin_contexts(r))
        return 1;
    if (options->profile)
        return profile_rows(r);
    if (options->serve) {
        report_machine(stdout, &r->machine);
        bench_serve(r->context[0], &r->machine.peak[0], stdin, stdout);
        return 0;
    }
    if (!measure_rows(r))
        return 1;
    warn_of_disturbances(r);
    if (options->json != NULL && !report_json(options->json, &r->machine, r->results, r->result_count))
        return 3;
    if (earlier != NULL)
        compare_print(stdout, earlier, r->results, r->result_count);
    return options->check && !none_allocates(r) ? 1 : 0;
}

static int run_isas(const run *r)
{
    int slower = isas_print(stdout, r->rows, r->row_count, r->options);
    if (slower > 0)
        fprintf(stderr, "mica bench: %d of the rows are slower on the first instruction set\n", slower);
    return slower != 0;
}

static int run_int8(const bench_options *options)
{
    int slow = int8_print(stdout, options);
    if (slow == -2) {
        fprintf(stderr, "mica bench: --int8: no int8 net matches (mica bench --list int8)\n");
        return 2;
    }
    if (slow > 0)
        fprintf(stderr, "mica bench: int8 is less than %g times as fast as float in %d of the rows\n",
                INT8_LEAST_RATIO, slow);
    return slow != 0;
}

/* With each number of threads in turn. */
static int run_growth(const bench_options *options)
{
    int code = 0;
    for (int i = 0; i < options->thread_counts && code == 0; i++) {
        mica_context *ctx;
        if (mica_context_create(&ctx, &(mica_context_opts){.threads = options->threads[i]}) != MICA_OK) {
            fprintf(stderr, "mica bench: cannot create a context with %d threads\n", options->threads[i]);
            return 1;
        }
        printf("%s%d thread%s, %s\n", i > 0 ? "\n" : "", options->threads[i],
               options->threads[i] == 1 ? "" : "s", mica_context_isa(ctx));
        int grown = growth_print(stdout, ctx, options);
        if (grown < 0)
            fprintf(stderr, "mica bench: %s\n", mica_error(ctx));
        else if (grown > 0)
            fprintf(stderr, "mica bench: %d of the series grow more than they may\n", grown);
        code = grown != 0;
        mica_context_destroy(ctx);
    }
    return code;
}

int bench_run(const bench_options *options)
{
    if (options->growth)
        return run_growth(options);
    if (options->paths)
        return bench_paths(options);
    if (options->int8)
        return run_int8(options);
    run r = {.options = options};
    size_t op_count;
    bench_case *ops = bench_op_rows(&op_count);
    r.rows = ops != NULL ? choose(options, &r.row_count, ops, op_count) : NULL;
    bench_comparison *earlier = NULL;
    int code = 0;
    if (r.rows == NULL)
        code = 1;
    else if (r.row_count == 0) {
        fprintf(stderr, "mica bench: no case has \"%s\" in its name (mica bench --list)\n",
                options->exactly != NULL ? options->exactly : options->filters[0]);
        code = 2;
    } else if (options->list) {
        for (size_t i = 0; i < r.row_count; i++)
            puts(r.rows[i]->name);
    } else if (options->compare != NULL && (earlier = compare_open(options->compare)) == NULL)
        code = 3; /* before minutes of measuring, not after */
    else if (options->calls > 0)
        code = call_rows(&r);
    else
        code = options->isas ? run_isas(&r) : measure_all(&r, earlier);
    for (int i = 0; i < BENCH_MOST_THREAD_COUNTS; i++)
        mica_context_destroy(r.context[i]);
    cost_end();
    compare_close(earlier);
    free(r.results);
    free(r.rows);
    free(ops);
    return code;
}
