/* Scores for people and programs. */
#include "cli/model/score_print.h"

#include <math.h>
#include <string.h>

#include "cli/model/metrics.h"
#include "cli/model/progress.h"
#include "cli/picture/text.h"

static const char *r_squared(void) { return terminal_utf8() ? "R²" : "R2"; }

static const char *name_of(char *text, size_t size, scored_net net, int class)
{
    name_list names = class_names_of(net.meaning, net.info);
    return class_text(text, size, names.list, names.count, class);
}

/* ---- A line ---- */

static bool has_numbers(const score *s) { return !isnan(s->numbers.rmse); }

const char *score_baseline_name(scored_net net)
{
    const forecast_shape *f = &net.meaning->forecast;
    bool forecast = f->horizon > 0 && f->baseline != NULL && f->baseline_name != NULL;
    return forecast ? f->baseline_name : "the mean";
}

/* "price: RMSE 54.1, MAE 43.2, R² 0.512 of 44 samples; always the mean: RMSE 77.1" */
static void put_numbers_line(FILE *to, const score *s, scored_net net)
{
    const target_score *t = &s->numbers;
    const char *name = s->target_count == 1 ? target_name(&net.meaning->units, 0) : NULL;
    if (name != NULL) {
        put_plain(to, name);
        fprintf(to, ": ");
    }
    fprintf(to, "RMSE %s, ", figure_text(t->rmse).text);
    fprintf(to, "MAE %s, %s %.3f of ", figure_text(t->mae).text, r_squared(), t->r2);
    fprintf(to, "%s sample%s", count_text((double)s->samples).text, s->samples == 1 ? "" : "s");
    if (isnan(t->baseline))
        return;
    fprintf(to, "; always ");
    put_plain(to, score_baseline_name(net));
    fprintf(to, ": RMSE %s", figure_text(t->baseline).text);
}

void put_score_line(FILE *to, const score *s, scored_net net)
{
    char name[64];
    bool text = net.meaning->vocabulary.count > 0;
    if (has_numbers(s)) {
        put_numbers_line(to, s, net);
        return;
    }
    if (!isnan(s->accuracy))
        fprintf(to, "%.2f %% of ", 100 * s->accuracy);
    fprintf(to, "%s %s%s, loss %.4f", count_text((double)s->samples).text, text ? "window" : "sample",
            s->samples == 1 ? "" : "s", s->loss);
    if (text)
        fprintf(to, ", %.3f bits per token, perplexity %.4g", s->loss / log(2), exp(s->loss));
    if (!isnan(s->f1))
        fprintf(to, ", F1 %.3f", s->f1);
    if (!isnan(s->auc))
        fprintf(to, ", AUC %.4f", s->auc);
    if (!isnan(s->common_share))
        fprintf(to, "; always %s: %.2f %%", name_of(name, sizeof name, net, s->common),
                100 * s->common_share);
}

/* ---- Tables ---- */

static void put_targets(FILE *to, const score *s, scored_net net)
{
    fprintf(to, "\n%16s %10s %10s %*s  RMSE of always ", "", "RMSE", "MAE", terminal_utf8() ? 10 : 9,
            r_squared());
    put_plain(to, score_baseline_name(net));
    fprintf(to, "\n");
    for (int i = 0; i < s->target_count; i++) {
        const target_score *t = &s->each[i];
        char text[20];
        const char *name = target_name(&net.meaning->units, i);
        if (name != NULL)
            (void)plain_text(text, sizeof text, name);
        else
            (void)snprintf(text, sizeof text, "%d", i + 1);
        fprintf(to, "%16.16s %10s", text, figure_text(t->rmse).text);
        fprintf(to, " %10s %9.3f", figure_text(t->mae).text, t->r2);
        fprintf(to, "  %s\n", figure_text(t->baseline).text);
    }
}

enum { NAME = 12 };

static void put_class_score(FILE *to, const class_score *c)
{
    if (c->count > 0)
        fprintf(to, "  %5.1f %%", 100 * c->recall);
    else
        fprintf(to, "        -");
    fprintf(to, "    %5.1f %%  %.3f\n", 100 * c->precision, c->f1);
}

/* As wide as the longest name, where classes are few. */
static int column_width(const score *s, scored_net net)
{
    enum { LEAST = 5, FEW = 4 };
    char name[NAME + 1];
    size_t width = LEAST;
    for (int c = 0; c < s->classes && s->classes <= FEW; c++) {
        size_t length = strlen(name_of(name, sizeof name, net, c));
        width = length > width ? length : width;
    }
    return (int)width;
}

/* A row for each class that is, a column for each that the net says. */
static void put_confusion(FILE *to, const score *s, scored_net net)
{
    char name[NAME + 1];
    int width = column_width(s, net);
    fprintf(to, "\n%*s  predicted\n%*s", NAME, "", NAME, "");
    for (int c = 0; c < s->classes; c++)
        fprintf(to, " %*.*s", width, width, name_of(name, sizeof name, net, c));
    fprintf(to, "   recall  precision     F1\n");
    for (int label = 0; label < s->classes; label++) {
        class_score its = class_score_of(s->confusion, s->classes, label);
        fprintf(to, "%*s", NAME, name_of(name, sizeof name, net, label));
        for (int c = 0; c < s->classes; c++) {
            uint64_t count = s->confusion[label * s->classes + c];
            if (count == 0)
                fprintf(to, " %*s", width, ".");
            else
                fprintf(to, " %*llu", width, (unsigned long long)count);
        }
        put_class_score(to, &its);
    }
}

/* Of many classes, those that are told worst. */
static void put_worst_classes(FILE *to, const score *s, scored_net net)
{
    enum { LISTED = 10 };
    int worst[LISTED], count = 0;
    for (int c = 0; c < s->classes; c++) {
        class_score its = class_score_of(s->confusion, s->classes, c);
        int at = count;
        if (its.count == 0)
            continue;
        while (at > 0 && class_score_of(s->confusion, s->classes, worst[at - 1]).f1 > its.f1)
            at--;
        count = count < LISTED ? count + 1 : count;
        for (int i = count - 1; i > at; i--)
            worst[i] = worst[i - 1];
        if (at < count)
            worst[at] = c;
    }
    if (count == 0)
        return;
    fprintf(to, "\n%*s  samples   recall  precision     F1 (the lowest)\n", 2 * NAME, "");
    for (int i = 0; i < count; i++) {
        char name[2 * NAME + 1];
        class_score its = class_score_of(s->confusion, s->classes, worst[i]);
        fprintf(to, "%*s  %7llu", 2 * NAME, name_of(name, sizeof name, net, worst[i]),
                (unsigned long long)its.count);
        put_class_score(to, &its);
    }
}

void put_score_tables(FILE *to, const score *s, scored_net net)
{
    enum { WIDEST = 20 };
    if (has_numbers(s) && s->target_count > 1)
        put_targets(to, s, net);
    if (s->confusion != NULL && s->classes >= 2 && s->classes <= WIDEST)
        put_confusion(to, s, net);
    else if (s->confusion != NULL && s->classes > WIDEST)
        put_worst_classes(to, s, net);
}

/* ---- JSON ---- */

const char *score_task_name(const score *s)
{
    return s->task == MICA_TASK_REGRESSION ? "regression"
           : s->task == MICA_TASK_CLASSES  ? "classes"
           : s->task == MICA_TASK_BINARY   ? "binary"
                                           : "text";
}

static void put_number(FILE *to, const char *before, double value)
{
    fprintf(to, "%s: ", before);
    put_json_number(to, value);
}

static void put_numbers(FILE *to, const target_score *t)
{
    put_number(to, "\"rmse\"", t->rmse);
    put_number(to, ", \"mae\"", t->mae);
    put_number(to, ", \"r2\"", t->r2);
}

void put_json_metrics(FILE *to, const score *s)
{
    fprintf(to, "{");
    if (s->task == MICA_TASK_REGRESSION) {
        put_numbers(to, &s->numbers);
        put_number(to, ", \"loss\"", s->loss);
    } else {
        put_number(to, "\"accuracy\"", s->accuracy);
        put_number(to, ", \"loss\"", s->loss);
    }
    if (s->task == MICA_TASK_TEXT) {
        put_number(to, ", \"bits_per_token\"", s->loss / log(2));
        put_number(to, ", \"perplexity\"", exp(s->loss));
    } else if (s->task != MICA_TASK_REGRESSION) {
        put_number(to, ", \"f1\"", s->f1);
    }
    if (s->task == MICA_TASK_BINARY)
        put_number(to, ", \"auc\"", s->auc);
    fprintf(to, "}");
}

static void put_json_targets(FILE *to, const score *s, scored_net net)
{
    fprintf(to, ", \"baseline\": {\"rmse\"");
    put_number(to, "", s->numbers.baseline);
    fprintf(to, ", \"name\": ");
    put_json(to, score_baseline_name(net));
    fprintf(to, "}");
    for (int i = 0; i < s->target_count; i++) {
        fprintf(to, "%s{\"name\": ", i == 0 ? ", \"targets\": [" : ", ");
        if (target_name(&net.meaning->units, i) != NULL)
            put_json(to, target_name(&net.meaning->units, i));
        else
            fprintf(to, "null");
        fprintf(to, ", ");
        put_numbers(to, &s->each[i]);
        put_number(to, ", \"baseline\"", s->each[i].baseline);
        fprintf(to, "}%s", i == s->target_count - 1 ? "]" : "");
    }
}

/* The whole name, however long. */
static void put_json_class(FILE *to, scored_net net, int class)
{
    char text[16];
    name_list names = class_names_of(net.meaning, net.info);
    put_json(to, class < names.count ? names.list[class] : name_of(text, sizeof text, net, class));
}

static void put_json_classes(FILE *to, const score *s, scored_net net)
{
    if (!isnan(s->common_share)) {
        put_number(to, ", \"baseline\": {\"accuracy\"", s->common_share);
        fprintf(to, ", \"class\": ");
        put_json_class(to, net, s->common);
        fprintf(to, "}");
    }
    fprintf(to, ", \"classes\": [");
    for (int c = 0; c < s->classes; c++) {
        fprintf(to, "%s", c > 0 ? ", " : "");
        put_json_class(to, net, c);
    }
    fprintf(to, "], \"confusion\": [");
    for (int i = 0; i < s->classes * s->classes; i++)
        fprintf(to, "%s%llu%s",
                i == 0                ? "["
                : i % s->classes == 0 ? ", ["
                                      : ", ",
                (unsigned long long)s->confusion[i], i % s->classes == s->classes - 1 ? "]" : "");
    fprintf(to, "], \"per_class\": [");
    for (int c = 0; c < s->classes; c++) {
        class_score its = class_score_of(s->confusion, s->classes, c);
        fprintf(to, "%s{\"samples\": %llu", c > 0 ? ", " : "", (unsigned long long)its.count);
        put_number(to, ", \"precision\"", its.precision);
        put_number(to, ", \"recall\"", its.recall);
        put_number(to, ", \"f1\"", its.f1);
        fprintf(to, "}");
    }
    fprintf(to, "]");
}

void put_json_details(FILE *to, const score *s, scored_net net)
{
    if (s->task == MICA_TASK_REGRESSION)
        put_json_targets(to, s, net);
    if (s->confusion != NULL)
        put_json_classes(to, s, net);
}

main_metric main_metric_of(const score *s)
{
    if (s->task == MICA_TASK_REGRESSION)
        return (main_metric){"RMSE", s->numbers.rmse, false};
    if (s->task == MICA_TASK_TEXT)
        return (main_metric){"loss", s->loss, false};
    return (main_metric){"accuracy", s->accuracy, true};
}
