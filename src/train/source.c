/* Sources of batches for the training loop. */
#include <mica/fit.h>

static mica_status batches_next(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                                mica_index *count, void *user)
{
    return mica_batches_next(ctx, inputs, targets, count, user);
}

static mica_cursor batches_cursor(const void *user) { return mica_batches_cursor(user); }

static mica_status batches_seek(mica_context *ctx, void *user, mica_cursor cursor)
{
    return mica_batches_seek(ctx, user, cursor);
}

mica_source mica_source_of_batches(mica_batches *batches)
{
    return (mica_source){
        .next = batches_next, .cursor = batches_cursor, .seek = batches_seek, .user = batches};
}

/* ---- Text ---- */

static mica_status end_epoch(mica_text_source *text, mica_index *count)
{
    text->at.epoch++;
    text->at.position = 0;
    *count = 0;
    return MICA_OK;
}

/* Windows one after the other; the last batch may have fewer rows. */
static mica_status next_in_order(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                                 mica_index *count, mica_text_source *text)
{
    mica_index left = mica_windows_count(&text->tokens, inputs->dim[1]) - (mica_index)text->at.position;
    if (left <= 0)
        return end_epoch(text, count);
    mica_index rows = left < inputs->dim[0] ? left : inputs->dim[0];
    mica_tensor x = *inputs, y = *targets;
    x.dim[0] = y.dim[0] = rows;
    mica_status status = mica_windows_in_order(ctx, &x, &y, &text->tokens, (mica_index)text->at.position);
    if (status != MICA_OK)
        return status;
    text->at.position += (uint64_t)rows;
    *count = rows;
    return MICA_OK;
}

static mica_status text_next(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                             mica_index *count, void *user)
{
    mica_text_source *text = user;
    if (text->in_order)
        return next_in_order(ctx, inputs, targets, count, text);
    if (text->at.position >= text->steps)
        return end_epoch(text, count);
    mica_random at = mica_random_stream(text->seed, text->at.epoch * text->steps + text->at.position);
    mica_status status = mica_windows_random(ctx, inputs, targets, &text->tokens, at);
    if (status != MICA_OK)
        return status;
    text->at.position++;
    *count = inputs->dim[0];
    return MICA_OK;
}

static mica_cursor text_cursor(const void *user) { return ((const mica_text_source *)user)->at; }

static mica_status text_seek(mica_context *ctx, void *user, mica_cursor cursor)
{
    (void)ctx;
    ((mica_text_source *)user)->at = cursor;
    return MICA_OK;
}

mica_source mica_source_of_text(mica_text_source *text)
{
    return (mica_source){.next = text_next, .cursor = text_cursor, .seek = text_seek, .user = text};
}
