/* Single runs of a controller, 8-64-64-4, batch 1, one thread: a loop that has a deadline cares for the slowest.
 * Every run is timed by itself, from before its input is written to after its output is read; what the clock takes is
 * part of it. */
#include "bench/latency.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RUNS       100000
#define QUICK_RUNS 2000
#define WARM_UP    10000

enum { MEASUREMENTS = 8, HIDDEN = 64, OUTPUTS = 4 };

typedef struct latencies {
    double p50, p99, p999, worst; /* ns */
    size_t runs;
    float sum; /* of outputs, so that they are read */
} latencies;

/* A stamp as it is; differences of two are small. */
static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static mica_status make(mica_net *net, mica_tensor *x, mica_tensor *y)
{
    mica_value h = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){1, MEASUREMENTS});
    for (int i = 0; i < 2; i++)
        h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = HIDDEN, .activation = MICA_RELU});
    mica_net_output(net, "y", mica_net_dense(net, h, &(mica_net_dense_opts){.units = OUTPUTS}));
    BENCH_TRY(mica_net_compile(net, NULL));
    BENCH_TRY(mica_net_bind(net, NULL, 0));
    BENCH_TRY(mica_net_initialize(net, 1));
    BENCH_TRY(mica_net_tensor(net, x, "x"));
    return mica_net_tensor(net, y, "y");
}

static mica_status run_once(mica_net *net, const mica_tensor *x, const mica_tensor *y, size_t number,
                            float *sum)
{
    float *in = x->data;
    for (int i = 0; i < MEASUREMENTS; i++)
        in[i] = 0.125f * (float)((number + (size_t)i) % 16) - 1.0f;
    BENCH_TRY(mica_net_forward(net));
    *sum += ((const float *)y->data)[0];
    return MICA_OK;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* That so many of a thousand are not above. */
static double percentile(const int64_t *sorted, size_t count, size_t thousandths)
{
    size_t at = (count * thousandths + 999) / 1000; /* so many are no longer than this */
    return (double)sorted[at > 0 ? at - 1 : 0];
}

static mica_status take(latencies *out, mica_net *net, int64_t *taken, size_t runs)
{
    mica_tensor x, y;
    BENCH_TRY(make(net, &x, &y));
    *out = (latencies){.runs = runs};
    memset(taken, 0, runs * sizeof *taken); /* its pages are there before the clock runs */
    for (size_t i = 0; i < WARM_UP; i++)
        BENCH_TRY(run_once(net, &x, &y, i, &out->sum));
    for (size_t i = 0; i < runs; i++) {
        int64_t start = now_ns();
        BENCH_TRY(run_once(net, &x, &y, i, &out->sum));
        taken[i] = now_ns() - start;
    }
    qsort(taken, runs, sizeof *taken, by_size);
    out->p50 = percentile(taken, runs, 500);
    out->p99 = percentile(taken, runs, 990);
    out->p999 = percentile(taken, runs, 999);
    out->worst = (double)taken[runs - 1];
    return MICA_OK;
}

static bool write_json(const char *path, const latencies *l)
{
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        fprintf(stderr, "mica bench: cannot write %s: %s\n", path, strerror(errno));
        return false;
    }
    fprintf(out,
            "{\"latency\": {\"net\": \"8-64-64-4\", \"threads\": 1, \"runs\": %zu, \"p50_ns\": %.0f, "
            "\"p99_ns\": %.0f, \"p999_ns\": %.0f, \"worst_ns\": %.0f}}\n",
            l->runs, l->p50, l->p99, l->p999, l->worst);
    bool failed = ferror(out) != 0;
    failed = fclose(out) != 0 || failed;
    if (failed)
        fprintf(stderr, "mica bench: writing %s failed: %s\n", path, strerror(errno));
    return !failed;
}

int bench_latency(const bench_options *options, bool quick)
{
    mica_context *ctx = NULL;
    mica_net *net = NULL;
    latencies found;
    size_t runs = quick ? QUICK_RUNS : RUNS;
    int64_t *taken = malloc(runs * sizeof *taken);
    int code = 0;
    if (taken == NULL || mica_context_create(&ctx, &(mica_context_opts){.threads = 1}) != MICA_OK) {
        fprintf(stderr, "mica bench: cannot create a context\n");
        free(taken);
        return 1;
    }
    if (mica_net_create(ctx, &net) != MICA_OK || take(&found, net, taken, runs) != MICA_OK) {
        fprintf(stderr, "mica bench: %s\n", mica_error(ctx));
        code = 1;
    } else {
        printf(
            "8-64-64-4, batch 1, one thread, %zu runs: p50 %.2f us, p99 %.2f us, p99.9 %.2f us, worst %.2f us\n",
            runs, 1e-3 * found.p50, 1e-3 * found.p99, 1e-3 * found.p999, 1e-3 * found.worst);
        if (options->json != NULL && !write_json(options->json, &found))
            code = 3;
    }
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    free(taken);
    return code;
}
