/* mica bench --text: prompts and generation of a public text model.
 *
 * A prompt is one run of N tokens in an empty sequence, of the last of which logits are wanted; generation is N runs of
 * one token each, from an empty sequence on. Tokens are arbitrary: the time does not depend on them. Generation reads
 * every weight once a token, so it is held against a loop that only reads as many bytes, sampled in turns with it. */
#include "bench/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/model.h>
#include <mica/random.h>

#include "base/context.h"
#include "bench/probe.h"
#include "host/clock.h"
#include "host/heap.h"

#define LEAST_SAMPLES 3 /* of each row */
#define MOST_ROWS     ((BENCH_MOST_PROMPTS + 1) * BENCH_MOST_THREAD_COUNTS)

typedef struct job {
    mica_model *model;
    mica_session *session;
    mica_context *ctx;
    int32_t *tokens;
    mica_index count; /* of the row */
} job;

typedef struct text_row {
    bool decode;
    int threads;
    mica_index tokens;
    double median, best; /* seconds */
    double limit;        /* bytes a second that a loop reads; of decode rows */
    double heap_calls;   /* of one run of the row */
} text_row;

typedef struct text_report {
    mica_model_info about;
    size_t read_bytes; /* of the weights, for one token */
    size_t plan_bytes; /* of the last session */
    double start_seconds;
    text_row row[MOST_ROWS];
    int rows;
} text_report;

/* ---- Work ---- */

static mica_status run_tokens(job *j, const int32_t *tokens, mica_index count)
{
    return mica_session_run(j->session, &(mica_session_piece){.tokens = tokens, .count = count, .logits = 1},
                            1);
}

static mica_status run_prompt(void *work)
{
    job *j = work;
    BENCH_TRY(mica_session_cut(j->session, 0, 0));
    return run_tokens(j, j->tokens, j->count);
}

static mica_status run_decode(void *work)
{
    job *j = work;
    BENCH_TRY(mica_session_cut(j->session, 0, 0));
    for (mica_index i = 0; i < j->count; i++)
        BENCH_TRY(run_tokens(j, j->tokens + i, 1));
    return MICA_OK;
}

static bool is_named(mica_gguf_text name, const char *text)
{
    return name.length == strlen(text) && memcmp(name.bytes, text, name.length) == 0;
}

/* Of a table of embeddings a token reads one row, unless the table is the output's as well. */
static size_t bytes_of_a_token(const mica_model *model)
{
    size_t bytes = 0, embedding = 0;
    bool output = false;
    for (size_t i = 0; i < mica_model_weights(model); i++) {
        mica_gguf_text name;
        mica_tensor w;
        if (mica_model_weight(model, &name, &w, i) != MICA_OK)
            continue;
        size_t size = mica_tensor_bytes(&w);
        output = output || is_named(name, "output.weight");
        if (is_named(name, "token_embd.weight"))
            embedding = size;
        else if (!is_named(name, "position_embd.weight"))
            bytes += size;
    }
    return bytes + (output ? 0 : embedding);
}

/* ---- Rows ---- */

static timed_calls work_clock, read_clock; /* large: not on the stack */

/* Samples of the row, and in turns with them of the limit, where there is one. */
static mica_status measure(text_row *row, job *j, read_probe *limit, double seconds)
{
    j->count = row->tokens;
    BENCH_TRY(timing_begin(&work_clock, row->decode ? run_decode : run_prompt, j, row->threads));
    if (limit != NULL)
        BENCH_TRY(timing_begin(&read_clock, read_probe_run, limit, row->threads));
    double end = clock_seconds() + seconds;
    uint64_t calls = 0;
    for (int i = 0; i < LEAST_SAMPLES || clock_seconds() < end; i++) {
        uint64_t before = heap_now().calls;
        BENCH_TRY(timing_take(&work_clock));
        calls += heap_now().calls - before;
        if (limit != NULL)
            BENCH_TRY(timing_take(&read_clock));
    }
    row->median = timing_median(&work_clock);
    row->best = timing_best(&work_clock);
    row->heap_calls = (double)calls / (double)(work_clock.count * work_clock.batch);
    if (limit != NULL)
        row->limit = (double)limit->count * sizeof(float) / timing_best(&read_clock);
    return MICA_OK;
}

static mica_status open_session(text_report *report, job *j, const bench_text_options *o)
{
    mica_index longest = o->decode > 0 ? o->decode : 1;
    for (int i = 0; i < o->prompt_count; i++)
        longest = o->prompts[i] > longest ? o->prompts[i] : longest;
    double start = clock_seconds();
    BENCH_TRY(mica_model_open(j->ctx, &j->model, o->model));
    BENCH_TRY(mica_session_create(j->model, &j->session, &(mica_session_opts){.context = longest}));
    BENCH_TRY(mica_session_bind(j->session, NULL, 0));
    report->start_seconds = clock_seconds() - start;
    report->about = *mica_model_about(j->model);
    report->plan_bytes = mica_net_plan(mica_session_net(j->session))->total;
    report->read_bytes = bytes_of_a_token(j->model);
    if (report->about.embeds)
        return mica_fail(j->ctx, MICA_ERR_ARGUMENT, "it gives vectors, not tokens");
    j->tokens = malloc((size_t)longest * sizeof *j->tokens);
    if (j->tokens == NULL)
        return mica_fail(j->ctx, MICA_ERR_MEMORY, "no memory for %td tokens", longest);
    mica_random dice = mica_random_stream(1, 0);
    for (mica_index i = 0; i < longest; i++)
        j->tokens[i] = (int32_t)mica_random_below(&dice, (uint64_t)report->about.vocabulary);
    return MICA_OK;
}

/* ---- All rows ---- */

static mica_status measure_rows(text_report *report, job *j, const bench_text_options *o, int threads)
{
    BENCH_TRY(open_session(report, j, o));
    for (int i = 0; i < o->prompt_count; i++) {
        text_row *row = &report->row[report->rows];
        *row = (text_row){.threads = threads, .tokens = o->prompts[i]};
        BENCH_TRY(measure(row, j, NULL, o->seconds));
        report->rows++;
    }
    if (o->decode == 0)
        return MICA_OK;
    read_probe limit;
    text_row *row = &report->row[report->rows];
    *row = (text_row){.decode = true, .threads = threads, .tokens = o->decode};
    BENCH_TRY(read_probe_make(&limit, j->ctx, (double)report->read_bytes));
    mica_status status = measure(row, j, &limit, o->seconds);
    read_probe_release(&limit);
    report->rows += status == MICA_OK;
    return status;
}

static double tokens_per_second(const text_row *row) { return (double)row->tokens / row->best; }
static double bytes_per_second(const text_report *report, const text_row *row)
{
    return row->decode ? tokens_per_second(row) * (double)report->read_bytes : 0.0;
}

static void print_rows(const text_report *report, int from)
{
    if (from == 0) {
        printf("%s, %.1f MB of weights, of which a token reads %.1f; plan %zu bytes; ready after %.1f ms\n\n",
               report->about.architecture, 1e-6 * (double)report->about.weight_bytes,
               1e-6 * (double)report->read_bytes, report->plan_bytes, 1e3 * report->start_seconds);
        printf("%-14s %7s %12s %12s %10s %8s %9s %6s\n", "row", "threads", "median ms", "best ms", "tokens/s",
               "GB/s", "% of read", "heap");
    }
    for (int i = from; i < report->rows; i++) {
        const text_row *row = &report->row[i];
        printf("%-7s %6td %7d %12.3f %12.3f %10.1f", row->decode ? "decode" : "prompt", row->tokens,
               row->threads, 1e3 * row->median, 1e3 * row->best, tokens_per_second(row));
        double rate = bytes_per_second(report, row);
        if (row->decode)
            printf(" %8.2f %9.1f %6.3g\n", 1e-9 * rate, 100.0 * rate / row->limit, row->heap_calls);
        else
            printf(" %8s %9s %6.3g\n", "", "", row->heap_calls);
    }
    fflush(stdout);
}

static bool write_json(const char *path, const text_report *report)
{
    FILE *out = fopen(path, "w");
    if (out != NULL) {
        fprintf(
            out,
            "{\"architecture\": \"%s\", \"weight_bytes\": %zu, \"token_bytes\": %zu, \"plan_bytes\": %zu, ",
            report->about.architecture, report->about.weight_bytes, report->read_bytes, report->plan_bytes);
        fprintf(out, "\"start_ms\": %.3f, \"rows\": [", 1e3 * report->start_seconds);
        for (int i = 0; i < report->rows; i++) {
            const text_row *row = &report->row[i];
            fprintf(
                out,
                "%s\n  {\"name\": \"%s\", \"tokens\": %td, \"threads\": %d, \"ms\": %.6f, \"ms_min\": %.6f, ",
                i > 0 ? "," : "", row->decode ? "decode" : "prompt", row->tokens, row->threads,
                1e3 * row->median, 1e3 * row->best);
            fprintf(out,
                    "\"tokens_per_second\": %.3f, \"gbs\": %.3f, \"read_gbs\": %.3f, \"heap_calls\": %g}",
                    tokens_per_second(row), 1e-9 * bytes_per_second(report, row), 1e-9 * row->limit,
                    row->heap_calls);
        }
        fprintf(out, "\n]}\n");
    }
    bool failed = out == NULL || ferror(out) != 0;
    failed = (out != NULL && fclose(out) != 0) || failed;
    if (failed)
        fprintf(stderr, "mica bench: cannot write %s: %s\n", path, strerror(errno));
    return !failed;
}

int bench_text(const bench_text_options *options)
{
    static text_report report; /* of one run of the program */
    for (int i = 0; i < options->thread_counts; i++) {
        job j = {0};
        int threads = options->threads[i], before = report.rows;
        if (mica_context_create(&j.ctx, &(mica_context_opts){.threads = threads}) != MICA_OK) {
            fprintf(stderr, "mica bench: cannot create a context with %d threads\n", threads);
            return 1;
        }
        mica_status status = measure_rows(&report, &j, options, threads);
        if (status != MICA_OK)
            fprintf(stderr, "mica bench: %s: %s\n", options->model, mica_error(j.ctx));
        else
            print_rows(&report, before);
        free(j.tokens);
        mica_session_destroy(j.session);
        mica_model_close(j.model);
        mica_context_destroy(j.ctx);
        if (status != MICA_OK)
            return 1;
    }
    return options->json == NULL || write_json(options->json, &report) ? 0 : 3;
}
