/* Parts of data in batches. */
#include "cli/model/feed.h"

/* An epoch of text is at least so many batches, however short the text. */
#define LEAST_TEXT_STEPS 50

/* Memory for rows of a large table that need no shuffling. */
#define SCORED_BYTES ((size_t)4 << 20)

double test_share(const data *d, int folds) { return d->has_test || folds > 0 ? 0 : SHARE_TEST; }

/* Text is cut, not drawn: the first tokens are for training, the last for tests. */
static mica_tensor part_of_text(const mica_tensor *tokens, mica_part part, double validation)
{
    double test = validation / 2;
    mica_index count = tokens->dim[0], first = (mica_index)((double)count * (1 - validation)),
               second = (mica_index)((double)count * (1 - test));
    mica_index from = part == MICA_PART_VALIDATION ? first : part == MICA_PART_TEST ? second : 0;
    mica_index to = part == MICA_PART_TRAIN ? first : part == MICA_PART_VALIDATION ? second : count;
    mica_tensor out = *tokens;
    out.data = (char *)tokens->data + (size_t)from * mica_dtype_bytes(tokens->dtype);
    out.dim[0] = to - from;
    return out;
}

static void open_text(feed *out, const data *d, const feed_opts *o)
{
    out->text = (mica_text_source){.tokens = part_of_text(&d->text.tokens, o->part, o->validation),
                                   .seed = o->seed,
                                   .in_order = !o->shuffled};
    out->samples = mica_windows_count(&out->text.tokens, o->length);
    out->steps = (out->samples + o->batch - 1) / o->batch;
    if (o->shuffled && out->samples > 0) {
        out->steps = out->steps > LEAST_TEXT_STEPS ? out->steps : LEAST_TEXT_STEPS;
        out->text.steps = (uint64_t)out->steps;
        out->samples = out->steps * o->batch;
    }
    out->source = mica_source_of_text(&out->text);
}

static mica_data_split split_of(const data *d, const feed_opts *o)
{
    return (mica_data_split){.part = o->part,
                             .validation = o->validation,
                             .test = test_share(d, o->folds),
                             .folds = o->folds,
                             .fold = o->fold,
                             .in_order = d->window > 0,
                             .gap = d->window > 0 ? d->window + d->horizon - 1 : 0};
}

/* A table that is read in blocks. */
static mica_status open_stream(feed *out, mica_context *ctx, const data *d, const feed_opts *o,
                               const mica_data_split *split)
{
    mica_table_stream_opts opts = {
        .batch = o->batch, .seed = o->seed, .sequential = !o->shuffled, .split = *split};
    if (!o->shuffled)
        opts.bytes = SCORED_BYTES;
    mica_status status = mica_table_stream_create(ctx, &out->stream, d->table, d->path, &opts);
    if (status != MICA_OK)
        return status;
    out->source = mica_source_of_table(out->stream);
    out->samples = mica_table_stream_samples(out->stream);
    out->steps = mica_table_stream_batches(out->stream);
    return MICA_OK;
}

mica_status feed_open(feed *out, mica_context *ctx, const data *d, const feed_opts *o)
{
    *out = (feed){0};
    if (d->is_text) {
        open_text(out, d, o);
        return MICA_OK;
    }
    bool own_test = d->has_test && o->part == MICA_PART_TEST;
    mica_data_split split = split_of(d, o);
    if (d->streamed && !own_test)
        return open_stream(out, ctx, d, o, &split);
    const normalization *n = o->normalization;
    mica_batches_opts batches = {.batch = o->batch,
                                 .seed = o->seed,
                                 .sequential = !o->shuffled,
                                 .split = split,
                                 .transform = o->transform,
                                 .scale = n->scale,
                                 .mean = n->mean,
                                 .deviation = n->deviation,
                                 .channels = n->channels};
    if (d->table != NULL && d->window == 0)
        batches.transform = mica_table_transform(d->table);
    if (own_test)
        batches.split = (mica_data_split){0};
    mica_status status = mica_batches_create(ctx, &out->batches, own_test ? &d->test : &d->samples, &batches);
    if (status != MICA_OK)
        return status;
    out->source = mica_source_of_batches(out->batches);
    out->samples = mica_batches_samples(out->batches);
    out->steps = mica_batches_count(out->batches);
    return MICA_OK;
}

mica_index feed_keep_whole(feed *f, mica_index batch)
{
    mica_index rest = f->samples % batch;
    f->samples -= rest;
    f->steps = f->samples / batch;
    return rest;
}

void feed_close(mica_context *ctx, feed *f)
{
    mica_batches_destroy(ctx, f->batches);
    mica_table_stream_destroy(ctx, f->stream);
    f->batches = NULL;
    f->stream = NULL;
}
