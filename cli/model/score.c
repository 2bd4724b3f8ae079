/* Scoring a net. */
#include "cli/model/score.h"

#include <math.h>
#include <stdlib.h>

#include "base/context.h"
#include "cli/model/match.h"
#include "cli/model/names.h"
#include "cli/model/score_parts.h"
#include "cli/model/take.h"
#include "cli/ranks.h"

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
static mica_index score_classes(scoring *sc, const mica_tensor *y, mica_index first, mica_index count)
{
    score *s = sc->s;
    const kept_batch *k = &sc->k;
    const score_opts *opts = sc->opts;
    mica_index classes = y->dim[y->rank - 1], right = 0, each = k->targets_each;
    for (mica_index r = 0; r < count * each; r++) {
        scored_sample sample = {.number = first + r / each, .label = k->targets[r]};
        const float *row = (const float *)y->data + r * classes;
        bool ok = score_row(s, row, classes, sc->info, sc->scratch, &sample);
        right += ok;
        if (sc->ranked != NULL && (sample.label == 0 || sample.label == 1))
            keep_ranked(sc, sc->info->logits ? row[1] - row[0] : row[1], sample.label == 1);
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

/* The batch whose samples are numbered from `first` on. */
static mica_status score_batch(scoring *sc, tally *out, mica_index first, mica_index count)
{
    const mica_netfile_info *info = sc->info;
    const kept_batch *k = &sc->k;
    mica_tensor y;
    mica_status status = mica_net_forward(sc->net);
    if (status == MICA_OK)
        status = net_output(&y, sc->net, info, count);
    if (status != MICA_OK)
        return status;
    size_t rows = (size_t)(count * k->targets_each), outputs = mica_tensor_count(&y);
    out->loss = (double)mica_net_loss(sc->net) * (double)count;
    out->rows = (int64_t)rows;
    out->samples = count;
    if (k->targets != NULL && outputs != rows * (size_t)info->classes)
        return mica_fail(mica_net_context(sc->net), MICA_ERR_SHAPE,
                         "the output \"%s\" has %zu values: expected %td for each of %zu targets",
                         info->output, outputs, info->classes, rows);
    if (k->targets != NULL)
        out->right = score_classes(sc, &y, first, count);
    else if (outputs == rows && info->task == MICA_TASK_BINARY)
        out->right = score_yes_no(sc, &y, count);
    else if (outputs == rows)
        score_numbers(sc, out, &y, first, count);
    return MICA_OK;
}

int rank_of_batch(const mica_net *net, mica_index number)
{
    return mica_net_keeps_states(net) ? 0 : (int)(number % ranks_count());
}

tally *tally_of(const scoring *sc, mica_index batch)
{
    return (tally *)(void *)(sc->tallies + (size_t)batch * sc->tally_bytes);
}

/* Own batches, each into its place among the tallies; the others are only counted. */
static mica_status walk(scoring *sc)
{
    const score_opts *opts = sc->opts;
    const mica_source *source = &sc->f->source;
    mica_net *net = sc->net;
    mica_context *ctx = mica_net_context(net);
    mica_tensor x, y;
    mica_status status = MICA_OK;
    mica_index first = 0, count;
    for (mica_index number = 0; status == MICA_OK && (opts->stop == NULL || !*opts->stop); number++) {
        status = mica_net_resize(net, opts->batch);
        if (status == MICA_OK)
            status = mica_net_tensor(net, &x, sc->info->input);
        if (status == MICA_OK)
            status = mica_net_tensor(net, &y, sc->info->target);
        if (status == MICA_OK)
            status = source->begin(ctx, &x, opts->batch, &count, source->user);
        if (status != MICA_OK || count == 0 || number == sc->f->steps)
            break;
        if (rank_of_batch(net, number) == ranks_rank()) {
            x.dim[0] = y.dim[0] = count;
            status = source->rows(ctx, &x, &y, 0, source->user);
            if (status == MICA_OK)
                status = keep_batch(&sc->k, ctx, &x, &y, count);
            if (status == MICA_OK)
                status = mica_net_resize(net, count);
            if (status == MICA_OK)
                status = score_batch(sc, tally_of(sc, number), first, count);
        }
        first += count;
    }
    return status;
}

/* ---- What it comes to ---- */

/* The sums over batches, in their order, whoever scored them. */
static int add_tallies(const scoring *sc, tally *sum)
{
    enum { PIECE = 512 };
    char *all = take((size_t)ranks_count() * PIECE, sc->tally_bytes);
    mica_index batches = sc->f->steps;
    int code = EXIT_OK;
    for (mica_index at = 0; code == EXIT_OK && at < batches; at += PIECE) {
        mica_index piece = batches - at < PIECE ? batches - at : PIECE;
        code = ranks_gather(sc->v, all, tally_of(sc, at), (size_t)piece * sc->tally_bytes);
        for (mica_index i = 0; code == EXIT_OK && i < piece; i++) {
            mica_index place = rank_of_batch(sc->net, at + i) * piece + i;
            const tally *t = (const tally *)(const void *)(all + (size_t)place * sc->tally_bytes);
            sum->loss += t->loss;
            sum->right += t->right;
            sum->rows += t->rows;
            sum->samples += t->samples;
            for (int g = 0; g < sc->groups; g++)
                error_sums_merge(&sum->each[g], &t->each[g]);
        }
    }
    free(all);
    return code;
}

static target_score target_score_of(const error_sums *s)
{
    double baseline = error_baseline(s); /* else that of their own mean */
    return (target_score){.rmse = error_rmse(s),
                          .mae = error_mae(s),
                          .r2 = error_r2(s),
                          .baseline = isnan(baseline) && s->count > 0 ? sqrt(s->spread / (double)s->count)
                                                                      : baseline};
}

static void finish_numbers(scoring *sc, const tally *sum)
{
    score *s = sc->s;
    s->numbers = (target_score){0};
    for (int g = 0; g < sc->groups; g++) {
        target_score t = s->each[g] = target_score_of(&sum->each[g]);
        s->numbers.rmse += t.rmse / sc->groups;
        s->numbers.mae += t.mae / sc->groups;
        s->numbers.r2 += t.r2 / sc->groups;
        s->numbers.baseline += t.baseline / sc->groups;
    }
    s->target_count = sc->k.targets_each <= SCORE_MOST_TARGETS ? sc->groups : 0;
}

/* Once the tables and lists are those of all ranks. */
static void finish(scoring *sc, const tally *sum)
{
    score *s = sc->s;
    s->samples = (mica_index)sum->samples;
    s->loss = s->samples > 0 ? sum->loss / (double)s->samples : (double)NAN;
    if (sc->groups > 0)
        finish_numbers(sc, sum);
    else if (sum->rows > 0)
        s->accuracy = (double)sum->right / (double)sum->rows;
    if (s->confusion != NULL && sum->rows > 0) {
        s->common = most_common_class(s->confusion, s->classes);
        s->common_share = (double)class_score_of(s->confusion, s->classes, s->common).count /
                          (double)sum->rows;
        s->f1 = s->task == MICA_TASK_BINARY ? class_score_of(s->confusion, 2, 1).f1
                                            : macro_f1(s->confusion, s->classes);
    }
    if (sc->ranked != NULL)
        s->auc = area_under_roc(sc->ranked, sc->yes, sc->ranked + sc->room - sc->no, sc->no);
}

/* ---- Room for a batch, and for what is kept ---- */

static void prepare_pairs(const scoring *sc)
{
    score *s = sc->s;
    bool curve = sc->opts->forecast != NULL && sc->opts->forecast->horizon > 0;
    s->pair_stride = curve ? 1 : (sc->f->samples + SCORE_MOST_PAIRS - 1) / SCORE_MOST_PAIRS;
    s->pair_samples = (sc->f->samples + s->pair_stride - 1) / s->pair_stride;
    s->pair_samples = s->pair_samples < SCORE_MOST_PAIRS ? s->pair_samples : SCORE_MOST_PAIRS;
    s->pair_targets = sc->k.targets_each < SCORE_PAIR_TARGETS ? (int)sc->k.targets_each : SCORE_PAIR_TARGETS;
    size_t count = (size_t)s->pair_samples * (size_t)s->pair_targets;
    s->pairs = take(count, sizeof *s->pairs);
    for (size_t i = 0; i < count; i++)
        s->pairs[i] = (report_pair){(double)NAN, (double)NAN, (double)NAN};
}

static void prepare_numbers(scoring *sc)
{
    bool known = sc->opts->forecast != NULL && sc->opts->forecast->baseline != NULL &&
                 sc->opts->forecast->window * sc->opts->forecast->width == sc->k.elements;
    sc->groups = sc->k.targets_each <= SCORE_MOST_TARGETS ? (int)sc->k.targets_each : 1;
    if (known)
        sc->baseline = take((size_t)sc->k.targets_each, sizeof *sc->baseline);
    if (sc->opts->pairs && sc->f->samples > 0)
        prepare_pairs(sc);
}

static void prepare_classes(scoring *sc, mica_index classes)
{
    score *s = sc->s;
    if (classes <= SCORE_MOST_CLASSES) {
        s->classes = (int)classes;
        s->confusion = take((size_t)(classes * classes), sizeof *s->confusion);
    }
    if (classes != 2)
        return;
    s->task = MICA_TASK_BINARY;
    sc->room = (size_t)sc->f->samples * (size_t)sc->k.targets_each;
    if (sc->room <= SCORE_MOST_RANKED)
        sc->ranked = take(sc->room, sizeof *sc->ranked);
}

static mica_status prepare(scoring *sc)
{
    const mica_netfile_info *info = sc->info;
    mica_tensor x, y;
    mica_status status = mica_net_resize(sc->net, sc->opts->batch);
    if (status == MICA_OK)
        status = mica_net_tensor(sc->net, &x, info->input);
    if (status == MICA_OK)
        status = mica_net_tensor(sc->net, &y, info->target);
    if (status != MICA_OK)
        return status;
    size_t batch = (size_t)x.dim[0], elements = mica_tensor_count(&x), targets = mica_tensor_count(&y);
    kept_batch *k = &sc->k;
    *k = (kept_batch){.elements = (mica_index)(elements / batch),
                      .targets_each = (mica_index)(targets / batch)};
    if (info->task == MICA_TASK_CLASSES || info->task == MICA_TASK_TEXT)
        k->targets = take(targets, sizeof *k->targets);
    else
        k->numbers = take(targets, sizeof *k->numbers);
    if (info->task == MICA_TASK_REGRESSION)
        prepare_numbers(sc);
    else if (info->task == MICA_TASK_CLASSES || info->task == MICA_TASK_BINARY)
        prepare_classes(sc, info->task == MICA_TASK_BINARY ? 2 : info->classes);
    find_picture(sc->s, sc->opts->sample);
    bool picture = sc->s->width > 0 &&
                   k->elements == (mica_index)sc->s->channels * sc->s->height * sc->s->width;
    if (picture || sc->baseline != NULL)
        k->inputs = take(elements, sizeof *k->inputs);
    sc->tally_bytes = sizeof(tally) + (size_t)sc->groups * sizeof(error_sums);
    sc->tallies = take((size_t)sc->f->steps, sc->tally_bytes);
    return MICA_OK;
}

static void release(scoring *sc)
{
    free(sc->k.inputs);
    free(sc->k.targets);
    free(sc->k.numbers);
    free(sc->scratch);
    free(sc->tallies);
    free(sc->ranked);
    free(sc->baseline);
}

static int add_up(scoring *sc)
{
    tally *sum = take(1, sc->tally_bytes);
    int code = add_tallies(sc, sum);
    if (code == EXIT_OK && ranks_count() > 1)
        code = score_merge(sc);
    if (code == EXIT_OK)
        finish(sc, sum);
    free(sum);
    return code;
}

int score_net(score *out, const verb *v, mica_net *net, const mica_netfile_info *info, const feed *f,
              const score_opts *opts)
{
    const double unknown = (double)NAN;
    *out = (score){.task = info->task,
                   .accuracy = unknown,
                   .f1 = unknown,
                   .auc = unknown,
                   .common_share = unknown,
                   .numbers = {unknown, unknown, unknown, unknown}};
    scoring sc = {.s = out, .v = v, .net = net, .info = info, .f = f, .opts = opts};
    sc.scratch = take((size_t)info->classes, sizeof *sc.scratch);
    mica_status status = prepare(&sc);
    if (status == MICA_OK)
        status = walk(&sc);
    int code = EXIT_OK;
    if (status != MICA_OK)
        code = verb_failed(v, mica_net_context(net));
    else if (opts->stop != NULL && *opts->stop)
        code = verb_error(v, EXIT_INTERRUPTED, "interrupted; the net is saved in %s", opts->saved);
    code = ranks_agree(code);
    if (code == EXIT_OK)
        code = add_up(&sc);
    release(&sc);
    return code;
}

void score_free(score *s)
{
    for (size_t i = 0; i < s->worst_count; i++)
        free(s->worst[i].pixels);
    for (size_t i = 0; i < s->first_count; i++)
        free(s->first[i].pixels);
    free(s->confusion);
    free(s->pairs);
    *s = (score){0};
}
