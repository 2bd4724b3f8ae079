/* mica eval: how good a trained net is. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/model/match.h"
#include "cli/model/same.h"
#include "cli/model/saved.h"
#include "cli/model/score.h"
#include "cli/picture/text.h"
#include "cli/ranks.h"

typedef struct settings {
    shared_settings shared;
    const char *data, *label;
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
    {.name = "--label",
     OPTION_TEXT,
     offsetof(settings, label),
     "COLUMN",
     "CSV: the label column, by name or number (as in training)"},
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
};

static const char details[] =
    "FILE is a checkpoint written by mica train, or its folder.\n"
    "\n" DATA_HELP
    "\n"
    "Prints the loss, the accuracy and the confusion matrix: one row per true class, one\n"
    "column per predicted class.";

static const verb_example examples[] = {
    {"eval lenet-digits", "score on the test split of its training data"},
    {"eval lenet-digits --show 10", "also draw ten test digits with their predictions"},
    {"eval lenet-digits --data /data/mnist", "score on other data"},
    {"eval lenet-digits --data /data/mnist --json",
     "under mpirun -np 4: the same output, from four processes"},
    {"eval iris --data iris.csv --part all --json", "for programs"},
    {NULL, NULL},
};

/* ---- Printing ---- */

static const char *name_of(char *text, size_t size, const meaning *m, int class)
{
    return class_text(text, size, (const char *const *)m->class_names, m->class_count, class);
}

/* A row for each class that is, a column for each that the net says. */
static void print_confusion(const score *s, const meaning *m)
{
    enum { WIDEST = 20, NAME = 12 };
    if (s->classes < 2 || s->classes > WIDEST)
        return;
    char name[NAME + 1];
    printf("\n%*s  predicted\n%*s", NAME, "", NAME, "");
    for (int c = 0; c < s->classes; c++)
        printf(" %5.5s", name_of(name, sizeof name, m, c));
    printf("   right\n");
    for (int label = 0; label < s->classes; label++) {
        const uint64_t *row = s->confusion + label * s->classes;
        uint64_t all = 0;
        printf("%*s", NAME, name_of(name, sizeof name, m, label));
        for (int c = 0; c < s->classes; c++) {
            all += row[c];
            if (row[c] == 0)
                printf("     .");
            else
                printf(" %5llu", (unsigned long long)row[c]);
        }
        if (all > 0)
            printf("  %5.1f %%\n", 100 * (double)row[label] / (double)all);
        else
            printf("        -\n");
    }
}

static void print_text(const score *s, const meaning *m, const char *what, const char *part)
{
    put_plain(stdout, what);
    printf(", %s: ", part);
    if (!isnan(s->accuracy))
        printf("%.2f %% of ", 100 * s->accuracy);
    printf("%s %s, loss %.4f", count_text((double)s->samples).text,
           m->vocabulary.count > 0 ? "windows" : "samples", s->loss);
    if (m->vocabulary.count > 0)
        printf(", %.3f bits per token", s->loss / log(2));
    if (!isnan(s->error))
        printf(", root mean square error %.4g", s->error);
    printf("\n");
    print_confusion(s, m);
    if (s->first_count > 0) {
        printf("\n");
        print_samples(stdout, s, s->first, s->first_count, (const char *const *)m->class_names,
                      m->class_count);
    }
}

static void print_json(const score *s, const meaning *m, const char *what, const char *part)
{
    char name[256];
    printf("{\"data\": ");
    put_json(stdout, what);
    printf(", \"part\": \"%s\", \"samples\": %td, \"loss\": ", part, s->samples);
    put_json_number(stdout, s->loss);
    printf(", \"accuracy\": ");
    put_json_number(stdout, s->accuracy);
    printf(", \"error\": ");
    put_json_number(stdout, s->error);
    if (s->confusion != NULL) {
        printf(", \"classes\": [");
        for (int c = 0; c < s->classes; c++) {
            printf("%s", c > 0 ? ", " : "");
            if (c < m->class_count)
                put_json(stdout, m->class_names[c]);
            else
                put_json(stdout, name_of(name, sizeof name, m, c));
        }
        printf("], \"confusion\": [");
        for (int i = 0; i < s->classes * s->classes; i++)
            printf("%s%llu%s",
                   i == 0                ? "["
                   : i % s->classes == 0 ? ", ["
                                         : ", ",
                   (unsigned long long)s->confusion[i], i % s->classes == s->classes - 1 ? "]" : "");
        printf("]");
    }
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
    if (set->label == NULL)
        set->label = e->saved.settings.label;
    data_opts opts = {.label = set->label,
                      .classes = (const char *const *)m->class_names,
                      .class_count = m->class_count,
                      .sound = m->is_sound ? &m->sound : NULL,
                      .sound_asked = m->is_sound,
                      .vocabulary = m->vocabulary.count > 0 ? &m->vocabulary : NULL};
    int code = data_load(&e->data, &verb_eval, e->ctx, set->data, &opts);
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
        code = saved_build(&e->net, &e->info, &verb_eval, e->ctx, &e->saved, (mica_index)set->batch, true);
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
    if (e->feed.samples == 0)
        return verb_error(&verb_eval, EXIT_FILE, "%s has no samples in its %s split", set->data,
                          parts[e->part]);
    return EXIT_OK;
}

static int evaluate(evaluation *e, settings *set, const char *where)
{
    int code = ranks_agree(open_all(e, set, where));
    const int64_t chosen[] = {(int64_t)e->part, set->batch, set->show};
    if (code == EXIT_OK)
        code = same_options(chosen, sizeof chosen / sizeof chosen[0], &verb_eval);
    if (code == EXIT_OK)
        code = same_net(&e->saved, e->net, &verb_eval);
    if (code == EXIT_OK)
        code = same_data(&e->data, &verb_eval, set->data);
    score_opts scoring = {.batch = (mica_index)set->batch,
                          .show = (size_t)set->show,
                          .normalization = &e->saved.meaning.normalization,
                          .sample = &e->saved.meaning.sample};
    if (code == EXIT_OK)
        code = score_net(&e->score, &verb_eval, e->net, &e->info, &e->feed, &scoring);
    if (code != EXIT_OK)
        return code;
    if (set->shared.json)
        print_json(&e->score, &e->saved.meaning, set->data, parts[e->part]);
    else
        print_text(&e->score, &e->saved.meaning, set->data, parts[e->part]);
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS, .part = -1, .batch = 32};
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
    .summary = "score a trained net: loss, accuracy, confusion matrix",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_JSON | SHARED_THREADS | RANKED,
    .examples = examples,
};
