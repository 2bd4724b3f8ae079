/* A net that the mica command has trained on a table, used by a program: predict CHECKPOINT ROWS.csv prints a line of
 * answers for each row, in the column's own unit; of classes, the logits. Without arguments it says so.
 *
 *     mica train mlp --data houses.csv --label price
 *     predict mlp-houses/checkpoint.safetensors new.csv */
#include <mica/mica.h>
#include <stdio.h>

enum { BATCH = 32 };

typedef struct predictor {
    mica_context *ctx;
    mica_safetensors *file;
    mica_table *table;
    mica_net *net;
    mica_netfile_info info;
} predictor;

/* The checkpoint has the net as text, what is known of the table, and the weights. */
static mica_status load(predictor *p, const char *path)
{
    mica_status status = mica_safetensors_open(p->ctx, &p->file, path);
    if (status == MICA_OK)
        status = mica_table_from_text(p->ctx, &p->table,
                                      mica_safetensors_metadata_find(p->file, "mica.table"));
    if (status == MICA_OK)
        status = mica_net_create(p->ctx, &p->net);
    if (status == MICA_OK)
        status = mica_netfile_build(p->net, &p->info,
                                    mica_safetensors_metadata_find(p->file, MICA_NETFILE_KEY),
                                    &(mica_netfile_opts){.batch = BATCH, .inference = true});
    if (status == MICA_OK)
        status = mica_net_compile(p->net, NULL);
    if (status == MICA_OK)
        status = mica_net_bind(p->net, NULL, 0);
    return status == MICA_OK ? mica_weights_load(p->net, path) : status;
}

static void print_rows(const predictor *p, const mica_tensor *y, mica_index rows)
{
    mica_index each = y->dim[1], targets = mica_table_targets(p->table);
    for (mica_index i = 0; i < rows; i++)
        for (mica_index j = 0; j < each; j++) {
            float mean = 0, deviation = 1;
            if (targets == each) /* numbers, not classes */
                mica_table_target_unit(&mean, &deviation, p->table, j);
            printf("%.6g%s", (double)(((const float *)y->data)[i * each + j] * deviation + mean),
                   j + 1 < each ? " " : "\n");
        }
}

/* Columns are found by name; nothing is allocated once the rows are loaded. */
static mica_status predict(predictor *p, const char *path)
{
    mica_dataset rows = {0};
    mica_batches *batches = NULL;
    mica_tensor x, y;
    mica_index count = 0;
    mica_table_read_opts read = {.no_targets = true};
    mica_batches_opts opts = {
        .batch = BATCH, .sequential = true, .transform = mica_table_transform(p->table)};
    mica_status status = mica_table_load(p->ctx, &rows, p->table, path, &read);
    if (status == MICA_OK)
        status = mica_batches_create(p->ctx, &batches, &rows, &opts);
    if (status == MICA_OK)
        status = mica_net_tensor(p->net, &x, p->info.input);
    while (status == MICA_OK && (status = mica_batches_next(p->ctx, &x, NULL, &count, batches)) == MICA_OK &&
           count > 0) {
        status = mica_net_forward(p->net);
        if (status == MICA_OK)
            status = mica_net_tensor(p->net, &y, p->info.output);
        if (status == MICA_OK)
            print_rows(p, &y, count);
    }
    mica_batches_destroy(p->ctx, batches);
    mica_dataset_destroy(p->ctx, &rows);
    return status;
}

int main(int argc, char **argv)
{
    predictor p = {.ctx = NULL};
    if (argc != 3) {
        fprintf(stderr, "usage: predict CHECKPOINT ROWS.csv\n");
        return argc == 1 ? 0 : 2;
    }
    if (mica_context_create(&p.ctx, NULL) != MICA_OK)
        return 1;
    mica_status status = load(&p, argv[1]);
    if (status == MICA_OK)
        status = predict(&p, argv[2]);
    if (status != MICA_OK)
        fprintf(stderr, "%s\n", mica_error(p.ctx));
    mica_net_destroy(p.net);
    mica_table_destroy(p.ctx, p.table);
    mica_safetensors_close(p.ctx, p.file);
    mica_context_destroy(p.ctx);
    return status == MICA_OK ? 0 : 1;
}
