/* CSV files as data. */
#include "cli/model/tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/model/saved.h"
#include "cli/model/take.h"
#include "cli/picture/text.h"

#define MOST_CLASSES_OF_NUMBERS \
    20 /* whole numbers from 0 on that are taken for classes, if there are no more */
#define DEFAULT_MEMORY ((size_t)256 << 20)

const char *const table_task_names[] = {"classes", "regression", "yes-no", NULL};
const char *const table_header_names[] = {"no", "yes", NULL};
const char *const table_missing_names[] = {"mean", "median", "drop", "refuse", NULL};

char delimiter_named(const verb *v, const char *name)
{
    static const struct {
        const char *name;
        char delimiter;
    } known[] = {{"comma", ','}, {"semicolon", ';'}, {"tab", '\t'},
                 {"\\t", '\t'},  {"pipe", '|'},      {"space", ' '}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i].name) == 0)
            return known[i].delimiter;
    if (name[0] != '\0' && name[1] == '\0' && strchr("\"\r\n0123456789.+-", name[0]) == NULL)
        return name[0];
    usage_error(v, "--delimiter takes one character, comma, semicolon, tab, pipe or space, not \"%s\"", name);
    return '\0';
}

/* ---- Columns ---- */

/* By name; by number from 1 on, or from -1 on from the end. -1, with a message: there is none. */
static int column_named(const mica_table *t, const verb *v, const char *option, const char *name,
                        size_t length)
{
    char text[256];
    (void)snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : sizeof text - 1), name);
    int column = mica_table_find(t, text), count = mica_table_columns(t);
    if (column >= 0)
        return column;
    char *end;
    long number = strtol(text, &end, 10);
    if (*text != '\0' && *end == '\0' && number != 0 && number >= -count && number <= count)
        return (int)(number > 0 ? number - 1 : count + number);
    const char **names = take((size_t)count, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = mica_table_column(t, i)->name;
    const char *meant = nearest(text, names, (size_t)count, sizeof *names);
    usage_error(v, "%s: there is no column \"%s\"%s%s%s", option, text,
                meant != NULL ? "; did you mean \"" : "", meant != NULL ? meant : "",
                meant != NULL ? "\"?" : "");
    free(names);
    return -1;
}

/* ---- What is to be learned ---- */

static bool looks_like_classes(const mica_column *c, mica_index rows)
{
    return c->kind == MICA_COLUMN_CATEGORY ||
           (c->kind == MICA_COLUMN_NUMBER && c->whole && c->least >= 0 && c->value_count > 1 &&
            c->value_count <= MOST_CLASSES_OF_NUMBERS && 3 * (mica_index)c->value_count <= rows);
}

/* A target as classes, if that is not absurd. */
static int make_classes(mica_table *t, const verb *v, mica_context *ctx, int column, const char *path)
{
    const mica_column *c = mica_table_column(t, column);
    mica_index rows = mica_table_rows(t);
    if (c->different < 2)
        return verb_error(v, EXIT_FILE, "%s: column \"%s\" has %s: there is nothing to learn from one class",
                          path, c->name, c->different == 1 ? "the same value in every row" : "no values");
    if (c->kind == MICA_COLUMN_DATE)
        return verb_error(v, EXIT_FILE, "%s: column \"%s\" is dates: neither numbers nor classes to learn",
                          path, c->name);
    if (c->kind == MICA_COLUMN_TEXT || c->different > MICA_TABLE_MOST_VALUES)
        return verb_error(v, EXIT_FILE, "%s: column \"%s\" has too many different values for classes%s", path,
                          c->name,
                          c->kind == MICA_COLUMN_NUMBER ? ": --task regression predicts numbers" : "");
    if (c->different > MOST_CLASSES_OF_NUMBERS && 2 * (mica_index)c->different > rows)
        return verb_error(v, EXIT_FILE,
                          "%s: column \"%s\" would be %llu classes of %td rows, hardly two of each%s", path,
                          c->name, (unsigned long long)c->different, rows,
                          c->kind == MICA_COLUMN_NUMBER ? ": --task regression predicts numbers" : "");
    return mica_table_set_kind(ctx, t, column, MICA_COLUMN_CATEGORY) == MICA_OK ? EXIT_OK
                                                                                : verb_failed(v, ctx);
}

/* What the targets are, by the first of them; the others must be the same. */
static int choose_task(data *d, mica_table *t, const verb *v, mica_context *ctx, const int *columns,
                       int count, int asked)
{
    bool series = d->window > 0;
    for (int i = 0; i < count; i++) {
        const mica_column *c = mica_table_column(t, columns[i]);
        bool classes = !series && looks_like_classes(c, mica_table_rows(t));
        table_task task = asked >= 0                                  ? (table_task)asked
                          : !classes && c->kind == MICA_COLUMN_NUMBER ? TABLE_NUMBERS
                          : count > 1 && c->value_count == 2          ? TABLE_YES_NO
                                                                      : TABLE_CLASSES;
        if (asked < 0 && count > 1 && task == TABLE_CLASSES && c->kind == MICA_COLUMN_NUMBER)
            task = TABLE_NUMBERS; /* of several targets, numbers are numbers */
        if (i > 0 && task != d->task)
            return verb_error(
                v, EXIT_FILE,
                "%s: \"%s\" and \"%s\" are not of one kind: one net predicts numbers or classes", d->path,
                mica_table_column(t, columns[0])->name, c->name);
        d->task = task;
        if (series && task != TABLE_NUMBERS)
            return verb_error(v, EXIT_FILE, "%s: column \"%s\" is not numbers, which a forecast needs",
                              d->path, c->name);
        if (task == TABLE_NUMBERS && c->kind != MICA_COLUMN_NUMBER)
            return verb_error(v, EXIT_FILE, "%s: column \"%s\" is not numbers, which a regression needs",
                              d->path, c->name);
        int code = task != TABLE_NUMBERS ? make_classes(t, v, ctx, columns[i], d->path) : EXIT_OK;
        if (code != EXIT_OK)
            return code;
        if (task == TABLE_YES_NO && c->value_count != 2)
            return verb_error(v, EXIT_FILE, "%s: column \"%s\" has %d different values: yes or no is two",
                              d->path, c->name, c->value_count);
    }
    if (d->task == TABLE_CLASSES && count > 1)
        return verb_error(v, EXIT_FILE, "%s: several targets are numbers, or each of two values", d->path);
    return EXIT_OK;
}

/* The columns that --label names, or the last one; their numbers in columns [most]. */
static int find_labels(int *columns, int *count, int most, const mica_table *t, const verb *v,
                       const char *label)
{
    *count = 0;
    if (label == NULL)
        label = "-1";
    int whole = mica_table_find(t, label); /* a name may have a comma in it */
    if (whole >= 0) {
        columns[(*count)++] = whole;
        return EXIT_OK;
    }
    for (;;) {
        size_t length = strcspn(label, ",");
        int column = column_named(t, v, "--label", label, length);
        if (column < 0)
            return EXIT_USAGE;
        if (*count == most)
            return usage_error(v, "--label takes at most %d columns", most);
        for (int i = 0; i < *count; i++)
            if (columns[i] == column)
                return usage_error(v, "--label has the column \"%s\" twice",
                                   mica_table_column(t, column)->name);
        columns[(*count)++] = column;
        if (label[length] == '\0')
            return EXIT_OK;
        label += length + 1;
    }
}

static int apply_lists(mica_table *t, const verb *v, mica_context *ctx, const table_settings *s)
{
    for (size_t i = 0; i < s->ignore.count; i++) {
        int column = column_named(t, v, "--ignore", s->ignore.item[i], strlen(s->ignore.item[i]));
        if (column < 0)
            return EXIT_USAGE;
        (void)mica_table_set_role(ctx, t, column, MICA_ROLE_NONE);
    }
    for (size_t i = 0; i < s->categories.count; i++) {
        int column = column_named(t, v, "--category", s->categories.item[i], strlen(s->categories.item[i]));
        if (column < 0)
            return EXIT_USAGE;
        if (mica_table_set_kind(ctx, t, column, MICA_COLUMN_CATEGORY) != MICA_OK ||
            mica_table_set_role(ctx, t, column, MICA_ROLE_INPUT) != MICA_OK)
            return verb_failed(v, ctx);
    }
    return EXIT_OK;
}

static bool has_inputs(const mica_table *t)
{
    for (int i = 0; i < mica_table_columns(t); i++)
        if ((mica_table_column(t, i)->role & MICA_ROLE_INPUT) != 0)
            return true;
    return false;
}

/* Numbers that count the rows are no inputs, unless there is nothing else to learn from. */
static void use_row_numbers(mica_table *t, const verb *v, mica_context *ctx, const table_settings *s)
{
    if (has_inputs(t))
        return;
    for (int i = 0; i < mica_table_columns(t); i++) {
        const mica_column *c = mica_table_column(t, i);
        bool ignored = false;
        for (size_t k = 0; k < s->ignore.count; k++)
            ignored |= column_named(t, v, "--ignore", s->ignore.item[k], strlen(s->ignore.item[k])) == i;
        if (c->counts_rows && c->role == MICA_ROLE_NONE && !ignored)
            (void)mica_table_set_role(ctx, t, i, MICA_ROLE_INPUT);
    }
}

/* Roles, kinds and encoding of a table that was scanned. */
static int choose_columns(data *d, mica_table *t, const verb *v, mica_context *ctx, const table_settings *s)
{
    enum { MOST_LABELS = 256 };
    int labels[MOST_LABELS], count, code = apply_lists(t, v, ctx, s);
    if (code == EXIT_OK)
        code = find_labels(labels, &count, MOST_LABELS, t, v, s->label);
    if (code == EXIT_OK)
        code = choose_task(d, t, v, ctx, labels, count, s->task);
    for (int i = 0; code == EXIT_OK && i < count; i++) {
        int role = d->window > 0 ? MICA_ROLE_INPUT | MICA_ROLE_TARGET : MICA_ROLE_TARGET;
        if (mica_table_set_role(ctx, t, labels[i], role) != MICA_OK)
            code = verb_failed(v, ctx);
    }
    if (code == EXIT_OK)
        use_row_numbers(t, v, ctx, s);
    mica_table_encode_opts encode = {.missing = s->missing >= 0 ? (mica_missing)s->missing
                                                                : MICA_MISSING_MEAN};
    if (code == EXIT_OK && d->window > 0 && encode.missing == MICA_MISSING_DROP)
        code = usage_error(v, "--missing drop would tear holes into a series");
    if (code == EXIT_OK && mica_table_encode(ctx, t, &encode) != MICA_OK)
        code = verb_error(v, EXIT_FILE, "%s: %s", d->path,
                          has_inputs(t) ? mica_error(ctx) : "no column is left as an input");
    return code;
}

/* ---- Rows ---- */

static mica_csv_header header_of(const table_settings *s)
{
    return s->header < 0 ? MICA_CSV_HEADER_AUTO : s->header == 1 ? MICA_CSV_HEADER_YES : MICA_CSV_HEADER_NO;
}

static int reading_of(mica_table_read_opts *out, const verb *v, const table_settings *s)
{
    *out = (mica_table_read_opts){.header = header_of(s)};
    if (s->delimiter != NULL && (out->delimiter = delimiter_named(v, s->delimiter)) == '\0')
        return EXIT_USAGE;
    return EXIT_OK;
}

/* Rows in full, with windows over them: `rows` owns what `set` is a view of. */
static mica_status make_windows(mica_context *ctx, mica_dataset *set, mica_dataset *rows, const data *d,
                                mica_dataset *cells)
{
    mica_status status = mica_table_expand(ctx, rows, d->table, cells);
    if (status == MICA_OK) { /* the targets go along */
        rows->owned[1] = cells->owned[1];
        cells->owned[1] = 0;
        status = mica_dataset_windows(ctx, set, rows, d->window, d->horizon);
    }
    mica_dataset_destroy(ctx, cells);
    return status;
}

/* A training that goes on needs the rows that it began with: with others its parts would be cut elsewhere. */
static int check_rows(const verb *v, const char *path, const data_opts *opts, mica_index rows)
{
    mica_index before = opts->same_rows ? mica_table_rows(opts->known) : rows;
    return rows == before
               ? EXIT_OK
               : verb_error(v, EXIT_FILE,
                            "%s has %td rows, but had %td when the training began, which cannot be resumed: "
                            "train anew, or --weights goes on from what was learned",
                            path, rows, before);
}

static int load_rows(data *d, const verb *v, mica_context *ctx, int part, const char *path,
                     const data_opts *opts)
{
    mica_dataset *set = part == 0 ? &d->samples : &d->test, cells = {0};
    mica_table_found found;
    mica_table_read_opts read;
    int code = reading_of(&read, v, &opts->table);
    if (code != EXIT_OK)
        return code;
    read.found = &found;
    if (part == 0 && opts->known == NULL) { /* as it was scanned */
        read.delimiter = mica_table_delimiter(d->table);
        read.header = mica_table_has_header(d->table) ? MICA_CSV_HEADER_YES : MICA_CSV_HEADER_NO;
    }
    mica_status status = mica_table_load(ctx, &cells, d->table, path, &read);
    if (status == MICA_OK && part == 0)
        code = check_rows(v, path, opts, found.rows + (mica_index)found.dropped);
    if (code != EXIT_OK) {
        mica_dataset_destroy(ctx, &cells);
        return code;
    }
    if (status == MICA_OK && d->window > 0 && cells.count < d->window + d->horizon) {
        mica_index rows = cells.count;
        mica_dataset_destroy(ctx, &cells);
        return verb_error(v, EXIT_FILE, "%s: %td rows: a window of %td and a horizon of %td need more", path,
                          rows, d->window, d->horizon);
    }
    if (status == MICA_OK && d->window > 0)
        status = make_windows(ctx, set, &d->rows[part], d, &cells);
    else if (status == MICA_OK)
        *set = cells;
    if (status != MICA_OK)
        return verb_failed(v, ctx);
    if (opts->tell && (part > 0 || opts->known != NULL))
        table_tell_found(path, v, d->table, &found);
    return EXIT_OK;
}

static uint64_t bytes_of_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && about.st_size > 0 ? (uint64_t)about.st_size : 0;
}

/* Whether rows in memory would take more than they may. */
static bool is_large(const mica_table *t, size_t memory)
{
    mica_index cells = mica_table_targets(t);
    for (int i = 0; i < mica_table_columns(t); i++)
        cells += (mica_table_column(t, i)->role & MICA_ROLE_INPUT) != 0;
    return (double)mica_table_rows(t) * (double)cells * sizeof(float) > (double)memory;
}

/* A table that a checkpoint knows has no index of the file: looked for where it may be large. */
static int index_known(data *d, const verb *v, mica_context *ctx, const data_opts *opts, size_t memory)
{
    mica_table_read_opts read;
    int code = reading_of(&read, v, &opts->table);
    if (code != EXIT_OK || bytes_of_file(d->path) < memory / 4)
        return code;
    char *text = take_table_text(ctx, d->table);
    if (text == NULL)
        return verb_failed(v, ctx);
    mica_status status = mica_table_from_text(ctx, &d->own_table, text);
    if (status == MICA_OK)
        status = mica_table_index(ctx, d->own_table, d->path, &read);
    free(text);
    if (status != MICA_OK)
        return verb_failed(v, ctx);
    d->table = d->own_table;
    d->streamed = d->window == 0 && is_large(d->table, memory);
    return check_rows(v, d->path, opts, mica_table_rows(d->table));
}

static table_task task_of_known(const mica_table *t)
{
    for (int i = 0; i < mica_table_columns(t); i++) {
        const mica_column *c = mica_table_column(t, i);
        if (c->targets > 0)
            return c->kind == MICA_COLUMN_NUMBER ? TABLE_NUMBERS
                   : mica_table_targets(t) > 1   ? TABLE_YES_NO
                                                 : TABLE_CLASSES;
    }
    return TABLE_NUMBERS;
}

static int scan_table(data *d, const verb *v, mica_context *ctx, const data_opts *opts)
{
    mica_table_read_opts read;
    int code = reading_of(&read, v, &opts->table);
    if (code != EXIT_OK)
        return code;
    mica_scan_opts scan = {.delimiter = read.delimiter, .header = read.header};
    if (mica_table_scan(ctx, &d->own_table, d->path, &scan) != MICA_OK)
        return verb_failed(v, ctx);
    d->table = d->own_table;
    if (mica_table_columns(d->table) == 1 && d->window == 0)
        return verb_error(
            v, EXIT_FILE,
            "%s: the file has one column: nothing to learn it from. --window N --horizon N forecasts a "
            "series; --delimiter tells how columns are separated",
            d->path);
    return choose_columns(d, d->own_table, v, ctx, &opts->table);
}

/* The classes of the only target. */
static void find_classes(data *d)
{
    for (int i = 0;
         d->task != TABLE_NUMBERS && mica_table_targets(d->table) == 1 && i < mica_table_columns(d->table);
         i++) {
        const mica_column *c = mica_table_column(d->table, i);
        if (c->targets == 0)
            continue;
        d->class_names = c->values;
        d->class_count = c->value_count;
    }
}

int table_load(data *out, const verb *v, mica_context *ctx, const char *path, const data_opts *opts)
{
    const table_settings *s = &opts->table;
    size_t memory = s->memory > 0 ? s->memory : DEFAULT_MEMORY;
    out->path = path;
    out->window = opts->known != NULL ? opts->window : s->window > 0 ? (mica_index)s->window : 0;
    out->horizon = opts->known != NULL ? opts->horizon : s->horizon > 0 ? (mica_index)s->horizon : 1;
    if (out->window == 0)
        out->horizon = 0;
    out->table = opts->known;
    int code = opts->known != NULL ? index_known(out, v, ctx, opts, memory) : scan_table(out, v, ctx, opts);
    if (code != EXIT_OK)
        return code;
    if (opts->known != NULL)
        out->task = task_of_known(out->table);
    else
        out->streamed = out->window == 0 && is_large(out->table, memory);
    if (opts->tell && opts->known == NULL)
        table_tell(out, v, s->missing >= 0 ? (mica_missing)s->missing : MICA_MISSING_MEAN);
    if (opts->known == NULL)
        code = table_check_steps(out, v, opts->tell);
    if (code != EXIT_OK)
        return code;
    find_classes(out);
    if (!out->streamed)
        code = load_rows(out, v, ctx, 0, path, opts);
    if (code == EXIT_OK && opts->test != NULL) {
        out->has_test = true;
        code = load_rows(out, v, ctx, 1, opts->test, opts);
    }
    if (code == EXIT_OK && out->window > 0) {
        const mica_tensor *y = &out->rows[0].targets;
        out->season = s->season > 0 ? (mica_index)s->season
                                    : season_of(y->data, y->dim[1], out->rows[0].count * 4 / 5, out->window);
        if (s->season > out->window)
            code = usage_error(v, "--season %lld is longer than the window of %td rows", (long long)s->season,
                               out->window);
    }
    return code;
}

void table_release(mica_context *ctx, data *d)
{
    for (int i = 0; i < 2; i++)
        mica_dataset_destroy(ctx, &d->rows[i]);
    mica_table_destroy(ctx, d->own_table);
    d->own_table = NULL;
    d->table = NULL;
}

int table_load_inputs(mica_dataset *out, const verb *v, mica_context *ctx, const char *path,
                      const char *bytes, size_t count, const meaning *m, const table_settings *settings,
                      bool tell)
{
    mica_table_read_opts read;
    mica_table_found found;
    mica_dataset cells = {0};
    int code = reading_of(&read, v, settings);
    if (code != EXIT_OK)
        return code;
    read.no_targets = true;
    read.found = &found;
    mica_status status = bytes != NULL
                             ? mica_table_load_memory(ctx, &cells, m->table, bytes, count, path, &read)
                             : mica_table_load(ctx, &cells, m->table, path, &read);
    if (status == MICA_OK)
        status = mica_table_expand(ctx, out, m->table, &cells);
    out->owned[2] = 0;
    mica_dataset_destroy(ctx, &cells);
    if (status != MICA_OK)
        return verb_failed(v, ctx);
    if (tell)
        table_tell_found(path, v, m->table, &found);
    mica_index window = m->forecast.window, width = out->inputs.dim[1];
    if (m->forecast.horizon == 0)
        return EXIT_OK;
    if (out->count < window)
        return verb_error(v, EXIT_FILE, "%s: %td rows, a forecast needs the last %td", path, out->count,
                          window);
    /* The last window alone, at the front of the memory that the set owns. */
    float *x = out->inputs.data;
    memmove(x, x + (out->count - window) * width, (size_t)(window * width) * sizeof *x);
    out->inputs = mica_3d(x, 1, window, width);
    out->count = 1;
    return EXIT_OK;
}
