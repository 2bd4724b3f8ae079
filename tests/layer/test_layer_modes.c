/* Layers that behave one way in training and another in inference: batch norm's statistics, dropout's masks.
 * And what costs nothing: views, values saved for a backward that never comes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layer/layer_case.h"

/* x [batch, 3, 4, 4] through convolutions with batch norm, to a weighted sum. */
static mica_net *norm_net(mica_context *ctx, mica_index batch)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_value h = mica_net_input(net, "x", MICA_F32, 4, (mica_index[]){batch, 3, 4, 4});
    for (int i = 0; i < 6; i++) {
        char name[2][16];
        snprintf(name[0], sizeof name[0], "conv%d", i);
        snprintf(name[1], sizeof name[1], "norm%d", i);
        mica_net_conv_opts conv = {.name = name[0], .out_channels = 3, .kernel = {3, 3}, .pad = {1, 1}};
        h = mica_net_conv2d(net, h, &conv);
        h = mica_net_batch_norm(net, h, &(mica_net_batch_norm_opts){.name = name[1]});
        h = mica_net_activation(net, h, &(mica_net_activation_opts){.kind = MICA_RELU});
    }
    mica_net_output(net, "y", h);
    layer_weighted_sum(net, h);
    return net;
}

static void fill(mica_net *net, const char *name)
{
    mica_tensor t;
    mica_net_tensor(net, &t, name);
    for (size_t i = 0; i < mica_tensor_count(&t); i++)
        ((float *)t.data)[i] = sinf(0.7f * (float)i);
}

/* Three numbers of a state, or of what starts a tensor. */
static void read3(mica_net *net, const char *name, float out[3])
{
    mica_tensor t;
    if (CHECK_OK(mica_net_context(net), mica_net_tensor(net, &t, name)))
        memcpy(out, t.data, 3 * sizeof *out);
}

TEST(layer_batch_norm_learns_statistics_once_a_step)
{
    mica_context *ctx = test_context(1);
    float mean[2][3], var[2][3], seen[3];
    size_t unlimited = 0;
    for (int budgeted = 0; budgeted < 2; budgeted++) {
        mica_net *net = norm_net(ctx, 64);
        mica_compile_opts opts = {.train = true, .budget = budgeted ? unlimited * 8 / 10 : 0, .debug = true};
        if (!CHECK_OK(ctx, mica_net_compile(net, &opts)))
            return;
        unlimited = mica_net_plan(net)->total;
        CHECK(!budgeted || mica_net_plan(net)->recomputed > 0);
        REQUIRE(mica_net_bind(net, NULL, 0) == MICA_OK && mica_net_initialize(net, 4) == MICA_OK);
        read3(net, "norm2.running_mean", seen);
        CHECK(seen[0] == 0.0f && seen[1] == 0.0f);
        read3(net, "norm2.running_var", seen);
        CHECK(seen[0] == 1.0f && seen[1] == 1.0f);
        for (int step = 0; step < 3; step++) {
            fill(net, "x");
            CHECK_OK(ctx, mica_net_gradients(net, NULL));
        }
        read3(net, "norm2.running_mean", mean[budgeted]);
        read3(net, "norm2.running_var", var[budgeted]);
        fill(net, "x");
        CHECK_OK(ctx, mica_net_forward(net));
        read3(net, "norm2.running_mean", seen);
        CHECK(memcmp(seen, mean[budgeted], sizeof seen) == 0);
        mica_net_destroy(net);
    }
    CHECK(mean[0][0] != 0.0f && var[0][0] != 1.0f);
    CHECK(memcmp(mean[0], mean[1], sizeof mean[0]) == 0 && memcmp(var[0], var[1], sizeof var[0]) == 0);
}

/* A net that borrows weights reads the owner's statistics, even for a single pixel that could not be trained on. */
TEST(layer_batch_norm_lends_its_statistics)
{
    mica_context *ctx = test_context(1), *other = test_context(1);
    mica_net *owner = norm_net(ctx, 8), *user = norm_net(other, 1);
    REQUIRE(mica_net_compile(owner, &(mica_compile_opts){.train = true}) == MICA_OK &&
            mica_net_bind(owner, NULL, 0) == MICA_OK && mica_net_initialize(owner, 4) == MICA_OK);
    REQUIRE(mica_net_compile(user, &(mica_compile_opts){.weights = owner}) == MICA_OK);
    CHECK_OK(other, mica_net_bind(user, NULL, 0));
    CHECK_OK(other, mica_net_initialize(user, 9)); /* leaves what is another's alone */
    CHECK(mica_net_plan(user)->kind_bytes[MICA_BUFFER_STATE] == 0);
    for (int step = 0; step < 3; step++) {
        fill(owner, "x");
        CHECK_OK(ctx, mica_net_gradients(owner, NULL));
    }
    float theirs[3], ours[3];
    fill(owner, "x");
    CHECK_OK(ctx, mica_net_forward(owner));
    read3(owner, "y", theirs);
    fill(user, "x");
    CHECK_OK(other, mica_net_forward(user));
    read3(user, "y", ours);
    CHECK(memcmp(theirs, ours, sizeof ours) == 0);
    mica_net_destroy(user);
    mica_net_destroy(owner);
}

TEST(layer_batch_norm_infers_a_single_value)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){1, 3});
    mica_net_output(net, "y", mica_net_batch_norm(net, x, &(mica_net_batch_norm_opts){.name = "n"}));
    CHECK_OK(ctx, mica_net_compile(net, NULL));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 1));
    fill(net, "x");
    CHECK_OK(ctx, mica_net_forward(net));
    float y[3];
    read3(net, "y", y);
    CHECK(fabsf(y[1] - sinf(0.7f) / sqrtf(1.0f + 1e-5f)) < 1e-6f);
    mica_net_destroy(net);
}

/* x as it is in inference; in training a mask that depends on the step and on nothing else. */
TEST(layer_dropout_draws_by_step)
{
    enum { COUNT = 40000 };
    static float first[COUNT];
    for (int threads = 1; threads <= 2; threads++) {
        mica_context *ctx = test_context(threads);
        mica_net *net;
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        mica_value x = layer_leaf(net, "x", 2, (mica_index[]){COUNT / 100, 100});
        mica_value y = mica_net_dropout(net, x, &(mica_net_dropout_opts){.rate = 0.25f});
        mica_net_output(net, "y", y);
        layer_weighted_sum(net, y);
        REQUIRE(mica_net_compile(net, &(mica_compile_opts){.train = true}) == MICA_OK &&
                mica_net_bind(net, NULL, 0) == MICA_OK && mica_net_initialize(net, 4) == MICA_OK);
        CHECK(mica_net_plan(net)->kind_bytes[MICA_BUFFER_SAVED] == 0);
        mica_tensor in, out;
        mica_net_tensor(net, &in, "x.value");
        mica_net_tensor(net, &out, "y");
        CHECK_OK(ctx, mica_net_forward(net));
        CHECK(memcmp(in.data, out.data, sizeof first) == 0);
        CHECK_OK(ctx, mica_net_forward_training(net, 7));
        const float *v = out.data;
        int dropped = 0;
        for (int i = 0; i < COUNT; i++)
            dropped += v[i] == 0.0f;
        CHECK_MSG(dropped > COUNT / 4 - 500 && dropped < COUNT / 4 + 500, "%d dropped", dropped);
        if (threads == 1)
            memcpy(first, v, sizeof first);
        CHECK(memcmp(first, v, sizeof first) == 0);
        CHECK_OK(ctx, mica_net_forward_training(net, 8));
        CHECK(memcmp(first, v, sizeof first) != 0);
        mica_net_destroy(net);
    }
}

/* An inference plan has no room for what only backward would read; views and layers in place take none at all. */
TEST(layer_inference_keeps_nothing)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value h = mica_net_input(net, "x", MICA_F32, 4, (mica_index[]){4, 4, 8, 8});
    h = mica_net_batch_norm(net, h, NULL);
    h = mica_net_dropout(net, h, &(mica_net_dropout_opts){.rate = 0.5f});
    h = mica_net_max_pool2d(net, h, &(mica_net_pool_opts){.kernel = {2, 2}});
    h = mica_net_layer_norm(net, mica_net_flatten(net, h, NULL), NULL);
    mica_net_output(net, "y", mica_net_softmax(net, h, NULL));
    REQUIRE(mica_net_compile(net, NULL) == MICA_OK);
    const mica_plan *plan = mica_net_plan(net);
    CHECK(plan->kind_bytes[MICA_BUFFER_SAVED] == 0);
    CHECK(plan->kind_bytes[MICA_BUFFER_ACTIVATION] == 4 * 4 * 4 * 4 * sizeof(float));
    mica_net_destroy(net);
}
