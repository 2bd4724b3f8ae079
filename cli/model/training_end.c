/* What a training came to: scored, printed, and written as pages. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/model/page_file.h"
#include "cli/model/take.h"
#include "cli/model/training_samples.h"
#include "cli/picture/text.h"

/* ---- The score ---- */

int training_score(training *t)
{
    bool folds = t->settings.folds > 0;
    const feed *f = t->test.samples > 0 && !folds ? &t->test : &t->validation;
    t->score_part = f == &t->test ? "test" : "validation";
    if (f->samples == 0)
        return EXIT_OK;
    score_opts opts = {.batch = t->rows,
                       .mistakes = t->settings.report != NULL,
                       .normalization = &t->meaning.normalization,
                       .sample = &t->meaning.sample,
                       .units = &t->meaning.units,
                       .forecast = &t->meaning.forecast,
                       .pairs = t->settings.report != NULL,
                       .stop = folds ? NULL : &interruptions,
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
    put_score_line(stdout, s, (scored_net){&t->meaning, &t->info});
    printf("\n");
}

/* Which epoch's weights were kept. */
static void print_best(const training *t)
{
    const mica_fit_result *r = &t->result;
    unsigned long long best = r->best_epoch, epochs = r->epochs;
    if (r->stopped_early)
        printf("weights stopped early after epoch %llu, best epoch %llu", epochs, best);
    else if (best > 0)
        printf("weights best epoch %llu of %llu", best, epochs);
    if (best > 0)
        printf(", validation loss %.4f\n", r->best_loss);
    else if (r->stopped_early)
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
    if (t->result.best_epoch > 0)
        printf("; and %s for the best weights", size_text((double)mica_weights_bytes(t->net)).text);
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

/* A tenth of few samples is no test. */
static void print_few(const training *t)
{
    enum { FEW = 30 };
    if (t->data.is_text || t->data.has_test || t->data.window > 0 || t->score.samples >= FEW)
        return;
    printf("try     --folds 5, which scores every sample: a test of %s says little\n",
           t->score.samples > 0 ? count_text((double)t->score.samples).text : "none");
}

static void print_text(const training *t)
{
    print_curve(t);
    print_best(t);
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
    print_few(t);
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
    if (t->result.best_epoch > 0) {
        printf(", \"best_epoch\": %llu, \"best_validation_loss\": ",
               (unsigned long long)t->result.best_epoch);
        put_json_number(stdout, t->result.best_loss);
        printf(", \"best_bytes\": %zu", mica_weights_bytes(t->net));
    }
    printf(", \"stopped_early\": %s", t->result.stopped_early ? "true" : "false");
    printf(", \"bytes\": %zu, \"lower_bound\": %zu, \"heap_calls\": ", training_bytes(t), plan->lower_bound);
    put_json_number(stdout, heap_counted() ? (double)t->heap_calls : (double)NAN);
    if (ranks_count() > 1)
        printf(", \"ranks\": %d, \"mpi_heap_calls\": %llu", ranks_count(), (unsigned long long)t->wire_calls);
    printf(", \"counted_steps\": %llu, \"seconds\": ", (unsigned long long)t->steps_done);
    put_json_number(stdout, t->step_seconds);
    printf(", \"checkpoint\": ");
    put_json(stdout, t->path);
    if (t->score.samples > 0) {
        printf(", \"task\": \"%s\", \"metrics\": ", score_task_name(&t->score));
        put_json_metrics(stdout, &t->score);
    }
    printf("}\n");
}

int training_finish(training *t)
{
    int code = training_score(t);
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

/* Nothing, where it is not wanted. */
static report_curve curve_of(const curve *c, bool wanted)
{
    return (report_curve){c->x, c->y, wanted ? c->count : 0};
}

/* "97.80 % of 2,000 test samples after 3 epochs" */
static void write_subtitle(char *text, size_t size, const training *t)
{
    main_metric m = main_metric_of(&t->score);
    if (t->score.samples == 0 || !isfinite(m.value))
        return;
    int n = m.share ? snprintf(text, size, "%.2f %% of", 100 * m.value)
                    : snprintf(text, size, "%s %s on", m.name, figure_text(m.value).text);
    (void)snprintf(text + n, size - (size_t)n, " %s %s samples after %llu epochs",
                   count_text((double)t->score.samples).text, t->score_part,
                   (unsigned long long)t->result.epochs);
}

static bool write_report(FILE *out, const void *what)
{
    const training *t = what;
    setting_texts settings = {.count = 0};
    score_pages *pages = take(1, sizeof *pages);
    sample_pictures samples;
    sample_pictures_take(&samples, t);
    char title[300], subtitle[200] = "", command[600], summary[16384];
    bool rmse = t->train_measure.kind == MEASURE_RMSE;
    fill_settings(&settings, t);
    (void)snprintf(title, sizeof title, "%s on %s", t->meaning.title, t->settings.data);
    (void)snprintf(command, sizeof command, "mica train %s --data %s --epochs %lld --batch %lld --seed %lld",
                   t->settings.net != NULL ? t->settings.net : t->meaning.title, t->settings.data,
                   (long long)t->settings.epochs, (long long)t->settings.batch,
                   (long long)t->settings.shared.seed);
    write_subtitle(subtitle, sizeof subtitle, t);
    (void)mica_net_summary(summary, sizeof summary, t->net);
    report r = {.title = title,
                .subtitle = subtitle[0] != '\0' ? subtitle : NULL,
                .command = command,
                .settings = settings.list,
                .setting_count = settings.count,
                .net = t->info.text,
                .summary = summary,
                .train_loss = curve_of(&t->train_loss, true),
                .validation_loss = curve_of(&t->validation_loss, true),
                .train_accuracy = curve_of(&t->train_metric, !rmse),
                .validation_accuracy = curve_of(&t->validation_metric, !rmse),
                .train_rmse = curve_of(&t->train_metric, rmse),
                .validation_rmse = curve_of(&t->validation_metric, rmse),
                .learning_rate = curve_of(&t->learning_rate, true),
                .samples = samples.list,
                .sample_count = samples.count,
                .layers = t->watch->layers,
                .layer_count = t->watch->layer_count,
                .plan = mica_net_plan(t->net),
                .steps = t->steps_done,
                .heap_calls = t->heap_calls,
                .seconds = t->step_seconds};
    score_report(&r, pages, &t->score, (scored_net){&t->meaning, &t->info}, t->score_part, &t->columns,
                 &t->texts);
    bool written = report_write(out, &r);
    free(pages);
    sample_pictures_free(&samples);
    return written;
}

static bool write_trace(FILE *out, const void *what)
{
    const training *t = what;
    trace tr = {.title = t->meaning.title,
                .events = t->watch->events,
                .count = t->watch->event_count,
                .plan = mica_net_plan(t->net)};
    return trace_write(out, &tr);
}

/* What the report shows that takes runs of its own. */
static int look_closer(training *t)
{
    const feed *f = t->test.samples > 0 ? &t->test : &t->validation;
    uint64_t seed = (uint64_t)t->settings.shared.seed;
    if (t->settings.report == NULL || f->samples == 0)
        return EXIT_OK;
    importance_opts opts = {.batch = t->rows, .feed = f, .seed = seed, .stop = &interruptions};
    if (importance_find(&t->columns, t->net, (scored_net){&t->meaning, &t->info}, &opts) != MICA_OK)
        return verb_failed(t->v, t->ctx);
    return t->data.is_text ? writings_of(&t->texts, t->v, t->ctx, t->path, seed) : EXIT_OK;
}

int training_pages(training *t)
{
    int code = look_closer(t);
    if (code != EXIT_OK)
        return code;
    bool json = t->settings.shared.json;
    code = page_file(t->v, t->settings.report, json, write_report, t);
    int other = page_file(t->v, t->settings.trace, json, write_trace, t);
    return code != EXIT_OK ? code : other;
}
