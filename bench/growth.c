/* Growth: one size of a net is doubled six times, and time held against work.
 *
 * Time per unit of work must not grow: it falls while what a step costs besides its arithmetic is spread over more of
 * it, and may then stay. So the exponent that counts is that of the upper half, from 8 to 64 times the first size:
 * the slope of log(time / work) over log(size). Memory is the plan's, without what is learned; it is linear in
 * the batch, the depth, and the length of sequences. */
#include "bench/growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timing.h"
#include "bench/report.h"
#include "host/clock.h"

enum { POINTS = 7, UPPER = 3 }; /* sizes; the first of the upper half */

#define MOST_TIME   0.10  /* exponent of time per work: a quarter more over the upper half */
#define MOST_MEMORY 1.05  /* exponent of bytes, by what the series says is linear */
#define MOST_PLAN   50e-3 /* seconds for a plan of 5,000 nodes */

/* ---- Nets ---- */

typedef mica_value build_fn(mica_net *net, mica_index factor);

typedef struct series {
    const char *name, *first, *last; /* sizes, as text */
    build_fn *build;                 /* a loss at its end */
    int memory;                      /* the power of the size that memory may grow with; 0: not looked at */
} series;

static mica_value small_gpt(mica_net *net, mica_index batch, mica_index tokens, int layers)
{
    mica_index dims[] = {batch, tokens};
    mica_value x = mica_net_input(net, "x", MICA_I32, 2, dims);
    mica_value target = mica_net_input(net, "target", MICA_I32, 2, dims);
    mica_net_gpt_opts opts = {.vocabulary = 64, .width = 64, .layers = layers, .heads = 4};
    return mica_net_cross_entropy(net, mica_net_gpt(net, x, &opts), target, NULL);
}

static mica_value gpt_batch(mica_net *net, mica_index factor) { return small_gpt(net, factor, 32, 2); }
static mica_value gpt_tokens(mica_net *net, mica_index factor) { return small_gpt(net, 1, 32 * factor, 2); }
static mica_value gpt_depth(mica_net *net, mica_index factor) { return small_gpt(net, 4, 32, (int)factor); }

static mica_value cnn_batch(mica_net *net, mica_index batch)
{
    mica_value h = mica_net_input(net, "x", MICA_F32, 4, (mica_index[]){batch, 1, 28, 28});
    mica_value label = mica_net_input(net, "label", MICA_I32, 1, &batch);
    mica_net_conv_opts conv = {.out_channels = 8, .kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU};
    for (int i = 0; i < 2; i++, conv.out_channels = 16) {
        h = mica_net_conv2d(net, h, &conv);
        h = mica_net_max_pool2d(net, h, &(mica_net_pool_opts){.kernel = {2, 2}});
    }
    h = mica_net_flatten(net, h, NULL);
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 128, .activation = MICA_RELU});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 10});
    return mica_net_cross_entropy(net, h, label, NULL);
}

/* 3 x 3 convolutions over 16 x 16 pixels. */
static mica_value conv_width(mica_net *net, mica_index factor)
{
    mica_index channels = 2 * factor, dims[] = {4, channels, 16, 16};
    mica_value x = mica_net_input(net, "x", MICA_F32, 4, dims), h = x;
    for (int i = 0; i < 3; i++)
        h = mica_net_conv2d(
            net, h,
            &(mica_net_conv_opts){
                .out_channels = channels, .kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU});
    return mica_net_mse(net, h, x, NULL);
}

static mica_value mlp(mica_net *net, mica_index batch, mica_index width, mica_index depth)
{
    mica_index dims[] = {batch, width};
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, dims), h = x;
    for (mica_index i = 0; i < depth; i++)
        h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = width, .activation = MICA_RELU});
    return mica_net_mse(net, h, x, NULL);
}

static mica_value mlp_width(mica_net *net, mica_index factor) { return mlp(net, 32, 16 * factor, 4); }
static mica_value mlp_depth(mica_net *net, mica_index factor) { return mlp(net, 32, 64, factor); }

static mica_value lstm_steps(mica_net *net, mica_index factor)
{
    mica_index batch = 8, dims[] = {batch, 4 * factor, 32};
    mica_value x = mica_net_input(net, "x", MICA_F32, 3, dims);
    mica_value label = mica_net_input(net, "label", MICA_I32, 1, &batch);
    mica_value h = mica_net_lstm(net, x, &(mica_net_recurrent_opts){.units = 64, .last = true});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 10});
    return mica_net_cross_entropy(net, h, label, NULL);
}

static const series all_series[] = {
    {"batch_cnn", "1", "64", cnn_batch, 1},
    {"batch_gpt", "1 x 32 tokens", "64 x 32", gpt_batch, 1},
    {"width_mlp", "16", "1024", mlp_width, 0},
    {"width_conv", "2 channels", "128", conv_width, 0},
    {"length_gpt", "32 tokens", "2048", gpt_tokens, 1},
    {"length_lstm", "4 steps", "256", lstm_steps, 1},
    {"depth_mlp", "1 layer", "64", mlp_depth, 1},
    {"depth_gpt", "1 block", "64", gpt_depth, 1},
};

/* ---- One size ---- */

typedef struct point {
    double seconds; /* of a step; of the plan series, of compiling */
    double work;    /* floating-point operations; nodes */
    double bytes;   /* in the plan that are not learned */
} point;

static void add_work(void *user, const mica_work *work, bool done)
{
    if (!done)
        *(double *)user += work->flops;
}

static mica_status set_inputs(mica_net *net)
{
    for (int i = 0; i < mica_net_inputs(net); i++) {
        mica_tensor t;
        BENCH_TRY(mica_net_input_tensor(net, NULL, &t, i));
        memset(t.data, 0, mica_tensor_bytes(&t));
    }
    return MICA_OK;
}

static mica_status step(void *work)
{
    mica_net *net = work;
    BENCH_TRY(set_inputs(net));
    return mica_train_step(net, MICA_OPTIMIZER_LR);
}

/* The best of some calls: what disturbs makes them longer, never shorter. */
static mica_status best_time(double *out, timing_fn *fn, mica_net *net, const bench_timing *timing)
{
    timed_calls *timed = calloc(1, sizeof *timed);
    if (timed == NULL)
        return MICA_ERR_MEMORY;
    mica_status status = timing_begin(timed, fn, net, mica_context_threads(mica_net_context(net)));
    double end = clock_seconds() + timing->seconds;
    for (int i = 0; status == MICA_OK && (i < timing->min_samples || clock_seconds() < end); i++)
        status = timing_take(timed);
    *out = timing_best(timed);
    free(timed);
    return status;
}

static mica_status time_steps(point *out, mica_net *net, const bench_timing *timing)
{
    mica_net_watch(net, add_work, &out->work);
    mica_status status = step(net);
    mica_net_watch(net, NULL, NULL);
    return status == MICA_OK ? best_time(&out->seconds, step, net, timing) : status;
}

static double unlearned_bytes(const mica_plan *plan)
{
    double learned = 0.0;
    for (size_t i = 0; i < plan->count; i++)
        if (plan->buffers[i].kind <= MICA_BUFFER_OPTIMIZER)
            learned += (double)plan->buffers[i].bytes;
    return (double)plan->total - learned;
}

static mica_status measure_point(point *out, mica_context *ctx, const series *s, mica_index factor,
                                 const bench_timing *timing)
{
    *out = (point){0};
    mica_net *net = NULL;
    mica_optimizer adam = {.kind = MICA_ADAM};
    BENCH_TRY(mica_net_create(ctx, &net));
    (void)s->build(net, factor);
    mica_status status = mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam});
    if (status == MICA_OK)
        status = mica_net_bind(net, NULL, 0);
    if (status == MICA_OK)
        status = mica_net_initialize(net, 1);
    if (status == MICA_OK) {
        out->bytes = unlearned_bytes(mica_net_plan(net));
        status = time_steps(out, net, timing);
    }
    mica_net_destroy(net);
    return status;
}

/* ---- Planning: nodes ---- */

enum { PLAN_NODES = 5000, BLOCK_NODES = 11 };

static mica_status compile(void *work) { return mica_net_compile(work, &(mica_compile_opts){.train = true}); }

static mica_status measure_plan(point *out, mica_context *ctx, mica_index factor, const bench_timing *timing)
{
    mica_net *net = NULL;
    BENCH_TRY(mica_net_create(ctx, &net));
    int layers = (int)(PLAN_NODES * factor / ((1 << (POINTS - 1)) * BLOCK_NODES));
    (void)small_gpt(net, 8, 32, layers);
    *out = (point){.work = mica_net_layers(net)};
    mica_status status = best_time(&out->seconds, compile, net, timing);
    mica_net_destroy(net);
    return status;
}

/* ---- Exponents ---- */

/* The slope of log y over log x, where x doubles from point to point, from point `from` on. */
static double exponent(const double *y, int from)
{
    double mean_x = 0.5 * (from + POINTS - 1), mean_y = 0.0, above = 0.0, below = 0.0;
    for (int i = from; i < POINTS; i++)
        mean_y += log2(y[i]) / (POINTS - from);
    for (int i = from; i < POINTS; i++) {
        above += (i - mean_x) * (log2(y[i]) - mean_y);
        below += (i - mean_x) * (i - mean_x);
    }
    return above / below;
}

/* Prints a line; returns whether all is within bounds. */
static bool print_series(FILE *out, const series *s, const point *p)
{
    double rate[POINTS], bytes[POINTS];
    for (int i = 0; i < POINTS; i++) {
        rate[i] = p[i].seconds / p[i].work;
        bytes[i] = p[i].bytes;
    }
    double time = exponent(rate, UPPER), memory = s->memory > 0 ? exponent(bytes, UPPER) : 0.0;
    bool fine = time <= MOST_TIME && memory <= s->memory * MOST_MEMORY;
    fprintf(out, "%-12s %-14s %-9s", s->name, s->first, s->last);
    report_time(out, 1e9 * p[0].seconds);
    report_time(out, 1e9 * p[POINTS - 1].seconds);
    for (int i = 0; i < POINTS; i++)
        fprintf(out, " %6.2f", rate[i] / rate[POINTS - 1]);
    fprintf(out, " %+9.2f", time);
    if (s->memory > 0)
        fprintf(out, " %9.2f", memory);
    else
        fprintf(out, " %9s", "-");
    fprintf(out, "  %s\n", fine ? "ok" : time > MOST_TIME ? "time grows" : "memory grows");
    fflush(out);
    return fine;
}

static bool chosen(const bench_options *options, const char *name)
{
    for (size_t i = 0; i < options->filter_count; i++)
        if (strstr(name, options->filters[i]) != NULL)
            return true;
    return options->filter_count == 0;
}

static int print_plans(FILE *out, mica_context *ctx, const bench_options *options)
{
    static const series plans = {"nodes_plan", "78 nodes", "5000", NULL, 0};
    point p[POINTS];
    if (!chosen(options, plans.name))
        return 0;
    for (int i = 0; i < POINTS; i++)
        if (measure_plan(&p[i], ctx, (mica_index)1 << i, &options->timing) != MICA_OK)
            return -1;
    bool fine = print_series(out, &plans, p), fast = p[POINTS - 1].seconds <= MOST_PLAN;
    if (!fast)
        fprintf(out, "%-12s takes longer than %.0f ms\n", plans.name, 1e3 * MOST_PLAN);
    return !(fine && fast);
}

int growth_print(FILE *out, mica_context *ctx, const bench_options *options)
{
    int grown = 0;
    fprintf(out, "%-12s %-14s %-9s %11s %11s  %-48s %9s %9s\n", "size", "x1", "x64", "step at x1", "at x64",
            "time per work at x1, x2, ... x64, to that at x64", "exponent", "bytes");
    for (size_t k = 0; k < sizeof all_series / sizeof all_series[0]; k++) {
        const series *s = &all_series[k];
        point p[POINTS];
        if (!chosen(options, s->name))
            continue;
        for (int i = 0; i < POINTS; i++)
            if (measure_point(&p[i], ctx, s, (mica_index)1 << i, &options->timing) != MICA_OK)
                return -1;
        grown += !print_series(out, s, p);
    }
    int plans = print_plans(out, ctx, options);
    return plans < 0 ? -1 : grown + plans;
}
