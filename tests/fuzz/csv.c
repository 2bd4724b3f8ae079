/* CSV: any bytes, under any options, are an error or a table, whose rows are read as they were scanned. */
#include <string.h>

#include <mica/table.h>

#include "fuzz.h"

/* The table as text and back. */
static mica_table *through_text(mica_context *ctx, const mica_table *table)
{
    size_t bytes = 0;
    mica_table *back = NULL;
    if (mica_table_to_text(ctx, NULL, &bytes, table) != MICA_OK)
        return NULL; /* not UTF-8 */
    char *text = malloc(bytes);
    INSIST(text != NULL && mica_table_to_text(ctx, text, &bytes, table) == MICA_OK);
    INSIST(mica_table_from_text(ctx, &back, text) == MICA_OK);
    free(text);
    return back;
}

static void read_rows(mica_context *ctx, const mica_table *table, bytes in, const mica_table_read_opts *opts)
{
    mica_dataset set = {0}, full = {0};
    mica_status status = mica_table_load_memory(ctx, &set, table, (const char *)in.data, in.left, "input",
                                                opts);
    if (status == MICA_OK) {
        INSIST(set.count > 0 && set.count <= mica_table_rows(table));
        INSIST(mica_table_expand(ctx, &full, table, &set) == MICA_OK);
        const float *x = full.inputs.data;
        for (size_t i = 0; i < mica_tensor_count(&full.inputs); i++)
            INSIST(x[i] - x[i] == 0);
    }
    mica_dataset_destroy(ctx, &full);
    mica_dataset_destroy(ctx, &set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_context *ctx;
    INSIST(mica_context_create(&ctx, &(mica_context_opts){.workspace_bytes = 64}) == MICA_OK);
    size_t live = mica_context_heap(ctx).live_bytes;
    bytes in = {data, size};
    mica_scan_opts opts = {.delimiter = ",;\t\0"[take(&in, 0, 3)],
                           .header = (mica_csv_header)take(&in, 0, 2)};
    mica_table_encode_opts encode = {.missing = (mica_missing)take(&in, 0, 3),
                                     .raw_targets = take(&in, 0, 1) == 1};
    int target = take(&in, 0, 7);
    mica_table *table, *back;
    mica_status status = mica_table_scan_memory(ctx, &table, (const char *)in.data, in.left, "input", &opts);
    INSIST((status == MICA_OK) == (table != NULL));
    if (status == MICA_OK) {
        (void)mica_table_set_kind(ctx, table, target, MICA_COLUMN_CATEGORY);
        (void)mica_table_set_role(ctx, table, target, MICA_ROLE_TARGET);
        if (mica_table_encode(ctx, table, &encode) == MICA_OK) {
            mica_table_read_opts read = {.delimiter = mica_table_delimiter(table),
                                         .header = mica_table_has_header(table) ? MICA_CSV_HEADER_YES
                                                                                : MICA_CSV_HEADER_NO};
            read_rows(ctx, table, in, &read);
            back = through_text(ctx, table);
            if (back != NULL)
                read_rows(ctx, back, in, &read);
            mica_table_destroy(ctx, back);
        }
        mica_table_destroy(ctx, table);
    }
    INSIST(mica_context_heap(ctx).live_bytes == live);
    mica_context_destroy(ctx);
    return 0;
}
