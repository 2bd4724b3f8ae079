/* One pass through a file: what its columns are. */
#include <math.h>
#include <string.h>

#include "data/table/table.h"
#include "base/sort.h"
#include "io/quote.h"

#define SAMPLE_OF_MANY 128 /* numbers of a column that are kept for its median, if there are many columns */
#define MANY_COLUMNS   1024
#define STEPS          8 /* different distances in time that are counted */

/* What is known of a column while it is read. */
typedef struct survey {
    uint64_t numbers, dates, words, missing;
    double shift, sum, squares; /* of numbers and dates, less the first of them */
    double least, most, last;
    bool whole, counts_rows, times;
    mica_value_list values;
    double *sample; /* of numbers and dates: [sample_room] */
    char first_word[MICA_TABLE_SHOWN];
    double steps[STEPS]; /* between two rows with dates: the first different ones */
    uint64_t step_counts[STEPS], step_total;
} survey;

typedef struct scan {
    mica_context *ctx;
    mica_csv csv;
    mica_table *table;
    survey *surveys; /* [columns] */
    double *samples;
    size_t sample_room;
    mica_csv_field *first; /* [columns] of the first record, and their text in the same block */
    size_t first_bytes;
    uint64_t first_offset;
    size_t first_line;
} scan;

/* ---- Fields ---- */

/* A number below `bound`, by splitmix64: this is asked for every field, and a good mixture is enough. */
static uint64_t mixed_below(uint64_t number, uint64_t bound)
{
    uint64_t z = number * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % bound;
}

/* Every number is as likely to be in the sample as any other: number k takes the place of another with chance
 * room / k. */
static void keep_in_sample(survey *s, size_t room, uint64_t count, double value)
{
    uint64_t at = count;
    if (count >= room)
        at = mixed_below(count, count + 1);
    if (at < room)
        s->sample[at] = value;
}

static void add_number(survey *s, size_t room, double value)
{
    uint64_t count = s->numbers + s->dates;
    if (count == 0) {
        s->shift = s->least = s->most = value;
        s->whole = true;
        s->counts_rows = s->missing == 0;
    } else if (value != s->last + 1) {
        s->counts_rows = false;
    }
    s->last = value;
    s->sum += value - s->shift;
    s->squares += (value - s->shift) * (value - s->shift);
    s->least = value < s->least ? value : s->least;
    s->most = value > s->most ? value : s->most;
    s->whole = s->whole && value == floor(value);
    keep_in_sample(s, room, count, value);
}

static void add_step(survey *s, double step)
{
    s->step_total++;
    for (int i = 0; i < STEPS; i++) {
        if (s->step_counts[i] > 0 && s->steps[i] != step)
            continue;
        s->steps[i] = step;
        s->step_counts[i]++;
        return;
    }
}

static mica_status add_field(scan *s, size_t column, const char *text, size_t length)
{
    survey *its = &s->surveys[column];
    mica_field f = mica_field_read(text, length, s->csv.delimiter);
    if (f.kind == MICA_FIELD_MISSING) {
        its->missing++;
        its->counts_rows = false;
        return MICA_OK;
    }
    if (f.kind == MICA_FIELD_NUMBER && !isfinite(f.value))
        return mica_fail(s->ctx, MICA_ERR_FORMAT, "%s: line %zu, column %zu: %s is not a finite number",
                         MICA_QUOTE(s->csv.stream->file.path), s->csv.line, column + 1,
                         MICA_QUOTE_N(text, length));
    if (memchr(text, '\0', length) != NULL)
        return mica_csv_bad(&s->csv, column, "a zero byte: this is not a text file");
    if (f.kind == MICA_FIELD_WORD && its->words == 0)
        mica_field_show(its->first_word, text, length);
    if (f.kind == MICA_FIELD_DATE && its->dates > 0)
        add_step(its, f.value - its->last);
    if (f.kind != MICA_FIELD_WORD)
        add_number(its, s->sample_room, f.value);
    its->times = its->times || f.has_time;
    its->numbers += f.kind == MICA_FIELD_NUMBER;
    its->dates += f.kind == MICA_FIELD_DATE;
    its->words += f.kind == MICA_FIELD_WORD;
    return mica_value_list_add(s->ctx, &its->values, text, length);
}

/* The first record was a row after all: its chunk starts with it. It is added last, but counts as the first. */
static mica_status first_is_row(scan *s)
{
    mica_table *t = s->table;
    s->csv.line = s->first_line;
    for (int i = 0; i < t->count; i++) {
        survey *its = &s->surveys[i];
        bool counted = its->counts_rows;
        MICA_TRY(add_field(s, (size_t)i, s->first[i].text, s->first[i].length));
        its->counts_rows = counted &&
                           its->last + 1 == its->shift; /* added last, it comes before the others */
    }
    if (t->chunk_count > 0) {
        t->chunks[0].offset = s->first_offset;
        t->chunks[0].line = s->first_line;
        t->chunks[0].rows++;
    } else {
        s->csv.offset = s->first_offset;
        MICA_TRY(mica_table_add_to_chunk(t, &s->csv));
    }
    t->rows++;
    return MICA_OK;
}

/* ---- The header ---- */

static mica_status keep_first(scan *s)
{
    const mica_csv *c = &s->csv;
    s->first_offset = c->offset;
    s->first_line = c->line;
    s->first_bytes = c->count * sizeof *s->first;
    for (size_t i = 0; i < c->count; i++)
        s->first_bytes += c->fields[i].length;
    s->first = mica_allocate(s->ctx, s->first_bytes);
    if (s->first == NULL)
        return s->ctx->status;
    char *at = (char *)(s->first + c->count);
    for (size_t i = 0; i < c->count; i++) {
        if (memchr(c->fields[i].text, '\0', c->fields[i].length) != NULL)
            return mica_csv_bad(c, i, "a zero byte: this is not a text file");
        s->first[i] = c->fields[i];
        s->first[i].text = memcpy(at, c->fields[i].text, c->fields[i].length);
        at += c->fields[i].length;
    }
    return MICA_OK;
}

/* Whether the first record is one of names: a word above numbers or dates; or words alone, none of which occurs again
 * below itself. */
static bool looks_like_header(const scan *s)
{
    int new_words = 0, count = s->table->count;
    for (int i = 0; i < count; i++) {
        const survey *its = &s->surveys[i];
        const char *text = s->first[i].text;
        size_t length = s->first[i].length;
        bool word = mica_field_read(text, length, s->csv.delimiter).kind == MICA_FIELD_WORD;
        if (word && its->words == 0 && its->numbers + its->dates > 0)
            return true;
        new_words += word && (its->values.more || !mica_value_list_has(&its->values, text, length));
    }
    return new_words == count && (s->table->rows > 1 || count > 1);
}

static mica_status name_columns(scan *s)
{
    mica_table *t = s->table;
    mica_names names;
    MICA_TRY(mica_names_make(s->ctx, &names, s->first, (size_t)t->count, t->has_header));
    mica_status status = MICA_OK;
    if (names.twice != NULL)
        status = mica_fail(s->ctx, MICA_ERR_FORMAT, "%s: line %zu: two columns are named %s",
                           MICA_QUOTE(s->csv.stream->file.path), s->first_line,
                           MICA_QUOTE_N(names.twice->text, names.twice->length));
    for (size_t i = 0; i < names.count && status == MICA_OK; i++) {
        const mica_name *name = &names.sorted[i];
        status = mica_table_name(s->ctx, &t->columns[name->column], name->text, name->length);
    }
    mica_names_free(s->ctx, &names);
    return status;
}

/* ---- Columns ---- */

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median_of(double *values, size_t count)
{
    mica_sort(values, count, sizeof values[0], compare_doubles);
    return count % 2 == 1 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

static mica_column_kind kind_of(const survey *s, const mica_table *t)
{
    enum { FEW = 20 };
    if (s->numbers + s->dates + s->words == 0)
        return MICA_COLUMN_EMPTY;
    if (s->words == 0 && s->dates == 0)
        return MICA_COLUMN_NUMBER;
    if (s->words == 0 && s->numbers == 0)
        return MICA_COLUMN_DATE;
    uint64_t half = (uint64_t)t->rows / 2;
    return s->values.more || s->values.count > (half > FEW ? half : FEW) ? MICA_COLUMN_TEXT
                                                                         : MICA_COLUMN_CATEGORY;
}

static void finish_messages(mica_column *c, const survey *its)
{
    bool words = c->kind == MICA_COLUMN_CATEGORY || c->kind == MICA_COLUMN_TEXT;
    if (words && its->dates == 0 && its->words > 0 && its->numbers / 9 >= its->words) {
        c->odd = its->words;
        memcpy(c->odd_value, its->first_word, sizeof c->odd_value);
    }
    int best = 0;
    for (int i = 1; i < STEPS; i++)
        best = its->step_counts[i] > its->step_counts[best] ? i : best;
    if (c->kind == MICA_COLUMN_DATE) {
        c->step = its->steps[best];
        c->uneven = its->step_total - its->step_counts[best];
    }
}

static mica_status finish_column(scan *s, int column)
{
    survey *its = &s->surveys[column];
    mica_own_column *own = &s->table->columns[column];
    mica_column *c = &own->column;
    uint64_t count = its->numbers + its->dates;
    c->kind = kind_of(its, s->table);
    c->missing = its->missing;
    c->different = its->values.more ? MICA_TABLE_MOST_VALUES + 1 : its->values.count;
    if (c->kind == MICA_COLUMN_NUMBER || c->kind == MICA_COLUMN_DATE) {
        double mean = its->sum / (double)count, variance = its->squares / (double)count - mean * mean;
        c->mean = its->shift + mean;
        c->deviation = variance > 0 ? sqrt(variance) : 0;
        c->least = its->least;
        c->most = its->most;
        c->whole = its->whole;
        c->times = its->times;
        c->counts_rows = its->counts_rows && count > 2 && c->kind == MICA_COLUMN_NUMBER;
        c->median = median_of(its->sample, count < s->sample_room ? (size_t)count : s->sample_room);
        if (!isfinite(c->mean) || !isfinite(c->deviation))
            return mica_fail(s->ctx, MICA_ERR_FORMAT, "%s: column %s: its numbers are too large",
                             MICA_QUOTE(s->csv.stream->file.path), MICA_QUOTE(c->name));
    }
    if (!its->values.more && (c->kind == MICA_COLUMN_NUMBER || c->kind == MICA_COLUMN_CATEGORY)) {
        MICA_TRY(mica_table_give_values(s->ctx, own, &its->values, c->kind == MICA_COLUMN_NUMBER));
        c->different = (uint64_t)c->value_count;
    }
    finish_messages(c, its);
    bool used = c->kind != MICA_COLUMN_TEXT && c->kind != MICA_COLUMN_EMPTY && !c->counts_rows;
    c->role = used ? MICA_ROLE_INPUT : MICA_ROLE_NONE;
    return MICA_OK;
}

/* ---- All of it ---- */

static mica_status begin(scan *s)
{
    size_t columns = s->csv.count;
    if (columns == 0)
        return mica_fail(s->ctx, MICA_ERR_FORMAT, "%s: the file has no rows",
                         MICA_QUOTE(s->csv.stream->file.path));
    MICA_TRY(mica_table_create(s->ctx, &s->table, (int)columns));
    MICA_TRY(keep_first(s));
    s->sample_room = columns > MANY_COLUMNS ? SAMPLE_OF_MANY : 1024;
    s->surveys = mica_allocate(s->ctx, columns * sizeof *s->surveys);
    if (s->surveys == NULL)
        return s->ctx->status;
    memset(s->surveys, 0, columns * sizeof *s->surveys);
    s->samples = mica_allocate(s->ctx, columns * s->sample_room * sizeof *s->samples);
    if (s->samples == NULL)
        return s->ctx->status;
    for (size_t i = 0; i < columns; i++)
        s->surveys[i].sample = s->samples + i * s->sample_room;
    return MICA_OK;
}

static mica_status read_rows(scan *s)
{
    mica_csv *c = &s->csv;
    size_t columns = (size_t)s->table->count;
    for (;;) {
        MICA_TRY(mica_csv_next(c));
        if (c->count == 0)
            return MICA_OK;
        if (c->count != columns)
            return mica_fail(s->ctx, MICA_ERR_FORMAT, "%s: line %zu: %zu fields, the first line has %zu",
                             MICA_QUOTE(c->stream->file.path), c->line, c->count, columns);
        for (size_t i = 0; i < columns; i++)
            MICA_TRY(add_field(s, i, c->fields[i].text, c->fields[i].length));
        MICA_TRY(mica_table_add_to_chunk(s->table, c));
        s->table->rows++;
    }
}

static mica_status run(scan *s, mica_csv_header header)
{
    MICA_TRY(mica_csv_next(&s->csv));
    MICA_TRY(begin(s));
    MICA_TRY(read_rows(s));
    mica_table *t = s->table;
    t->delimiter = s->csv.delimiter;
    t->file_bytes = s->csv.stream->file.bytes;
    t->has_header = header == MICA_CSV_HEADER_YES || (header == MICA_CSV_HEADER_AUTO && looks_like_header(s));
    if (!t->has_header)
        MICA_TRY(first_is_row(s));
    if (t->rows == 0)
        return mica_fail(s->ctx, MICA_ERR_FORMAT, "%s: the file has a header and no rows",
                         MICA_QUOTE(s->csv.stream->file.path));
    MICA_TRY(name_columns(s));
    for (int i = 0; i < t->count; i++)
        MICA_TRY(finish_column(s, i));
    return MICA_OK;
}

static void release(scan *s, size_t columns)
{
    for (size_t i = 0; s->surveys != NULL && i < columns; i++)
        mica_value_list_free(s->ctx, &s->surveys[i].values);
    mica_release(s->ctx, s->surveys, columns * sizeof *s->surveys);
    mica_release(s->ctx, s->samples, columns * s->sample_room * sizeof *s->samples);
    mica_release(s->ctx, s->first, s->first_bytes);
    mica_csv_close(&s->csv);
}

static mica_status scan_stream(mica_context *ctx, mica_table **out, mica_stream *stream,
                               const mica_scan_opts *opts)
{
    scan s = {.ctx = ctx};
    MICA_TRY(mica_csv_open(ctx, &s.csv, stream, opts != NULL ? opts->delimiter : '\0'));
    mica_status status = run(&s, opts != NULL ? opts->header : MICA_CSV_HEADER_AUTO);
    release(&s, s.table != NULL ? (size_t)s.table->count : 0);
    if (status != MICA_OK) {
        mica_table_destroy(ctx, s.table);
        return status;
    }
    *out = s.table;
    return MICA_OK;
}

mica_status mica_table_scan(mica_context *ctx, mica_table **out, const char *path, const mica_scan_opts *opts)
{
    if (out == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_scan: %s is NULL", out == NULL ? "out" : "path");
    *out = NULL;
    mica_stream stream;
    MICA_TRY(mica_stream_open(ctx, &stream, path));
    mica_status status = scan_stream(ctx, out, &stream, opts);
    mica_stream_close(ctx, &stream);
    return status;
}

mica_status mica_table_scan_memory(mica_context *ctx, mica_table **out, const char *bytes, size_t count,
                                   const char *name, const mica_scan_opts *opts)
{
    if (out == NULL || bytes == NULL || name == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_scan_memory: an argument is NULL");
    *out = NULL;
    mica_stream stream;
    MICA_TRY(mica_stream_open_memory(ctx, &stream, bytes, count, name));
    mica_status status = scan_stream(ctx, out, &stream, opts);
    mica_stream_close(ctx, &stream);
    return status;
}
