/* A small convolutional net reads handwritten digits.
 *
 *     mnist FOLDER [EPOCHS]
 *
 * FOLDER holds the four files of MNIST, or of any set in its format, under their usual names. */
#include <mica/mica.h>
#include <stdio.h>
#include <stdlib.h>

static mica_status build(mica_net *net)
{
    mica_value x = mica_net_input(net, "image", MICA_F32, 4, (mica_index[]){32, 1, 28, 28});
    mica_value label = mica_net_input(net, "label", MICA_I32, 1, (mica_index[]){32});
    mica_net_conv_opts conv = {.out_channels = 8, .kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU};
    mica_value h = mica_net_conv2d(net, x, &conv);
    h = mica_net_max_pool2d(net, h, &(mica_net_pool_opts){.kernel = {2, 2}});
    conv.out_channels = 16;
    h = mica_net_conv2d(net, h, &conv);
    h = mica_net_max_pool2d(net, h, &(mica_net_pool_opts){.kernel = {2, 2}});
    h = mica_net_flatten(net, h, NULL);
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 128, .activation = MICA_RELU});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 10});
    mica_net_output(net, "logits", h);
    mica_net_cross_entropy(net, h, label, NULL);
    mica_optimizer adam = {.kind = MICA_ADAM};
    mica_status status = mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam});
    if (status == MICA_OK)
        status = mica_net_bind(net, NULL, 0);
    return status == MICA_OK ? mica_net_initialize(net, 1) : status;
}

typedef struct data {
    mica_dataset set;
    mica_batches *batches;
} data;

/* folder/NAME-images-idx3-ubyte.gz and its labels, in batches of numbers from 0 to 1. */
static mica_status load(mica_context *ctx, data *d, const char *folder, const char *name, bool in_order)
{
    char images[512], labels[512];
    snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte.gz", folder, name);
    snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte.gz", folder, name);
    mica_status status = mica_dataset_load_idx(ctx, &d->set, images, labels);
    mica_batches_opts opts = {.batch = 32, .seed = 1, .scale = 1.0f / 255.0f, .sequential = in_order};
    return status == MICA_OK ? mica_batches_create(ctx, &d->batches, &d->set, &opts) : status;
}

static bool report(void *user, const mica_progress *p)
{
    (void)user;
    if (p->epoch_done)
        printf("epoch %d  loss %.4f  test %.4f  accuracy %.2f %%\n", (int)p->epoch + 1, p->loss,
               p->validation->loss, 100.0 * p->validation->accuracy);
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return fprintf(stderr, "usage: %s FOLDER [EPOCHS]\n", argv[0]), 2;
    mica_context *ctx;
    mica_net *net;
    if (mica_context_create(&ctx, &(mica_context_opts){.threads = 2}) != MICA_OK ||
        mica_net_create(ctx, &net) != MICA_OK)
        return 1;
    data train = {0}, test = {0};
    mica_fit_result result;
    mica_status status = build(net);
    if (status == MICA_OK)
        status = load(ctx, &train, argv[1], "train", false);
    if (status == MICA_OK)
        status = load(ctx, &test, argv[1], "t10k", true);
    if (status == MICA_OK) {
        uint64_t epochs = argc > 2 ? (uint64_t)atoi(argv[2]) : 5;
        mica_fit_opts fit = {.train = mica_source_of_batches(train.batches),
                             .validation = mica_source_of_batches(test.batches),
                             .output = "logits",
                             .epochs = epochs,
                             .schedule = {.kind = MICA_SCHEDULE_COSINE,
                                          .lr = 0.002f,
                                          .total = epochs * (uint64_t)mica_batches_count(train.batches)},
                             .report = report};
        status = mica_fit(net, &result, &fit);
    }
    if (status != MICA_OK)
        fprintf(stderr, "%s\n", mica_error(ctx));
    mica_batches_destroy(ctx, train.batches);
    mica_batches_destroy(ctx, test.batches);
    mica_dataset_destroy(ctx, &train.set);
    mica_dataset_destroy(ctx, &test.set);
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return status == MICA_OK ? 0 : 1;
}
