/* Real learning: the convolutional net of the benchmarks on MNIST. A short form always; with MICA_LONG all of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/sample.h"
#include "host/clock.h"
#include "net/example_nets.h"

/* The first `most` samples of a set, in batches of 32 of numbers from 0 to 1. */
static bool load(mica_context *ctx, mica_dataset *set, mica_batches **batches, const char *name,
                 mica_index most, bool in_order)
{
    char file[100], images[1024];
    snprintf(file, sizeof file, "mnist/%s-images-idx3-ubyte.gz", name);
    snprintf(images, sizeof images, "%s", sample_real_data(file));
    snprintf(file, sizeof file, "mnist/%s-labels-idx1-ubyte.gz", name);
    if (!CHECK_OK(ctx, mica_dataset_load_idx(ctx, set, images, sample_real_data(file))))
        return false;
    mica_dataset part;
    mica_tensor x = set->inputs, y = set->targets;
    x.dim[0] = y.dim[0] = most < set->count ? most : set->count;
    CHECK_OK(ctx, mica_dataset_over(ctx, &part, &x, &y));
    mica_batches_opts opts = {.batch = 32, .seed = 1, .scale = 1.0f / 255.0f, .sequential = in_order};
    return CHECK_OK(ctx, mica_batches_create(ctx, batches, &part, &opts));
}

static const example_net *cnn(void)
{
    for (int i = 0; i < example_net_count; i++)
        if (strcmp(example_nets[i].name, "cnn") == 0)
            return &example_nets[i];
    return NULL;
}

TEST(mnist_is_learned)
{
    mica_context *ctx = test_context(2);
    if (sample_real_data("mnist/train-images-idx3-ubyte.gz") == NULL || !sample_has_zlib(ctx)) {
        test_skip("no MNIST in $MICA_DATA or ../shared/data, or no zlib");
        return;
    }
    bool all = getenv("MICA_LONG") != NULL;
    uint64_t epochs = all ? 5 : 1;
    mica_index samples = all ? 60000 : test_effort(6000);
    double wanted = all ? 0.988 : samples == 6000 ? 0.85 : 0.3;
    mica_dataset train_set = {0}, test_set = {0};
    mica_batches *train, *test;
    REQUIRE(load(ctx, &train_set, &train, "train", samples, false) &&
            load(ctx, &test_set, &test, "t10k", all ? 10000 : 1000, true));
    mica_net *net = example_net_make(ctx, cnn(), 0, NULL);
    REQUIRE(net != NULL);
    mica_fit_opts opts = {.train = mica_source_of_batches(train),
                          .validation = mica_source_of_batches(test),
                          .output = "logits",
                          .epochs = epochs,
                          .schedule = {.kind = MICA_SCHEDULE_COSINE,
                                       .lr = 0.002f,
                                       .total = epochs * (uint64_t)mica_batches_count(train)}};
    mica_fit_result result;
    double start = clock_seconds();
    CHECK_OK(ctx, mica_fit(net, &result, &opts));
    double seconds = clock_seconds() - start;
    CHECK_MSG(result.validation.accuracy >= wanted, "accuracy %.4f, wanted %.4f", result.validation.accuracy,
              wanted);
    if (all)
        printf("  accuracy %.2f %% on %d images, %.1f s an epoch, %zu bytes\n",
               100.0 * result.validation.accuracy, (int)result.validation.samples, seconds / (double)epochs,
               mica_net_plan(net)->total);
    mica_net_destroy(net);
    mica_batches_destroy(ctx, train);
    mica_batches_destroy(ctx, test);
    mica_dataset_destroy(ctx, &train_set);
    mica_dataset_destroy(ctx, &test_set);
}
