/* mica info of a table: its columns, their kinds and values, and the first rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mica/mica.h>

#include "cli/info/info.h"
#include "cli/model/tables.h"
#include "cli/model/take.h"
#include "cli/picture/text.h"

enum { VALUES_SHOWN = 5, PREVIEW_BYTES = 4096, PREVIEW_LINES = 4, WIDEST_NAME = 30 };

static const char *const kind_names[] = {"number", "category", "date", "text", "empty"};

/* ---- JSON ---- */

static void json_values(const mica_column *c)
{
    printf(", \"values\": {");
    for (int i = 0; i < c->value_count; i++) {
        printf("%s", i > 0 ? ", " : "");
        put_json(stdout, c->values[i]);
        printf(": %llu", (unsigned long long)c->counts[i]);
    }
    printf("}");
}

static void table_json(const mica_table *t)
{
    char delimiter[] = {mica_table_delimiter(t), '\0'};
    printf("{\"kind\": \"table\", \"rows\": %td, \"delimiter\": ", mica_table_rows(t));
    put_json(stdout, delimiter);
    printf(", \"header\": %s, \"columns\": [", mica_table_has_header(t) ? "true" : "false");
    for (int i = 0; i < mica_table_columns(t); i++) {
        const mica_column *c = mica_table_column(t, i);
        printf("%s\n{\"name\": ", i > 0 ? "," : "");
        put_json(stdout, c->name);
        printf(", \"kind\": \"%s\", \"missing\": %llu, \"different\": ", kind_names[c->kind],
               (unsigned long long)c->missing);
        if (c->different > MICA_TABLE_MOST_VALUES)
            printf("null");
        else
            printf("%llu", (unsigned long long)c->different);
        if (c->kind == MICA_COLUMN_NUMBER || c->kind == MICA_COLUMN_DATE) {
            const struct {
                const char *key;
                double value;
            } numbers[] = {{"least", c->least},
                           {"most", c->most},
                           {"mean", c->mean},
                           {"deviation", c->deviation},
                           {"median", c->median}};
            for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
                printf(", \"%s\": ", numbers[k].key);
                put_json_number(stdout, numbers[k].value);
            }
        }
        if (c->kind == MICA_COLUMN_CATEGORY)
            json_values(c);
        printf("}");
    }
    printf("]}\n");
}

/* ---- Text ---- */

static void put_date(double seconds)
{
    time_t when = (time_t)seconds;
    struct tm parts;
    char text[32] = "?";
    if (gmtime_r(&when, &parts) != NULL)
        (void)strftime(text, sizeof text, "%Y-%m-%d", &parts);
    printf("%s", text);
}

/* The most common values first, with their share of the rows that have one. */
static void put_values(const mica_column *c, mica_index rows)
{
    int order[VALUES_SHOWN], shown = 0;
    double known = (double)rows - (double)c->missing;
    for (; shown < VALUES_SHOWN && shown < c->value_count; shown++) {
        int best = -1;
        for (int i = 0; i < c->value_count; i++) {
            bool used = false;
            for (int k = 0; k < shown; k++)
                used = used || order[k] == i;
            if (!used && (best < 0 || c->counts[i] > c->counts[best]))
                best = i;
        }
        order[shown] = best;
        printf("%s", shown > 0 ? ", " : "");
        put_plain_up_to(stdout, c->values[best], WIDEST_NAME);
        printf(" %.0f %%", 100 * (double)c->counts[best] / known);
    }
    if (shown < c->value_count)
        printf(", %d more", c->value_count - shown);
}

static void put_range(const mica_column *c, mica_index rows)
{
    switch (c->kind) {
    case MICA_COLUMN_NUMBER:
        printf("%s to ", number_text(c->least).text);
        printf("%s, mean ", number_text(c->most).text);
        printf("%s%s", number_text(c->mean).text, c->counts_rows ? ": counts the rows" : "");
        break;
    case MICA_COLUMN_DATE:
        put_date(c->least);
        printf(" to ");
        put_date(c->most);
        break;
    case MICA_COLUMN_CATEGORY:
        put_values(c, rows);
        break;
    default:
        break;
    }
}

static size_t characters(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static void table_text(const mica_table *t, const char *path)
{
    char delimiter = mica_table_delimiter(t);
    size_t width = 6;
    for (int i = 0; i < mica_table_columns(t); i++) {
        size_t length = characters(mica_table_column(t, i)->name);
        width = length > width ? length : width;
    }
    width = width < WIDEST_NAME ? width : WIDEST_NAME;
    put_plain(stdout, path);
    printf(": a table of %s rows and %d column%s", count_text((double)mica_table_rows(t)).text,
           mica_table_columns(t), mica_table_columns(t) == 1 ? "" : "s");
    if (mica_table_columns(t) > 1)
        printf(", delimiter %s", delimiter == '\t' ? "tab" : (char[]){'"', delimiter, '"', '\0'});
    printf(", %s header\n\n%-*s  %-8s %9s %9s  values\n", mica_table_has_header(t) ? "with a" : "no",
           (int)width, "column", "kind", "different", "missing");
    for (int i = 0; i < mica_table_columns(t); i++) {
        const mica_column *c = mica_table_column(t, i);
        size_t length = characters(c->name);
        put_plain_up_to(stdout, c->name, WIDEST_NAME);
        printf("%*s  %-8s ", length < width ? (int)(width - length) : 0, "", kind_names[c->kind]);
        if (c->different > MICA_TABLE_MOST_VALUES)
            printf("%9s", "> 1,000");
        else
            printf("%9s", count_text((double)c->different).text);
        printf(" %9s  ", c->missing > 0 ? count_text((double)c->missing).text : "-");
        if (c->odd > 0) {
            printf("numbers but for %s, such as \"", count_text((double)c->odd).text);
            put_plain(stdout, c->odd_value);
            printf("\"%s", c->kind == MICA_COLUMN_CATEGORY ? "; " : "");
        }
        put_range(c, mica_table_rows(t));
        printf("\n");
    }
}

/* The first lines as they are, if the file is not packed. */
static void put_preview(const char *path)
{
    char text[PREVIEW_BYTES + 1];
    FILE *file = fopen(path, "rb");
    size_t length = file != NULL ? fread(text, 1, PREVIEW_BYTES, file) : 0;
    if (file != NULL)
        fclose(file);
    if (length < 2 || (unsigned char)text[0] == 0x1f)
        return;
    text[length] = '\0';
    printf("\n");
    char *line = length > 2 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text; /* a byte order mark */
    for (int i = 0; i < PREVIEW_LINES && *line != '\0'; i++) {
        size_t n = strcspn(line, "\r\n");
        char *next = line + n + strspn(line + n, "\r\n");
        line[n] = '\0';
        printf("  ");
        put_plain_up_to(stdout, line, 100);
        printf("\n");
        line = next;
    }
}

int info_table(mica_context *ctx, const info_settings *set, const char *path)
{
    mica_table *table;
    mica_scan_opts scan = {.header = set->table.header < 0    ? MICA_CSV_HEADER_AUTO
                                     : set->table.header == 1 ? MICA_CSV_HEADER_YES
                                                              : MICA_CSV_HEADER_NO};
    if (set->table.delimiter != NULL &&
        (scan.delimiter = delimiter_named(&verb_info, set->table.delimiter)) == '\0')
        return EXIT_USAGE;
    if (mica_table_scan(ctx, &table, path, &scan) != MICA_OK)
        return verb_failed(&verb_info, ctx);
    if (set->shared.json) {
        table_json(table);
    } else {
        table_text(table, path);
        put_preview(path);
    }
    mica_table_destroy(ctx, table);
    return EXIT_OK;
}
