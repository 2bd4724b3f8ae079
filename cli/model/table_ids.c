/* What the rows of a table are called, by one of its columns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/tables.h"
#include "cli/model/take.h"
#include "data/table/csv.h"

/* Values of the column in every record, the header included. */
typedef struct id_list {
    char **values;
    size_t count, room;
    size_t field;
    bool named; /* the first record has the column's name */
} id_list;

static char *field_text(const mica_csv_field *f)
{
    char *text = take(f->length + 1, 1);
    memcpy(text, f->text, f->length);
    return text;
}

static int no_such_column(const verb *v, const mica_csv *csv, const char *column)
{
    char **names = take(csv->count, sizeof *names);
    for (size_t i = 0; i < csv->count; i++)
        names[i] = field_text(&csv->fields[i]);
    const char *meant = nearest(column, (const char *const *)names, csv->count, sizeof *names);
    int code = usage_error(v, "--id: there is no column \"%s\"%s%s%s", column,
                           meant != NULL ? "; did you mean \"" : "", meant != NULL ? meant : "",
                           meant != NULL ? "\"?" : "");
    for (size_t i = 0; i < csv->count; i++)
        free(names[i]);
    free(names);
    return code;
}

/* By its name in the first record, or by its number from 1 on. */
static int find_field(id_list *ids, const verb *v, const mica_csv *csv, const char *column)
{
    for (size_t i = 0; i < csv->count; i++)
        if (csv->fields[i].length == strlen(column) &&
            memcmp(csv->fields[i].text, column, strlen(column)) == 0) {
            ids->field = i;
            ids->named = true;
            return EXIT_OK;
        }
    char *end;
    unsigned long number = strtoul(column, &end, 10);
    if (*column < '1' || *column > '9' || *end != '\0' || number > csv->count)
        return no_such_column(v, csv, column);
    ids->field = number - 1;
    return EXIT_OK;
}

static void add(id_list *ids, const mica_csv *csv)
{
    ids->values = take_more(ids->values, ids->count, &ids->room, sizeof *ids->values);
    ids->values[ids->count++] = ids->field < csv->count ? field_text(&csv->fields[ids->field])
                                                        : take_text("");
}

static int read_ids(id_list *ids, const verb *v, mica_context *ctx, mica_stream *stream, char delimiter,
                    const char *column)
{
    mica_csv csv;
    int code = EXIT_OK;
    mica_status status = mica_csv_open(ctx, &csv, stream, delimiter);
    if (status != MICA_OK)
        return verb_failed(v, ctx);
    while (code == EXIT_OK && (status = mica_csv_next(&csv)) == MICA_OK && csv.count > 0) {
        if (ids->count == 0)
            code = find_field(ids, v, &csv, column);
        if (code == EXIT_OK)
            add(ids, &csv);
    }
    mica_csv_close(&csv);
    return status == MICA_OK ? code : verb_failed(v, ctx);
}

int table_load_ids(char ***out, const verb *v, mica_context *ctx, const table_source *from,
                   const char *column, mica_index rows)
{
    mica_stream stream;
    id_list ids = {.count = 0};
    mica_status status = from->bytes != NULL
                             ? mica_stream_open_memory(ctx, &stream, from->bytes, from->count, from->path)
                             : mica_stream_open(ctx, &stream, from->path);
    if (status != MICA_OK)
        return verb_failed(v, ctx);
    int code = read_ids(&ids, v, ctx, &stream, from->delimiter, column);
    mica_stream_close(ctx, &stream);
    bool header = ids.named || ids.count == (size_t)rows + 1;
    if (code == EXIT_OK && ids.count != (size_t)rows + header)
        code = verb_error(v, EXIT_FILE, "%s: --id: rows and answers do not correspond: %zu and %td",
                          from->path, ids.count - header, rows);
    for (size_t i = 0; i < ids.count && (code != EXIT_OK || (i == 0 && header)); i++)
        free(ids.values[i]);
    if (code != EXIT_OK) {
        free(ids.values);
        return code;
    }
    memmove(ids.values, ids.values + header, (size_t)rows * sizeof *ids.values);
    *out = ids.values;
    return EXIT_OK;
}
