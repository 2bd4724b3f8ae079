#include "bench/int8.h"

#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "host/clock.h"
#include "kernel/kernels.h"

/* A pair that is measured: floats, bytes. */
typedef struct pair {
    bench_state state[2];
    timed_calls timed[2];
} pair;

static mica_status step(void *work)
{
    bench_state *s = work;
    return s->row->run(s);
}

static mica_status measure(pair *p, mica_context *ctx, const bench_timing *timing)
{
    for (int i = 0; i < 2; i++)
        BENCH_TRY(timing_begin(&p->timed[i], step, &p->state[i], mica_context_threads(ctx)));
    double end = clock_seconds() + timing->seconds;
    for (int n = 0; n < timing->min_samples || clock_seconds() < end; n++)
        for (int i = 0; i < 2; i++)
            BENCH_TRY(timing_take(&p->timed[i]));
    return MICA_OK;
}

/* The ratio of a pair; below 0 after a failure. */
static double print_pair(FILE *out, mica_context *ctx, const bench_case *rows, const bench_timing *timing)
{
    double batch = (double)rows[0].size[2], ratio = -1.0;
    pair *p = calloc(1, sizeof *p);
    if (p == NULL)
        return ratio;
    mica_status status = bench_open(&p->state[0], ctx, &rows[0]);
    if (status == MICA_OK)
        status = bench_open(&p->state[1], ctx, &rows[1]);
    if (status == MICA_OK)
        status = measure(p, ctx, timing);
    if (status == MICA_OK) {
        double best[2] = {timing_best(&p->timed[0]) * 1e9 / batch, timing_best(&p->timed[1]) * 1e9 / batch};
        ratio = best[1] > 0.0 ? best[0] / best[1] : 0.0;
        fprintf(out, "%-24s %7d", rows[1].name, mica_context_threads(ctx));
        report_time(out, best[0]);
        report_time(out, best[1]);
        fprintf(out, " %6.2fx\n", ratio);
        fflush(out);
    } else
        fprintf(stderr, "mica bench: %s: %s\n", rows[1].name, mica_error(ctx));
    for (int i = 0; i < 2; i++)
        if (p->state[i].row != NULL)
            bench_close(&p->state[i]);
    free(p);
    return ratio;
}

static int print_pairs(FILE *out, mica_context *ctx, const bench_options *options)
{
    bool fast = strstr(ctx->kernels->full_name, "vnni") != NULL;
    int slow = 0;
    for (size_t i = 0; i + 1 < bench_int8.count; i += 2) {
        const bench_case *rows = &bench_int8.cases[i];
        if (!bench_chosen(options, rows[1].name))
            continue;
        double ratio = print_pair(out, ctx, rows, &options->timing);
        if (ratio < 0.0)
            return -1;
        slow += fast && ratio < INT8_LEAST_RATIO;
    }
    return slow;
}

int int8_print(FILE *out, const bench_options *options)
{
    int slow = 0, chosen = 0;
    for (size_t i = 1; i < bench_int8.count; i += 2)
        chosen += bench_chosen(options, bench_int8.cases[i].name);
    if (chosen == 0)
        return -2;
    for (int k = 0; k < options->thread_counts && slow >= 0; k++) {
        mica_context *ctx;
        if (mica_context_create(&ctx, &(mica_context_opts){.threads = options->threads[k]}) != MICA_OK) {
            fprintf(stderr, "mica bench: cannot create a context with %d threads\n", options->threads[k]);
            return -1;
        }
        if (k == 0)
            fprintf(out, "per sample of the batch, %s\n%-24s %7s %11s %11s %7s\n", ctx->kernels->full_name,
                    "case", "threads", "float", "int8", "ratio");
        int more = print_pairs(out, ctx, options);
        slow = more < 0 ? -1 : slow + more;
        mica_context_destroy(ctx);
    }
    return slow;
}
