/* Tables: columns, their values, and what they are used for. */
#include "data/table/table.h"

#include <string.h>

#include "io/number.h"
#include "base/sort.h"
#include "io/quote.h"

mica_status mica_table_create(mica_context *ctx, mica_table **out, int columns)
{
    size_t bytes = (size_t)columns * sizeof(mica_own_column);
    mica_table *table = mica_allocate(ctx, sizeof *table);
    if (table == NULL)
        return ctx->status;
    *table = (mica_table){.count = columns, .columns = mica_allocate(ctx, bytes)};
    if (table->columns == NULL) {
        mica_release(ctx, table, sizeof *table);
        return ctx->status;
    }
    memset(table->columns, 0, bytes);
    *out = table;
    return MICA_OK;
}

void mica_table_destroy(mica_context *ctx, mica_table *table)
{
    if (table == NULL)
        return;
    for (int i = 0; i < table->count; i++) {
        mica_own_column *c = &table->columns[i];
        mica_release(ctx, c->block, c->bytes);
        mica_release(ctx, c->name, c->name_bytes);
    }
    mica_release(ctx, table->chunks, table->chunk_room * sizeof *table->chunks);
    mica_release(ctx, table->columns, (size_t)table->count * sizeof *table->columns);
    mica_release(ctx, table, sizeof *table);
}

mica_status mica_table_name(mica_context *ctx, mica_own_column *c, const char *name, size_t length)
{
    c->name = mica_allocate(ctx, length + 1);
    if (c->name == NULL)
        return ctx->status;
    memcpy(c->name, name, length);
    c->name[length] = '\0';
    c->name_bytes = length + 1;
    c->column.name = c->name;
    return MICA_OK;
}

int mica_table_columns(const mica_table *table) { return table->count; }
mica_index mica_table_rows(const mica_table *table) { return table->rows; }
char mica_table_delimiter(const mica_table *table) { return table->delimiter; }
bool mica_table_has_header(const mica_table *table) { return table->has_header; }

const mica_column *mica_table_column(const mica_table *table, int column)
{
    return column >= 0 && column < table->count ? &table->columns[column].column : NULL;
}

int mica_table_find(const mica_table *table, const char *name)
{
    for (int i = 0; name != NULL && i < table->count; i++)
        if (strcmp(table->columns[i].column.name, name) == 0)
            return i;
    return -1;
}

/* ---- Values ---- */

/* A value on its way into a column. */
typedef struct sortable {
    const char *text;
    size_t length;
    double number;
    uint64_t count;
} sortable;

static int by_word(const void *a, const void *b)
{
    const sortable *x = a, *y = b;
    return mica_compare_words(x->text, x->length, y->text, y->length);
}

static int by_number(const void *a, const void *b)
{
    const sortable *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number ? 1 : by_word(a, b);
}

/* "1" and "1.0" are one number: counted together, under the first of the two. */
static int join_equal_numbers(sortable *values, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (kept > 0 && values[i].number == values[kept - 1].number)
            values[kept - 1].count += values[i].count;
        else
            values[kept++] = values[i];
    }
    return kept;
}

/* One block: [ numbers | counts | values | their text ] */
static mica_status store_values(mica_context *ctx, mica_own_column *c, const sortable *values, int count)
{
    size_t n = (size_t)count, text = 0;
    for (int i = 0; i < count; i++)
        text += values[i].length + 1;
    size_t bytes = n * (sizeof(double) + sizeof(uint64_t) + sizeof(char *)) + text;
    char *block = mica_allocate(ctx, bytes > 0 ? bytes : 1);
    if (block == NULL)
        return ctx->status;
    double *numbers = (double *)(void *)block;
    uint64_t *counts = (uint64_t *)(void *)(numbers + n);
    const char **words = (const char **)(void *)(counts + n);
    char *at = (char *)(words + n);
    for (int i = 0; i < count; i++) {
        numbers[i] = values[i].number;
        counts[i] = values[i].count;
        words[i] = memcpy(at, values[i].text, values[i].length);
        at += values[i].length;
        *at++ = '\0';
    }
    c->block = block;
    c->bytes = bytes > 0 ? bytes : 1;
    c->numbers = numbers;
    c->column.counts = counts;
    c->column.values = words;
    c->column.value_count = count;
    return MICA_OK;
}

mica_status mica_table_give_values(mica_context *ctx, mica_own_column *c, const mica_value_list *list,
                                   bool numeric)
{
    int count = (int)list->count;
    size_t bytes = (size_t)(count > 0 ? count : 1) * sizeof(sortable);
    sortable *values = mica_allocate(ctx, bytes);
    if (values == NULL)
        return ctx->status;
    for (int i = 0; i < count; i++) {
        const mica_value_entry *e = &list->entries[i];
        values[i] = (sortable){list->text + e->start, e->length, 0, e->count};
        if (numeric)
            values[i].number = mica_field_read(values[i].text, values[i].length, '\0').value;
    }
    c->numeric = numeric;
    mica_sort(values, (size_t)count, sizeof values[0], numeric ? by_number : by_word);
    mica_status status = store_values(ctx, c, values, numeric ? join_equal_numbers(values, count) : count);
    mica_release(ctx, values, bytes);
    return status;
}

int mica_table_value_find(const mica_own_column *c, const char *text, size_t length, char delimiter)
{
    double number = 0;
    if (c->numeric) {
        mica_field f = mica_field_read(text, length, delimiter);
        if (f.kind != MICA_FIELD_NUMBER)
            return -1;
        number = f.value;
    }
    for (int low = 0, high = c->column.value_count; low < high;) {
        int middle = low + (high - low) / 2, order;
        const char *word = c->column.values[middle];
        if (c->numeric)
            order = number < c->numbers[middle] ? -1 : number > c->numbers[middle];
        else
            order = mica_compare_words(text, length, word, strlen(word));
        if (order == 0)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

/* ---- What columns are used for ---- */

static mica_status check_column(mica_context *ctx, const char *op, const mica_table *table, int column)
{
    if (table == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: table is NULL", op);
    if (column < 0 || column >= table->count)
        return mica_fail(ctx, MICA_ERR_INDEX, "%s: column %d of %d", op, column, table->count);
    return MICA_OK;
}

mica_status mica_table_set_kind(mica_context *ctx, mica_table *table, int column, mica_column_kind kind)
{
    static const char op[] = "table_set_kind";
    MICA_TRY(check_column(ctx, op, table, column));
    mica_own_column *c = &table->columns[column];
    if (c->column.kind == kind)
        return MICA_OK;
    if (kind != MICA_COLUMN_CATEGORY && kind != MICA_COLUMN_NUMBER)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: column %s can only become a category or a number", op,
                         MICA_QUOTE(c->column.name));
    if (kind == MICA_COLUMN_NUMBER && !c->numeric)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: column %s is not a column of numbers", op,
                         MICA_QUOTE(c->column.name));
    if (c->column.kind != MICA_COLUMN_NUMBER && c->column.kind != MICA_COLUMN_CATEGORY)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: column %s %s", op, MICA_QUOTE(c->column.name),
                         c->column.kind == MICA_COLUMN_EMPTY  ? "has no values"
                         : c->column.kind == MICA_COLUMN_DATE ? "is a date, which cannot be a category"
                                                              : "is text of too many different values");
    if (kind == MICA_COLUMN_CATEGORY && c->column.value_count == 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT,
                         "%s: column %s has more than %d different values, too many for a category", op,
                         MICA_QUOTE(c->column.name), MICA_TABLE_MOST_VALUES);
    c->column.kind = kind;
    table->encoded = false;
    return MICA_OK;
}

mica_status mica_table_set_role(mica_context *ctx, mica_table *table, int column, int role)
{
    static const char op[] = "table_set_role";
    MICA_TRY(check_column(ctx, op, table, column));
    mica_column *c = &table->columns[column].column;
    if (role < 0 || role > (MICA_ROLE_INPUT | MICA_ROLE_TARGET))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: role is %d", op, role);
    if (role != 0 && (c->kind == MICA_COLUMN_TEXT || c->kind == MICA_COLUMN_EMPTY))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: column %s %s", op, MICA_QUOTE(c->name),
                         c->kind == MICA_COLUMN_EMPTY ? "has no values"
                                                      : "is text, which is neither a number nor a category");
    if ((role & MICA_ROLE_TARGET) != 0 && c->kind == MICA_COLUMN_DATE)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: column %s is a date, which cannot be a target", op,
                         MICA_QUOTE(c->name));
    c->role = role;
    table->encoded = false;
    return MICA_OK;
}
