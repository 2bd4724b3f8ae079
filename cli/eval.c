/* mica eval: how good a trained net is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/match.h"
#include "cli/model/page_file.h"
#include "cli/model/same.h"
#include "cli/model/saved.h"
#include "cli/model/tables.h"
#include "cli/model/score_report.h"
#include "cli/model/take.h"
#include "cli/onnx/net.h"
#include "cli/picture/text.h"
#include "cli/ranks.h"

typedef struct settings {
    shared_settings shared;
    const char *data, *report;
    table_settings table;
    int part;
    int64_t batch, show;
} settings;

enum { PART_ALL, PART_TRAIN, PART_VALIDATION, PART_TEST };
static const char *const parts[] = {"all", "train", "validation", "test", NULL};

static const verb_option options[] = {
    {.name = "--data",
     OPTION_TEXT,
     offsetof(settings, data),
     "DATA",
     "data to score it on (the training data set)"},
    TABLE_READING_OPTIONS(settings),
    {.name = "--memory",
     OPTION_BYTES,
     offsetof(settings, table.memory),
     "BYTES",
     "table: rows that take more are read in blocks (256MiB)"},
    {.name = "--part",
     OPTION_CHOICE,
     offsetof(settings, part),
     "PART",
     "split to score (test, if it is the training data set or has a test set; otherwise all)",
     .choices = parts},
    {.name = "--batch",
     OPTION_COUNT,
     offsetof(settings, batch),
     "N",
     "batch size (32)",
     .least = 1,
     .most = 1000000},
    {.name = "--show",
     OPTION_COUNT,
     offsetof(settings, show),
     "N",
     "also draw N samples as text",
     .most = SCORE_MOST_MISTAKES},
    {.name = "--report",
     OPTION_TEXT,
     offsetof(settings, report),
     "FILE.html",
     "write an HTML page: predictions, mistakes, which columns matter"},
};

static const char details[] =
    "FILE is a checkpoint written by mica train, or its folder.\n"
    "\n" DATA_HELP
    "\n"
    "Prints what fits the net: RMSE, MAE and R2 in the unit of the target; accuracy, F1 and the\n"
    "confusion matrix of classes (one row per true class, one column per predicted class), for\n"
    "two classes or yes/no also the AUC; bits per token and perplexity of text. Behind it stands\n"
    "what it takes to beat: always the mean, or always the most common class.";

static const verb_example examples[] = {
    {"eval lenet-digits", "score on the test split of its training data"},
    {"eval lenet-digits --show 10", "also draw ten test digits with their predictions"},
    {"eval lenet-digits --data /data/mnist", "score on other data"},
    {"eval lenet-digits --data /data/mnist --json",
     "under mpirun -np 4: the same output, from four processes"},
    {"eval iris --data iris.csv --part all --json", "for programs"},
    {"eval houses --data houses.csv --report houses.html", "also write a page of predictions and residuals"},
    {NULL, NULL},
};

/* ---- Printing ---- */

static void print_text(const score *s, scored_net net, const char *what, const char *part)
{
    put_plain(stdout, what);
    printf(", %s: ", part);
    put_score_line(stdout, s, net);
    printf("\n");
    put_score_tables(stdout, s, net);
    if (s->first_count > 0) {
        name_list names = class_names_of(net.meaning, net.info);
        printf("\n");
        print_samples(stdout, s, s->first, s->first_count, names.list, names.count);
    }
}

static void print_json(const score *s, scored_net net, const char *what, const char *part)
{
    printf("{\"task\": \"%s\", \"samples\": %td, \"metrics\": ", score_task_name(s), s->samples);
    put_json_metrics(stdout, s);
    printf(", \"data\": ");
    put_json(stdout, what);
    printf(", \"part\": \"%s\"", part);
    put_json_details(stdout, s, net);
    printf("}\n");
}

/* ---- Scoring ---- */

/* What is open while it runs. */
typedef struct evaluation {
    mica_context *ctx;
    saved saved;
    data data;
    mica_net *net;
    mica_netfile_info info;
    mica_part part;
    feed feed;
    score score;
} evaluation;

/* What the training held back, if these are its data; what is there for tests, if something is; else everything. */
static mica_part choose_part(const settings *set, const evaluation *e)
{
    bool same = e->saved.meaning.data != NULL && strcmp(set->data, e->saved.meaning.data) == 0;
    int part = set->part >= 0 ? set->part : same || e->data.has_test ? PART_TEST : PART_ALL;
    return part == PART_ALL          ? MICA_PART_ALL
           : part == PART_TRAIN      ? MICA_PART_TRAIN
           : part == PART_VALIDATION ? MICA_PART_VALIDATION
                                     : MICA_PART_TEST;
}

static int open_data(evaluation *e, settings *set)
{
    const meaning *m = &e->saved.meaning;
    if (set->data == NULL)
        set->data = m->data;
    if (set->data == NULL)
        return usage_error(&verb_eval,
                           "--data is required: the checkpoint does not record its training data");
    int code = saved_load_data(
        &e->data, &verb_eval, e->ctx, &e->saved, set->data,
        &(data_opts){.table = set->table,
                     .tell = !set->shared.quiet && !set->shared.json && ranks_rank() == 0});
    net_ends ends;
    if (code == EXIT_OK)
        code = net_ends_find(&ends, &verb_eval, e->net, &e->info, e->saved.path);
    return code == EXIT_OK ? data_match(&e->data, set->data, &verb_eval, &ends, &e->info, "the net") : code;
}

/* Everything before the first batch. */
static int open_all(evaluation *e, settings *set, const char *where)
{
    int code = saved_open(&e->saved, &verb_eval, e->ctx, where);
    if (code == EXIT_OK)
        code = saved_build(&e->net, &e->info, &verb_eval, e->ctx, &e->saved,
                           &(saved_build_opts){.batch = (mica_index)set->batch, .with_loss = true});
    if (code == EXIT_OK && (e->info.target == NULL || e->info.task == MICA_TASK_NONE))
        code = verb_error(&verb_eval, EXIT_FILE, "%s: the net has no loss to evaluate", e->saved.path);
    if (code == EXIT_OK)
        code = open_data(e, set);
    if (code != EXIT_OK)
        return code;
    double validation = e->saved.settings.validation;
    e->part = choose_part(set, e);
    feed_opts feeding = {.part = e->part,
                         .batch = (mica_index)set->batch,
                         .length = e->info.length,
                         .validation = validation >= 0 ? validation : SHARE_VALIDATION,
                         .normalization = &e->saved.meaning.normalization};
    if (feed_open(&e->feed, e->ctx, &e->data, &feeding) != MICA_OK)
        return verb_failed(&verb_eval, e->ctx);
    mica_index left = onnx_sizes_fixed(e->net) ? feed_keep_whole(&e->feed, (mica_index)set->batch) : 0;
    if (e->feed.samples == 0)
        return verb_error(&verb_eval, EXIT_FILE, "%s has %s samples in its %s split%s", set->data,
                          left > 0 ? "too few" : "no", parts[e->part],
                          left > 0 ? ": the model takes whole batches only" : "");
    if (left > 0)
        fprintf(stderr, "note: %td samples are left out: the model takes whole batches only\n", left);
    return EXIT_OK;
}

/* ---- The page ---- */

enum { PAGE_SEED = 42 }; /* of shuffled columns, and of texts */

typedef struct eval_page {
    const evaluation *e;
    const settings *set;
    importance columns;
    writings texts;
} eval_page;

static bool write_report(FILE *out, const void *what)
{
    const eval_page *page = what;
    const evaluation *e = page->e;
    const meaning *m = &e->saved.meaning;
    score_pages *room = take(1, sizeof *room);
    const char *part = parts[e->part];
    char title[300], *line = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&line, &length);
    if (to != NULL) {
        put_score_line(to, &e->score, (scored_net){m, &e->info});
        (void)fclose(to);
    }
    (void)snprintf(title, sizeof title, "%s on %s, %s", m->title != NULL ? m->title : "net", page->set->data,
                   part);
    report r = {.title = title, .subtitle = line, .net = e->info.text};
    score_report(&r, room, &e->score, (scored_net){m, &e->info}, part, &page->columns, &page->texts);
    bool written = report_write(out, &r);
    free(line);
    free(room);
    return written;
}

static int write_page(evaluation *e, const settings *set)
{
    eval_page page = {.e = e, .set = set};
    scored_net net = {&e->saved.meaning, &e->info};
    importance_opts opts = {.batch = (mica_index)set->batch, .feed = &e->feed, .seed = PAGE_SEED};
    int code = importance_find(&page.columns, e->net, net, &opts) == MICA_OK
                   ? EXIT_OK
                   : verb_failed(&verb_eval, e->ctx);
    if (code == EXIT_OK)
        code = writings_make(&page.texts, &verb_eval, e->ctx, &e->saved, PAGE_SEED);
    if (code == EXIT_OK)
        code = page_file(&verb_eval, set->report, set->shared.json, write_report, &page);
    importance_free(&page.columns);
    writings_free(&page.texts);
    return code;
}

static int evaluate(evaluation *e, settings *set, const char *where)
{
    int code = ranks_agree(open_all(e, set, where));
    const int64_t chosen[] = {(int64_t)e->part, set->batch, set->show, set->report != NULL};
    if (code == EXIT_OK)
        code = same_options(chosen, sizeof chosen / sizeof chosen[0], &verb_eval);
    if (code == EXIT_OK)
        code = same_net(&e->saved, e->net, &verb_eval);
    if (code == EXIT_OK)
        code = same_data(&e->data, &verb_eval, set->data);
    score_opts scoring = {.batch = (mica_index)set->batch,
                          .show = (size_t)set->show,
                          .mistakes = set->report != NULL,
                          .pairs = set->report != NULL,
                          .normalization = &e->saved.meaning.normalization,
                          .sample = &e->saved.meaning.sample,
                          .units = &e->saved.meaning.units,
                          .forecast = &e->saved.meaning.forecast};
    if (code == EXIT_OK)
        code = score_net(&e->score, &verb_eval, e->net, &e->info, &e->feed, &scoring);
    if (code != EXIT_OK)
        return code;
    scored_net net = {&e->saved.meaning, &e->info};
    if (set->shared.json)
        print_json(&e->score, net, set->data, parts[e->part]);
    else
        print_text(&e->score, net, set->data, parts[e->part]);
    return set->report != NULL && ranks_rank() == 0 ? write_page(e, set) : EXIT_OK;
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS, .table = TABLE_DEFAULTS, .part = -1, .batch = 32};
    int count = options_read(&verb_eval, &set, argc, argv);
    if (count < 0)
        return EXIT_USAGE;
    if (count != 1)
        return usage_error(&verb_eval, count == 0 ? "which trained net? The FILE argument is missing"
                                                  : "one net at a time");
    evaluation e = {.ctx = verb_context(&verb_eval, &set.shared)};
    if (e.ctx == NULL)
        return EXIT_FAILED;
    int code = evaluate(&e, &set, argv[0]);
    score_free(&e.score);
    feed_close(e.ctx, &e.feed);
    mica_net_destroy(e.net);
    data_release(e.ctx, &e.data);
    saved_close(e.ctx, &e.saved);
    mica_context_destroy(e.ctx);
    return code;
}

const verb verb_eval = {
    .name = "eval",
    .arguments = "FILE [--data DATA] [OPTIONS]",
    .summary = "score a trained net: accuracy, F1, RMSE, whatever fits it",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_QUIET | SHARED_JSON | SHARED_THREADS | RANKED,
    .examples = examples,
};
