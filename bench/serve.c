/* One row at a time, as asked for by another program: what ./dev bench --peers alternates with other libraries.
 *
 *   prepare NAME ...     sets a row up. "ok", or "no" and why
 *   net FILE train|infer[/ROWS] BATCH TOKENS [NAME=NUMBER...]
 *                        sets a step of a net file up as a row. "ok", the number of its parameters, the bytes of its
 *                        plan, those of prepared weights, those of neither weights, gradients nor the optimizer's
 *                        state, and its flops
 *   sample NS            calls it for at least so long, after a warm-up of a quarter of it: nanoseconds for a call,
 *                        heap calls for a call, and 1 if other programs had the processor meanwhile
 *   limit NS             samples the row's limit: nanoseconds a call would take at it (0: none), and which it is
 *   result INDEX FILE    one call; then writes that tensor of the row to a file; of a net, what it makes
 *   drop                 takes the row down
 *
 * A line each way, after "ready". The peers of bench/peers speak the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/heap.h"
#include "bench/measure.h"
#include "bench/serve.h"
#include "bench/served_net.h"

#define LONGEST_LINE 1024

typedef struct server {
    mica_context *ctx;
    const bench_peak *peak;
    FILE *out;
    bench_timed *open;
    served_net net; /* what is open may be this */
} server;

static void refuse(const server *s, const char *why) { fprintf(s->out, "no %s\n", why); }

static void drop(server *s)
{
    bench_end(s->open);
    s->open = NULL;
}

static void prepare(server *s, const char *name)
{
    drop(s);
    const bench_case *row = name != NULL ? bench_find(name) : NULL;
    if (row == NULL)
        refuse(s, "there is no such row");
    else if (bench_begin(&s->open, s->ctx, row, s->peak) != MICA_OK)
        refuse(s, mica_error(s->ctx));
    else
        fprintf(s->out, "ok\n");
}

static void prepare_net(server *s, char *words)
{
    drop(s);
    served_cost cost;
    const char *wrong = served_net_read(&s->net, words);
    if (wrong != NULL)
        refuse(s, wrong);
    else if (bench_begin(&s->open, s->ctx, &s->net.row, s->peak) != MICA_OK)
        refuse(s, mica_error(s->ctx));
    else if (served_net_cost(&cost, &s->open->state) != MICA_OK)
        refuse(s, mica_error(s->ctx));
    else
        fprintf(s->out, "ok %.0f %.0f %.0f %.0f %.0f\n", cost.parameters, cost.plan, cost.prepared, cost.work,
                cost.flops);
}

static size_t calls_in(double seconds, double call_seconds)
{
    return call_seconds > 0.0 && seconds > call_seconds ? (size_t)ceil(seconds / call_seconds) : 1;
}

static double seconds_of(const char *ns) { return ns != NULL ? 1e-9 * strtod(ns, NULL) : 0.0; }

static void sample(server *s, const char *argument)
{
    timed_calls *timed = &s->open->timed;
    double seconds = seconds_of(argument);
    mica_status status = MICA_OK;
    for (size_t i = calls_in(0.25 * seconds, timed->call_seconds); i > 0 && status == MICA_OK; i--)
        status = timed->fn(timed->work);
    timed->batch = calls_in(seconds, timed->call_seconds);
    timing_sample taken = {0};
    heap_counts before = heap_now();
    if (status == MICA_OK)
        status = timing_batch(&taken, timed);
    heap_counts after = heap_now();
    if (status != MICA_OK) {
        refuse(s, mica_error(s->ctx));
        return;
    }
    timed->call_seconds = fmin(timed->call_seconds, taken.seconds);
    fprintf(s->out, "%.3f %.3f %d\n", 1e9 * taken.seconds,
            (double)(after.calls - before.calls) / (double)timed->batch, taken.disturbed);
}

/* Both ways to the limit, in the manner of a sample. */
static mica_status take_limit(limit *against, double seconds)
{
    for (int way = 0; way < against->ways; way++) {
        timed_calls *probe = &against->clock[way];
        probe->batch = calls_in(0.5 * seconds, probe->call_seconds);
        for (size_t i = calls_in(0.25 * seconds, probe->call_seconds); i > 0; i--)
            BENCH_TRY(probe->fn(probe->work));
        BENCH_TRY(timing_take(probe));
    }
    return MICA_OK;
}

static void sample_limit(server *s, const char *argument)
{
    limit *against = &s->open->against;
    if (take_limit(against, seconds_of(argument)) != MICA_OK)
        refuse(s, mica_error(s->ctx));
    else if (against->kind == BENCH_LIMIT_NONE)
        fprintf(s->out, "0 none\n");
    else
        fprintf(s->out, "%.3f %s\n", 1e9 * bench_work(s->open) / limit_rate(against, false),
                bench_limit_name(against->kind));
}

/* Its numbers in the order of its axes, however it lies. */
static bool write_tensor(mica_context *ctx, const char *path, const mica_tensor *t)
{
    mica_tensor straight;
    size_t bytes = mica_tensor_bytes(t);
    void *data = malloc(bytes > 0 ? bytes : 1);
    FILE *file = data != NULL ? fopen(path, "wb") : NULL;
    bool written = file != NULL &&
                   mica_tensor_init(ctx, &straight, data, t->dtype, t->rank, t->dim) == MICA_OK &&
                   mica_copy(ctx, &straight, t) == MICA_OK && fwrite(data, 1, bytes, file) == bytes;
    if (file != NULL && fclose(file) != 0)
        written = false;
    free(data);
    return written;
}

static void result(server *s, const char *argument, const char *path)
{
    bench_state *state = &s->open->state;
    bool net = state->row == &s->net.row;
    long index = argument != NULL ? strtol(argument, NULL, 10) : -1;
    if (index < 0 || (net ? index > 0 : index >= state->tensors) || path == NULL) {
        refuse(s, "result takes the index of a tensor, and a file");
        return;
    }
    mica_tensor made = state->t[index];
    if (state->row->run(state) != MICA_OK || (net && served_net_result(&made, state) != MICA_OK)) {
        refuse(s, mica_error(s->ctx));
        return;
    }
    fprintf(s->out, write_tensor(s->ctx, path, &made) ? "ok\n" : "no file can be written there\n");
}

static void answer(server *s, char *line)
{
    char *rest = NULL;
    const char *command = strtok_r(line, " \n", &rest);
    bool net = command != NULL && strcmp(command, "net") == 0;
    const char *first = command != NULL && !net ? strtok_r(NULL, " \n", &rest) : NULL;
    if (command == NULL)
        refuse(s, "a line must be a command");
    else if (net)
        prepare_net(s, rest);
    else if (strcmp(command, "prepare") == 0)
        prepare(s, first);
    else if (s->open == NULL)
        refuse(s, "row is prepared");
    else if (strcmp(command, "sample") == 0)
        sample(s, first);
    else if (strcmp(command, "limit") == 0)
        sample_limit(s, first);
    else if (strcmp(command, "result") == 0)
        result(s, first, first != NULL ? strtok_r(NULL, " \n", &rest) : NULL);
    else if (strcmp(command, "drop") == 0) {
        drop(s);
        fprintf(s->out, "ok\n");
    } else
        refuse(s, "the commands are prepare, net, sample, limit, result and drop");
    fflush(s->out);
}

void bench_serve(mica_context *ctx, const bench_peak *peak, FILE *in, FILE *out)
{
    server s = {.ctx = ctx, .peak = peak, .out = out};
    char line[LONGEST_LINE];
    fprintf(out, "ready\n");
    fflush(out);
    while (fgets(line, sizeof line, in) != NULL)
        answer(&s, line);
    drop(&s);
}
