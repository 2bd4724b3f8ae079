/* mica info of files: weights and data. */
#include <stdio.h>
#include <string.h>

#include <mica/mica.h>

#include "cli/info/info.h"
#include "cli/model/tables.h"
#include "cli/picture/text.h"

#define VALUE_SHOWN 72 /* characters of a value of the metadata */

/* "F32 [10, 128]": as the file has it. */
static void put_entry_shape(const mica_safetensors_entry *e)
{
    printf("[");
    for (int i = 0; i < e->rank; i++)
        printf("%s%td", i > 0 ? ", " : "", e->dim[i]);
    printf("]");
}

static void weights_json(const mica_safetensors *file)
{
    printf("{\"kind\": \"safetensors\", \"tensors\": [");
    for (size_t i = 0; i < mica_safetensors_count(file); i++) {
        const mica_safetensors_entry *e = mica_safetensors_at(file, i);
        printf("%s\n{\"name\": ", i > 0 ? "," : "");
        put_json(stdout, e->name);
        printf(", \"dtype\": ");
        put_json(stdout, e->dtype_name);
        printf(", \"shape\": ");
        put_entry_shape(e);
        printf(", \"offset\": %llu, \"bytes\": %llu}", (unsigned long long)e->offset,
               (unsigned long long)e->bytes);
    }
    printf("], \"metadata\": {");
    for (size_t i = 0; i < mica_safetensors_metadata_count(file); i++) {
        const mica_metadata *m = mica_safetensors_metadata_at(file, i);
        printf("%s\n", i > 0 ? "," : "");
        put_json(stdout, m->key);
        printf(": ");
        put_json(stdout, m->value);
    }
    printf("}}\n");
}

/* What a net of a table must be given, and what it says. */
static void put_columns(mica_context *ctx, const char *text)
{
    mica_table *table;
    if (text == NULL || mica_table_from_text(ctx, &table, text) != MICA_OK)
        return; /* the metadata show what is there instead */
    const int roles[] = {MICA_ROLE_INPUT, MICA_ROLE_TARGET};
    for (size_t k = 0; k < 2; k++) {
        printf(k == 0 ? "\ntakes the columns\n" : "\nand was taught\n");
        for (int i = 0; i < mica_table_columns(table); i++) {
            const mica_column *c = mica_table_column(table, i);
            if ((c->role & roles[k]) == 0)
                continue;
            printf("  ");
            put_column(stdout, c, mica_table_rows(table));
            printf("\n");
        }
    }
    mica_table_destroy(ctx, table);
}

static void weights_text(const mica_safetensors *file, const char *path)
{
    size_t count = mica_safetensors_count(file), width = 6;
    double bytes = 0.0;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(mica_safetensors_at(file, i)->name);
        width = length > width && length < 60 ? length : width;
    }
    put_plain(stdout, path);
    printf(": safetensors, %zu tensors\n\n%-*s  %-6s %12s  %s\n", count, (int)width, "tensor", "dtype",
           "bytes", "shape");
    for (size_t i = 0; i < count; i++) {
        const mica_safetensors_entry *e = mica_safetensors_at(file, i);
        bytes += (double)e->bytes;
        put_plain_up_to(stdout, e->name, 240);
        printf("%*s  %-6s %12s  ", strlen(e->name) < width ? (int)(width - strlen(e->name)) : 0, "",
               e->dtype_name, count_text((double)e->bytes).text);
        put_entry_shape(e);
        printf("\n");
    }
    printf("\n%s\n", size_text(bytes).text);
    for (size_t i = 0; i < mica_safetensors_metadata_count(file); i++) {
        const mica_metadata *m = mica_safetensors_metadata_at(file, i);
        printf("%s", i == 0 ? "\nmetadata\n  " : "  ");
        put_plain_up_to(stdout, m->key, 240);
        printf(": ");
        put_plain_up_to(stdout, m->value, VALUE_SHOWN);
        printf("\n");
    }
}

int info_weights(mica_context *ctx, const info_settings *set, const char *path)
{
    mica_safetensors *file;
    if (mica_safetensors_open(ctx, &file, path) != MICA_OK)
        return verb_failed(&verb_info, ctx);
    if (set->shared.json)
        weights_json(file);
    else
        weights_text(file, path);
    if (!set->shared.json)
        put_columns(ctx, mica_safetensors_metadata_find(file, "mica.table"));
    mica_safetensors_close(ctx, file);
    return EXIT_OK;
}

/* ---- Data ---- */

int info_data(mica_context *ctx, const info_settings *set, const char *path, info_data_kind kind)
{
    static const char *const names[] = {"", "idx", "npy", "csv", "png", "jpeg", "netpbm"};
    mica_dataset loaded;
    mica_status status = kind == INFO_IDX   ? mica_dataset_load_idx(ctx, &loaded, path, NULL)
                         : kind == INFO_NPY ? mica_dataset_load_npy(ctx, &loaded, path, NULL)
                                            : mica_dataset_load_image(ctx, &loaded, path);
    if (status != MICA_OK)
        return verb_failed(&verb_info, ctx);
    const mica_tensor *t = &loaded.inputs;
    size_t bytes = mica_tensor_bytes(t);
    if (set->shared.json) {
        printf("{\"kind\": \"%s\", \"dtype\": \"%s\", \"shape\": [", names[kind], mica_dtype_name(t->dtype));
        for (int i = 0; i < t->rank; i++)
            printf("%s%td", i > 0 ? ", " : "", t->dim[i]);
        printf("], \"bytes\": %zu}\n", bytes);
    } else {
        put_plain(stdout, path);
        printf(": %s, %s, %s\n", names[kind], shape_text(t->dtype, t->rank, t->dim).text,
               size_text((double)bytes).text);
    }
    mica_dataset_destroy(ctx, &loaded);
    return EXIT_OK;
}
