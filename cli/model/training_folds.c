/* --folds: trains once for each fold of the data, and scores each net on the fold that it has not seen. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/model/take.h"
#include "cli/model/training.h"
#include "cli/picture/text.h"

/* What is told of each fold, and of all. */
enum { ACCURACY, LOSS, RMSE, MAE, R2, F1, AUC, METRICS };
static const char *const metric_names[] = {"accuracy", "loss", "rmse", "mae", "r2", "f1", "auc"};
static const char *const metric_titles[] = {"", "loss ", "RMSE ", "MAE ", "R2 ", "F1 ", "AUC "};

typedef struct fold_score {
    double value[METRICS]; /* NaN: the net has no such score */
    mica_index samples;
} fold_score;

/* Mean, and the standard deviation between folds. */
typedef struct spread {
    double mean, deviation;
} spread;

static spread spread_of(const fold_score *scores, size_t count, int metric)
{
    spread s = {0, 0};
    for (size_t i = 0; i < count; i++)
        s.mean += scores[i].value[metric] / (double)count;
    for (size_t i = 0; i < count; i++) {
        double d = scores[i].value[metric] - s.mean;
        s.deviation += d * d / (double)(count - 1);
    }
    s.deviation = sqrt(s.deviation);
    return s;
}

/* ---- What is printed ---- */

static void print_values(const double *value)
{
    const char *between = "";
    for (int i = 0; i < METRICS; i++) {
        if (isnan(value[i]))
            continue;
        printf("%s%s", between, metric_titles[i]);
        if (i == ACCURACY)
            printf("%.2f %%", 100 * value[i]);
        else
            printf("%s", figure_text(value[i]).text);
        between = ", ";
    }
}

static void tell_fold(const train_settings *s, const fold_score *its, int fold)
{
    if (s->shared.json) {
        printf("{\"event\": \"fold\", \"fold\": %d, \"folds\": %lld, \"samples\": %td", fold + 1,
               (long long)s->folds, its->samples);
        for (int i = 0; i < METRICS; i++) {
            printf(", \"%s\": ", metric_names[i]);
            put_json_number(stdout, its->value[i]);
        }
        printf("}\n");
    } else {
        printf("fold %*d/%lld  ", s->folds > 9 ? 2 : 1, fold + 1, (long long)s->folds);
        print_values(its->value);
        printf(", %s samples\n", count_text((double)its->samples).text);
    }
    (void)fflush(stdout);
}

static void tell_all(const train_settings *s, const fold_score *scores)
{
    spread all[METRICS];
    for (int i = 0; i < METRICS; i++)
        all[i] = spread_of(scores, (size_t)s->folds, i);
    if (s->shared.json) {
        printf("{\"event\": \"done\", \"folds\": %lld", (long long)s->folds);
        for (int i = 0; i < METRICS; i++) {
            printf(", \"%s\": {\"mean\": ", metric_names[i]);
            put_json_number(stdout, all[i].mean);
            printf(", \"deviation\": ");
            put_json_number(stdout, all[i].deviation);
            printf("}");
        }
        printf("}\n");
        return;
    }
    const char *plus = terminal_utf8() ? "±" : "+-", *between = "";
    printf("mean    ");
    for (int i = 0; i < METRICS; i++) {
        if (isnan(all[i].mean))
            continue;
        printf("%s%s", between, metric_titles[i]);
        if (i == ACCURACY) {
            printf("%.2f %s %.2f %%", 100 * all[i].mean, plus, 100 * all[i].deviation);
        } else {
            printf("%s %s ", figure_text(all[i].mean).text, plus);
            printf("%s", figure_text(all[i].deviation).text);
        }
        between = ", ";
    }
    printf("\n");
}

/* ---- One fold ---- */

static int run_fold(const verb *v, const train_settings *s, int fold, fold_score *out)
{
    training *t = take(1, sizeof *t);
    t->v = v;
    t->settings = *s;
    t->fold = fold;
    t->ctx = verb_context(v, &s->shared);
    int code = t->ctx == NULL ? EXIT_FAILED : training_open(t);
    if (code == EXIT_OK)
        code = ranks_agree(training_run(t));
    if (code == EXIT_OK)
        code = training_score(t);
    const score *its = &t->score;
    *out = (fold_score){.value = {its->accuracy, its->loss, its->numbers.rmse, its->numbers.mae,
                                  its->numbers.r2, its->f1, its->auc},
                        .samples = its->samples};
    if (t->ctx != NULL) {
        training_close(t);
        mica_context_destroy(t->ctx);
    }
    free(t);
    return code;
}

/* Options that are about the one net that a training leaves. */
static int check(const verb *v, const train_settings *s)
{
    const char *other = s->checkpoint != NULL ? "--checkpoint"
                        : s->resume           ? "--resume"
                        : s->report != NULL   ? "--report"
                        : s->trace != NULL    ? "--trace"
                        : s->validation >= 0  ? "--validation"
                        : s->patience > 0     ? "--patience"
                                              : NULL;
    if (other != NULL)
        return usage_error(
            v, "--folds scores nets on folds that they have not seen, and saves none: without %s", other);
    return EXIT_OK;
}

int training_folds(const verb *v, const train_settings *s)
{
    int code = check(v, s);
    fold_score *scores = take((size_t)s->folds, sizeof *scores);
    for (int fold = 0; fold < (int)s->folds && code == EXIT_OK; fold++) {
        code = run_fold(v, s, fold, &scores[fold]);
        if (code == EXIT_OK && ranks_rank() == 0)
            tell_fold(s, &scores[fold], fold);
    }
    if (code == EXIT_OK && ranks_rank() == 0)
        tell_all(s, scores);
    free(scores);
    return code;
}
