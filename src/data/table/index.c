/* Where the rows of a file are: chunks of whole lines. */
#include <string.h>

#include "data/table/table.h"
#include "io/quote.h"

#define CHUNK_BYTES ((uint64_t)1 << 18)
#define CHUNK_ROWS  4096

static mica_status make_room(mica_context *ctx, mica_table *t)
{
    size_t room = t->chunk_room > 0 ? 2 * t->chunk_room : 64, size = sizeof *t->chunks;
    mica_table_chunk *chunks = mica_allocate(ctx, room * size);
    if (chunks == NULL)
        return ctx->status;
    if (t->chunk_count > 0)
        memcpy(chunks, t->chunks, t->chunk_count * size);
    mica_release(ctx, t->chunks, t->chunk_room * size);
    t->chunks = chunks;
    t->chunk_room = room;
    return MICA_OK;
}

mica_status mica_table_add_to_chunk(mica_table *t, const mica_csv *csv)
{
    if (csv->stream->gzip != NULL)
        return MICA_OK;
    mica_table_chunk *last = t->chunk_count > 0 ? &t->chunks[t->chunk_count - 1] : NULL;
    if (last != NULL && last->rows < CHUNK_ROWS && csv->offset - last->offset < CHUNK_BYTES) {
        last->rows++;
        return MICA_OK;
    }
    if (t->chunk_count == t->chunk_room)
        MICA_TRY(make_room(csv->ctx, t));
    t->chunks[t->chunk_count++] = (mica_table_chunk){csv->offset, csv->line, 1};
    return MICA_OK;
}

/* All rows, of which the first may be the current record. */
static mica_status find_rows(mica_table *t, mica_table_reader *r)
{
    mica_csv *csv = r->csv;
    t->chunk_count = 0;
    t->rows = 0;
    for (bool have = r->first_is_row;; have = false) {
        if (!have)
            MICA_TRY(mica_csv_next(csv));
        if (csv->count == 0)
            return MICA_OK;
        if (csv->count != r->fields)
            return mica_fail(csv->ctx, MICA_ERR_FORMAT, "%s: line %zu: %zu fields, the first line has %zu",
                             MICA_QUOTE(csv->stream->file.path), csv->line, csv->count, r->fields);
        MICA_TRY(mica_table_add_to_chunk(t, csv));
        t->rows++;
    }
}

mica_status mica_table_index(mica_context *ctx, mica_table *table, const char *path,
                             const mica_table_read_opts *opts)
{
    if (table == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_index: %s is NULL", table == NULL ? "table" : "path");
    mica_stream stream;
    mica_csv csv;
    mica_table_reader r;
    MICA_TRY(mica_stream_open(ctx, &stream, path));
    mica_status status = mica_csv_open(ctx, &csv, &stream, opts != NULL ? opts->delimiter : '\0');
    if (status == MICA_OK) {
        status = mica_table_reader_open(ctx, &r, table, &csv, opts);
        if (status == MICA_OK) {
            status = find_rows(table, &r);
            table->has_header = !r.first_is_row;
            table->delimiter = csv.delimiter;
            table->file_bytes = stream.file.bytes;
            table->indexed = true;
            mica_table_reader_close(ctx, &r);
        }
        mica_csv_close(&csv);
        if (status != MICA_OK)
            table->chunk_count = 0;
    }
    mica_stream_close(ctx, &stream);
    return status;
}
