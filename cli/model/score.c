/* Scoring a net. */
#include "cli/model/score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "cli/model/match.h"
#include "cli/model/take.h"
#include "cli/ranks.h"

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

/* The surest first; those without a probability last; else in their order. */
bool mistake_before(const scored_sample *a, const scored_sample *b)
{
    double p = isnan(a->probability) ? -1 : a->probability, q = isnan(b->probability) ? -1 : b->probability;
    return p > q || (p == q && a->number < b->number);
}

/* Puts a mistake where it belongs among the worst, if it does. */
static void keep_mistake(score *s, scored_sample m, const float *x, const normalization *n)
{
    size_t at = s->worst_count;
    while (at > 0 && mistake_before(&m, &s->worst[at - 1]))
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
static mica_index score_classes(score *s, const mica_tensor *y, const kept_batch *k, mica_index first,
                                mica_index count, const mica_netfile_info *info, const score_opts *opts,
                                float *scratch)
{
    mica_index classes = y->dim[y->rank - 1], right = 0, each = k->targets_each;
    for (mica_index r = 0; r < count * each; r++) {
        scored_sample sample = {.number = first + r / each, .label = k->targets[r]};
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

/* What a batch adds to the score. */
typedef struct tally {
    double loss, squares;
    int64_t right, rows, samples;
} tally;

/* The batch whose samples are numbered from `first` on. */
static mica_status score_batch(score *s, tally *out, mica_net *net, const mica_netfile_info *info,
                               const kept_batch *k, mica_index first, mica_index count,
                               const score_opts *opts, float *scratch)
{
    mica_tensor y;
    mica_status status = mica_net_forward(net);
    if (status == MICA_OK)
        status = net_output(&y, net, info, count);
    if (status != MICA_OK)
        return status;
    size_t rows = (size_t)(count * k->targets_each);
    *out = (tally){
        .loss = (double)mica_net_loss(net) * (double)count, .rows = (int64_t)rows, .samples = count};
    if (k->targets != NULL && mica_tensor_count(&y) != rows * (size_t)info->classes)
        return mica_fail(mica_net_context(net), MICA_ERR_SHAPE,
                         "the output \"%s\" has %zu values: expected %td for each of %zu targets",
                         info->output, mica_tensor_count(&y), info->classes, rows);
    if (k->targets != NULL)
        out->right = score_classes(s, &y, k, first, count, info, opts, scratch);
    else if (mica_tensor_count(&y) == rows)
        out->squares = squares(&y, k, count);
    return MICA_OK;
}

int rank_of_batch(const mica_net *net, mica_index number)
{
    return mica_net_keeps_states(net) ? 0 : (int)(number % ranks_count());
}

/* Own batches, each into its place among the tallies [batches]; the others are only counted. */
static mica_status walk(score *s, tally *tallies, mica_net *net, const mica_netfile_info *info, const feed *f,
                        const score_opts *opts, kept_batch *k, float *scratch)
{
    mica_context *ctx = mica_net_context(net);
    mica_tensor x, y;
    mica_status status = MICA_OK;
    mica_index first = 0, count;
    for (mica_index number = 0; status == MICA_OK && (opts->stop == NULL || !*opts->stop); number++) {
        status = mica_net_resize(net, opts->batch);
        if (status == MICA_OK)
            status = mica_net_tensor(net, &x, info->input);
        if (status == MICA_OK)
            status = mica_net_tensor(net, &y, info->target);
        if (status == MICA_OK)
            status = f->source.begin(ctx, &x, opts->batch, &count, f->source.user);
        if (status != MICA_OK || count == 0 || number == f->steps)
            break;
        if (rank_of_batch(net, number) == ranks_rank()) {
            x.dim[0] = y.dim[0] = count;
            status = f->source.rows(ctx, &x, &y, 0, f->source.user);
            if (status == MICA_OK)
                status = keep_batch(k, ctx, &x, &y, count);
            if (status == MICA_OK)
                status = mica_net_resize(net, count);
            if (status == MICA_OK)
                status = score_batch(s, &tallies[number], net, info, k, first, count, opts, scratch);
        }
        first += count;
    }
    return status;
}

/* The sums over batches, in their order, whoever scored them. */
static int add_tallies(score *s, const tally *tallies, const verb *v, const mica_net *net,
                       const mica_netfile_info *info, mica_index batches)
{
    enum { PIECE = 512 };
    tally sum = {0}, *all = take((size_t)ranks_count() * PIECE, sizeof *all);
    int code = EXIT_OK;
    for (mica_index at = 0; code == EXIT_OK && at < batches; at += PIECE) {
        mica_index piece = batches - at < PIECE ? batches - at : PIECE;
        code = ranks_gather(v, all, tallies + at, (size_t)piece * sizeof *all);
        for (mica_index i = 0; code == EXIT_OK && i < piece; i++) {
            const tally *t = &all[rank_of_batch(net, at + i) * piece + i];
            sum.loss += t->loss;
            sum.squares += t->squares;
            sum.right += t->right;
            sum.rows += t->rows;
            sum.samples += t->samples;
        }
    }
    free(all);
    bool classes = info->task == MICA_TASK_CLASSES || info->task == MICA_TASK_TEXT;
    double rows = (double)sum.rows;
    s->samples = (mica_index)sum.samples;
    s->loss = s->samples > 0 ? sum.loss / (double)s->samples : (double)NAN;
    s->accuracy = classes && rows > 0 ? (double)sum.right / rows : (double)NAN;
    s->error = info->task == MICA_TASK_REGRESSION && rows > 0 ? sqrt(sum.squares / rows) : (double)NAN;
    return code;
}

/* Room for a batch, and for what is kept. */
static mica_status prepare(score *out, kept_batch *k, mica_net *net, const mica_netfile_info *info,
                           const score_opts *opts)
{
    mica_tensor x, y;
    mica_status status = mica_net_resize(net, opts->batch);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &x, info->input);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &y, info->target);
    if (status != MICA_OK)
        return status;
    size_t batch = (size_t)x.dim[0], elements = mica_tensor_count(&x), targets = mica_tensor_count(&y);
    *k = (kept_batch){.elements = (mica_index)(elements / batch),
                      .targets_each = (mica_index)(targets / batch)};
    if (info->task == MICA_TASK_CLASSES || info->task == MICA_TASK_TEXT)
        k->targets = take(targets, sizeof *k->targets);
    else
        k->numbers = take(targets, sizeof *k->numbers);
    find_picture(out, opts->sample);
    if (out->width > 0 && k->elements == (mica_index)out->channels * out->height * out->width)
        k->inputs = take(elements, sizeof *k->inputs);
    if (info->task == MICA_TASK_CLASSES && info->classes <= SCORE_MOST_CLASSES) {
        out->classes = (int)info->classes;
        out->confusion = take((size_t)(info->classes * info->classes), sizeof *out->confusion);
    }
    return MICA_OK;
}

int score_net(score *out, const verb *v, mica_net *net, const mica_netfile_info *info, const feed *f,
              const score_opts *opts)
{
    kept_batch k = {.inputs = NULL};
    *out = (score){.accuracy = (double)NAN, .error = (double)NAN};
    tally *tallies = take((size_t)f->steps, sizeof *tallies);
    float *scratch = take((size_t)info->classes, sizeof *scratch);
    mica_status status = prepare(out, &k, net, info, opts);
    if (status == MICA_OK)
        status = walk(out, tallies, net, info, f, opts, &k, scratch);
    int code = EXIT_OK;
    if (status != MICA_OK)
        code = verb_failed(v, mica_net_context(net));
    else if (opts->stop != NULL && *opts->stop)
        code = verb_error(v, EXIT_INTERRUPTED, "interrupted; the net is saved in %s", opts->saved);
    code = ranks_agree(code);
    if (code == EXIT_OK)
        code = add_tallies(out, tallies, v, net, info, f->steps);
    if (code == EXIT_OK && ranks_count() > 1)
        code = score_merge(out, v, opts->show);
    free(k.inputs);
    free(k.targets);
    free(k.numbers);
    free(scratch);
    free(tallies);
    return code;
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
