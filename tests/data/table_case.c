#include "data/table_case.h"

#include <stdio.h>
#include <string.h>

mica_status table_scan(mica_context *ctx, mica_table **table, const char *text, const mica_scan_opts *opts)
{
    return mica_table_scan_memory(ctx, table, text, strlen(text), "file", opts);
}

mica_status table_load(mica_context *ctx, mica_dataset *set, const mica_table *table, const char *text,
                       const mica_table_read_opts *opts)
{
    return mica_table_load_memory(ctx, set, table, text, strlen(text), "file", opts);
}

const char *table_kinds(const mica_table *table)
{
    static const char *const names[] = {"number", "category", "date", "text", "empty"};
    static char text[512];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < mica_table_columns(table); i++) {
        const mica_column *c = mica_table_column(table, i);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", i > 0 ? ", " : "",
                                 names[c->kind], c->name);
    }
    return text;
}
