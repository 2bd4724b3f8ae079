/* House prices from a table of numbers, words and gaps: which columns there are, how they become numbers, a net that
 * learns the price, and the prices of two houses that it has not seen. A file instead of text in memory takes
 * mica_table_scan and mica_table_load; one that is larger than memory, mica_table_stream_create. */
#include <mica/mica.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HOUSES = 600, BATCH = 32, LINE = 64 };

static const char *const towns[] = {"Bergen", "Molde", "Oslo"};
static char csv[(HOUSES + 1) * LINE];

static double price_of(double area, int rooms, int town)
{
    return 20000 + 2500 * area * (1 + 0.4 * town) + 8000 * rooms;
}

/* One row in ten does not tell the number of rooms. */
static void write_table(void)
{
    mica_random r = mica_random_stream(1, 0);
    size_t used = (size_t)snprintf(csv, sizeof csv, "area,rooms,town,price\n");
    for (int i = 0; i < HOUSES; i++) {
        double area = 40 + 160 * (double)mica_random_uniform(&r);
        int rooms = 1 + (int)(area / 30), town = i % 3;
        double noise = 5000 * (double)mica_random_normal(&r);
        char shown[16];
        (void)snprintf(shown, sizeof shown, "%d", rooms);
        used += (size_t)snprintf(csv + used, sizeof csv - used, "%.1f,%s,%s,%.0f\n", area,
                                 i % 10 == 0 ? "NA" : shown, towns[town],
                                 price_of(area, rooms, town) + noise);
    }
}

static void print_columns(const mica_table *table)
{
    static const char *const kinds[] = {"numbers", "categories", "dates", "text", "no values"};
    for (int i = 0; i < mica_table_columns(table); i++) {
        const mica_column *c = mica_table_column(table, i);
        printf("%-6s %-10s  %3d missing  inputs %d  targets %d\n", c->name, kinds[c->kind], (int)c->missing,
               (int)c->inputs, (int)c->targets);
    }
}

static mica_status build(mica_net *net, mica_index inputs)
{
    mica_value x = mica_net_input(net, "row", MICA_F32, 2, (mica_index[]){BATCH, inputs});
    mica_value target = mica_net_input(net, "target", MICA_F32, 2, (mica_index[]){BATCH, 1});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 32, .activation = MICA_RELU});
    mica_value y = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 1});
    mica_net_output(net, "price", y);
    mica_net_mse(net, y, target, NULL);
    mica_optimizer adam = {.kind = MICA_ADAM, .lr = 0.01f};
    mica_status status = mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam});
    if (status == MICA_OK)
        status = mica_net_bind(net, NULL, 0);
    return status == MICA_OK ? mica_net_initialize(net, 1) : status;
}

/* The validation loss is in squares of the deviation of the prices, because that is their unit inside the net. */
static mica_status train(mica_context *ctx, mica_net *net, const mica_table *table)
{
    mica_dataset set = {0};
    mica_batches *learn = NULL, *check = NULL;
    mica_fit_result result;
    float mean, deviation;
    mica_batches_opts opts = {.batch = BATCH,
                              .transform = mica_table_transform(table),
                              .split = {.part = MICA_PART_TRAIN, .validation = 0.2}};
    mica_status status = mica_table_load_memory(ctx, &set, table, csv, strlen(csv), "houses", NULL);
    if (status == MICA_OK)
        status = mica_batches_create(ctx, &learn, &set, &opts);
    opts.split.part = MICA_PART_VALIDATION;
    if (status == MICA_OK)
        status = mica_batches_create(ctx, &check, &set, &opts);
    if (status == MICA_OK) {
        mica_fit_opts fit = {.epochs = 60,
                             .train = mica_source_of_batches(learn),
                             .validation = mica_source_of_batches(check),
                             .keep_best = true};
        status = mica_fit(net, &result, &fit);
    }
    if (status == MICA_OK) {
        mica_table_target_unit(&mean, &deviation, table, 0);
        printf("validation RMSE %.0f\n", sqrt(result.best_loss) * (double)deviation);
    }
    mica_batches_destroy(ctx, learn);
    mica_batches_destroy(ctx, check);
    mica_dataset_destroy(ctx, &set);
    return status;
}

/* Columns in another order, a town that was not in the table, and no price. */
static mica_status price_new_houses(mica_context *ctx, mica_net *net, const mica_table *table, double *off)
{
    static const char rows[] = "town,rooms,area\nOslo,4,100\nTromso,NA,60\n";
    mica_dataset set = {0};
    mica_batches *batches = NULL;
    mica_tensor x, y;
    mica_index count = 0;
    mica_table_found found;
    mica_table_read_opts read = {.no_targets = true, .found = &found};
    mica_batches_opts opts = {.batch = BATCH, .sequential = true, .transform = mica_table_transform(table)};
    mica_status status = mica_table_load_memory(ctx, &set, table, rows, sizeof rows - 1, "new", &read);
    if (status == MICA_OK)
        status = mica_batches_create(ctx, &batches, &set, &opts);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &x, "row");
    if (status == MICA_OK)
        status = mica_batches_next(ctx, &x, NULL, &count, batches);
    if (status == MICA_OK)
        status = mica_net_forward(net);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &y, "price");
    if (status == MICA_OK) {
        float mean, deviation;
        mica_table_target_unit(&mean, &deviation, table, 0);
        printf("%d unknown town, %d missing value\n", (int)found.unseen, (int)found.missing);
        for (mica_index i = 0; i < count; i++)
            printf("house %d: %.0f\n", (int)i, (double)(((const float *)y.data)[i] * deviation + mean));
        *off = fabs((double)(((const float *)y.data)[0] * deviation + mean) - price_of(100, 4, 2));
    }
    mica_batches_destroy(ctx, batches);
    mica_dataset_destroy(ctx, &set);
    return status;
}

int main(void)
{
    mica_context *ctx;
    mica_net *net;
    mica_table *table = NULL;
    double off = INFINITY;
    if (mica_context_create(&ctx, NULL) != MICA_OK || mica_net_create(ctx, &net) != MICA_OK)
        return 1;
    write_table();
    mica_status status = mica_table_scan_memory(ctx, &table, csv, strlen(csv), "houses", NULL);
    if (status == MICA_OK)
        status = mica_table_set_role(ctx, table, mica_table_find(table, "price"), MICA_ROLE_TARGET);
    if (status == MICA_OK)
        status = mica_table_encode(ctx, table, NULL);
    if (status == MICA_OK) {
        print_columns(table);
        status = build(net, mica_table_inputs(table));
    }
    if (status == MICA_OK)
        status = train(ctx, net, table);
    if (status == MICA_OK)
        status = price_new_houses(ctx, net, table, &off);
    if (status != MICA_OK)
        fprintf(stderr, "%s\n", mica_error(ctx));
    mica_net_destroy(net);
    mica_table_destroy(ctx, table);
    mica_context_destroy(ctx);
    return off < 20000 ? 0 : 1;
}
