/* The training loop, and evaluation. */
#include <math.h>
#include <string.h>

#include <mica/fit.h>

#include "io/file.h"
#include "io/quote.h"
#include "net/net.h"
#include "tensor/tensor.h"
#include "train/loop.h"

/* ---- Batches into the net ---- */

/* An input by its name, or by its number where there is none, which has the batch as its first axis. */
static mica_status batch_input(mica_net *net, mica_tensor *out, const char *name, int number)
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
    if (out->rank < 1 || out->dim[0] != net->size[0].most)
        return mica_fail(net->ctx, MICA_ERR_SHAPE, "fit: input %s is %s: expected %td samples along axis 0",
                         MICA_QUOTE(called), MICA_SHAPE(out), net->size[0].most);
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
    MICA_TRY(batch_input(net, data, source->inputs, 0));
    return batch_input(net, targets, source->targets, 1);
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

mica_status mica_evaluate(mica_net *net, mica_score *out, const mica_source *source, const char *output)
{
    if (source == NULL || source->next == NULL || out == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "evaluate: %s",
                         out == NULL ? "out is NULL" : "no source of data");
    double loss = 0.0;
    mica_index samples = 0, rows = 0, correct = 0;
    for (;;) {
        mica_index count;
        MICA_TRY(next_batch(net, source, &count));
        if (count == 0)
            break;
        MICA_TRY(mica_net_forward(net));
        loss += (double)mica_net_loss(net) * (double)count;
        samples += count;
        mica_tensor y, targets;
        if (output == NULL)
            continue;
        MICA_TRY(mica_net_tensor(net, &y, output));
        MICA_TRY(source->targets != NULL ? mica_net_tensor(net, &targets, source->targets)
                                         : mica_net_input_tensor(net, NULL, &targets, 1));
        if (!has_classes(&y, &targets))
            continue;
        correct += count_correct(&y, &targets);
        rows += (mica_index)mica_tensor_count(&targets);
    }
    out->samples = samples;
    out->loss = samples > 0 ? loss / (double)samples : NAN;
    out->accuracy = rows > 0 ? (double)correct / (double)rows : NAN;
    return MICA_OK;
}

/* ---- Training ---- */

typedef struct fitting {
    mica_net *net;
    const mica_fit_opts *opts;
    mica_fit_result *result;
    mica_training_state state;
    double loss_sum; /* of this epoch, weighed by samples */
    mica_index samples;
    int left;     /* batches at the end of the epoch that were too few for an update */
    bool resumed; /* into the middle of this epoch */
    bool stop;
} fitting;

static mica_status write_checkpoint(fitting *f)
{
    if (f->opts->checkpoint == NULL)
        return MICA_OK;
    f->state.cursor = f->opts->train.cursor(f->opts->train.user);
    f->state.notes = f->opts->notes;
    f->state.note_count = f->opts->note_count;
    return mica_checkpoint_save(f->net, f->opts->checkpoint, &f->state);
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
        f->stop = f->result->stopped = true;
}

/* One update from up to `accumulate` batches. *count: samples; 0 at the end of an epoch. */
static mica_status one_update(fitting *f, mica_index *count)
{
    int parts = f->opts->accumulate > 1 ? f->opts->accumulate : 1;
    double loss = 0.0;
    *count = 0;
    for (int part = 0; part < parts; part++) {
        mica_index n;
        MICA_TRY(next_batch(f->net, &f->opts->train, &n));
        if (n == 0) {
            /* The epoch ended within an update: what was gathered is left, as with a dropped last batch. */
            *count = 0;
            f->left = part;
            return MICA_OK;
        }
        MICA_TRY(mica_train_accumulate(f->net, part, parts));
        loss += (double)mica_net_loss(f->net) * (double)n;
        *count += n;
    }
    loss /= (double)*count;
    if (!isfinite(loss))
        return mica_fail(f->net->ctx, MICA_ERR_DIVERGED, "the loss of step %llu is %g",
                         (unsigned long long)f->net->steps_taken + 1, loss);
    float lr = learning_rate(f);
    MICA_TRY(mica_train_update(f->net, lr));
    f->loss_sum += loss * (double)*count;
    f->samples += *count;
    f->result->steps = f->net->steps_taken;
    report(f, loss, lr, NULL, false);
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
        MICA_TRY(mica_evaluate(f->net, &f->result->validation, &opts->validation, opts->output));
        float loss = (float)f->result->validation.loss;
        bool better = loss < f->state.best_loss;
        f->state.bad_epochs = better ? 0 : f->state.bad_epochs + 1;
        f->state.best_loss = better ? loss : f->state.best_loss;
        if (opts->patience > 0 && f->state.bad_epochs >= opts->patience)
            f->stop = f->result->stopped_early = true;
    }
    report(f, f->result->train_loss, learning_rate(f), validates ? &f->result->validation : NULL, true);
    f->result->epochs++;
    f->loss_sum = 0.0;
    f->samples = 0;
    return write_checkpoint(f);
}

/* From the checkpoint, if one is there. */
static mica_status resume(fitting *f)
{
    if (!f->opts->resume || f->opts->checkpoint == NULL)
        return MICA_OK;
    if (!mica_file_exists(f->opts->checkpoint)) /* one that cannot be read is an error, not a fresh start */
        return MICA_OK;
    MICA_TRY(mica_checkpoint_load(f->net, &f->state, f->opts->checkpoint));
    f->result->epochs = f->state.cursor.epoch;
    f->result->steps = f->net->steps_taken;
    f->resumed = f->state.cursor.position > 0;
    return f->opts->train.seek(f->net->ctx, f->opts->train.user, f->state.cursor);
}

static mica_status check_fit(mica_net *net, const mica_fit_opts *o)
{
    if (o->train.next == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "fit: no source of training data");
    if (o->checkpoint != NULL && (o->train.cursor == NULL || (o->resume && o->train.seek == NULL)))
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT,
                         "fit: a checkpoint needs a source with cursor and seek");
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
    mica_training_state state = {.notes = o->notes, .note_count = o->note_count};
    return mica_checkpoint_check(net, o->checkpoint, &state);
}

mica_status mica_fit(mica_net *net, mica_fit_result *result, const mica_fit_opts *opts)
{
    if (opts == NULL || result == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "fit: %s is NULL", opts == NULL ? "opts" : "result");
    *result = (mica_fit_result){.train_loss = NAN, .validation = {NAN, NAN, 0}};
    fitting f = {.net = net, .opts = opts, .result = result, .state = {.best_loss = INFINITY}};
    MICA_TRY(check_fit(net, opts));
    MICA_TRY(resume(&f));
    uint64_t epochs = opts->epochs > 0 ? opts->epochs : 1;
    while (result->epochs < epochs && !f.stop) {
        mica_index count;
        MICA_TRY(one_update(&f, &count));
        if (count == 0)
            MICA_TRY(end_of_epoch(&f));
        else if (f.stop || (opts->checkpoint_steps > 0 && net->steps_taken % opts->checkpoint_steps == 0))
            MICA_TRY(write_checkpoint(&f));
    }
    return MICA_OK;
}
