/* What a training came to: scored, printed, and written as pages. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/take.h"
#include "cli/model/training_samples.h"
#include "cli/picture/text.h"

/* ---- The score ---- */

static int score_test(training *t)
{
    const feed *f = t->test.samples > 0 ? &t->test : &t->validation;
    t->score_part = f == &t->test ? "test" : "validation";
    if (f->samples == 0)
        return EXIT_OK;
    score_opts opts = {.batch = t->rows,
                       .mistakes = t->settings.report != NULL,
                       .normalization = &t->meaning.normalization,
                       .sample = &t->meaning.sample,
                       .stop = &interruptions,
                       .saved = t->path};
    return score_net(&t->score, t->v, t->net, &t->info, f, &opts);
}

/* ---- Text ---- */

static void print_curve(const training *t)
{
    char line[SPARK_BYTES];
    const curve *c = &t->train_loss;
    if (c->count == 0)
        return;
    sparkline(line, c->y, c->count);
    printf("loss    %.4g %s %.4g\n", c->y[0], line, c->y[c->count - 1]);
}

static void print_score(const training *t)
{
    const score *s = &t->score;
    if (s->samples == 0)
        return;
    printf("%-7s ", t->score_part);
    if (!isnan(s->accuracy))
        printf("%.2f %% of ", 100 * s->accuracy);
    printf("%s %s, loss %.4f", count_text((double)s->samples).text, t->data.is_text ? "windows" : "samples",
           s->loss);
    if (!isnan(s->error))
        printf(", root mean square error %.4g", s->error);
    printf("\n");
}

/* The net's block, and what ranks take beside it. */
static size_t training_bytes(const training *t) { return mica_net_plan(t->net)->total + t->rank_bytes; }

static void print_memory(const training *t)
{
    const mica_plan *plan = mica_net_plan(t->net);
    size_t bytes = training_bytes(t);
    printf("memory  %s (%s bytes)%s, planned before the first step", size_text((double)bytes).text,
           count_text((double)bytes).text, ranks_count() > 1 ? " for each rank" : "");
    if (t->settings.budget > 0 && plan->recomputed > 0)
        printf("; %d calls run twice", plan->recomputed);
    if (plan->parts > 1)
        printf("; batch split into %d parts", plan->parts);
    printf("\n");
    if (!heap_counted())
        printf("heap    not counted in this build\n");
    else if (t->steps_done > 0)
        printf("heap    %llu calls in %s steps", (unsigned long long)t->heap_calls,
               count_text((double)t->steps_done).text);
    if (heap_counted() && t->steps_done > 0 && ranks_count() > 1)
        printf(", and %s by MPI itself", count_text((double)t->wire_calls).text);
    if (heap_counted() && t->steps_done > 0)
        printf("\n");
}

static void print_text(const training *t)
{
    print_curve(t);
    print_score(t);
    print_memory(t);
    printf("saved   ");
    put_plain(stdout, t->path);
    printf("\n");
    if (t->settings.shared.quiet)
        return;
    printf("try     mica %s ", t->data.is_text ? "generate" : "eval");
    put_plain(stdout, t->folder);
    printf("\n");
}

/* ---- JSON ---- */

static void print_json(const training *t)
{
    const mica_plan *plan = mica_net_plan(t->net);
    printf(
        "{\"event\": \"done\", \"epochs\": %llu, \"steps\": %llu, \"part\": \"%s\", \"samples\": %td, \"loss\": ",
        (unsigned long long)t->result.epochs, (unsigned long long)t->result.steps, t->score_part,
        t->score.samples);
    put_json_number(stdout, t->score.samples > 0 ? t->score.loss : (double)NAN);
    printf(", \"accuracy\": ");
    put_json_number(stdout, t->score.samples > 0 ? t->score.accuracy : (double)NAN);
    printf(", \"bytes\": %zu, \"lower_bound\": %zu, \"heap_calls\": ", training_bytes(t), plan->lower_bound);
    put_json_number(stdout, heap_counted() ? (double)t->heap_calls : (double)NAN);
    if (ranks_count() > 1)
        printf(", \"ranks\": %d, \"mpi_heap_calls\": %llu", ranks_count(), (unsigned long long)t->wire_calls);
    printf(", \"counted_steps\": %llu, \"seconds\": ", (unsigned long long)t->steps_done);
    put_json_number(stdout, t->step_seconds);
    printf(", \"checkpoint\": ");
    put_json(stdout, t->path);
    printf("}\n");
}

int training_finish(training *t)
{
    int code = score_test(t);
    if (code != EXIT_OK)
        return code;
    if (t->settings.shared.json)
        print_json(t);
    else
        print_text(t);
    return ranks_rank() == 0 ? training_pages(t) : EXIT_OK;
}

/* ---- Pages ---- */

enum { SETTINGS = 16 };

typedef struct setting_texts {
    report_setting list[SETTINGS];
    char text[SETTINGS][80];
    size_t count;
} setting_texts;

static void add_setting(setting_texts *s, const char *name, const char *value)
{
    if (s->count == SETTINGS)
        return;
    (void)snprintf(s->text[s->count], sizeof s->text[0], "%s", value);
    s->list[s->count] = (report_setting){name, s->text[s->count]};
    s->count++;
}

static void add_setting_number(setting_texts *s, const char *name, double value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%g", value);
    add_setting(s, name, text);
}

static void fill_settings(setting_texts *out, const training *t)
{
    const train_settings *s = &t->settings;
    add_setting(out, "net", t->meaning.title);
    add_setting(out, "data", s->data);
    add_setting_number(out, "training samples", (double)t->train.samples);
    add_setting_number(out, "epochs", (double)s->epochs);
    add_setting_number(out, "batch", (double)s->batch);
    add_setting(out, "optimizer", optimizer_names[s->optimizer]);
    add_setting_number(out, "learning rate", s->lr);
    add_setting(out, "schedule", schedule_names[s->schedule]);
    add_setting_number(out, "weight decay", s->weight_decay);
    add_setting_number(out, "seed", (double)s->shared.seed);
    add_setting_number(out, "threads", mica_context_threads(t->ctx));
    add_setting(out, "kernels", mica_context_isa(t->ctx));
    if (s->augment != NULL)
        add_setting(out, "augment", s->augment);
    if (s->budget > 0)
        add_setting(out, "budget", size_text((double)s->budget).text);
}

static size_t fill_mistakes(report_mistake *out, const score *s)
{
    for (size_t i = 0; i < s->worst_count; i++)
        out[i] = (report_mistake){.number = (size_t)s->worst[i].number,
                                  .label = s->worst[i].label,
                                  .prediction = s->worst[i].prediction,
                                  .probability = s->worst[i].probability,
                                  .label_probability = s->worst[i].label_probability,
                                  .pixels = s->worst[i].pixels,
                                  .width = s->width,
                                  .height = s->height,
                                  .channels = s->channels};
    return s->worst_count;
}

/* A name for each class of the table: the net may tell more of them apart than the data name. */
typedef struct all_names {
    const char *list[SCORE_MOST_CLASSES];
    char number[SCORE_MOST_CLASSES][12];
} all_names;

static const char *const *fill_names(all_names *out, const training *t)
{
    const meaning *m = &t->meaning;
    if (m->class_names == NULL)
        return NULL;
    for (int i = 0; i < t->score.classes; i++) {
        (void)snprintf(out->number[i], sizeof out->number[i], "%d", i);
        out->list[i] = i < m->class_count ? m->class_names[i] : out->number[i];
    }
    return out->list;
}

static report_curve curve_of(const curve *c) { return (report_curve){c->x, c->y, c->count}; }

static bool write_report(FILE *out, const training *t)
{
    setting_texts settings = {.count = 0};
    report_mistake mistakes[SCORE_MOST_MISTAKES];
    all_names *names = take(1, sizeof *names);
    sample_pictures samples;
    sample_pictures_take(&samples, t);
    char title[300], subtitle[200] = "", command[600], summary[16384];
    fill_settings(&settings, t);
    (void)snprintf(title, sizeof title, "%s on %s", t->meaning.title, t->settings.data);
    (void)snprintf(command, sizeof command, "mica train %s --data %s --epochs %lld --batch %lld --seed %lld",
                   t->settings.net != NULL ? t->settings.net : t->meaning.title, t->settings.data,
                   (long long)t->settings.epochs, (long long)t->settings.batch,
                   (long long)t->settings.shared.seed);
    if (t->score.samples > 0 && !isnan(t->score.accuracy))
        (void)snprintf(subtitle, sizeof subtitle, "%.2f %% of %s %s samples after %llu epochs",
                       100 * t->score.accuracy, count_text((double)t->score.samples).text, t->score_part,
                       (unsigned long long)t->result.epochs);
    (void)mica_net_summary(summary, sizeof summary, t->net);
    report r = {.title = title,
                .subtitle = subtitle[0] != '\0' ? subtitle : NULL,
                .command = command,
                .settings = settings.list,
                .setting_count = settings.count,
                .net = t->info.text,
                .summary = summary,
                .train_loss = curve_of(&t->train_loss),
                .validation_loss = curve_of(&t->validation_loss),
                .train_accuracy = curve_of(&t->train_accuracy),
                .validation_accuracy = curve_of(&t->validation_accuracy),
                .learning_rate = curve_of(&t->learning_rate),
                .classes = t->score.classes,
                .class_names = fill_names(names, t),
                .confusion = t->score.confusion,
                .mistakes = mistakes,
                .mistake_count = fill_mistakes(mistakes, &t->score),
                .samples = samples.list,
                .sample_count = samples.count,
                .layers = t->watch->layers,
                .layer_count = t->watch->layer_count,
                .plan = mica_net_plan(t->net),
                .steps = t->steps_done,
                .heap_calls = t->heap_calls,
                .seconds = t->step_seconds};
    bool written = report_write(out, &r);
    sample_pictures_free(&samples);
    free(names);
    return written;
}

static bool write_trace(FILE *out, const training *t)
{
    trace tr = {.title = t->meaning.title,
                .events = t->watch->events,
                .count = t->watch->event_count,
                .plan = mica_net_plan(t->net)};
    return trace_write(out, &tr);
}

static int write_page(const training *t, const char *path, bool (*write)(FILE *, const training *))
{
    if (path == NULL)
        return EXIT_OK;
    FILE *out = fopen(path, "w");
    if (out == NULL)
        return verb_error(t->v, EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    bool ok = write(out, t);
    if (fclose(out) != 0 || !ok)
        return verb_error(t->v, EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    if (!t->settings.shared.json) {
        printf("wrote   ");
        put_plain(stdout, path);
        printf("\n");
    }
    return EXIT_OK;
}

int training_pages(training *t)
{
    int code = write_page(t, t->settings.report, write_report);
    int other = write_page(t, t->settings.trace, write_trace);
    return code != EXIT_OK ? code : other;
}
