/* mica bench --ranks: the steps of the reference nets, each batch cut over the ranks.
 *
 * Every case runs in rounds of a few steps, by turns with messages that leave while backward goes on and with messages
 * that leave after it. Both see the same machine, and what the second waits for and the first does not is what backward
 * hides. */
#include "bench/ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report.h"
#include "bench/serve.h"
#include "host/clock.h"
#include "host/heap.h"

#define WARM_STEPS    2
#define LEAST_STEPS   3
#define MOST_STEPS    1000
#define ROUND_SECONDS 0.05
#define MOST_ROUNDS   1024

static const char *const cases[] = {"gpt_step_16x64_d128_h4_l4", "cnn_step_32"};

/* How gradients are summed. */
typedef enum order { ORDER_FIXED, ORDER_ANY, ORDER_COUNT } order;
static const char *const order_names[] = {"fixed", "any"};

/* With messages during backward, and after it. */
typedef enum way { OVERLAPPED, BLOCKING, WAY_COUNT } way;

/* One round of one way: of a step. */
typedef struct round {
    double seconds, best, waited, polled, own_calls, wire_calls; /* means, and the best step */
} round;

typedef struct job {
    const bench_options *options;
    const bench_wire *wire;
    mica_context *ctx;
    bench_state state;
    mica_index batch;
    int rank, ranks, threads;
    order order;
    round *rounds[WAY_COUNT]; /* [MOST_ROUNDS] */
    round *gathered;          /* [ranks] */
    int round_count;
} job;

typedef struct outcome {
    const char *name;
    int threads, ranks;
    mica_index batch;
    order order;
    double step[WAY_COUNT], best[WAY_COUNT], waited[WAY_COUNT], polled[WAY_COUNT];
    double own_calls, wire_calls;
    mica_ranks_plan plan;
} outcome;

/* ---- Agreement ---- */

/* What every rank has, to all. */
static mica_status gather(const job *j, void *all, const void *own, size_t bytes)
{
    const mica_transport *wire = j->wire->transport;
    if (wire != NULL)
        return wire->gather(wire->user, all, own, bytes);
    memcpy(all, own, bytes);
    return MICA_OK;
}

/* Whether all is well on all ranks: those where it is not say why. */
static bool all_well(const job *j, const char *name, mica_status status)
{
    round own = {.seconds = status == MICA_OK ? 0.0 : 1.0};
    if (status != MICA_OK)
        fprintf(stderr, "mica bench: rank %d: %s: %s\n", j->rank, name, mica_error(j->ctx));
    bool well = gather(j, j->gathered, &own, sizeof own) == MICA_OK;
    for (int i = 0; i < j->ranks; i++)
        well = well && j->gathered[i].seconds == 0.0;
    return well;
}

/* ---- Steps ---- */

/* The case's own tensors have the rows of one share; which rows they are does not matter here. */
static mica_status fill(mica_net *net, mica_index first, mica_index count, void *user)
{
    (void)first;
    bench_state *s = user;
    for (int i = 0; i < s->tensors; i++) {
        mica_tensor to, from = s->t[i];
        BENCH_TRY(mica_net_input_tensor(net, NULL, &to, i));
        from.dim[0] = count;
        BENCH_TRY(mica_copy(s->ctx, &to, &from));
    }
    return MICA_OK;
}

/* *best: the seconds of the shortest. */
static mica_status take_steps(job *j, mica_ranks *ranks, int count, double *best)
{
    mica_ranks_outcome out;
    mica_ranks_step_opts opts = {.rows = j->batch, .fill = fill, .user = &j->state, .lr = 1e-4f};
    for (int i = 0; i < count; i++) {
        double start = clock_seconds();
        BENCH_TRY(mica_ranks_step(ranks, &out, &opts));
        double seconds = clock_seconds() - start;
        *best = i == 0 || seconds < *best ? seconds : *best;
    }
    return MICA_OK;
}

static mica_ranks_opts opts_of(const job *j, way w)
{
    return (mica_ranks_opts){.transport = j->wire->transport,
                             .batch = j->batch,
                             .shares = j->order == ORDER_FIXED ? j->ranks : 0,
                             .no_overlap = w == BLOCKING};
}

/* Times so many steps on this rank. */
static mica_status time_steps(round *out, job *j, mica_ranks *ranks, int steps)
{
    bench_wire_use used = j->wire->use();
    uint64_t calls = heap_now().calls;
    double start = clock_seconds(), best = 0.0;
    BENCH_TRY(take_steps(j, ranks, steps, &best));
    double seconds = clock_seconds() - start, per = 1.0 / steps;
    bench_wire_use now = j->wire->use();
    uint64_t wire_calls = now.heap_calls - used.heap_calls;
    *out = (round){.seconds = per * seconds,
                   .best = best,
                   .waited = per * (now.waited - used.waited),
                   .polled = per * (now.polled - used.polled),
                   .own_calls = per * (double)(heap_now().calls - calls - wire_calls),
                   .wire_calls = per * (double)wire_calls};
    return MICA_OK;
}

/* A round of all ranks: the time of the slowest; of waiting, that of the rank that waits least, as the others also wait
 * for those that are late. */
static mica_status join(round *out, const job *j, const round *own)
{
    BENCH_TRY(gather(j, j->gathered, own, sizeof *own));
    *out = j->gathered[0];
    for (int i = 1; i < j->ranks; i++) {
        const round *r = &j->gathered[i];
        out->seconds = r->seconds > out->seconds ? r->seconds : out->seconds;
        out->best = r->best > out->best ? r->best : out->best;
        if (r->waited < out->waited) {
            out->waited = r->waited;
            out->polled = r->polled;
        }
        out->own_calls = r->own_calls > out->own_calls ? r->own_calls : out->own_calls;
        out->wire_calls = r->wire_calls > out->wire_calls ? r->wire_calls : out->wire_calls;
    }
    return MICA_OK;
}

static mica_status run_round(round *out, job *j, way w, int steps)
{
    mica_ranks *ranks;
    round own;
    double best;
    mica_ranks_opts opts = opts_of(j, w);
    BENCH_TRY(mica_ranks_create(j->ctx, &ranks, j->state.net, &opts));
    mica_status status = take_steps(j, ranks, WARM_STEPS, &best);
    if (status == MICA_OK)
        status = time_steps(&own, j, ranks, steps);
    mica_ranks_destroy(ranks);
    return status == MICA_OK ? join(out, j, &own) : status;
}

/* All ranks see the same times of a round, so they agree on when to stop. */
static mica_status run_rounds(job *j)
{
    round first;
    BENCH_TRY(run_round(&first, j, OVERLAPPED, LEAST_STEPS));
    double steps = ROUND_SECONDS / first.seconds, seconds = 0.0;
    int count = steps < LEAST_STEPS ? LEAST_STEPS : steps > MOST_STEPS ? MOST_STEPS : (int)steps;
    for (j->round_count = 0; j->round_count < MOST_ROUNDS; j->round_count++) {
        if (j->round_count >= j->options->timing.min_samples && seconds >= j->options->timing.seconds)
            break;
        for (way w = OVERLAPPED; w < WAY_COUNT; w++) {
            round *r = &j->rounds[w][j->round_count];
            BENCH_TRY(run_round(r, j, w, count));
            seconds += r->seconds * count;
        }
    }
    return MICA_OK;
}

/* ---- What comes of the rounds ---- */

static int by_seconds(const void *a, const void *b)
{
    const round *x = a, *y = b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* Other programs make ranks wait for each other: times of waiting are means over the fastest quarter of the rounds,
 * which are disturbed least. The time of a step is that of the round in the middle. */
static void summarize(outcome *out, job *j, const char *name)
{
    int n = j->round_count, fast = (n + 3) / 4;
    *out = (outcome){
        .name = name, .threads = j->threads, .ranks = j->ranks, .batch = j->batch, .order = j->order};
    for (way w = OVERLAPPED; w < WAY_COUNT; w++) {
        round *r = j->rounds[w];
        qsort(r, (size_t)n, sizeof *r, by_seconds);
        out->step[w] = 0.5 * (r[(n - 1) / 2].seconds + r[n / 2].seconds);
        out->best[w] = r[0].best;
        for (int i = 0; i < n; i++) {
            out->best[w] = r[i].best < out->best[w] ? r[i].best : out->best[w];
            out->own_calls = r[i].own_calls > out->own_calls ? r[i].own_calls : out->own_calls;
            out->wire_calls = r[i].wire_calls > out->wire_calls ? r[i].wire_calls : out->wire_calls;
        }
        for (int i = 0; i < fast; i++) {
            out->waited[w] += r[i].waited / fast;
            out->polled[w] += r[i].polled / fast;
        }
    }
}

/* The share of waiting that backward hides. */
static double hidden(const outcome *o)
{
    return o->waited[BLOCKING] > 0.0 ? 1.0 - o->waited[OVERLAPPED] / o->waited[BLOCKING] : 0.0;
}

static void print_head(void)
{
    printf("%-26s %5s %7s %6s %12s %12s %9s %12s %12s %12s %7s %8s %8s\n", "case", "ranks", "threads",
           "order", "step", "best", "rows/s", "exchange", "waited", "polled", "hidden", "allocs", "by MPI");
}

static void print_outcome(const outcome *o)
{
    printf("%-26s %5d %7d %6s", o->name, o->ranks, o->threads, order_names[o->order]);
    report_time(stdout, 1e9 * o->step[OVERLAPPED]);
    report_time(stdout, 1e9 * o->best[OVERLAPPED]);
    printf(" %9.1f", (double)o->batch / o->step[OVERLAPPED]);
    if (o->ranks > 1) {
        report_time(stdout, 1e9 * o->waited[BLOCKING]);
        report_time(stdout, 1e9 * o->waited[OVERLAPPED]);
        report_time(stdout, 1e9 * o->polled[OVERLAPPED]);
        printf(" %5.0f %%", 100.0 * hidden(o));
    } else
        printf(" %12s %12s %12s %7s", "-", "-", "-", "-");
    printf(" %8.4g %8.4g\n", o->own_calls, o->wire_calls);
    fflush(stdout);
}

static void json_outcome(FILE *out, const outcome *o)
{
    fprintf(out,
            "    {\"name\": \"%s\", \"ranks\": %d, \"threads\": %d, \"order\": \"%s\", \"batch\": %td, "
            "\"step_ns\": %.3f, \"step_ns_min\": %.3f, \"rows_per_second\": %.3f, ",
            o->name, o->ranks, o->threads, order_names[o->order], o->batch, 1e9 * o->step[OVERLAPPED],
            1e9 * o->best[OVERLAPPED], (double)o->batch / o->step[OVERLAPPED]);
    fprintf(out,
            "\"blocking_step_ns\": %.3f, \"blocking_step_ns_min\": %.3f, \"exchange_ns\": %.3f, "
            "\"waited_ns\": %.3f, \"polled_ns\": %.3f, \"hidden\": %.4f, ",
            1e9 * o->step[BLOCKING], 1e9 * o->best[BLOCKING], 1e9 * o->waited[BLOCKING],
            1e9 * o->waited[OVERLAPPED], 1e9 * o->polled[OVERLAPPED], hidden(o));
    fprintf(out, "\"sent\": %.0f, \"messages\": %d, \"allocs\": %.9g, \"mpi_allocs\": %.9g}", o->plan.sent,
            o->plan.messages, o->own_calls, o->wire_calls);
}

static bool write_json(const char *path, const outcome *all, size_t count)
{
    FILE *out = fopen(path, "w");
    if (out != NULL) {
        fprintf(out, "{\n  \"cases\": [\n");
        for (size_t i = 0; i < count; i++) {
            json_outcome(out, &all[i]);
            fprintf(out, "%s\n", i + 1 < count ? "," : "");
        }
        fprintf(out, "  ]\n}\n");
    }
    bool failed = out == NULL || ferror(out) != 0;
    failed = (out != NULL && fclose(out) != 0) || failed;
    if (failed)
        fprintf(stderr, "mica bench: cannot write %s: %s\n", path, strerror(errno));
    return !failed;
}

/* ---- The whole run ---- */

static bool measure(outcome *out, job *j, const char *name)
{
    const bench_case *whole = bench_find(name);
    bench_case share = *whole; /* sizes begin with the batch */
    j->batch = whole->size[0];
    share.size[0] = (j->batch + j->ranks - 1) / j->ranks;
    bool well = all_well(j, name, bench_open(&j->state, j->ctx, &share));
    if (well) {
        mica_status status = run_rounds(j); /* fails on all ranks with the same text, or on none */
        if (status == MICA_OK) {
            summarize(out, j, name);
            status = mica_ranks_plan_of(
                &out->plan, j->state.net, j->ranks,
                &(mica_ranks_opts){.batch = j->batch, .shares = j->order == ORDER_FIXED ? j->ranks : 0});
        }
        if (status != MICA_OK && j->rank == 0)
            fprintf(stderr, "mica bench: %s: %s\n", name, mica_error(j->ctx));
        well = status == MICA_OK;
    }
    bench_close(&j->state);
    return well;
}

/* All cases with one number of threads. Returns how many outcomes there are; -1: it failed. */
static int measure_all(job *j, outcome *out)
{
    int count = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!bench_chosen(j->options, cases[i]))
            continue;
        /* One rank has nothing to add up. */
        for (j->order = ORDER_FIXED; j->order < (j->ranks > 1 ? ORDER_COUNT : ORDER_ANY); j->order++) {
            if (!measure(&out[count], j, cases[i]))
                return -1;
            print_outcome(&out[count++]);
        }
    }
    return count;
}

static int run(job *j, outcome *out)
{
    const bench_options *options = j->options;
    size_t count = 0;
    bool allocates = false;
    print_head();
    for (int i = 0; i < options->thread_counts; i++) {
        j->threads = options->threads[i];
        mica_status status = mica_context_create(&j->ctx, &(mica_context_opts){.threads = j->threads});
        bool well = all_well(j, "a context", status);
        int more = well ? measure_all(j, out + count) : -1;
        mica_context_destroy(j->ctx);
        if (more < 0)
            return 1;
        count += (size_t)more;
    }
    for (size_t i = 0; i < count; i++)
        allocates = allocates || out[i].own_calls > 0.0;
    if (options->check && j->rank == 0 && allocates)
        fprintf(stderr, "mica bench: steps of ranks make heap calls\n");
    if (options->json != NULL && j->rank == 0 && !write_json(options->json, out, count))
        return 3;
    return options->check && allocates ? 1 : 0;
}

int bench_ranks(const bench_options *options, const bench_wire *wire)
{
    const mica_transport *transport = wire->transport;
    job j = {.options = options,
             .wire = wire,
             .rank = transport != NULL ? transport->rank : 0,
             .ranks = transport != NULL ? transport->ranks : 1};
    bool any = false;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        any = any || bench_chosen(options, cases[i]);
        if (options->list && bench_chosen(options, cases[i]))
            puts(cases[i]);
    }
    if (!any && j.rank == 0)
        fprintf(stderr, "mica bench: --ranks has no case with \"%s\" in its name\n", options->filters[0]);
    if (!any || options->list)
        return any ? 0 : 2;
    outcome out[BENCH_MOST_THREAD_COUNTS * ORDER_COUNT * (sizeof cases / sizeof cases[0])];
    round *rounds = calloc(WAY_COUNT * (size_t)MOST_ROUNDS + (size_t)j.ranks, sizeof *rounds);
    j.rounds[OVERLAPPED] = rounds;
    j.rounds[BLOCKING] = rounds + MOST_ROUNDS;
    j.gathered = rounds + WAY_COUNT * (size_t)MOST_ROUNDS;
    int code = rounds != NULL ? run(&j, out) : 1;
    free(rounds);
    return code;
}
