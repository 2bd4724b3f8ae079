/* Rows of a file, by what is known of its table. */
#include <math.h>
#include <string.h>

#include "data/classes.h"
#include "data/table/table.h"
#include "io/quote.h"

/* ---- Columns of the file, and those of the table ---- */

static bool wants(const mica_table_reader *r, const mica_column *c)
{
    int role = c->role & (r->opts->no_targets ? MICA_ROLE_INPUT : MICA_ROLE_INPUT | MICA_ROLE_TARGET);
    return role != 0;
}

static const char *path_of(const mica_table_reader *r) { return r->csv->stream->file.path; }

/* Whether the current record has names of the table's columns: some of those that are wanted. */
static bool has_names(const mica_table_reader *r, const mica_names *names)
{
    for (int i = 0; i < r->table->count; i++) {
        const mica_column *c = &r->table->columns[i].column;
        int f = wants(r, c) ? mica_names_find(names, c->name) : -1;
        if (f >= 0 && r->csv->fields[f].length > 0)
            return true;
    }
    return false;
}

static bool all_numbers_or_missing(const mica_csv *csv)
{
    for (size_t f = 0; f < csv->count; f++)
        if (mica_field_read(csv->fields[f].text, csv->fields[f].length, csv->delimiter).kind ==
            MICA_FIELD_WORD)
            return false;
    return true;
}

static mica_status match_names(mica_table_reader *r, const mica_names *names)
{
    const mica_csv *csv = r->csv;
    int known = 0;
    for (int i = 0; i < r->table->count; i++) {
        const mica_column *c = &r->table->columns[i].column;
        int f = mica_names_find(names, c->name);
        known += f >= 0;
        if (f >= 0 && wants(r, c))
            r->column_of[f] = i;
        else if (wants(r, c))
            return mica_fail(csv->ctx, MICA_ERR_FORMAT,
                             "%s: line %zu: there is no column %s, which the table has as %s",
                             MICA_QUOTE(path_of(r)), csv->line, MICA_QUOTE(c->name),
                             (c->role & MICA_ROLE_TARGET) != 0 ? "a target" : "an input");
    }
    r->found.extra_columns = (int)csv->count - known;
    return MICA_OK;
}

/* Columns that are there for a target alone, which a file to be predicted may lack. */
static size_t target_columns(const mica_table *t)
{
    size_t targets = 0;
    for (int i = 0; i < t->count; i++)
        targets += t->columns[i].column.role == MICA_ROLE_TARGET;
    return targets;
}

static bool lacks_targets(const mica_table_reader *r)
{
    return r->opts->no_targets && r->csv->count != (size_t)r->table->count &&
           r->csv->count == (size_t)r->table->count - target_columns(r->table);
}

static bool has_places(const mica_table_reader *r)
{
    return r->csv->count == (size_t)r->table->count || lacks_targets(r);
}

/* Whether the current record, as a row, would have words in the place of every number and date, of which there are
 * some: names that the table does not know. */
static bool has_other_names(const mica_table_reader *r)
{
    bool skip_targets = lacks_targets(r), some = false;
    size_t f = 0;
    for (int i = 0; has_places(r) && i < r->table->count; i++) {
        const mica_column *c = &r->table->columns[i].column;
        if (skip_targets && c->role == MICA_ROLE_TARGET)
            continue;
        const mica_csv_field *field = &r->csv->fields[f++];
        if (c->kind != MICA_COLUMN_NUMBER && c->kind != MICA_COLUMN_DATE)
            continue;
        if (mica_field_read(field->text, field->length, r->csv->delimiter).kind != MICA_FIELD_WORD)
            return false;
        some = true;
    }
    return some;
}

/* Without names: as many columns as the table has, or as many as it has but for its targets. */
static mica_status match_places(mica_table_reader *r)
{
    const mica_table *t = r->table;
    r->found.by_position = true;
    if (!has_places(r))
        return mica_fail(r->csv->ctx, MICA_ERR_FORMAT,
                         "%s: line %zu: %zu columns without names, the table has %d%s",
                         MICA_QUOTE(path_of(r)), r->csv->line, r->csv->count, t->count,
                         t->has_header ? ": a header with their names says which is which" : "");
    bool skip_targets = lacks_targets(r);
    size_t f = 0;
    for (int i = 0; i < t->count; i++) {
        const mica_column *c = &t->columns[i].column;
        if (skip_targets && c->role == MICA_ROLE_TARGET)
            continue;
        r->column_of[f++] = wants(r, c) ? i : -1;
    }
    return MICA_OK;
}

mica_status mica_table_reader_open(mica_context *ctx, mica_table_reader *out, const mica_table *table,
                                   mica_csv *csv, const mica_table_read_opts *opts)
{
    static const mica_table_read_opts defaults = {0};
    *out = (mica_table_reader){.table = table, .csv = csv, .opts = opts != NULL ? opts : &defaults};
    if (!table->encoded)
        return mica_fail(ctx, MICA_ERR_STATE, "the table is not encoded: call mica_table_encode first");
    MICA_TRY(mica_csv_next(csv));
    if (csv->count == 0)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: the file has no rows", MICA_QUOTE(path_of(out)));
    out->fields = csv->count;
    out->column_of = mica_allocate(ctx, csv->count * sizeof *out->column_of);
    if (out->column_of == NULL)
        return ctx->status;
    for (size_t f = 0; f < csv->count; f++)
        out->column_of[f] = -1;
    mica_names names;
    mica_csv_header header = out->opts->header;
    mica_status status = mica_names_make(ctx, &names, csv->fields, csv->count, true);
    /* One of the names is enough: then all are wanted, and the message says which is not there. */
    bool named = header == MICA_CSV_HEADER_YES ||
                 (header == MICA_CSV_HEADER_AUTO && table->has_header && status == MICA_OK &&
                  (has_names(out, &names) || has_other_names(out) ||
                   (!has_places(out) && !all_numbers_or_missing(csv))));
    out->first_is_row = !named;
    if (status == MICA_OK)
        status = named ? match_names(out, &names) : match_places(out);
    mica_names_free(ctx, &names);
    if (status != MICA_OK)
        mica_table_reader_close(ctx, out);
    return status;
}

void mica_table_reader_close(mica_context *ctx, mica_table_reader *r)
{
    mica_release(ctx, r->column_of, r->fields * sizeof *r->column_of);
    r->column_of = NULL;
}

/* ---- Fields ---- */

static mica_status bad_field(const mica_table_reader *r, size_t field, const char *what)
{
    const mica_csv_field *f = &r->csv->fields[field];
    const mica_column *c = &r->table->columns[r->column_of[field]].column;
    return mica_fail(r->csv->ctx, MICA_ERR_FORMAT, "%s: line %zu, column %s: %s %s", MICA_QUOTE(path_of(r)),
                     r->csv->line, MICA_QUOTE(c->name), MICA_QUOTE_N(f->text, f->length), what);
}

/* (x - mean) / deviation, which must be a finite float. */
static bool standardize(const mica_column *c, double value, float *out)
{
    double deviation = c->deviation > 0 ? c->deviation : 1;
    *out = (float)((value - c->mean) / deviation);
    return isfinite(*out);
}

static mica_status read_target(mica_table_reader *r, size_t field, float *targets, bool *kept)
{
    const mica_own_column *own = &r->table->columns[r->column_of[field]];
    const mica_column *c = &own->column;
    const mica_csv_field *f = &r->csv->fields[field];
    mica_field said = mica_field_read(f->text, f->length, r->csv->delimiter);
    float *to = targets + c->first_target;
    if (said.kind == MICA_FIELD_MISSING) {
        *kept = false;
        return MICA_OK;
    }
    if (c->kind == MICA_COLUMN_CATEGORY) {
        int value = mica_table_value_find(own, f->text, f->length, r->csv->delimiter);
        *to = (float)value;
        return value >= 0 ? MICA_OK : bad_field(r, field, "is none of the classes of the table");
    }
    if (said.kind != MICA_FIELD_NUMBER)
        return bad_field(r, field, "is not a number");
    if (r->table->encode.raw_targets)
        *to = (float)said.value;
    if (!(r->table->encode.raw_targets ? isfinite(*to) : standardize(c, said.value, to)))
        return bad_field(r, field, "is too large");
    return MICA_OK;
}

/* A missing value: NaN where an element says so, else what stands for it. */
static mica_status read_missing(mica_table_reader *r, size_t field, float *cell, bool *kept)
{
    const mica_own_column *own = &r->table->columns[r->column_of[field]];
    switch (r->table->encode.missing) {
    case MICA_MISSING_REFUSE:
        return mica_fail(r->csv->ctx, MICA_ERR_FORMAT, "%s: line %zu, column %s: the value is missing",
                         MICA_QUOTE(path_of(r)), r->csv->line, MICA_QUOTE(own->column.name));
    case MICA_MISSING_DROP:
        *kept = false;
        return MICA_OK;
    default:
        break;
    }
    r->found.missing++;
    for (mica_index k = 0; k < own->cells; k++)
        cell[k] = own->indicator                             ? NAN
                  : own->column.kind == MICA_COLUMN_CATEGORY ? -1
                  : k == 0                                   ? own->fill
                                                             : 0;
    return MICA_OK;
}

/* Standardized seconds, and the angles of the year and the day. */
static bool read_date(const mica_own_column *own, double seconds, float *cell)
{
    const double pi = 3.14159265358979323846, year = 365.2425 * 86400;
    double of_year = 2 * pi * (seconds / year - floor(seconds / year)),
           of_day = 2 * pi * (seconds / 86400 - floor(seconds / 86400));
    cell[1] = (float)sin(of_year);
    cell[2] = (float)cos(of_year);
    if (own->cells == 5) {
        cell[3] = (float)sin(of_day);
        cell[4] = (float)cos(of_day);
    }
    return standardize(&own->column, seconds, cell);
}

static mica_status read_input(mica_table_reader *r, size_t field, float *cells, bool *kept)
{
    const mica_own_column *own = &r->table->columns[r->column_of[field]];
    const mica_column *c = &own->column;
    const mica_csv_field *f = &r->csv->fields[field];
    float *cell = cells + own->first_cell;
    mica_field said = mica_field_read(f->text, f->length, r->csv->delimiter);
    if (said.kind == MICA_FIELD_MISSING)
        return read_missing(r, field, cell, kept);
    if (c->kind == MICA_COLUMN_CATEGORY) {
        int value = mica_table_value_find(own, f->text, f->length, r->csv->delimiter);
        if (value < 0 && r->found.unseen++ == 0) {
            r->found.unseen_column = c->name;
            mica_field_show(r->found.unseen_value, f->text, f->length);
        }
        *cell = (float)value;
        return MICA_OK;
    }
    if (said.kind != (c->kind == MICA_COLUMN_DATE ? MICA_FIELD_DATE : MICA_FIELD_NUMBER))
        return bad_field(r, field, c->kind == MICA_COLUMN_DATE ? "is not a date" : "is not a number");
    if (!(c->kind == MICA_COLUMN_DATE ? read_date(own, said.value, cell) : standardize(c, said.value, cell)))
        return bad_field(r, field, "is not a finite number, or too large");
    return MICA_OK;
}

mica_status mica_table_read_record(mica_table_reader *r, float *cells, float *targets, bool *kept)
{
    const mica_csv *csv = r->csv;
    *kept = true;
    if (csv->count != r->fields)
        return mica_fail(csv->ctx, MICA_ERR_FORMAT, "%s: line %zu: %zu fields, the first line has %zu",
                         MICA_QUOTE(path_of(r)), csv->line, csv->count, r->fields);
    for (size_t f = 0; f < csv->count; f++) {
        if (r->column_of[f] < 0)
            continue;
        int role = r->table->columns[r->column_of[f]].column.role;
        if ((role & MICA_ROLE_INPUT) != 0)
            MICA_TRY(read_input(r, f, cells, kept));
        if ((role & MICA_ROLE_TARGET) != 0 && !r->opts->no_targets)
            MICA_TRY(read_target(r, f, targets, kept));
    }
    r->found.dropped += !*kept;
    r->found.rows += *kept;
    return MICA_OK;
}

/* ---- A whole file ---- */

/* Rows that grow as they are read. */
typedef struct growing {
    float *values;
    size_t width, rows, room;
} growing;

static mica_status make_room(mica_context *ctx, growing *g)
{
    if (g->rows < g->room)
        return MICA_OK;
    size_t room = g->room > 0 ? g->room + g->room / 2 : 256, row = g->width * sizeof(float);
    if (room > SIZE_MAX / (row > 0 ? row : 1))
        return mica_fail(ctx, MICA_ERR_MEMORY, "too many rows for memory");
    float *values = mica_allocate(ctx, room * row > 0 ? room * row : 1);
    if (values == NULL)
        return ctx->status;
    if (g->values != NULL) {
        memcpy(values, g->values, g->rows * row);
        mica_release(ctx, g->values, g->room * row > 0 ? g->room * row : 1);
    }
    g->values = values;
    g->room = room;
    return MICA_OK;
}

static void drop(mica_context *ctx, growing *g)
{
    size_t bytes = g->room * g->width * sizeof(float);
    mica_release(ctx, g->values, bytes > 0 ? bytes : 1);
    g->values = NULL;
}

static mica_status read_all(mica_context *ctx, mica_table_reader *r, growing *cells, growing *targets)
{
    for (bool have = r->first_is_row;; have = false) {
        bool kept;
        if (!have)
            MICA_TRY(mica_csv_next(r->csv));
        if (r->csv->count == 0)
            return MICA_OK;
        MICA_TRY(make_room(ctx, cells));
        MICA_TRY(make_room(ctx, targets));
        MICA_TRY(mica_table_read_record(r, cells->values + cells->rows * cells->width,
                                        targets->values + targets->rows * targets->width, &kept));
        cells->rows += kept;
        targets->rows += kept;
    }
}

/* The classes of the only target, if it has some. */
static const mica_column *only_category(const mica_table *t)
{
    const mica_column *found = NULL;
    for (int i = 0; t->targets == 1 && i < t->count; i++)
        if (t->columns[i].column.targets > 0)
            found = &t->columns[i].column;
    return found != NULL && found->kind == MICA_COLUMN_CATEGORY ? found : NULL;
}

static mica_status load(mica_context *ctx, mica_dataset *out, const mica_table *table, mica_stream *stream,
                        const mica_table_read_opts *opts)
{
    mica_csv csv;
    mica_table_reader r;
    bool with_targets = (opts == NULL || !opts->no_targets) && table->targets > 0;
    growing cells = {.width = (size_t)table->cells},
            targets = {.width = with_targets ? (size_t)table->targets : 0};
    MICA_TRY(mica_csv_open(ctx, &csv, stream, opts != NULL ? opts->delimiter : '\0'));
    mica_status status = mica_table_reader_open(ctx, &r, table, &csv, opts);
    if (status == MICA_OK) {
        status = read_all(ctx, &r, &cells, &targets);
        mica_table_reader_close(ctx, &r);
    }
    mica_csv_close(&csv);
    mica_dataset set = {.count = (mica_index)cells.rows, .has_targets = with_targets};
    const mica_column *category = with_targets ? only_category(table) : NULL;
    if (status == MICA_OK && cells.rows == 0)
        status = mica_fail(ctx, MICA_ERR_FORMAT, "%s: the file has no rows%s", MICA_QUOTE(stream->file.path),
                           r.found.dropped > 0 ? " without missing values" : "");
    if (status == MICA_OK && category != NULL)
        status = mica_classes_copy(ctx, &set, category->values, category->value_count);
    if (!with_targets || status != MICA_OK)
        drop(ctx, &targets);
    if (status != MICA_OK) {
        drop(ctx, &cells);
        return status;
    }
    set.inputs = mica_2d(cells.values, set.count, table->cells);
    set.owned[0] = cells.room * cells.width * sizeof(float);
    if (with_targets) {
        set.targets = mica_2d(targets.values, set.count, table->targets);
        set.owned[1] = targets.room * targets.width * sizeof(float);
    }
    if (opts != NULL && opts->found != NULL)
        *opts->found = r.found;
    *out = set;
    return MICA_OK;
}

mica_status mica_table_load(mica_context *ctx, mica_dataset *out, const mica_table *table, const char *path,
                            const mica_table_read_opts *opts)
{
    if (out == NULL || table == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_load: an argument is NULL");
    mica_stream stream;
    MICA_TRY(mica_stream_open(ctx, &stream, path));
    mica_status status = load(ctx, out, table, &stream, opts);
    mica_stream_close(ctx, &stream);
    return status;
}

mica_status mica_table_load_memory(mica_context *ctx, mica_dataset *out, const mica_table *table,
                                   const char *bytes, size_t count, const char *name,
                                   const mica_table_read_opts *opts)
{
    if (out == NULL || table == NULL || bytes == NULL || name == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_load_memory: an argument is NULL");
    mica_stream stream;
    MICA_TRY(mica_stream_open_memory(ctx, &stream, bytes, count, name));
    mica_status status = load(ctx, out, table, &stream, opts);
    mica_stream_close(ctx, &stream);
    return status;
}
