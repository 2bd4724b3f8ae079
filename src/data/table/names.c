/* The names that a header gives to the columns below it. */
#include <string.h>

#include "base/format.h"
#include "base/sort.h"
#include "data/table/table.h"

int mica_compare_words(const char *a, size_t n, const char *b, size_t m)
{
    int order = memcmp(a, b, n < m ? n : m);
    return order != 0 ? order : n < m ? -1 : n > m;
}

static int by_name(const void *a, const void *b)
{
    const mica_name *x = a, *y = b;
    int order = mica_compare_words(x->text, x->length, y->text, y->length);
    return order != 0 ? order : x->column < y->column ? -1 : x->column > y->column;
}

static bool same(const mica_name *a, const mica_name *b)
{
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

const mica_name *mica_names_sort(mica_name *names, size_t count)
{
    mica_sort(names, count, sizeof names[0], by_name);
    for (size_t i = 1; i < count; i++)
        if (same(&names[i - 1], &names[i]))
            return &names[i];
    return NULL;
}

/* " (column 16384)", or "column 16384", and a zero byte. */
#define MADE 32

/* One block: [ names | their text ] */
mica_status mica_names_make(mica_context *ctx, mica_names *out, const mica_csv_field *fields, size_t count,
                            bool header)
{
    size_t bytes = count * (sizeof(mica_name) + MADE);
    for (size_t i = 0; header && i < count; i++)
        bytes += fields[i].length;
    *out = (mica_names){.sorted = mica_allocate(ctx, bytes), .count = count, .bytes = bytes};
    if (out->sorted == NULL)
        return ctx->status;
    for (size_t i = 0; i < count; i++)
        out->sorted[i] = (mica_name){fields[i].text, header ? fields[i].length : 0, (int)i};
    (void)mica_names_sort(out->sorted, count);
    char *at = (char *)(out->sorted + count);
    mica_name before = {.column = -1};
    for (size_t i = 0; i < count; i++) {
        mica_name *name = &out->sorted[i], given = *name;
        memcpy(at, given.text, given.length);
        if (given.length == 0)
            name->length = (size_t)mica_format(at, MADE, "column %d", given.column + 1);
        else if (before.column >= 0 && same(&before, &given))
            name->length += (size_t)mica_format(at + given.length, MADE, " (column %d)", given.column + 1);
        name->text = at;
        at += name->length;
        before = given;
    }
    out->twice = mica_names_sort(out->sorted, count);
    return MICA_OK;
}

void mica_names_free(mica_context *ctx, mica_names *names)
{
    mica_release(ctx, names->sorted, names->bytes);
    *names = (mica_names){0};
}

int mica_names_find(const mica_names *names, const char *text)
{
    size_t length = strlen(text), low = 0, high = names->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const mica_name *name = &names->sorted[middle];
        int order = mica_compare_words(text, length, name->text, name->length);
        if (order == 0)
            return name->column;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}
