/* Tables as JSON, to be kept with a net: written by one walk that counts or writes, read back as a stranger's.
 *
 *     {"version": 1, "delimiter": ",", "header": true, "rows": 150, "encoded": true, "missing": "mean",
 *      "raw_targets": false, "columns": [{"name": "width", "kind": "number", "role": 1, ...}, ...]} */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "data/table/table.h"
#include "io/json.h"
#include "io/number.h"
#include "io/quote.h"
#include "io/utf8.h"

static const char *const kind_names[] = {"number", "category", "date", "text", "empty"};
static const char *const missing_names[] = {"mean", "median", "drop", "refuse"};

enum {
    KINDS = sizeof kind_names / sizeof kind_names[0],
    MISSINGS = sizeof missing_names / sizeof missing_names[0]
};

/* ---- Writing ---- */

typedef struct sink {
    char *text;
    size_t room, used; /* used may be more than there is room for */
} sink;

static void put_bytes(sink *s, const char *bytes, size_t count)
{
    if (s->used < s->room && count <= s->room - s->used)
        memcpy(s->text + s->used, bytes, count);
    s->used += count;
}

static void put(sink *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(sink *s, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int count = mica_vformat(text, sizeof text, format, args);
    va_end(args);
    put_bytes(s, text, (size_t)count);
}

static void put_string(sink *s, const char *text)
{
    put_bytes(s, "\"", 1);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            put(s, "\\%c", c);
        else if (c < 0x20)
            put(s, "\\u%04x", c);
        else
            put_bytes(s, text, 1);
    }
    put_bytes(s, "\"", 1);
}

static void put_number(sink *s, const char *name, double number)
{
    char text[MICA_NUMBER_ROOM];
    put(s, ", \"%s\": %s", name, mica_print_number(text, 17, number));
}

static void put_column(sink *s, const mica_own_column *own)
{
    const mica_column *c = &own->column;
    put(s, "\n{\"name\": ");
    put_string(s, c->name);
    put(s, ", \"kind\": \"%s\", \"role\": %d, \"missing\": %llu, \"different\": %llu", kind_names[c->kind],
        c->role, (unsigned long long)c->missing, (unsigned long long)c->different);
    put(s, ", \"whole\": %s, \"counts_rows\": %s, \"times\": %s", c->whole ? "true" : "false",
        c->counts_rows ? "true" : "false", c->times ? "true" : "false");
    put_number(s, "least", c->least);
    put_number(s, "most", c->most);
    put_number(s, "mean", c->mean);
    put_number(s, "deviation", c->deviation);
    put_number(s, "median", c->median);
    /* Numbers that are inputs or targets as such need no list of their values. */
    if (c->kind == MICA_COLUMN_CATEGORY) {
        put(s, ", \"numeric\": %s, \"values\": [", own->numeric ? "true" : "false");
        for (int i = 0; i < c->value_count; i++) {
            put_bytes(s, ", ", i > 0 ? 2 : 0);
            put_string(s, c->values[i]);
        }
        put(s, "], \"counts\": [");
        for (int i = 0; i < c->value_count; i++)
            put(s, "%s%llu", i > 0 ? ", " : "", (unsigned long long)c->counts[i]);
        put(s, "]");
    }
    put(s, "}");
}

static mica_status check_utf8(mica_context *ctx, const mica_column *c, const char *text, const char *what)
{
    size_t length = strlen(text);
    for (size_t at = 0, size; at < length; at += size) {
        uint32_t code;
        size = mica_utf8_decode(&code, text + at, length - at);
        if (size == 0)
            return mica_fail(ctx, MICA_ERR_FORMAT, "column %s: %s is not UTF-8: %s", MICA_QUOTE(c->name),
                             what, MICA_QUOTE(text));
    }
    return MICA_OK;
}

static mica_status put_table(mica_context *ctx, sink *s, const mica_table *table)
{
    put(s, "{\"version\": 1, \"delimiter\": ");
    put_string(s, (char[]){table->delimiter, '\0'});
    put(s, ", \"header\": %s, \"rows\": %td", table->has_header ? "true" : "false", table->rows);
    put(s, ", \"encoded\": %s, \"missing\": \"%s\", \"raw_targets\": %s, \"columns\": [",
        table->encoded ? "true" : "false", missing_names[table->encode.missing],
        table->encode.raw_targets ? "true" : "false");
    for (int i = 0; i < table->count; i++) {
        const mica_column *c = &table->columns[i].column;
        MICA_TRY(check_utf8(ctx, c, c->name, "its name"));
        for (int k = 0; c->kind == MICA_COLUMN_CATEGORY && k < c->value_count; k++)
            MICA_TRY(check_utf8(ctx, c, c->values[k], "a value"));
        put_bytes(s, ",", i > 0 ? 1 : 0);
        put_column(s, &table->columns[i]);
    }
    put_bytes(s, "]}", 3);
    return MICA_OK;
}

/* Counted first, so that nothing is written where there is too little room. */
mica_status mica_table_to_text(mica_context *ctx, char *text, size_t *bytes, const mica_table *table)
{
    if (table == NULL || bytes == NULL || (text == NULL && *bytes > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_to_text: an argument is NULL");
    sink counted = {NULL, 0, 0}, s = {text, *bytes, 0};
    MICA_TRY(put_table(ctx, &counted, table));
    *bytes = counted.used;
    if (text == NULL)
        return MICA_OK;
    if (counted.used > s.room)
        return mica_fail(ctx, MICA_ERR_ARGUMENT,
                         "table_to_text: the text takes %zu bytes, there is room for %zu", counted.used,
                         s.room);
    return put_table(ctx, &s, table);
}

/* ---- Reading ---- */

typedef struct reader {
    mica_context *ctx;
    mica_json json;
    mica_json_token token;
    mica_table *table;
    char *scratch; /* as long as the text: for strings without their escapes */
} reader;

static mica_status wrong(const reader *r, const char *what)
{
    return mica_fail(r->ctx, MICA_ERR_FORMAT, "a table's text, byte %zu: %s",
                     r->json.error != NULL ? r->json.at : r->token.offset,
                     r->json.error != NULL ? r->json.error : what);
}

static mica_status next(reader *r) { return mica_json_next(&r->json, &r->token) ? MICA_OK : wrong(r, ""); }

static mica_status need(reader *r, mica_json_kind kind, const char *what)
{
    MICA_TRY(next(r));
    return r->token.kind == kind ? MICA_OK : wrong(r, what);
}

static bool is_key(const reader *r, const char *key)
{
    return r->token.length == strlen(key) && memcmp(r->token.text, key, r->token.length) == 0;
}

static mica_status read_bool(reader *r, bool *out)
{
    MICA_TRY(next(r));
    *out = r->token.kind == MICA_JSON_TRUE;
    return *out || r->token.kind == MICA_JSON_FALSE ? MICA_OK : wrong(r, "expected true or false");
}

static mica_status read_count(reader *r, uint64_t *out, uint64_t most)
{
    MICA_TRY(need(r, MICA_JSON_NUMBER, "expected a number"));
    return mica_json_unsigned(out, &r->token) && *out <= most ? MICA_OK : wrong(r, "the number is too large");
}

static mica_status read_number(reader *r, double *out)
{
    MICA_TRY(need(r, MICA_JSON_NUMBER, "expected a number"));
    return mica_parse_number(out, r->token.text, r->token.length) && isfinite(*out)
               ? MICA_OK
               : wrong(r, "expected a finite number");
}

/* Into the scratch, which has room for all of them. */
static mica_status read_string(reader *r, size_t *length)
{
    MICA_TRY(need(r, MICA_JSON_STRING, "expected a string"));
    *length = mica_json_decode(r->scratch, &r->token);
    return memchr(r->scratch, '\0', *length) == NULL ? MICA_OK : wrong(r, "a zero byte");
}

/* One of the names; its number. */
static mica_status read_choice(reader *r, int *out, const char *const *names, int count)
{
    size_t length;
    MICA_TRY(read_string(r, &length));
    for (*out = 0; *out < count; (*out)++)
        if (strlen(names[*out]) == length && memcmp(names[*out], r->scratch, length) == 0)
            return MICA_OK;
    return wrong(r, "an unknown word");
}

static mica_status read_values(reader *r, mica_value_list *list)
{
    MICA_TRY(need(r, MICA_JSON_ARRAY, "expected a list"));
    for (;;) {
        size_t length;
        mica_json before = r->json;
        MICA_TRY(next(r));
        if (r->token.kind == MICA_JSON_ARRAY_END)
            return MICA_OK;
        r->json = before;
        MICA_TRY(read_string(r, &length));
        if (length == 0)
            return wrong(r, "a value is empty, which is a missing one");
        uint32_t count = list->count;
        MICA_TRY(mica_value_list_add(r->ctx, list, r->scratch, length));
        if (list->count != count + 1)
            return wrong(r, "a value occurs twice, or there are too many");
    }
}

static mica_status read_counts(reader *r, mica_value_list *list)
{
    MICA_TRY(need(r, MICA_JSON_ARRAY, "expected a list"));
    for (uint32_t i = 0; i < list->count; i++)
        MICA_TRY(read_count(r, &list->entries[i].count, UINT64_MAX));
    return need(r, MICA_JSON_ARRAY_END, "as many counts as values are expected");
}

/* A value by its key. What later versions may add is passed over. */
static mica_status read_member(reader *r, mica_own_column *own, mica_value_list *list)
{
    mica_column *c = &own->column;
    uint64_t number = 0;
    int choice = 0;
    size_t length;
    if (is_key(r, "name")) {
        MICA_TRY(read_string(r, &length));
        return own->name == NULL ? mica_table_name(r->ctx, own, r->scratch, length)
                                 : wrong(r, "a second name");
    }
    if (is_key(r, "kind")) {
        MICA_TRY(read_choice(r, &choice, kind_names, KINDS));
        c->kind = (mica_column_kind)choice;
        return MICA_OK;
    }
    if (is_key(r, "role")) {
        MICA_TRY(read_count(r, &number, MICA_ROLE_INPUT | MICA_ROLE_TARGET));
        c->role = (int)number;
        return MICA_OK;
    }
    const struct {
        const char *key;
        double *number;
        uint64_t *count;
        bool *flag;
    } members[] = {{.key = "missing", .count = &c->missing}, {.key = "different", .count = &c->different},
                   {.key = "whole", .flag = &c->whole},      {.key = "counts_rows", .flag = &c->counts_rows},
                   {.key = "times", .flag = &c->times},      {.key = "numeric", .flag = &own->numeric},
                   {.key = "least", .number = &c->least},    {.key = "most", .number = &c->most},
                   {.key = "mean", .number = &c->mean},      {.key = "deviation", .number = &c->deviation},
                   {.key = "median", .number = &c->median}};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (is_key(r, members[i].key))
            return members[i].number != NULL  ? read_number(r, members[i].number)
                   : members[i].count != NULL ? read_count(r, members[i].count, UINT64_MAX)
                                              : read_bool(r, members[i].flag);
    if (is_key(r, "values"))
        return list->count == 0 ? read_values(r, list) : wrong(r, "a second list of values");
    if (is_key(r, "counts"))
        return read_counts(r, list);
    MICA_TRY(next(r));
    return mica_json_skip(&r->json, &r->token) ? MICA_OK : wrong(r, "");
}

/* What "numeric" says of values. */
static bool all_numbers(const mica_value_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        mica_field f = mica_field_read(list->text + list->entries[i].start, list->entries[i].length, '\0');
        if (f.kind != MICA_FIELD_NUMBER || !isfinite(f.value))
            return false;
    }
    return true;
}

static mica_status check_column(const reader *r, const mica_own_column *own)
{
    const mica_column *c = &own->column;
    if (own->name == NULL)
        return wrong(r, "a column has no name");
    bool idle = c->kind == MICA_COLUMN_TEXT || c->kind == MICA_COLUMN_EMPTY;
    if (c->role != 0 && (idle || (c->kind == MICA_COLUMN_DATE && (c->role & MICA_ROLE_TARGET) != 0)))
        return wrong(r, "a column that has no use has a role");
    if (c->deviation < 0 || c->least > c->most)
        return wrong(r, "the statistics of a column cannot be");
    return c->kind != MICA_COLUMN_CATEGORY || c->value_count > 0 ? MICA_OK
                                                                 : wrong(r, "a category has no values");
}

static mica_status read_column(reader *r, int number)
{
    mica_own_column *own = &r->table->columns[number];
    mica_value_list list = {0};
    mica_status status = MICA_OK;
    if (r->token.kind != MICA_JSON_OBJECT)
        return wrong(r, "expected a column");
    while (status == MICA_OK) {
        status = next(r);
        if (status != MICA_OK || r->token.kind == MICA_JSON_OBJECT_END)
            break;
        status = read_member(r, own, &list);
    }
    if (status == MICA_OK && own->numeric && !all_numbers(&list))
        status = wrong(r, "a value is not a number");
    if (status == MICA_OK && list.count > 0)
        status = mica_table_give_values(r->ctx, own, &list, own->numeric);
    if (status == MICA_OK && list.count > 0 && (uint32_t)own->column.value_count != list.count)
        status = wrong(r, "a number occurs twice among the values");
    mica_value_list_free(r->ctx, &list);
    own->numeric = own->numeric || own->column.kind == MICA_COLUMN_NUMBER;
    return status == MICA_OK ? check_column(r, own) : status;
}

static mica_status check_names(const reader *r)
{
    const mica_table *t = r->table;
    size_t count = (size_t)t->count, bytes = count * sizeof(mica_name);
    mica_name *names = mica_allocate(r->ctx, bytes);
    if (names == NULL)
        return r->ctx->status;
    for (size_t i = 0; i < count; i++)
        names[i] = (mica_name){t->columns[i].name, strlen(t->columns[i].name), (int)i};
    bool differ = mica_names_sort(names, count) == NULL;
    mica_release(r->ctx, names, bytes);
    return differ ? MICA_OK : wrong(r, "two columns have the same name");
}

/* How many columns there are: the list is read twice. */
static mica_status read_columns(reader *r)
{
    int count = 0;
    MICA_TRY(need(r, MICA_JSON_ARRAY, "expected a list of columns"));
    if (r->table != NULL)
        return wrong(r, "a second list of columns");
    mica_json start = r->json;
    for (;; count++) {
        MICA_TRY(next(r));
        if (r->token.kind == MICA_JSON_ARRAY_END)
            break;
        if (!mica_json_skip(&r->json, &r->token))
            return wrong(r, "");
        if (count == MICA_TABLE_MOST_COLUMNS)
            return wrong(r, "too many columns");
    }
    if (count == 0)
        return wrong(r, "a table without columns");
    MICA_TRY(mica_table_create(r->ctx, &r->table, count));
    r->json = start;
    for (int i = 0; i < count; i++) {
        MICA_TRY(next(r));
        MICA_TRY(read_column(r, i));
    }
    MICA_TRY(check_names(r));
    return next(r);
}

static mica_status read_table(reader *r)
{
    uint64_t version = 0, rows = 0;
    bool header = false, encoded = false, raw_targets = false;
    int missing = 0;
    char delimiter = ',';
    MICA_TRY(need(r, MICA_JSON_OBJECT, "expected a table"));
    for (;;) {
        MICA_TRY(next(r));
        if (r->token.kind == MICA_JSON_OBJECT_END)
            break;
        if (is_key(r, "version")) {
            MICA_TRY(read_count(r, &version, 1));
        } else if (is_key(r, "rows")) {
            MICA_TRY(read_count(r, &rows, PTRDIFF_MAX));
        } else if (is_key(r, "header")) {
            MICA_TRY(read_bool(r, &header));
        } else if (is_key(r, "encoded")) {
            MICA_TRY(read_bool(r, &encoded));
        } else if (is_key(r, "raw_targets")) {
            MICA_TRY(read_bool(r, &raw_targets));
        } else if (is_key(r, "missing")) {
            MICA_TRY(read_choice(r, &missing, missing_names, MISSINGS));
        } else if (is_key(r, "delimiter")) {
            size_t length;
            MICA_TRY(read_string(r, &length));
            delimiter = r->scratch[0];
            if (length != 1 || delimiter == '"' || delimiter == '\n' || delimiter == '\r')
                return wrong(r, "this is no delimiter");
        } else if (is_key(r, "columns")) {
            MICA_TRY(read_columns(r));
        } else {
            MICA_TRY(next(r));
            if (!mica_json_skip(&r->json, &r->token))
                return wrong(r, "");
        }
    }
    MICA_TRY(need(r, MICA_JSON_DONE, "more than a table"));
    if (version != 1 || r->table == NULL)
        return wrong(r, "it has no version, or no columns");
    r->table->rows = (mica_index)rows;
    r->table->delimiter = delimiter;
    r->table->has_header = header;
    mica_table_encode_opts opts = {.missing = (mica_missing)missing, .raw_targets = raw_targets};
    return encoded ? mica_table_encode(r->ctx, r->table, &opts) : MICA_OK;
}

mica_status mica_table_from_text(mica_context *ctx, mica_table **out, const char *text)
{
    if (out == NULL || text == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_from_text: %s is NULL", out == NULL ? "out" : "text");
    *out = NULL;
    size_t length = strlen(text);
    reader r = {.ctx = ctx, .json = mica_json_over(text, length), .scratch = mica_allocate(ctx, length + 1)};
    if (r.scratch == NULL)
        return ctx->status;
    mica_status status = read_table(&r);
    mica_release(ctx, r.scratch, length + 1);
    if (status != MICA_OK) {
        mica_table_destroy(ctx, r.table);
        return status;
    }
    *out = r.table;
    return MICA_OK;
}
