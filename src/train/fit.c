/* The training loop, and evaluation. */
#include <math.h>
#include <string.h>

#include <mica/fit.h>

#include "io/file.h"
#include "io/quote.h"
#include "net/net.h"
#include "tensor/tensor.h"
#include "train/best.h"
#include "train/loop.h"
#include "train/ranks.h"

/* ---- Batches into the net ---- */

/* An input by its name, or by its number where there is none, which has the batch as its first axis. */
static mica_status batch_input(mica_net *net, mica_tensor *out, const char *name, int number, mica_index rows)
{
    const char *called = NULL;
    int count = mica_net_inputs(net);
    for (int i = name != NULL ? 0 : number; i < count; i++) {
        MICA_TRY(mica_net_input_tensor(net, &called, out, i));
        if (name == NULL || strcmp(called, name) == 0)
            break;
        called = NULL;
    }
    if (called == NULL && name != NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "fit: the net has no input %s", MICA_QUOTE(name));
    if (called == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT,
                         "fit: the net has %d inputs: expected two, data and targets", count);
    if (out->rank < 1 || out->dim[0] != rows)
        return mica_fail(net->ctx, MICA_ERR_SHAPE, "fit: input %s is %s: expected %td samples along axis 0",
                         MICA_QUOTE(called), MICA_SHAPE(out), rows);
    return MICA_OK;
}

/* The inputs that a source fills, at their full size, whatever the batch of the last step was. */
static mica_status full_inputs(mica_net *net, const mica_source *source, mica_tensor *data,
                               mica_tensor *targets)
{
    if (net->block == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "fit: the net is not bound");
    if (net->rows != net->size[0].most)
        MICA_TRY(mica_net_resize(net, net->size[0].most));
    MICA_TRY(batch_input(net, data, source->inputs, 0, net->size[0].most));
    return batch_input(net, targets, source->targets, 1, net->size[0].most);
}

/* Fills the inputs with the next batch and fits the net to its size. *count is 0 at the end of an epoch. */
static mica_status next_batch(mica_net *net, const mica_source *source, mica_index *count)
{
    mica_tensor data, targets;
    MICA_TRY(full_inputs(net, source, &data, &targets));
    MICA_TRY(source->next(net->ctx, &data, &targets, count, source->user));
    if (*count < 0 || *count > net->size[0].most)
        return mica_fail(net->ctx, MICA_ERR_SHAPE,
                         "fit: a source returned %td samples: expected at most %td, the batch size", *count,
                         net->size[0].most);
    if (*count > 0 && *count < net->size[0].most)
        MICA_TRY(mica_net_resize(net, *count));
    return MICA_OK;
}

/* ---- Evaluation ---- */

/* Rows of [..., C] whose largest element stands at the row's class, of [...] whole numbers. */
static mica_index count_correct(const mica_tensor *output, const mica_tensor *classes)
{
    mica_index columns = output->dim[output->rank - 1], correct = 0;
    mica_index rows = (mica_index)mica_tensor_count(classes);
    const float *row = output->data;
    for (mica_index i = 0; i < rows; i++, row += columns) {
        mica_index best = 0;
        for (mica_index j = 1; j < columns; j++)
            if (row[j] > row[best])
                best = j;
        int64_t wanted = classes->dtype == MICA_I64 ? ((const int64_t *)classes->data)[i]
                                                    : (int64_t)((const int32_t *)classes->data)[i];
        correct += best == (mica_index)wanted;
    }
    return correct;
}

/* Whether `output` can be scored against targets: f32 [..., C] against [...] of whole numbers. */
static bool has_classes(const mica_tensor *output, const mica_tensor *targets)
{
    return (targets->dtype == MICA_I32 || targets->dtype == MICA_I64) && output->rank > 0 &&
           output->dim[output->rank - 1] > 0 &&
           mica_tensor_count(output) == mica_tensor_count(targets) * (size_t)output->dim[output->rank - 1];
}

/* What one or more batches add to a score. All doubles, as mica_ranks_gather takes them. */
typedef struct tally {
    double loss, samples, rows, correct;
} tally;

enum { TALLIES = sizeof(tally) / sizeof(double) };

/* Of the batch in the net. */
static mica_status tally_batch(mica_net *net, tally *out, mica_index count, const mica_source *source,
                               const char *output)
{
    mica_tensor y, targets;
    MICA_TRY(mica_net_forward(net));
    *out = (tally){.loss = (double)mica_net_loss(net) * (double)count, .samples = (double)count};
    if (output == NULL)
        return MICA_OK;
    MICA_TRY(mica_net_tensor(net, &y, output));
    MICA_TRY(source->targets != NULL ? mica_net_tensor(net, &targets, source->targets)
                                     : mica_net_input_tensor(net, NULL, &targets, 1));
    if (!has_classes(&y, &targets))
        return MICA_OK;
    out->correct = (double)count_correct(&y, &targets);
    out->rows = (double)mica_tensor_count(&targets);
    return MICA_OK;
}

static void add_tally(tally *sum, const tally *t)
{
    sum->loss += t->loss;
    sum->samples += t->samples;
    sum->rows += t->rows;
    sum->correct += t->correct;
}

static mica_score score_of(const tally *t)
{
    return (mica_score){.samples = (mica_index)t->samples,
                        .loss = t->samples > 0 ? t->loss / t->samples : NAN,
                        .accuracy = t->rows > 0 ? t->correct / t->rows : NAN};
}

mica_status mica_evaluate(mica_net *net, mica_score *out, const mica_source *source, const char *output)
{
    if (source == NULL || source->next == NULL || out == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "evaluate: %s",
                         out == NULL ? "out is NULL" : "no source of data");
    tally sum = {0};
    for (;;) {
        mica_index count;
        tally its;
        MICA_TRY(next_batch(net, source, &count));
        if (count == 0)
            break;
        MICA_TRY(tally_batch(net, &its, count, source, output));
        add_tally(&sum, &its);
    }
    *out = score_of(&sum);
    return MICA_OK;
}

/* Writes rows of the current batch to the inputs; the net has been resized to them. */
static mica_status fill_rows(mica_net *net, const mica_source *source, mica_index first, mica_index count)
{
    mica_tensor data, targets;
    MICA_TRY(batch_input(net, &data, source->inputs, 0, count));
    MICA_TRY(batch_input(net, &targets, source->targets, 1, count));
    return source->rows(net->ctx, &data, &targets, first, source->user);
}

/* The next batches, one for each rank. *ended: none is left. */
static mica_status tally_turn(mica_ranks *ranks, tally *out, bool *ended, const mica_source *source,
                              const char *output)
{
    mica_net *net = ranks->net;
    mica_tensor data, targets;
    *out = (tally){0};
    MICA_TRY(full_inputs(net, source, &data, &targets));
    for (int rank = 0; rank < ranks->wire.ranks; rank++) {
        mica_index rows;
        MICA_TRY(source->begin(net->ctx, &data, data.dim[0], &rows, source->user));
        *ended = rows == 0;
        if (*ended)
            break; /* on all ranks */
        if (rank != ranks->wire.rank)
            continue;
        if (rows < net->size[0].most)
            MICA_TRY(mica_net_resize(net, rows));
        MICA_TRY(fill_rows(net, source, 0, rows));
        MICA_TRY(tally_batch(net, out, rows, source, output));
    }
    return MICA_OK;
}

mica_status mica_ranks_evaluate(mica_ranks *ranks, mica_score *out, const mica_source *source,
                                const char *output)
{
    if (source == NULL || source->begin == NULL || source->rows == NULL || out == NULL)
        return mica_fail(ranks->ctx, MICA_ERR_ARGUMENT, "ranks_evaluate: %s",
                         out == NULL ? "out is NULL" : "no source of data with begin and rows");
    tally sum = {0};
    for (bool ended = false; !ended;) {
        tally own, *all = (tally *)(void *)ranks->all; /* a report has room for it */
        MICA_TRY(mica_ranks_agree(ranks, tally_turn(ranks, &own, &ended, source, output)));
        MICA_TRY(mica_ranks_gather(ranks, &all->loss, &own.loss, TALLIES));
        for (int rank = 0; rank < ranks->wire.ranks; rank++)
            add_tally(&sum, &all[rank]);
    }
    *out = score_of(&sum);
    return MICA_OK;
}

/* ---- Training ---- */

typedef struct fitting {
    mica_net *net;
    const mica_fit_opts *opts;
    mica_ranks *ranks; /* NULL: this process alone */
    mica_fit_result *result;
    mica_training_state state;
    double loss_sum; /* of this epoch, weighed by samples */
    mica_index samples;
    int left;        /* batches at the end of the epoch that were too few for an update */
    bool resumed;    /* into the middle of this epoch */
    bool wants_stop; /* the report does */
    bool stop;
} fitting;

static mica_status write_checkpoint(fitting *f)
{
    if (f->opts->checkpoint == NULL)
        return MICA_OK;
    f->state.cursor = f->opts->train.cursor(f->opts->train.user);
    f->state.notes = f->opts->notes;
    f->state.note_count = f->opts->note_count;
    return f->ranks != NULL ? mica_ranks_save(f->ranks, f->opts->checkpoint, &f->state)
                            : mica_checkpoint_save(f->net, f->opts->checkpoint, &f->state);
}

static float learning_rate(const fitting *f)
{
    return f->opts->schedule.lr != 0.0f ? mica_schedule_lr(&f->opts->schedule, f->net->steps_taken)
                                        : mica_optimizer_lr(&f->net->optimizer);
}

static void report(fitting *f, double loss, float lr, const mica_score *validation, bool epoch_done)
{
    mica_progress progress = {.epoch = f->result->epochs,
                              .step = f->net->steps_taken,
                              .loss = loss,
                              .mean_loss = f->samples > 0 ? f->loss_sum / (double)f->samples : NAN,
                              .lr = lr,
                              .samples = f->samples,
                              .epoch_done = epoch_done,
                              .validation = validation};
    if (f->opts->report != NULL && !f->opts->report(f->opts->user, &progress))
        f->wants_stop = f->result->stopped = true;
    if (f->ranks == NULL) /* otherwise all ranks stop after the same step */
        f->stop = f->stop || f->wants_stop;
}

/* One part of an update, on the next batch; the last part makes it. *count: samples; 0 at the end of an epoch. */
static mica_status run_part(fitting *f, int part, int parts, float lr, mica_index *count, double *loss)
{
    MICA_TRY(next_batch(f->net, &f->opts->train, count));
    if (*count == 0)
        return MICA_OK;
    MICA_TRY(mica_train_accumulate(f->net, part, parts));
    *loss = (double)mica_net_loss(f->net);
    if (!isfinite(*loss))
        return mica_fail(f->net->ctx, MICA_ERR_DIVERGED, "the loss of step %llu is %g",
                         (unsigned long long)f->net->steps_taken + 1, *loss);
    return part + 1 == parts ? mica_train_update(f->net, lr) : MICA_OK;
}

/* A mica_ranks_fill_fn */
static mica_status fill_share(mica_net *net, mica_index first, mica_index count, void *user)
{
    const fitting *f = user;
    return fill_rows(net, &f->opts->train, first, count);
}

/* The same for ranks. */
static mica_status run_part_by_ranks(fitting *f, int part, int parts, float lr, mica_index *count,
                                     double *loss)
{
    const mica_source *source = &f->opts->train;
    mica_ranks_outcome outcome;
    mica_tensor data, targets;
    *count = 1;
    mica_status status = full_inputs(f->net, source, &data, &targets);
    if (status == MICA_OK)
        status = source->begin(f->net->ctx, &data, f->ranks->batch, count, source->user);
    /* Also at the end of an epoch: where that is not the same on all ranks, none waits for the others. */
    MICA_TRY(mica_ranks_step(f->ranks, &outcome,
                             &(mica_ranks_step_opts){.rows = *count,
                                                     .fill = fill_share,
                                                     .user = f,
                                                     .part = part,
                                                     .parts = parts,
                                                     .lr = lr,
                                                     .status = status,
                                                     .stop = f->wants_stop}));
    *loss = outcome.loss;
    f->stop = f->result->stopped = f->stop || outcome.stop;
    return MICA_OK;
}

/* One update from up to `accumulate` batches. *count: samples; 0 at the end of an epoch. */
static mica_status one_update(fitting *f, mica_index *count)
{
    int parts = f->opts->accumulate > 1 ? f->opts->accumulate : 1;
    float lr = learning_rate(f);
    double loss = 0.0;
    *count = 0;
    for (int part = 0; part < parts; part++) {
        mica_index n;
        double its = 0.0;
        MICA_TRY(f->ranks != NULL ? run_part_by_ranks(f, part, parts, lr, &n, &its)
                                  : run_part(f, part, parts, lr, &n, &its));
        if (n == 0) {
            /* The epoch ended within an update: what was gathered is left, as with a dropped last batch. */
            *count = 0;
            f->left = part;
            return MICA_OK;
        }
        loss += its * (double)n;
        *count += n;
    }
    loss /= (double)*count;
    f->loss_sum += loss * (double)*count;
    f->samples += *count;
    f->result->steps = f->net->steps_taken;
    report(f, loss, lr, NULL, false);
    return MICA_OK;
}

static void tell_best(fitting *f)
{
    f->result->best_epoch = f->state.best_epoch;
    f->result->best_loss = f->state.best_epoch > 0 ? (double)f->state.best_loss : NAN;
    f->result->best_accuracy = f->state.best_epoch > 0 ? f->state.best_accuracy : NAN;
}

/* The epoch that has just been validated is the best. */
static void keep_best(fitting *f)
{
    mica_best_keep(f->net);
    f->state.best_epoch = f->result->epochs + 1;
    f->state.best_accuracy = f->result->validation.accuracy;
    tell_best(f);
}

static uint64_t all_epochs(const fitting *f) { return f->opts->epochs > 0 ? f->opts->epochs : 1; }

/* Where the training has ended, the best weights are the net's. */
static mica_status end_with_best(fitting *f)
{
    if (f->net->best == NULL || (f->result->epochs < all_epochs(f) && !f->result->stopped_early))
        return MICA_OK;
    if (f->state.best_epoch > 0)
        MICA_TRY(mica_best_restore(f->net));
    mica_best_destroy(f->net);
    return MICA_OK;
}

static mica_status end_of_epoch(fitting *f)
{
    const mica_fit_opts *opts = f->opts;
    bool validates = opts->validation.next != NULL;
    if (f->samples == 0 && !f->resumed) /* every epoch would be like this one */
        return mica_fail(f->net->ctx, MICA_ERR_ARGUMENT,
                         "fit: an epoch has %d batches, but an update accumulates %d: no update would happen",
                         f->left, opts->accumulate > 1 ? opts->accumulate : 1);
    f->resumed = false;
    f->result->train_loss = f->samples > 0 ? f->loss_sum / (double)f->samples : NAN;
    if (validates) {
        MICA_TRY(f->ranks != NULL
                     ? mica_ranks_evaluate(f->ranks, &f->result->validation, &opts->validation, opts->output)
                     : mica_evaluate(f->net, &f->result->validation, &opts->validation, opts->output));
        float loss = (float)f->result->validation.loss;
        bool better = loss < f->state.best_loss;
        f->state.bad_epochs = better ? 0 : f->state.bad_epochs + 1;
        f->state.best_loss = better ? loss : f->state.best_loss;
        if (better && f->net->best != NULL)
            keep_best(f);
        if (opts->patience > 0 && f->state.bad_epochs >= opts->patience)
            f->stop = f->result->stopped_early = true;
    }
    report(f, f->result->train_loss, learning_rate(f), validates ? &f->result->validation : NULL, true);
    f->result->epochs++;
    f->loss_sum = 0.0;
    f->samples = 0;
    mica_status status = end_with_best(f);
    MICA_TRY(f->ranks != NULL ? mica_ranks_agree(f->ranks, status) : status);
    return write_checkpoint(f);
}

/* From the checkpoint, if one is there. */
static mica_status resume(fitting *f)
{
    if (!f->opts->resume || f->opts->checkpoint == NULL)
        return MICA_OK;
    bool there = mica_file_exists(f->opts->checkpoint);
    if (f->ranks != NULL)
        MICA_TRY(mica_ranks_same(f->ranks, there, f->opts->checkpoint));
    if (!there) /* one that cannot be read is an error, not a fresh start */
        return MICA_OK;
    MICA_TRY(f->ranks != NULL ? mica_ranks_load(f->ranks, &f->state, f->opts->checkpoint)
                              : mica_checkpoint_load(f->net, &f->state, f->opts->checkpoint));
    f->result->epochs = f->state.cursor.epoch;
    f->result->steps = f->net->steps_taken;
    f->resumed = f->state.cursor.position > 0;
    if (f->net->best == NULL)
        f->state.best_epoch = 0;
    tell_best(f);
    if (f->opts->patience > 0 && f->state.bad_epochs >= f->opts->patience)
        f->stop = f->result->stopped_early = true; /* it had ended */
    mica_status status = f->opts->train.seek(f->net->ctx, f->opts->train.user, f->state.cursor);
    return f->ranks != NULL ? mica_ranks_agree(f->ranks, status) : status;
}

static mica_status check_fit(mica_net *net, const mica_fit_opts *o)
{
    if (o->train.next == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "fit: no source of training data");
    if (o->checkpoint != NULL && (o->train.cursor == NULL || (o->resume && o->train.seek == NULL)))
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT,
                         "fit: a checkpoint needs a source with cursor and seek");
    if (o->ranks != NULL &&
        (o->train.begin == NULL || o->train.rows == NULL ||
         (o->validation.next != NULL && (o->validation.begin == NULL || o->validation.rows == NULL))))
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "fit: ranks need sources with begin and rows");
    if (o->ranks != NULL && o->ranks->net != net)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "fit: the ranks were created for another net");
    if (o->accumulate < 0)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "fit: accumulate is %d", o->accumulate);
    if (net->block == NULL || !net->has_optimizer)
        return mica_fail(net->ctx, MICA_ERR_STATE,
                         "fit: the net is not bound, or was compiled without an optimizer");
    mica_tensor output;
    if (o->output != NULL)
        MICA_TRY(mica_net_tensor(net, &output, o->output));
    if (o->checkpoint == NULL)
        return MICA_OK;
    mica_training_state state = {.notes = o->notes, .note_count = o->note_count, .best_epoch = 1};
    return o->ranks != NULL ? mica_ranks_check(o->ranks, o->checkpoint, &state)
                            : mica_checkpoint_check(net, o->checkpoint, &state);
}

static mica_status run_epochs(fitting *f)
{
    const mica_fit_opts *opts = f->opts;
    MICA_TRY(resume(f));
    mica_status status = end_with_best(f); /* nothing may be left to do */
    MICA_TRY(f->ranks != NULL ? mica_ranks_agree(f->ranks, status) : status);
    while (f->result->epochs < all_epochs(f) && !f->stop) {
        mica_index count;
        MICA_TRY(one_update(f, &count));
        if (count == 0)
            MICA_TRY(end_of_epoch(f));
        else if (f->stop || (opts->checkpoint_steps > 0 && f->net->steps_taken % opts->checkpoint_steps == 0))
            MICA_TRY(write_checkpoint(f));
    }
    return MICA_OK;
}

mica_status mica_fit(mica_net *net, mica_fit_result *result, const mica_fit_opts *opts)
{
    if (opts == NULL || result == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "fit: %s is NULL", opts == NULL ? "opts" : "result");
    *result = (mica_fit_result){
        .train_loss = NAN, .validation = {NAN, NAN, 0}, .best_loss = NAN, .best_accuracy = NAN};
    fitting f = {.net = net,
                 .opts = opts,
                 .ranks = opts->ranks,
                 .result = result,
                 .state = {.best_loss = INFINITY, .best_accuracy = NAN}};
    bool keeps = (opts->keep_best || opts->patience > 0) && opts->validation.next != NULL;
    mica_status status = keeps && net->block != NULL ? mica_best_create(net) : MICA_OK;
    if (status == MICA_OK)
        status = check_fit(net, opts);
    if (f.ranks != NULL)
        status = mica_ranks_agree(f.ranks, status);
    if (status == MICA_OK)
        status = run_epochs(&f);
    mica_best_destroy(net);
    return status;
}
