/* The steps of a training, and what is measured at each. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/clock.h"
#include "cli/model/take.h"
#include "cli/model/training.h"
#include "cli/picture/text.h"

/* ---- Signals: the first asks to stop after the step, the second ends the program at once ---- */

volatile sig_atomic_t interruptions;

static void on_signal(int number)
{
    (void)number;
    interruptions = 1;
}

bool interrupted(void) { return interruptions != 0; }

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    action.sa_flags = (int)SA_RESETHAND;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGUSR1, &action, NULL); /* the one that mpirun passes on without killing anybody */
}

/* ---- A step begins where its batch is asked for, and ends where it is reported ---- */

static void begin_step(training *t)
{
    if (t->in_step)
        return;
    t->in_step = true;
    if (t->watch != NULL)
        watch_step(t->watch, true);
    t->began_step = clock_seconds();
    t->before_step = heap_now();
    t->before_use = ranks_use();
}

static void end_step(training *t)
{
    uint64_t wire_calls = ranks_use().heap_calls - t->before_use.heap_calls;
    t->wire_calls += wire_calls;
    t->heap_calls += heap_now().calls - t->before_step.calls - wire_calls;
    t->step_seconds += clock_seconds() - t->began_step;
    t->steps_done++;
    t->in_step = false;
    if (t->watch != NULL)
        watch_step(t->watch, false);
}

static mica_status next(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                        mica_index *count, void *user)
{
    training *t = user;
    begin_step(t);
    mica_status status = t->train.source.next(ctx, inputs, targets, count, t->train.source.user);
    if (status == MICA_OK)
        measure_targets(&t->train_measure, targets, *count);
    return status;
}

/* A batch for validation: asked for where that before it has been run. */
static mica_status next_validation(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                                   mica_index *count, void *user)
{
    training *t = user;
    measure_outputs(&t->validation_measure, t->net);
    mica_status status = t->validation.source.next(ctx, inputs, targets, count, t->validation.source.user);
    if (status == MICA_OK)
        measure_targets(&t->validation_measure, targets, *count);
    return status;
}

/* The same for ranks: the batch of all, and the rows of a share. */
static mica_status begin(mica_context *ctx, const mica_tensor *inputs, mica_index batch, mica_index *count,
                         void *user)
{
    training *t = user;
    begin_step(t);
    return t->train.source.begin(ctx, inputs, batch, count, t->train.source.user);
}

static mica_status rows(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                        mica_index first, void *user)
{
    training *t = user;
    return t->train.source.rows(ctx, inputs, targets, first, t->train.source.user);
}

static mica_cursor cursor(const void *user)
{
    const training *t = user;
    return t->train.source.cursor(t->train.source.user);
}

static mica_status seek(mica_context *ctx, void *user, mica_cursor to)
{
    training *t = user;
    return t->train.source.seek(ctx, t->train.source.user, to);
}

/* ---- What is kept and told of it ---- */

static void add_point(curve *c, double x, double y)
{
    if (c->count == CURVE_POINTS)
        return;
    c->x[c->count] = x;
    c->y[c->count++] = y;
}

/* Means over curve_stride steps. */
static void keep_point(training *t, const mica_progress *p, double metric)
{
    double epoch = (double)p->step / (double)(t->train.steps > 0 ? t->train.steps : 1);
    t->curve_sum[0] += p->loss;
    t->curve_weight[0]++;
    if (!isnan(metric)) {
        t->curve_sum[1] += metric;
        t->curve_weight[1]++;
    }
    if (t->steps_done % t->curve_stride != 0)
        return;
    add_point(&t->train_loss, epoch, t->curve_sum[0] / t->curve_weight[0]);
    if (t->curve_weight[1] > 0)
        add_point(&t->train_metric, epoch, t->curve_sum[1] / t->curve_weight[1]);
    add_point(&t->learning_rate, epoch, (double)p->lr);
    for (int i = 0; i < 2; i++)
        t->curve_sum[i] = t->curve_weight[i] = 0;
}

/* "rmse" of a regression, "accuracy" of others. */
static void tell_metric(const training *t, const char *before, double metric)
{
    bool rmse = t->train_measure.kind == MEASURE_RMSE;
    printf(", \"%saccuracy\": ", before);
    put_json_number(stdout, rmse ? (double)NAN : metric);
    if (!rmse)
        return;
    printf(", \"%srmse\": ", before);
    put_json_number(stdout, metric);
}

static void tell_step(const training *t, const mica_progress *p, double metric)
{
    if (!t->settings.shared.json)
        return;
    printf("{\"event\": \"step\", \"epoch\": %llu, \"step\": %llu, \"loss\": ",
           (unsigned long long)p->epoch + 1, (unsigned long long)p->step);
    put_json_number(stdout, p->loss);
    tell_metric(t, "", metric);
    printf(", \"lr\": ");
    put_json_number(stdout, (double)p->lr);
    printf("}\n");
    (void)fflush(stdout); /* whoever follows the run sees each step as it is done */
}

static void tell_epoch(const training *t, const mica_progress *p, double metric)
{
    if (!t->settings.shared.json)
        return;
    printf("{\"event\": \"epoch\", \"epoch\": %llu, \"step\": %llu, \"loss\": ",
           (unsigned long long)p->epoch + 1, (unsigned long long)p->step);
    put_json_number(stdout, p->mean_loss);
    printf(", \"validation_loss\": ");
    put_json_number(stdout, p->validation != NULL ? p->validation->loss : (double)NAN);
    tell_metric(t, "validation_", metric);
    printf("}\n");
    (void)fflush(stdout);
}

static bool report_progress(void *user, const mica_progress *p)
{
    training *t = user;
    if (p->epoch_done) {
        t->in_step = false;
        if (t->watch != NULL)
            t->watch->on = false;
        double epoch = (double)p->epoch + 1, metric = measure_take(&t->validation_measure);
        if (isnan(metric) && p->validation != NULL) /* ranks measure classes only */
            metric = p->validation->accuracy;
        progress_epoch(&t->progress, p, (uint64_t)p->samples, metric);
        tell_epoch(t, p, metric);
        if (p->validation != NULL) {
            add_point(&t->validation_loss, epoch, p->validation->loss);
            add_point(&t->validation_metric, epoch, metric);
        }
        return !interrupted();
    }
    end_step(t);
    measure_outputs(&t->train_measure, t->net);
    double metric = measure_take(&t->train_measure);
    progress_step(&t->progress, p, metric);
    tell_step(t, p, metric);
    keep_point(t, p, metric);
    return !interrupted();
}

/* ---- All of it ---- */

static uint64_t steps_before(const training *t)
{
    const char *text = t->resumes ? saved_text(&t->saved, "steps") : NULL;
    return text != NULL ? strtoull(text, NULL, 16) : 0;
}

static void prepare(training *t)
{
    uint64_t before = steps_before(t), epochs = (uint64_t)t->settings.epochs,
             all = epochs * (uint64_t)t->train.steps;
    if (ranks_rank() > 0)
        t->settings.shared.quiet = true; /* rank 0 speaks for all */
    measure_open(&t->train_measure, &t->info, &t->ends, &t->meaning.units);
    measure_open(&t->validation_measure, &t->info, &t->ends, &t->meaning.units);
    t->curve_stride = (all > before ? all - before : 0) / CURVE_POINTS + 1;
    if (t->settings.report != NULL || t->settings.trace != NULL)
        t->watch = watch_begin(t->net);
    progress_begin(&t->progress, &t->settings.shared, epochs, (uint64_t)t->train.steps,
                   mica_net_plan(t->net)->total, before);
    t->progress.rmse = t->train_measure.kind == MEASURE_RMSE;
    catch_signals();
}

/* What the program ends with where the training failed. Files are read before the first step and written after. */
static int failed(training *t, mica_status status)
{
    bool reading = t->steps_done == 0 && t->resumes;
    if (status == MICA_ERR_DIVERGED)
        return verb_error(t->v, EXIT_DIVERGED, "%s; a lower --lr than %g may help", mica_error(t->ctx),
                          t->settings.lr);
    return verb_error(t->v, reading ? EXIT_FILE : EXIT_FAILED, "%s", mica_error(t->ctx));
}

/* Heap calls in the steps of all ranks, for the one that tells of them. */
static mica_status add_heap_calls(training *t)
{
    size_t ranks = (size_t)ranks_count();
    double own[] = {(double)t->heap_calls, (double)t->wire_calls}, *all = take(ranks, sizeof own);
    mica_status status = mica_ranks_gather(t->ranks, all, own, 2);
    for (size_t rank = 0; rank < ranks && status == MICA_OK; rank++)
        if ((int)rank != ranks_rank()) {
            t->heap_calls += (uint64_t)all[2 * rank];
            t->wire_calls += (uint64_t)all[2 * rank + 1];
        }
    free(all);
    return status;
}

int training_run(training *t)
{
    prepare(t);
    mica_fit_opts fit = {
        .train = {.next = next, .begin = begin, .rows = rows, .cursor = cursor, .seek = seek, .user = t},
        .ranks = t->ranks,
        .output = t->info.task == MICA_TASK_CLASSES || t->info.task == MICA_TASK_TEXT ? t->info.output : NULL,
        .epochs = (uint64_t)t->settings.epochs,
        .schedule = t->schedule,
        .checkpoint = t->path[0] != '\0' ? t->path : NULL,
        .checkpoint_steps = (uint64_t)t->settings.checkpoint_steps,
        .resume = t->resumes,
        .notes = t->notes.list,
        .note_count = t->notes.count,
        .patience = (int)t->settings.patience,
        .keep_best = t->settings.folds <= 0, /* a fold must not choose the net that it scores */
        .report = report_progress,
        .user = t};
    if (t->validation.samples > 0 && t->ranks != NULL)
        fit.validation = t->validation.source;
    else if (t->validation.samples > 0)
        fit.validation = (mica_source){.next = next_validation, .user = t};
    fit.train.inputs = fit.validation.inputs = t->info.input;
    fit.train.targets = fit.validation.targets = t->info.target;
    mica_status status = mica_fit(t->net, &t->result, &fit);
    progress_clear(&t->progress);
    if (t->watch != NULL)
        watch_end(t->watch, t->net);
    if (status == MICA_OK && t->ranks != NULL)
        status = add_heap_calls(t);
    if (status != MICA_OK)
        return failed(t, status);
    if (!t->result.stopped && !interrupted()) /* here; or on another rank */
        return EXIT_OK;
    if (t->path[0] == '\0')
        return verb_error(t->v, EXIT_INTERRUPTED, "interrupted in fold %d", t->fold + 1);
    return verb_error(
        t->v, EXIT_INTERRUPTED,
        "interrupted after step %llu; --resume continues from %s:\n  mica train --checkpoint %s --resume",
        (unsigned long long)t->result.steps, t->path, t->folder);
}
