/* CSV: read twice, once to count and check, once to fill; only a buffer of the text is ever in memory. */
#include <math.h>
#include <string.h>

#include "data/classes.h"
#include "data/load.h"
#include "io/number.h"
#include "io/quote.h"

#define LONGEST_FIELD 1024

typedef struct csv {
    mica_context *ctx;
    mica_stream *stream;
    mica_csv_opts opts;

    mica_status status; /* of the stream; the first failure stays */
    size_t at, filled;  /* of the buffer */
    size_t line;        /* of the next byte, from 1 on */
    uint64_t hash;      /* of the bytes of this pass so far (FNV-1a) */

    /* The last field. */
    size_t field_line, column; /* column from 1 on */
    size_t length;
    bool quoted;
    bool ends_line, ends_file;

    /* What the first pass finds out. */
    bool has_header;
    size_t rows, columns;
    size_t label;          /* column from 1 on; 0: none */
    bool names;            /* a label is no number */
    bool surveyed;         /* the first pass is over */
    uint64_t whole;        /* the hash of all bytes, as the first pass saw them */
    mica_classes *classes; /* where those of this pass are gathered; NULL: not */

    char field[LONGEST_FIELD];
    unsigned char buffer[4096];
} csv;

static mica_status bad(const csv *c, const char *what)
{
    return mica_fail(c->ctx, MICA_ERR_FORMAT, "%s: line %zu, column %zu: %s",
                     MICA_QUOTE(c->stream->file.path), c->field_line, c->column, what);
}

static mica_status changed(const csv *c)
{
    return mica_fail(c->ctx, MICA_ERR_IO, "%s: the file changed while being read",
                     MICA_QUOTE(c->stream->file.path));
}

/* ---- Bytes ---- */

static void add_to_hash(csv *c)
{
    for (size_t i = 0; i < c->filled; i++)
        c->hash = (c->hash ^ c->buffer[i]) * UINT64_C(0x100000001b3);
}

/* The next byte, not stepped over; -1 at the end, or after a failure. */
static int peek(csv *c)
{
    if (c->at == c->filled) {
        c->at = c->filled = 0;
        if (c->status == MICA_OK)
            c->status = mica_stream_read(c->ctx, c->buffer, &c->filled, c->stream, sizeof c->buffer);
        if (c->status != MICA_OK || c->filled == 0)
            return -1;
        add_to_hash(c);
    }
    return c->buffer[c->at];
}

static int next(csv *c)
{
    int byte = peek(c);
    if (byte >= 0)
        c->at++;
    c->line += byte == '\n';
    return byte;
}

static mica_status rewind_to_start(csv *c)
{
    MICA_TRY(mica_stream_rewind(c->ctx, c->stream));
    c->at = c->filled = 0;
    c->line = 1;
    c->hash = UINT64_C(0xcbf29ce484222325);
    c->ends_line = c->ends_file = false;
    c->column = 0;
    if (peek(c) == 0xef && c->filled >= 3 && memcmp(c->buffer, "\xef\xbb\xbf", 3) == 0)
        c->at = 3; /* some programs begin UTF-8 with a mark */
    return c->status;
}

/* ---- Fields ---- */

static mica_status append(csv *c, int byte)
{
    if (c->length == LONGEST_FIELD)
        return bad(c, "field longer than 1024 bytes");
    c->field[c->length++] = (char)byte;
    return MICA_OK;
}

/* After the opening quote: up to the closing one. */
static mica_status read_quoted(csv *c)
{
    for (;;) {
        int byte = next(c);
        if (byte < 0)
            return c->status != MICA_OK ? c->status : bad(c, "unterminated quote");
        if (byte == '"') {
            if (peek(c) != '"')
                return MICA_OK;
            (void)next(c); /* two of them stand for one */
        }
        MICA_TRY(append(c, byte));
    }
}

/* Steps over what separates this field from the next, if that is what comes. */
static bool separator(csv *c)
{
    int byte = peek(c);
    c->ends_file = byte < 0;
    c->ends_line = byte < 0 || byte == '\n' || byte == '\r';
    if (!c->ends_line && byte != (unsigned char)c->opts.delimiter)
        return false;
    (void)next(c);
    if (byte == '\r' && peek(c) == '\n')
        (void)next(c);
    return true;
}

static mica_status read_field(csv *c)
{
    c->column = c->ends_line ? 1 : c->column + 1;
    c->field_line = c->line;
    c->length = 0;
    c->quoted = peek(c) == '"';
    if (c->quoted) {
        (void)next(c);
        MICA_TRY(read_quoted(c));
        if (!separator(c))
            return bad(c, "text after the closing quote");
        return c->status;
    }
    while (!separator(c))
        MICA_TRY(append(c, next(c)));
    return c->status;
}

static bool is_blank(char byte) { return byte == ' ' || byte == '\t'; }

/* The field as a number; blanks around it do not count. */
static bool number(const csv *c, double *out)
{
    size_t start = 0, end = c->length;
    while (start < end && is_blank(c->field[start]))
        start++;
    while (end > start && is_blank(c->field[end - 1]))
        end--;
    if (start == end && c->opts.allow_empty) {
        *out = (double)NAN;
        return true;
    }
    return mica_parse_number(out, c->field + start, end - start);
}

static mica_status not_a_number(const csv *c)
{
    if (c->length == 0)
        return bad(c, "empty field");
    return mica_fail(c->ctx, MICA_ERR_FORMAT, "%s: line %zu, column %zu: %s is not a number",
                     MICA_QUOTE(c->stream->file.path), c->field_line, c->column,
                     MICA_QUOTE_N(c->field, c->length));
}

/* A line with nothing on it: read as one empty field. */
static bool blank_line(const csv *c)
{
    return c->column == 1 && c->ends_line && !c->quoted && c->length == 0;
}

/* ---- First pass ---- */

/* Which column the label is in, by its number. */
static size_t label_by_number(const csv *c)
{
    long long columns = (long long)c->columns, wanted = c->opts.label_column;
    if (c->opts.label != NULL || wanted > columns || wanted < -columns)
        return 0;
    return (size_t)(wanted < 0 ? columns + 1 + wanted : wanted);
}

/* The first line that is not blank: a header, or values like the others. */
static mica_status read_first(csv *c)
{
    size_t texts = 0, text_column = 0; /* fields that are no numbers, and where the first is */
    do {
        if (c->ends_file)
            return mica_fail(c->ctx, MICA_ERR_FORMAT, "%s: line %zu: the file has no numbers",
                             MICA_QUOTE(c->stream->file.path), c->line);
        MICA_TRY(read_field(c));
    } while (blank_line(c));
    for (;;) {
        double value;
        if (!number(c, &value)) {
            if (c->opts.header == MICA_CSV_HEADER_NO && !c->opts.label_names)
                return not_a_number(c);
            if (texts++ == 0)
                text_column = c->column;
        }
        if (c->opts.label != NULL && strlen(c->opts.label) == c->length &&
            memcmp(c->field, c->opts.label, c->length) == 0)
            c->label = c->column;
        if (c->ends_line)
            break;
        MICA_TRY(read_field(c));
    }
    c->columns = c->column;
    bool only_label = c->opts.label_names && texts == 1 && text_column == label_by_number(c);
    c->has_header = c->opts.header == MICA_CSV_HEADER_YES ||
                    (c->opts.header == MICA_CSV_HEADER_AUTO && texts > 0 && !only_label);
    return MICA_OK;
}

static mica_status find_label(csv *c)
{
    const char *path = c->stream->file.path;
    if (c->opts.label != NULL) {
        if (c->label == 0 || !c->has_header)
            return mica_fail(c->ctx, MICA_ERR_FORMAT, "%s: line 1: there is no column %s", MICA_QUOTE(path),
                             MICA_QUOTE(c->opts.label));
        return MICA_OK;
    }
    c->label = label_by_number(c);
    if (c->label == 0 && c->opts.label_column != 0)
        return mica_fail(c->ctx, MICA_ERR_ARGUMENT, "%s: label_column is %d, the file has %zu columns",
                         MICA_QUOTE(path), c->opts.label_column, c->columns);
    return MICA_OK;
}

/* ---- Rows, in either pass ---- */

/* A label that is a name: gathered, or turned into its number. */
static mica_status read_name(csv *c, double *value, const mica_dataset *set)
{
    if (c->length == 0)
        return not_a_number(c);
    if (c->classes != NULL && !mica_classes_add(c->classes, c->field, c->length))
        return bad(c, "too many distinct labels for class indices");
    int class = set != NULL ? mica_class_find(set->classes, set->class_count, c->field, c->length) : 0;
    if (class < 0)
        return mica_fail(c->ctx, MICA_ERR_FORMAT, "%s: line %zu, column %zu: unknown class %s",
                         MICA_QUOTE(c->stream->file.path), c->field_line, c->column,
                         MICA_QUOTE_N(c->field, c->length));
    *value = class;
    return MICA_OK;
}

/* A field of a row as a number. */
static mica_status read_value(csv *c, double *value, const mica_dataset *set)
{
    if (c->column == c->label && c->names)
        return read_name(c, value, set);
    if (number(c, value))
        return MICA_OK;
    if (c->column != c->label || !c->opts.label_names || c->length == 0)
        return not_a_number(c);
    c->names = true;
    return c->surveyed ? changed(c) : MICA_OK;
}

/* Reads rows to the end of the file; keeps their numbers in the set unless it is NULL. */
static mica_status read_rows(csv *c, const mica_dataset *set)
{
    size_t input_columns = c->columns - (c->label > 0), most_rows = c->rows;
    for (c->rows = 0; !c->ends_file;) {
        MICA_TRY(read_field(c));
        if (blank_line(c))
            continue;
        for (;;) {
            double value = 0;
            if (c->column > c->columns)
                return bad(c, "more fields than the first line");
            MICA_TRY(read_value(c, &value, set));
            if (set != NULL && c->rows == most_rows)
                return changed(c);
            if (set != NULL && c->column == c->label)
                ((float *)set->targets.data)[c->rows] = (float)value;
            else if (set != NULL)
                ((float *)set->inputs.data)[c->rows * input_columns + c->column - 1 -
                                            (c->label > 0 && c->column > c->label)] = (float)value;
            if (c->ends_line)
                break;
            MICA_TRY(read_field(c));
        }
        if (c->column < c->columns)
            return bad(c, "fewer fields than the first line");
        c->rows++;
    }
    if (c->surveyed && c->hash != c->whole)
        return changed(c);
    c->whole = c->hash;
    c->surveyed = true;
    return MICA_OK;
}

/* The first pass has found the header, so a file that ends before it is another by now. */
static mica_status skip_header(csv *c)
{
    do {
        if (c->ends_file)
            return changed(c);
        MICA_TRY(read_field(c));
    } while (!c->ends_line || blank_line(c));
    return MICA_OK;
}

static mica_status start_rows(csv *c)
{
    MICA_TRY(rewind_to_start(c));
    return c->has_header ? skip_header(c) : MICA_OK;
}

static mica_status allocate(csv *c, mica_dataset *set)
{
    mica_index columns = (mica_index)(c->columns - (c->label > 0)), rows = (mica_index)c->rows;
    size_t bytes = c->rows * (size_t)columns * sizeof(float);
    set->count = rows;
    set->owned[0] = bytes > 0 ? bytes : 1;
    set->inputs = mica_2d(mica_allocate(c->ctx, set->owned[0]), rows, columns);
    if (set->inputs.data == NULL) {
        set->owned[0] = 0;
        return c->ctx->status;
    }
    set->has_targets = c->label > 0;
    if (!set->has_targets)
        return MICA_OK;
    set->owned[1] = c->rows * sizeof(float);
    set->targets = mica_1d(mica_allocate(c->ctx, set->owned[1]), rows);
    if (set->targets.data == NULL) {
        set->owned[1] = 0;
        return c->ctx->status;
    }
    return MICA_OK;
}

/* The classes of the labels: those given, or a pass through the file to gather them. */
static mica_status set_classes(csv *c, mica_dataset *set)
{
    if (c->opts.classes != NULL)
        return mica_classes_copy(c->ctx, set, c->opts.classes, c->opts.class_count);
    if (!c->names)
        return MICA_OK;
    c->classes = mica_allocate(c->ctx, sizeof *c->classes);
    if (c->classes == NULL)
        return c->ctx->status;
    c->classes->count = 0;
    c->classes->used = 0;
    mica_status status = start_rows(c);
    if (status == MICA_OK)
        status = read_rows(c, NULL);
    if (status == MICA_OK)
        status = mica_classes_give(c->ctx, set, c->classes);
    mica_release(c->ctx, c->classes, sizeof *c->classes);
    c->classes = NULL;
    return status;
}

/* The last pass, and those before it if there is more to find out. */
static mica_status fill(csv *c, mica_dataset *set)
{
    MICA_TRY(set_classes(c, set));
    size_t rows = c->rows;
    MICA_TRY(allocate(c, set));
    MICA_TRY(start_rows(c));
    MICA_TRY(read_rows(c, set));
    return c->rows == rows ? MICA_OK : changed(c);
}

mica_status mica_csv_read(mica_context *ctx, mica_dataset *out, mica_stream *stream,
                          const mica_csv_opts *opts)
{
    csv c = {.ctx = ctx, .stream = stream};
    if (opts != NULL)
        c.opts = *opts;
    if (c.opts.delimiter == 0)
        c.opts.delimiter = ',';
    c.names = c.opts.classes != NULL;
    MICA_TRY(rewind_to_start(&c));
    MICA_TRY(read_first(&c));
    MICA_TRY(find_label(&c));
    MICA_TRY(start_rows(&c));
    MICA_TRY(read_rows(&c, NULL));
    if (c.rows == 0)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: line %zu: the file has no numbers",
                         MICA_QUOTE(stream->file.path), c.line);
    mica_dataset set = {0};
    mica_status status = fill(&c, &set);
    if (status != MICA_OK) {
        mica_dataset_destroy(ctx, &set);
        return status;
    }
    *out = set;
    return MICA_OK;
}
