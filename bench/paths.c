/* Every path of a convolution, by turns, against the one that is chosen. */
#include "bench/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "host/clock.h"
#include "ops/conv/probe.h"

/* Multiply-adds of a call at most: larger ones are as smaller batches of them. */
#define MOST_WORK 1.5e9
/* How far from the best what is chosen may be before it counts as missed. */
#define NEAR 0.05

enum { FORWARD, INPUT, WEIGHT, KINDS };
static const char *const kinds[KINDS] = {"forward", "input", "weight"};
static const mica_index batches[] = {1, 8, 32};
#define BATCHES (sizeof batches / sizeof batches[0])

/* One convolution. */
typedef struct call {
    const paths_shape *shape;
    mica_index batch;
    int kind;
    mica_context *ctx;
    bench_state state; /* its tensors */
    mica_conv2d_opts opts;
    double work; /* multiply-adds */
    char name[96];
} call;

/* And what was measured of it. */
typedef struct found {
    mica_conv_probe probe; /* as chosen */
    double seconds[MICA_CONV_MOST_PATHS];
    int chosen, best; /* of these */
} found;

typedef struct run {
    const bench_options *options;
    FILE *json;
    size_t count, capacity, near;
    double *off; /* of each: how much longer than the best the chosen one takes */
} run;

static mica_index narrow(mica_index wide, mica_index kernel, mica_index stride)
{
    return (wide + kernel / 2 * 2 - kernel) / stride + 1;
}

static void describe(call *c)
{
    const paths_shape *s = c->shape;
    mica_index h = narrow(s->rows, s->kernel[0], s->stride), w = narrow(s->columns, s->kernel[1], s->stride);
    c->opts = (mica_conv2d_opts){
        .stride = {s->stride, s->stride}, .pad = {s->kernel[0] / 2, s->kernel[1] / 2}, .groups = s->groups};
    mica_index channels = s->in / s->groups;
    c->work = (double)(c->batch * s->out * h * w) * (double)(channels * s->kernel[0] * s->kernel[1]);
    (void)snprintf(c->name, sizeof c->name, "%s_%dx%d%s_%d_%d_at_%dx%d_b%d_%s", s->net, (int)s->kernel[0],
                   (int)s->kernel[1], s->stride > 1 ? "s2" : "", (int)s->in, (int)s->out, (int)s->rows,
                   (int)s->columns, (int)c->batch, kinds[c->kind]);
}

/* The two images and the weights: x, y, w. */
static mica_status make_tensors(call *c)
{
    const paths_shape *s = c->shape;
    c->state = (bench_state){.ctx = c->ctx};
    BENCH_TRY(BENCH_TENSOR(&c->state, c->batch, s->in, s->rows, s->columns));
    BENCH_TRY(BENCH_TENSOR(&c->state, c->batch, s->out, narrow(s->rows, s->kernel[0], s->stride),
                           narrow(s->columns, s->kernel[1], s->stride)));
    return BENCH_TENSOR(&c->state, s->out, s->in / s->groups, s->kernel[0], s->kernel[1]);
}

static mica_status call_once(const call *c)
{
    const mica_tensor *x = &c->state.t[0], *y = &c->state.t[1], *w = &c->state.t[2];
    switch (c->kind) {
    case FORWARD:
        return mica_conv2d(c->ctx, y, x, w, NULL, &c->opts);
    case INPUT:
        return mica_conv2d_backward_input(c->ctx, x, y, w, &c->opts);
    default:
        return mica_conv2d_backward_weight(c->ctx, w, y, x, &c->opts);
    }
}

/* A call that is forced onto one path: a timing_fn. */
typedef struct forced_call {
    const call *call;
    mica_conv_probe probe;
    timed_calls timed;
} forced_call;

static mica_status run_forced(void *work)
{
    forced_call *f = work;
    f->call->ctx->conv_probe = &f->probe;
    mica_status status = call_once(f->call);
    f->call->ctx->conv_probe = NULL;
    return status;
}

/* Sees that the context has the scratch of a path. */
static mica_status reserve(forced_call *f)
{
    mica_measure_begin(f->call->ctx);
    mica_status status = run_forced(f);
    size_t bytes = mica_measure_end(f->call->ctx);
    return status == MICA_OK ? mica_workspace_reserve(f->call->ctx, bytes) : status;
}

/* Which paths fit, and which is chosen. */
static mica_status ask(found *out, const call *c)
{
    *out = (found){0};
    c->ctx->conv_probe = &out->probe;
    mica_measure_begin(c->ctx);
    mica_status status = call_once(c);
    (void)mica_measure_end(c->ctx);
    c->ctx->conv_probe = NULL;
    for (int i = 0; i < out->probe.fitting; i++)
        if (strcmp(out->probe.name[i], out->probe.taken) == 0)
            out->chosen = i;
    return status;
}

/* All of them by turns; the best time of each, as what disturbs makes them longer. */
static mica_status time_paths(found *f, const call *c, const bench_timing *timing)
{
    int count = f->probe.fitting, threads = mica_context_threads(c->ctx);
    forced_call *forced = calloc((size_t)count, sizeof *forced);
    if (forced == NULL)
        return MICA_ERR_MEMORY;
    mica_status status = MICA_OK;
    for (int i = 0; i < count && status == MICA_OK; i++) {
        forced[i].call = c;
        forced[i].probe.forced = f->probe.name[i];
        status = reserve(&forced[i]);
        if (status == MICA_OK)
            status = timing_begin(&forced[i].timed, run_forced, &forced[i], threads);
    }
    double end = clock_seconds() + timing->seconds;
    for (int n = 0; status == MICA_OK && (n < timing->min_samples || clock_seconds() < end); n++)
        for (int i = 0; i < count && status == MICA_OK; i++)
            status = timing_take(&forced[i].timed);
    for (int i = 0; i < count && status == MICA_OK; i++) {
        f->seconds[i] = timing_best(&forced[i].timed);
        if (f->seconds[i] < f->seconds[f->best])
            f->best = i;
    }
    free(forced);
    return status;
}

/* ---- The output ---- */

static double off_of(const found *f) { return f->seconds[f->chosen] / f->seconds[f->best] - 1.0; }

static void print_line(const call *c, const found *f)
{
    double off = off_of(f);
    printf("%-46s %7d  %-10s %7.1f %+6.0f %%  ", c->name, mica_context_threads(c->ctx), f->probe.taken,
           2e-9 * c->work / f->seconds[f->chosen], 100.0 * off);
    for (int i = 0; i < f->probe.fitting; i++) {
        printf(" %s", f->probe.name[i]);
        report_time(stdout, 1e9 * f->seconds[i]);
    }
    puts("");
    (void)fflush(stdout);
}

static void write_line(FILE *out, const call *c, const found *f, bool first)
{
    const paths_shape *s = c->shape;
    (void)fprintf(
        out,
        "%s\n{\"name\": \"%s\", \"threads\": %d, \"isa\": \"%s\", \"kind\": \"%s\", \"batch\": %d, \"in\": %d, "
        "\"out\": %d, \"rows\": %d, \"columns\": %d, \"kernel\": [%d, %d], \"stride\": %d, "
        "\"groups\": %d, \"chosen\": \"%s\", \"best\": \"%s\", \"off\": %.4f, \"paths\": {",
        first ? "[" : ",", c->name, mica_context_threads(c->ctx), mica_context_isa(c->ctx), kinds[c->kind],
        (int)c->batch, (int)s->in, (int)s->out, (int)s->rows, (int)s->columns, (int)s->kernel[0],
        (int)s->kernel[1], (int)s->stride, (int)s->groups, f->probe.taken, f->probe.name[f->best], off_of(f));
    for (int i = 0; i < f->probe.fitting; i++)
        (void)fprintf(out, "%s\"%s\": {\"ns\": %.0f, \"cost\": %.6g}", i > 0 ? ", " : "", f->probe.name[i],
                      1e9 * f->seconds[i], f->probe.cost[i]);
    (void)fputs("}}", out);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_end(run *r)
{
    qsort(r->off, r->count, sizeof *r->off, ascending);
    printf("\n%zu of %zu within %.0f %% of the best path; 95th percentile %+.0f %%, most %+.0f %%\n", r->near,
           r->count, 100.0 * NEAR, 100.0 * r->off[(r->count - 1) * 95 / 100], 100.0 * r->off[r->count - 1]);
}

/* ---- The whole run ---- */

static mica_status measure(run *r, call *c)
{
    found f;
    mica_status status = make_tensors(c);
    if (status == MICA_OK)
        status = ask(&f, c);
    if (status == MICA_OK)
        status = time_paths(&f, c, &r->options->timing);
    if (status == MICA_OK) {
        print_line(c, &f);
        if (r->json != NULL)
            write_line(r->json, c, &f, r->count == 0);
        r->near += off_of(&f) <= NEAR;
        r->off[r->count++] = off_of(&f);
    }
    bench_close(&c->state);
    return status;
}

/* All that the filters choose, with each context by turns. */
static int measure_all(run *r, mica_context *const *contexts)
{
    for (size_t i = 0; i < paths_shape_count * BATCHES * KINDS; i++) {
        call c = {.shape = &paths_shapes[i / (BATCHES * KINDS)],
                  .batch = batches[i / KINDS % BATCHES],
                  .kind = (int)(i % KINDS)};
        describe(&c);
        if (c.work > MOST_WORK || !bench_chosen(r->options, c.name))
            continue;
        for (int k = 0; k < r->options->thread_counts; k++) {
            c.ctx = contexts[k];
            if (measure(r, &c) != MICA_OK) {
                fprintf(stderr, "mica bench: %s: %s\n", c.name, mica_error(c.ctx));
                return 1;
            }
        }
    }
    if (r->count == 0) {
        fprintf(stderr, "mica bench: no shape has \"%s\" in its name\n", r->options->filters[0]);
        return 2;
    }
    print_end(r);
    return 0;
}

int bench_paths(const bench_options *options)
{
    run r = {.options = options,
             .capacity = paths_shape_count * BATCHES * KINDS * (size_t)options->thread_counts};
    mica_context *contexts[BENCH_MOST_THREAD_COUNTS] = {0};
    int code = 0;
    r.off = calloc(r.capacity, sizeof *r.off);
    if (r.off == NULL)
        code = 1;
    if (code == 0 && options->json != NULL && (r.json = fopen(options->json, "w")) == NULL) {
        fprintf(stderr, "mica bench: cannot write %s\n", options->json);
        code = 3;
    }
    for (int i = 0; i < options->thread_counts && code == 0; i++)
        if (mica_context_create(&contexts[i], &(mica_context_opts){.threads = options->threads[i]}) !=
            MICA_OK) {
            fprintf(stderr, "mica bench: cannot create a context with %d threads\n", options->threads[i]);
            code = 1;
        }
    if (code == 0) {
        printf("%s\n%-46s threads  chosen     GFLOP/s from best  time of each path that fits\n",
               mica_context_isa(contexts[0]), "convolution");
        code = measure_all(&r, contexts);
    }
    if (r.json != NULL) {
        (void)fputs(r.count > 0 ? "\n]\n" : "[]\n", r.json);
        if (fclose(r.json) != 0 && code == 0) {
            fprintf(stderr, "mica bench: cannot write %s\n", options->json);
            code = 3;
        }
    }
    for (int i = 0; i < options->thread_counts; i++)
        mica_context_destroy(contexts[i]);
    free(r.off);
    return code;
}
