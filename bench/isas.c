#include "bench/isas.h"

#include <string.h>

#include "bench/isas_turns.h"
#include "bench/report.h"

/* The library's choice comes first. Plain C is no rival, and slow. */
static const char *const sets[] = {"avx512", "avx2", "neon"};
#define MOST_SETS (sizeof sets / sizeof sets[0])

typedef struct contest {
    mica_context *context[MOST_SETS];
    bench_peak peak[MOST_SETS];
    int count;
} contest;

static void end_contest(contest *c)
{
    for (int i = 0; i < c->count; i++)
        mica_context_destroy(c->context[i]);
}

/* A context for each set that runs here. */
static bool begin_contest(contest *c, int threads, const bench_timing *timing)
{
    for (size_t i = 0; i < MOST_SETS; i++) {
        mica_context *ctx;
        if (mica_context_create(&ctx, &(mica_context_opts){.threads = threads, .isa = sets[i]}) != MICA_OK)
            continue;
        c->context[c->count++] = ctx;
        if (bench_measure_peak(&c->peak[c->count - 1], ctx, timing) != MICA_OK) {
            fprintf(stderr, "mica bench: %s\n", mica_error(ctx));
            return false;
        }
    }
    if (c->count < 2)
        fprintf(stderr, "mica bench: --isas: this processor runs %s alone\n",
                c->count == 0 ? "plain C" : mica_context_isa(c->context[0]));
    return c->count >= 2;
}

static bool measure(contest *c, const bench_case *row, const bench_timing *timing, isas_best best[MOST_SETS])
{
    bench_timing each = {timing->seconds / ISAS_LEAST_TURNS, timing->min_samples};
    memset(best, 0, MOST_SETS * sizeof *best);
    while (!isas_decided(&best[0], &best[1])) {
        for (int i = 0; i < c->count; i++) {
            bench_result result;
            if (bench_measure(&result, c->context[i], row, &c->peak[i], &each) != MICA_OK) {
                fprintf(stderr, "mica bench: %s: %s\n", row->name, mica_error(c->context[i]));
                return false;
            }
            isas_add(&best[i], result.ns_min);
        }
    }
    return true;
}

static int print_rows(FILE *out, contest *c, int threads, const bench_case *const *rows, size_t count,
                      const bench_timing *timing)
{
    int slower = 0;
    fprintf(out, "%-44s %7s", "case", "threads");
    for (int i = 0; i < c->count; i++)
        fprintf(out, " %11s", mica_context_isa(c->context[i]));
    fprintf(out, " %7s\n", "ratio");
    for (size_t i = 0; i < count; i++) {
        isas_best best[MOST_SETS];
        if (!measure(c, rows[i], timing, best))
            return -1;
        double ratio = best[1].best / best[0].best;
        fprintf(out, "%-44s %7d", rows[i]->name, threads);
        for (int k = 0; k < c->count; k++)
            report_time(out, best[k].best);
        fprintf(out, " %6.2fx%s\n", ratio, ratio < ISAS_LEAST_RATIO ? "  slower" : "");
        fflush(out);
        slower += ratio < ISAS_LEAST_RATIO;
    }
    return slower;
}

int isas_print(FILE *out, const bench_case *const *rows, size_t count, const bench_options *options)
{
    int slower = 0;
    for (int k = 0; k < options->thread_counts && slower >= 0; k++) {
        contest c = {.count = 0};
        int more = begin_contest(&c, options->threads[k], &options->timing)
                       ? print_rows(out, &c, options->threads[k], rows, count, &options->timing)
                       : -1;
        slower = more < 0 ? -1 : slower + more;
        end_contest(&c);
    }
    return slower;
}
