/* mica bench --text: prompts and generation of a public text model.
 *
 * A prompt is one run of N tokens in an empty sequence, of the last of which logits are wanted; generation is N runs of
 * one token each, from an empty sequence on. Tokens are arbitrary: the time does not depend on them.
 *
 * Generation reads every weight once a token, so it is held against a loop that only reads as many bytes; prompts
 * against multiply-adds at full rate, of bytes if most weights are block-quantized, else of floats. Both are sampled in
 * turns with the row. */
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
    double median, best; /* seconds; of one thread that was disturbed: on the processor */
    double wall;         /* the best by the clock on the wall */
    double work, limit;  /* bytes read or operations in a second, and what the machine could do */
    double heap_calls;   /* of one run of the row */
} text_row;

typedef struct text_report {
    mica_model_info about;
    size_t read_bytes; /* of the weights, for one token */
    double products;   /* multiply-adds of a token, without those of the output, and those */
    double output_products;
    bool bytes;        /* most of them are of bytes */
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

/* What a token takes. Of a table of embeddings it reads one row, unless the table is the output's as well. */
static mica_status count_work(text_report *report, const mica_model *model)
{
    mica_tensor w, embedding = {0}, output = {0};
    double in_blocks = 0.0;
    for (size_t i = 0; i < mica_model_weights(model); i++) {
        mica_gguf_text name;
        BENCH_TRY(mica_model_weight(model, &name, &w, i));
        if (is_named(name, "token_embd.weight"))
            embedding = w;
        else if (is_named(name, "output.weight"))
            output = w;
        else if (!is_named(name, "position_embd.weight")) {
            report->read_bytes += mica_tensor_bytes(&w);
            report->products += w.rank == 2 ? (double)mica_tensor_count(&w) : 0.0;
            in_blocks += mica_dtype_block(w.dtype) > 1 ? (double)mica_tensor_count(&w) : 0.0;
        }
    }
    if (output.data == NULL)
        output = embedding;
    report->read_bytes += mica_tensor_bytes(&output);
    report->output_products = (double)mica_tensor_count(&output);
    report->bytes = in_blocks > 0.5 * report->products;
    return MICA_OK;
}

/* ---- Rows ---- */

static timed_calls work_clock, limit_clock; /* large: not on the stack */

/* What a row is held against. */
typedef struct text_limit {
    timing_fn *run;
    void *probe;
    double work; /* of one call: bytes or operations */
} text_limit;

/* Samples of the row and of its limit, by turns. `work`: of one run of the row. */
static mica_status measure(text_row *row, job *j, const text_limit *limit, double work, double seconds)
{
    j->count = row->tokens;
    BENCH_TRY(timing_begin(&work_clock, row->decode ? run_decode : run_prompt, j, row->threads));
    BENCH_TRY(timing_begin(&limit_clock, limit->run, limit->probe, row->threads));
    double end = clock_seconds() + seconds;
    uint64_t calls = 0;
    for (int i = 0; i < LEAST_SAMPLES || clock_seconds() < end; i++) {
        uint64_t before = heap_now().calls;
        double start = clock_seconds();
        BENCH_TRY(timing_take(&work_clock));
        double wall = (clock_seconds() - start) / (double)work_clock.batch;
        row->wall = i == 0 || wall < row->wall ? wall : row->wall;
        calls += heap_now().calls - before;
        BENCH_TRY(timing_take(&limit_clock));
    }
    row->median = timing_median(&work_clock);
    row->best = timing_best(&work_clock);
    row->heap_calls = (double)calls / (double)(work_clock.count * work_clock.batch);
    row->work = work / row->best;
    row->limit = limit->work / timing_best(&limit_clock);
    return MICA_OK;
}

static mica_status measure_prompt(text_row *row, const text_report *report, job *j, double seconds)
{
    fma_probe probe = report->bytes ? byte_probe_make(j->ctx) : fma_probe_make(j->ctx);
    double products = report->products * (double)row->tokens + report->output_products;
    return measure(row, j, &(text_limit){fma_probe_run, &probe, probe.flops}, 2.0 * products, seconds);
}

static mica_status measure_decode(text_row *row, const text_report *report, job *j, double seconds)
{
    read_probe probe;
    BENCH_TRY(read_probe_make(&probe, j->ctx, (double)report->read_bytes));
    text_limit limit = {read_probe_run, &probe, (double)probe.count * sizeof(float)};
    mica_status status = measure(row, j, &limit, (double)report->read_bytes * (double)row->tokens, seconds);
    read_probe_release(&probe);
    return status;
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
    if (report->about.embeds)
        return mica_fail(j->ctx, MICA_ERR_ARGUMENT, "it gives vectors, not tokens");
    report->read_bytes = 0;
    report->products = 0.0;
    BENCH_TRY(count_work(report, j->model));
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
    for (int i = 0; i <= o->prompt_count; i++) {
        text_row row = {.threads = threads, .decode = i == o->prompt_count};
        row.tokens = row.decode ? o->decode : o->prompts[i];
        if (row.tokens == 0)
            continue;
        BENCH_TRY(row.decode ? measure_decode(&row, report, j, o->seconds)
                             : measure_prompt(&row, report, j, o->seconds));
        report->row[report->rows++] = row;
    }
    return MICA_OK;
}

static double tokens_per_second(const text_row *row) { return (double)row->tokens / row->best; }
static const char *limit_name(const text_report *report, const text_row *row)
{
    return row->decode ? "read" : report->bytes ? "bytes" : "fma";
}

static void print_rows(const text_report *report, int from)
{
    if (from == 0) {
        printf("%s, %.1f MB of weights, of which a token reads %.1f; plan %zu bytes; ready after %.1f ms\n\n",
               report->about.architecture, 1e-6 * (double)report->about.weight_bytes,
               1e-6 * (double)report->read_bytes, report->plan_bytes, 1e3 * report->start_seconds);
        printf("%-14s %7s %11s %11s %10s %10s %17s %6s\n", "row", "threads", "median ms", "best ms",
               "tokens/s", "work", "of the limit", "heap");
    }
    for (int i = from; i < report->rows; i++) {
        const text_row *row = &report->row[i];
        printf("%-7s %6td %7d %11.3f %11.3f %10.1f %5.1f %s %6.1f %% of %-5s %6.3g\n",
               row->decode ? "decode" : "prompt", row->tokens, row->threads, 1e3 * row->median,
               1e3 * row->best, tokens_per_second(row), 1e-9 * row->work, row->decode ? "GB/s" : "GOP/s",
               100.0 * row->work / row->limit, limit_name(report, row), row->heap_calls);
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
            fprintf(out, "%s\n  {\"name\": \"%s\", \"tokens\": %td, \"threads\": %d, ", i > 0 ? "," : "",
                    row->decode ? "decode" : "prompt", row->tokens, row->threads);
            fprintf(out, "\"ms\": %.6f, \"ms_min\": %.6f, \"wall_ms_min\": %.6f, ", 1e3 * row->median,
                    1e3 * row->best, 1e3 * row->wall);
            fprintf(out,
                    "\"tokens_per_second\": %.3f, \"work\": %.6g, \"limit\": \"%s\", \"limit_work\": %.6g, ",
                    tokens_per_second(row), row->work, limit_name(report, row), row->limit);
            fprintf(out, "\"percent_of_limit\": %.2f, \"heap_calls\": %g}", 100.0 * row->work / row->limit,
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
