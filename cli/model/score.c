/* Scoring a net. */
#include "cli/model/score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "cli/model/match.h"
#include "cli/model/take.h"

void probabilities(float *out, const float *row, mica_index count, const mica_netfile_info *info)
{
    bool binary = info->task == MICA_TASK_BINARY;
    float top = -INFINITY, sum = 0;
    for (mica_index i = 0; i < count; i++)
        top = row[i] > top ? row[i] : top;
    for (mica_index i = 0; i < count; i++) {
        if (!info->logits)
            out[i] = row[i];
        else
            out[i] = binary ? 1 / (1 + expf(-row[i])) : expf(row[i] - top);
        sum += out[i];
    }
    if (info->logits && !binary)
        for (mica_index i = 0; i < count; i++)
            out[i] /= sum;
}

/* ---- Keeping samples ---- */

/* The batch as it was before the forward, which may use its memory again. */
typedef struct kept_batch {
    float *inputs;    /* [batch, elements]; NULL: not kept */
    int32_t *targets; /* [batch, targets_each]; NULL: they are no class numbers */
    float *numbers;   /* the same for targets that are numbers */
    mica_index elements, targets_each;
} kept_batch;

/* Pictures are [1 or 3, H, W] or [H, W]. */
static void find_picture(score *s, const mica_tensor *sample)
{
    enum { LEAST = 4, MOST = 512 };
    int rank = sample->rank;
    bool planes = rank == 3 && (sample->dim[0] == 1 || sample->dim[0] == 3);
    if (!planes && rank != 2)
        return;
    mica_index height = sample->dim[rank - 2], width = sample->dim[rank - 1];
    if (height < LEAST || height > MOST || width < LEAST || width > MOST)
        return;
    s->channels = planes ? (int)sample->dim[0] : 1;
    s->height = (int)height;
    s->width = (int)width;
}

/* A normalized sample [channels, H, W] as bytes [H, W, channels]. */
static unsigned char *pixels_of(const score *s, const float *x, const normalization *n)
{
    if (s->width == 0 || x == NULL)
        return NULL;
    size_t plane = (size_t)s->width * (size_t)s->height;
    unsigned char *out = take(plane * (size_t)s->channels, 1);
    for (int c = 0; c < s->channels; c++) {
        mica_index at = n->channels > 1 ? c : 0;
        float deviation = n->channels > 0 ? n->deviation[at] : 1, mean = n->channels > 0 ? n->mean[at] : 0;
        for (size_t i = 0; i < plane; i++) {
            float value = (x[(size_t)c * plane + i] * deviation + mean) * 255;
            out[i * (size_t)s->channels + (size_t)c] = (unsigned char)(value < 0     ? 0
                                                                       : value > 255 ? 255
                                                                                     : value + 0.5f);
        }
    }
    return out;
}

/* Puts a mistake where it belongs among the worst, if it does. */
static void keep_mistake(score *s, scored_sample m, const float *x, const normalization *n)
{
    size_t at = s->worst_count;
    while (at > 0 && s->worst[at - 1].probability < m.probability)
        at--;
    if (at == SCORE_MOST_MISTAKES)
        return;
    if (s->worst_count == SCORE_MOST_MISTAKES)
        free(s->worst[--s->worst_count].pixels);
    memmove(s->worst + at + 1, s->worst + at, (s->worst_count - at) * sizeof m);
    m.pixels = pixels_of(s, x, n);
    s->worst[at] = m;
    s->worst_count++;
}

/* ---- Batches ---- */

static mica_status keep_batch(kept_batch *k, mica_context *ctx, const mica_tensor *x, const mica_tensor *y,
                              mica_index count)
{
    mica_status status = MICA_OK;
    mica_tensor from = *x, to;
    from.dim[0] = count;
    if (k->inputs != NULL) {
        status = mica_tensor_init(ctx, &to, k->inputs, MICA_F32, from.rank, from.dim);
        if (status == MICA_OK)
            status = mica_copy(ctx, &to, &from);
    }
    from = *y;
    from.dim[0] = count;
    void *targets = k->targets != NULL ? (void *)k->targets : (void *)k->numbers;
    if (status == MICA_OK)
        status = mica_tensor_init(ctx, &to, targets, k->targets != NULL ? MICA_I32 : MICA_F32, from.rank,
                                  from.dim);
    return status == MICA_OK ? mica_copy(ctx, &to, &from) : status;
}

/* One row of outputs [classes] against its class. Returns whether it is right. */
static bool score_row(score *s, const float *row, mica_index classes, const mica_netfile_info *info,
                      float *scratch, scored_sample *out)
{
    probabilities(scratch, row, classes, info);
    int best = 0;
    for (int c = 1; c < (int)classes; c++)
        best = row[c] > row[best] ? c : best;
    out->prediction = best;
    out->probability = (double)scratch[best];
    bool known = out->label >= 0 && out->label < (int)classes;
    out->label_probability = known ? (double)scratch[out->label] : 0;
    if (s->confusion != NULL && known)
        s->confusion[out->label * (int)classes + best]++;
    return best == out->label;
}

/* A batch with classes. Returns how many rows are right. */
static mica_index score_classes(score *s, const mica_tensor *y, const kept_batch *k, mica_index count,
                                const mica_netfile_info *info, const score_opts *opts, float *scratch)
{
    mica_index classes = y->dim[y->rank - 1], right = 0, each = k->targets_each;
    for (mica_index r = 0; r < count * each; r++) {
        scored_sample sample = {.number = s->samples + r / each, .label = k->targets[r]};
        bool ok = score_row(s, (const float *)y->data + r * classes, classes, info, scratch, &sample);
        right += ok;
        const float *x = k->inputs != NULL ? k->inputs + r / each * k->elements : NULL;
        if (!ok && opts->mistakes)
            keep_mistake(s, sample, x, opts->normalization);
        if (s->first_count < opts->show && s->first_count < SCORE_MOST_MISTAKES) {
            sample.pixels = pixels_of(s, x, opts->normalization);
            s->first[s->first_count++] = sample;
        }
    }
    return right;
}

static double squares(const mica_tensor *y, const kept_batch *k, mica_index count)
{
    double sum = 0;
    for (mica_index i = 0; i < count * k->targets_each; i++) {
        double d = (double)((const float *)y->data)[i] - (double)k->numbers[i];
        sum += d * d;
    }
    return sum;
}

typedef struct sums {
    double loss, squares;
    mica_index right, rows;
} sums;

static mica_status score_batch(score *s, sums *sum, mica_net *net, const mica_netfile_info *info,
                               const kept_batch *k, mica_index count, const score_opts *opts, float *scratch)
{
    mica_tensor y;
    mica_status status = mica_net_forward(net);
    if (status == MICA_OK)
        status = net_output(&y, net, info, count);
    if (status != MICA_OK)
        return status;
    sum->loss += (double)mica_net_loss(net) * (double)count;
    size_t rows = (size_t)(count * k->targets_each);
    if (k->targets != NULL && mica_tensor_count(&y) != rows * (size_t)info->classes)
        return mica_fail(mica_net_context(net), MICA_ERR_SHAPE,
                         "the output \"%s\" has %zu values: expected %td for each of %zu targets",
                         info->output, mica_tensor_count(&y), info->classes, rows);
    if (k->targets != NULL)
        sum->right += score_classes(s, &y, k, count, info, opts, scratch);
    else if (mica_tensor_count(&y) == (size_t)(count * k->targets_each))
        sum->squares += squares(&y, k, count);
    sum->rows += count * k->targets_each;
    s->samples += count;
    return MICA_OK;
}

static mica_status walk(score *s, mica_net *net, const mica_netfile_info *info, const feed *f,
                        const score_opts *opts, kept_batch *k, float *scratch)
{
    mica_context *ctx = mica_net_context(net);
    sums sum = {0};
    mica_tensor x, y;
    mica_status status = MICA_OK;
    for (mica_index count = 1; status == MICA_OK && (opts->stop == NULL || !*opts->stop);) {
        status = mica_net_resize(net, opts->batch);
        if (status == MICA_OK)
            status = mica_net_tensor(net, &x, info->input);
        if (status == MICA_OK)
            status = mica_net_tensor(net, &y, info->target);
        if (status == MICA_OK)
            status = f->source.next(ctx, &x, &y, &count, f->source.user);
        if (status != MICA_OK || count == 0)
            break;
        status = keep_batch(k, ctx, &x, &y, count);
        if (status == MICA_OK)
            status = mica_net_resize(net, count);
        if (status == MICA_OK)
            status = score_batch(s, &sum, net, info, k, count, opts, scratch);
    }
    double rows = (double)sum.rows;
    s->loss = s->samples > 0 ? sum.loss / (double)s->samples : (double)NAN;
    s->accuracy = k->targets != NULL && rows > 0 ? (double)sum.right / rows : (double)NAN;
    s->error = info->task == MICA_TASK_REGRESSION && rows > 0 ? sqrt(sum.squares / rows) : (double)NAN;
    return status;
}

mica_status score_net(score *out, mica_net *net, const mica_netfile_info *info, const feed *f,
                      const score_opts *opts)
{
    *out = (score){.accuracy = (double)NAN, .error = (double)NAN};
    mica_tensor x, y;
    mica_status status = mica_net_resize(net, opts->batch);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &x, info->input);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &y, info->target);
    if (status != MICA_OK)
        return status;
    size_t batch = (size_t)x.dim[0], elements = mica_tensor_count(&x), targets = mica_tensor_count(&y);
    kept_batch k = {.elements = (mica_index)(elements / batch),
                    .targets_each = (mica_index)(targets / batch)};
    bool classes = info->task == MICA_TASK_CLASSES || info->task == MICA_TASK_TEXT;
    if (classes)
        k.targets = take(targets, sizeof *k.targets);
    else
        k.numbers = take(targets, sizeof *k.numbers);
    find_picture(out, opts->sample);
    if (out->width > 0 && k.elements == (mica_index)out->channels * out->height * out->width)
        k.inputs = take(elements, sizeof *k.inputs);
    if (info->task == MICA_TASK_CLASSES && info->classes <= SCORE_MOST_CLASSES) {
        out->classes = (int)info->classes;
        out->confusion = take((size_t)(info->classes * info->classes), sizeof *out->confusion);
    }
    float *scratch = take((size_t)info->classes, sizeof *scratch);
    status = walk(out, net, info, f, opts, &k, scratch);
    free(k.inputs);
    free(k.targets);
    free(k.numbers);
    free(scratch);
    return status;
}

void score_free(score *s)
{
    for (size_t i = 0; i < s->worst_count; i++)
        free(s->worst[i].pixels);
    for (size_t i = 0; i < s->first_count; i++)
        free(s->first[i].pixels);
    free(s->confusion);
    *s = (score){0};
}
