/* A small convolutional net, as users build it: planned, trained in debug mode, without the heap, the same
 * for any number of threads. */
#include <math.h>
#include <string.h>

#include "layer/layer_case.h"

enum { BATCH = 32, STEPS = 12 };

static mica_net *lenet(mica_context *ctx)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_value x = mica_net_input(net, "x", MICA_F32, 4, (mica_index[]){BATCH, 1, 28, 28});
    mica_value labels = mica_net_input(net, "labels", MICA_I32, 1, (mica_index[]){BATCH});
    mica_net_conv_opts conv = {.kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU};
    mica_net_pool_opts pool = {.kernel = {2, 2}};
    conv.name = "conv1";
    conv.out_channels = 8;
    mica_value h = mica_net_max_pool2d(net, mica_net_conv2d(net, x, &conv), &pool);
    conv.name = "conv2";
    conv.out_channels = 16;
    h = mica_net_max_pool2d(net, mica_net_conv2d(net, h, &conv), &pool);
    h = mica_net_flatten(net, h, NULL);
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "fc1", .units = 128, .activation = MICA_RELU});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "fc2", .units = 10});
    mica_net_output(net, "logits", h);
    mica_net_cross_entropy(net, h, labels, NULL);
    return net;
}

/* Noise with a bright patch where the label says. */
static void fill(mica_net *net, uint64_t seed)
{
    mica_tensor x, labels;
    mica_net_tensor(net, &x, "x");
    mica_net_tensor(net, &labels, "labels");
    test_random r = test_seed(seed);
    float *pixel = x.data;
    for (mica_index i = 0; i < x.dim[0]; i++) {
        int label = test_int(&r, 0, 9);
        ((int32_t *)labels.data)[i] = label;
        for (int p = 0; p < 784; p++)
            *pixel++ = (float)test_uniform(&r, 0.0, 0.2) + (p / 78 == label ? 0.8f : 0.0f);
    }
}

TEST(net_cnn_plan_is_tight)
{
    mica_context *ctx = test_context(1);
    mica_net *net = lenet(ctx);
    mica_compile_opts opts = {.train = true, .optimizer = &(mica_optimizer){.kind = MICA_ADAM}};
    REQUIRE(mica_net_compile(net, &opts) == MICA_OK);
    const mica_plan *plan = mica_net_plan(net);
    CHECK_MSG((double)plan->total <= 1.10 * (double)plan->lower_bound, "%zu bytes, at least %zu", plan->total,
              plan->lower_bound);
    mica_net_destroy(net);
}

TEST(net_cnn_learns_without_the_heap)
{
    float losses[2][STEPS];
    for (int threads = 1; threads <= 2; threads++) {
        mica_context *ctx = test_context(threads);
        mica_net *net = lenet(ctx);
        mica_compile_opts opts = {
            .train = true, .optimizer = &(mica_optimizer){.kind = MICA_ADAM, .lr = 2e-3f}, .debug = true};
        if (!CHECK_OK(ctx, mica_net_compile(net, &opts)))
            return;
        REQUIRE(mica_net_bind(net, NULL, 0) == MICA_OK && mica_net_initialize(net, 3) == MICA_OK);
        fill(net, 0);
        CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR)); /* threads start here */
        test_heap heap = test_heap_now();
        for (int step = 0; step < STEPS; step++) {
            fill(net, 1 + (uint64_t)step % 2);
            CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR));
            losses[threads - 1][step] = mica_net_loss(net);
            fill(net, 1);
            CHECK_OK(ctx, mica_net_forward(net));
        }
        CHECK(test_heap_now().calls == heap.calls);
        mica_net_destroy(net);
    }
    CHECK_MSG(losses[0][STEPS - 1] < 0.7f * losses[0][0], "the loss went from %g to %g", (double)losses[0][0],
              (double)losses[0][STEPS - 1]);
    CHECK(memcmp(losses[0], losses[1], sizeof losses[0]) == 0);
}

TEST(net_cnn_runs_smaller_batches)
{
    mica_context *ctx = test_context(1);
    mica_net *net = lenet(ctx);
    mica_compile_opts opts = {.train = true, .debug = true};
    REQUIRE(mica_net_compile(net, &opts) == MICA_OK && mica_net_bind(net, NULL, 0) == MICA_OK &&
            mica_net_initialize(net, 3) == MICA_OK);
    float whole[30], part[30];
    mica_tensor y;
    mica_net_tensor(net, &y, "logits");
    fill(net, 1);
    CHECK_OK(ctx, mica_net_forward(net));
    memcpy(whole, y.data, sizeof whole);
    for (mica_index batch = 3; batch <= BATCH; batch += 29) {
        CHECK_OK(ctx, mica_net_resize(net, batch));
        fill(net, 1);
        CHECK_OK(ctx, mica_net_forward(net));
        memcpy(part, y.data, sizeof part);
        for (int i = 0; i < 30; i++)
            CHECK(fabsf(part[i] - whole[i]) <= 1e-5f);
        fill(net, 1);
        CHECK_OK(ctx, mica_net_gradients(net, NULL));
    }
    mica_net_destroy(net);
}
