/* --balance and --class-weight: how much the samples of each class count. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/take.h"
#include "cli/model/training_weights.h"
#include "cli/picture/text.h"

/* Samples of each class in the training part. */
static mica_status count_classes(const training *t, double *counts, mica_index classes)
{
    const train_settings *s = &t->settings;
    feed all;
    feed_opts opts = {.part = MICA_PART_TRAIN,
                      .batch = t->rows,
                      .seed = (uint64_t)s->shared.seed,
                      .validation = s->validation,
                      .folds = (int)s->folds,
                      .fold = t->fold,
                      .normalization = &t->meaning.normalization};
    mica_tensor x = t->ends.input, y = t->ends.target;
    x.data = take(mica_tensor_bytes(&x), 1);
    y.data = take(mica_tensor_bytes(&y), 1);
    mica_status status = feed_open(&all, t->ctx, &t->data, &opts);
    for (mica_index count = 1; status == MICA_OK && count > 0;) {
        status = all.source.next(t->ctx, &x, &y, &count, all.source.user);
        for (mica_index i = 0; status == MICA_OK && i < count; i++) {
            int64_t class = y.dtype == MICA_I64 ? ((int64_t *)y.data)[i] : ((int32_t *)y.data)[i];
            if (class >= 0 && class < (int64_t)classes)
                counts[class]++;
        }
    }
    feed_close(t->ctx, &all);
    free(x.data);
    free(y.data);
    return status;
}

/* All classes have the same sum of weights, and the mean weight of a sample is 1. */
static mica_status balance(const training *t, float *weights, mica_index classes)
{
    double *counts = take((size_t)classes, sizeof *counts), all = 0, present = 0;
    mica_status status = count_classes(t, counts, classes);
    for (mica_index i = 0; i < classes; i++) {
        all += counts[i];
        present += counts[i] > 0;
    }
    for (mica_index i = 0; i < classes; i++)
        if (counts[i] > 0)
            weights[i] = (float)(all / (present * counts[i]));
    free(counts);
    return status;
}

/* The number of a class by its name, or by its number where it has none; -1: there is no such class. */
static mica_index find_class(const training *t, const char *name, size_t length, mica_index classes)
{
    const meaning *m = &t->meaning;
    for (int i = 0; i < m->class_count; i++)
        if (strlen(m->class_names[i]) == length && memcmp(m->class_names[i], name, length) == 0)
            return i;
    char number[24], *end;
    if (m->class_count > 0 || length == 0 || length >= sizeof number)
        return -1;
    memcpy(number, name, length);
    number[length] = '\0';
    long long class = strtoll(number, &end, 10);
    return *end == '\0' && class >= 0 && class < (long long)classes ? (mica_index) class : -1;
}

/* "NAME=W" */
static int set_weight(const training *t, float *weights, mica_index classes, const char *text)
{
    const char *equals = strrchr(text, '=');
    char *end = NULL;
    double weight = equals != NULL ? strtod(equals + 1, &end) : 0;
    if (equals == NULL || end == equals + 1 || *end != '\0' || !(weight >= (double)FLT_MIN) ||
        weight > (double)FLT_MAX)
        return usage_error(
            t->v, "--class-weight takes NAME=W with a number above 0, such as rare=5, not \"%s\"", text);
    size_t length = (size_t)(equals - text);
    mica_index class = find_class(t, text, length, classes);
    if (class >= 0) {
        weights[class] = (float)weight;
        return EXIT_OK;
    }
    char name[80];
    (void)snprintf(name, sizeof name, "%.*s", (int)length, text);
    const char *meant = t->meaning.class_count > 0 ? nearest(name, t->meaning.class_names,
                                                             (size_t)t->meaning.class_count, sizeof(char *))
                                                   : NULL;
    return usage_error(t->v, "--class-weight: unknown class \"%s\"%s%s%s", name,
                       meant != NULL ? "; did you mean \"" : "", meant != NULL ? meant : "",
                       meant != NULL ? "\"?" : "");
}

/* Rare classes first: "class weights: eel 4.2, dog 0.8, ..." */
static void tell(const training *t)
{
    enum { SHOWN = 8 };
    mica_index classes = t->class_weight_count;
    bool *told = take((size_t)classes, sizeof *told);
    fprintf(stderr, "class weights:");
    for (mica_index shown = 0; shown < classes && shown < SHOWN; shown++) {
        mica_index most = -1;
        for (mica_index i = 0; i < classes; i++)
            if (!told[i] && (most < 0 || t->class_weights[i] > t->class_weights[most]))
                most = i;
        char name[80];
        told[most] = true;
        fprintf(stderr, "%s %s %.3g", shown > 0 ? "," : "",
                class_text(name, sizeof name, t->meaning.class_names, t->meaning.class_count, (int)most),
                (double)t->class_weights[most]);
    }
    fprintf(stderr, "%s\n", classes > SHOWN ? ", ..." : "");
    free(told);
}

static int choose_weights(training *t)
{
    const train_settings *s = &t->settings;
    mica_index classes = t->info.classes;
    t->class_weights = take((size_t)classes, sizeof *t->class_weights);
    t->class_weight_count = classes;
    for (mica_index i = 0; i < classes; i++)
        t->class_weights[i] = 1.0f;
    if (s->balance && balance(t, t->class_weights, classes) != MICA_OK)
        return verb_failed(t->v, t->ctx);
    int code = EXIT_OK;
    for (size_t i = 0; i < s->class_weight.count && code == EXIT_OK; i++)
        code = set_weight(t, t->class_weights, classes, s->class_weight.item[i]);
    return code;
}

/* With --resume they are those of the checkpoint: given again, they must be the same. */
static int compare(const training *t)
{
    const saved_settings *from = &t->saved.settings;
    size_t bytes = (size_t)t->class_weight_count * sizeof(float);
    if (t->class_weight_count == from->class_weight_count &&
        memcmp(t->class_weights, from->class_weights, bytes) == 0)
        return EXIT_OK;
    return usage_error(
        t->v, "--balance and --class-weight are for a new training: %s was trained with other class weights",
        t->path);
}

bool classes_weighed(const training *t)
{
    const train_settings *s = &t->settings;
    return s->balance || s->class_weight.count > 0 ||
           (t->resumes && t->saved.settings.class_weight_count > 0);
}

int classes_weigh(training *t)
{
    const train_settings *s = &t->settings;
    if (!classes_weighed(t))
        return EXIT_OK;
    if (t->info.task != MICA_TASK_CLASSES || t->ends.target.rank != 1)
        return usage_error(t->v, "%s is for nets that tell classes apart, not for %s",
                           s->balance ? "--balance" : "--class-weight", mica_task_text(t->info.task));
    if (s->balance || s->class_weight.count > 0) {
        int code = choose_weights(t);
        if (code == EXIT_OK && t->resumes)
            code = compare(t);
        if (code != EXIT_OK)
            return code;
    } else {
        const saved_settings *from = &t->saved.settings;
        t->class_weight_count = from->class_weight_count;
        t->class_weights = take((size_t)from->class_weight_count, sizeof *t->class_weights);
        memcpy(t->class_weights, from->class_weights, (size_t)from->class_weight_count * sizeof(float));
    }
    if (!s->shared.quiet && ranks_rank() == 0)
        tell(t);
    return EXIT_OK;
}
