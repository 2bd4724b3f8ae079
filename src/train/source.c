/* Sources of batches for the training loop. */
#include <mica/fit.h>

#include "base/context.h"

/* ---- Samples ---- */

static mica_status batches_next(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                                mica_index *count, void *user)
{
    return mica_batches_next(ctx, inputs, targets, count, user);
}

static mica_status batches_begin(mica_context *ctx, const mica_tensor *inputs, mica_index batch,
                                 mica_index *count, void *user)
{
    (void)inputs, (void)batch; /* its own */
    return mica_batches_begin(ctx, count, user);
}

static mica_status batches_rows(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                                mica_index first, void *user)
{
    return mica_batches_rows(ctx, inputs, targets, first, inputs->dim[0], user);
}

static mica_cursor batches_cursor(const void *user) { return mica_batches_cursor(user); }

static mica_status batches_seek(mica_context *ctx, void *user, mica_cursor cursor)
{
    return mica_batches_seek(ctx, user, cursor);
}

mica_source mica_source_of_batches(mica_batches *batches)
{
    return (mica_source){.next = batches_next,
                         .begin = batches_begin,
                         .rows = batches_rows,
                         .cursor = batches_cursor,
                         .seek = batches_seek,
                         .user = batches};
}

/* ---- Tables that are read in blocks ---- */

static mica_status table_begin(mica_context *ctx, const mica_tensor *inputs, mica_index batch,
                               mica_index *count, void *user)
{
    (void)inputs, (void)batch; /* its own */
    return mica_table_stream_begin(ctx, count, user);
}

static mica_status table_rows(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                              mica_index first, void *user)
{
    return mica_table_stream_rows(ctx, inputs, targets, first, inputs->dim[0], user);
}

static mica_status table_next(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                              mica_index *count, void *user)
{
    MICA_TRY(mica_table_stream_begin(ctx, count, user));
    return *count > 0 ? mica_table_stream_rows(ctx, inputs, targets, 0, *count, user) : MICA_OK;
}

static mica_cursor table_cursor(const void *user) { return mica_table_stream_cursor(user); }

static mica_status table_seek(mica_context *ctx, void *user, mica_cursor cursor)
{
    return mica_table_stream_seek(ctx, user, cursor);
}

mica_source mica_source_of_table(mica_table_stream *stream)
{
    return (mica_source){.next = table_next,
                         .begin = table_begin,
                         .rows = table_rows,
                         .cursor = table_cursor,
                         .seek = table_seek,
                         .user = stream};
}

/* ---- Text ---- */

/* Windows one after the other, the last batch with fewer of them; or whole batches of random ones. */
static mica_status text_begin(mica_context *ctx, const mica_tensor *inputs, mica_index batch,
                              mica_index *count, void *user)
{
    (void)ctx;
    mica_text_source *text = user;
    mica_index rows = text->at.position < text->steps ? batch : 0;
    if (text->in_order) {
        rows = mica_windows_count(&text->tokens, inputs->dim[1]) - (mica_index)text->at.position;
        rows = rows < 0 ? 0 : rows < batch ? rows : batch;
    }
    if (rows == 0)
        text->at = (mica_cursor){text->at.epoch + 1, 0};
    text->begun = text->at;
    text->at.position += text->in_order ? (uint64_t)rows : rows > 0;
    *count = rows;
    return MICA_OK;
}

static mica_status text_rows(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                             mica_index first, void *user)
{
    mica_text_source *text = user;
    if (text->in_order)
        return mica_windows_in_order(ctx, inputs, targets, &text->tokens,
                                     (mica_index)text->begun.position + first);
    mica_random at = mica_random_stream(text->seed, text->begun.epoch * text->steps + text->begun.position);
    mica_index starts = text->tokens.dim[0] - inputs->dim[1];
    for (mica_index row = 0; row < first && starts > 0; row++)
        (void)mica_random_below(&at, (uint64_t)starts);
    return mica_windows_random(ctx, inputs, targets, &text->tokens, at);
}

static mica_status text_next(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                             mica_index *count, void *user)
{
    mica_text_source *text = user;
    mica_cursor before = text->at;
    mica_tensor x = *inputs, y = *targets;
    mica_status status = text_begin(ctx, inputs, inputs->dim[0], count, user);
    x.dim[0] = y.dim[0] = *count;
    if (status == MICA_OK && *count > 0)
        status = text_rows(ctx, &x, &y, 0, user);
    if (status != MICA_OK)
        text->at = before;
    return status;
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
    return (mica_source){.next = text_next,
                         .begin = text_begin,
                         .rows = text_rows,
                         .cursor = text_cursor,
                         .seek = text_seek,
                         .user = text};
}
