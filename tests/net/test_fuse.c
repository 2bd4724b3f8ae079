/* Fusion: a net computes the same bits whether its nodes are left as they are, or fused and put in another
 * order; but for means, whose sums are then added in another order. An output is left alone: so naming the
 * value between two nodes keeps them apart. */
#include <math.h>
#include <string.h>

#include <mica/layers.h>

#include "test.h"

typedef struct shape {
    mica_index channels, size, kernel, stride, pad;
    mica_activation activation;
    bool flat; /* one dimension */
} shape;

enum { BATCH = 4, STEPS = 3 };

static mica_value pool(mica_net *net, mica_value x, const shape *s)
{
    mica_net_pool_opts opts = {.kernel = {s->kernel, s->kernel},
                               .stride = {s->stride, s->stride},
                               .pad = {s->pad, s->pad},
                               .name = "pool"};
    return s->flat ? mica_net_max_pool1d(net, x, &opts) : mica_net_max_pool2d(net, x, &opts);
}

static mica_net *pooled_net(mica_context *ctx, const shape *s, bool apart, size_t budget)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_index dims[] = {BATCH, 2, s->size, s->size};
    mica_value x = mica_net_input(net, "x", MICA_F32, s->flat ? 3 : 4, dims);
    mica_value label = mica_net_input(net, "label", MICA_I32, 1, (mica_index[]){BATCH});
    mica_net_conv_opts conv = {.name = "conv", .out_channels = s->channels, .kernel = {3, 3}, .pad = {1, 1}};
    mica_value h = s->flat ? mica_net_conv1d(net, x, &conv) : mica_net_conv2d(net, x, &conv);
    h = mica_net_activation(net, h, &(mica_net_activation_opts){.name = "act", .kind = s->activation});
    if (apart)
        mica_net_output(net, "between", h);
    h = mica_net_flatten(net, pool(net, h, s), NULL);
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "fc", .units = 10});
    mica_net_output(net, "logits", h);
    mica_net_cross_entropy(net, h, label, NULL);
    mica_compile_opts opts = {.train = true,
                              .optimizer = &(mica_optimizer){.kind = MICA_SGD, .lr = 0.1f},
                              .debug = budget == 0,
                              .budget = budget};
    if (CHECK_OK(ctx, mica_net_compile(net, &opts)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
        CHECK_OK(ctx, mica_net_initialize(net, 3)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

/* Parameters after some steps, into out[], which has room for them; returns how many. */
static size_t train(mica_context *ctx, mica_net *net, float *out, size_t room, mica_index batch)
{
    mica_tensor x, label, flat;
    CHECK_OK(ctx, mica_net_resize(net, batch));
    for (uint64_t step = 0; step < STEPS; step++) {
        mica_net_tensor(net, &x, "x");
        mica_net_tensor(net, &label, "label");
        test_random r = test_seed(step);
        for (size_t i = 0; i < mica_tensor_count(&x); i++)
            ((float *)x.data)[i] = (float)test_int(&r, -3, 3); /* ties, and zeros */
        for (mica_index i = 0; i < batch; i++)
            ((int32_t *)label.data)[i] = test_int(&r, 0, 9);
        CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR));
    }
    CHECK_OK(ctx, mica_net_flat(net, &flat, NULL));
    size_t count = mica_tensor_count(&flat);
    if (CHECK(count <= room))
        memcpy(out, flat.data, count * sizeof *out);
    return count;
}

/* Whether the program has max pooling ahead of the activation, in a call of its own or fused: "max_pool2d, relu". */
static bool pools_first(const mica_net *net)
{
    mica_program_call call;
    for (int i = 0; i < mica_net_program(net) && mica_net_program_call(net, &call, i) == MICA_OK; i++) {
        bool pools = strstr(call.op->name, "max_pool") != NULL;
        if (pools || (call.fused != NULL && strstr(call.fused, "max_pool") != NULL))
            return true;
        if (mica_op_find(call.op->name) != NULL && strcmp(call.op->family, "activation") == 0)
            return false;
        if (call.fused != NULL)
            return false;
    }
    return false;
}

TEST(net_fuse_moves_relu_behind_max_pooling)
{
    static const shape shapes[] = {
        {3, 8, 2, 2, 0, MICA_RELU, false}, {4, 9, 3, 2, 1, MICA_RELU, false},
        {3, 7, 3, 1, 0, MICA_RELU, false}, {5, 8, 2, 2, 0, MICA_RELU6, false},
        {4, 16, 2, 2, 0, MICA_RELU, true}, {3, 8, 2, 2, 0, MICA_TANH, false},
    };
    static float want[4096], got[4096];
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        mica_context *ctx = test_context(1 + (int)i % 2);
        for (mica_index batch = BATCH; batch >= BATCH - 1; batch--) {
            mica_net *apart = pooled_net(ctx, &shapes[i], true, 0),
                     *net = pooled_net(ctx, &shapes[i], false, 0);
            REQUIRE(apart != NULL && net != NULL);
            CHECK(pools_first(net) == (shapes[i].activation != MICA_TANH));
            CHECK(!pools_first(apart));
            size_t count = train(ctx, apart, want, sizeof want / sizeof *want, batch);
            CHECK(train(ctx, net, got, sizeof got / sizeof *got, batch) == count);
            CHECK(memcmp(want, got, count * sizeof *want) == 0);
            /* Where images need scratch all the same, the windows are there beside them, with guards. */
            mica_index side = (shapes[i].size + 2 * shapes[i].pad - shapes[i].kernel) / shapes[i].stride + 1;
            size_t windows = (size_t)(BATCH * shapes[i].channels * side * side) * 2 * sizeof(float) + 256;
            CHECK(mica_net_plan(net)->total <= mica_net_plan(apart)->total + windows);
            mica_net_destroy(apart);
            mica_net_destroy(net);
        }
    }
}

TEST(net_fuse_moves_relu_with_recomputation)
{
    static const shape s = {8, 16, 2, 2, 0, MICA_RELU, false};
    static float want[8192], got[8192];
    mica_context *ctx = test_context(1);
    mica_net *whole = pooled_net(ctx, &s, false, 0);
    REQUIRE(whole != NULL);
    size_t count = train(ctx, whole, want, sizeof want / sizeof *want, BATCH);
    for (size_t budget = mica_net_plan(whole)->total, tries = 0; tries < 4;
         tries++, budget = budget * 31 / 32) {
        mica_net *net = pooled_net(ctx, &s, false, budget);
        if (net == NULL)
            break;
        CHECK(train(ctx, net, got, sizeof got / sizeof *got, BATCH) == count);
        CHECK(mica_net_plan(net)->parts > 1 || memcmp(want, got, count * sizeof *want) == 0);
        mica_net_destroy(net);
    }
    mica_net_destroy(whole);
}

/* ---- Means into convolutions ---- */

typedef struct ending {
    mica_index in, out, size, kernel, groups;
    mica_activation activation;
    bool flat, keep;
} ending;

static mica_net *mean_net(mica_context *ctx, const ending *e, bool apart, bool learns)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_index dims[] = {BATCH, e->in, e->size, e->size}, pad = e->kernel / 2;
    mica_value x = mica_net_input(net, "x", MICA_F32, e->flat ? 3 : 4, dims);
    mica_value label = mica_net_input(net, "label", MICA_I32, 1, (mica_index[]){BATCH});
    mica_net_conv_opts conv = {.name = "conv",
                               .out_channels = e->out,
                               .kernel = {e->kernel, e->kernel},
                               .pad = {pad, pad},
                               .groups = e->groups,
                               .activation = e->activation};
    mica_value h = e->flat ? mica_net_conv1d(net, x, &conv) : mica_net_conv2d(net, x, &conv);
    if (apart)
        mica_net_output(net, "between", h);
    h = mica_net_global_avg_pool(net, h, &(mica_net_global_pool_opts){.name = "mean", .keep = e->keep});
    h = e->keep ? mica_net_flatten(net, h, NULL) : h;
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "fc", .units = 10});
    mica_net_output(net, "logits", h);
    mica_net_cross_entropy(net, h, label, NULL);
    mica_compile_opts opts = {.train = learns,
                              .optimizer = learns ? &(mica_optimizer){.kind = MICA_SGD, .lr = 0.1f} : NULL,
                              .debug = true};
    if (CHECK_OK(ctx, mica_net_compile(net, &opts)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
        CHECK_OK(ctx, mica_net_initialize(net, 3)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

/* The logits of a batch, into out[]; returns how many. */
static size_t infer(mica_context *ctx, mica_net *net, float *out, mica_index batch)
{
    mica_tensor x, label, logits;
    CHECK_OK(ctx, mica_net_resize(net, batch));
    mica_net_tensor(net, &x, "x");
    mica_net_tensor(net, &label, "label");
    memset(label.data, 0, mica_tensor_bytes(&label));
    test_random r = test_seed(7);
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)test_normal(&r);
    CHECK_OK(ctx, mica_net_forward(net));
    mica_net_tensor(net, &logits, "logits");
    size_t count = mica_tensor_count(&logits);
    memcpy(out, logits.data, count * sizeof *out);
    return count;
}

/* Whether the mean's forward is an entry of its own. */
static bool mean_runs(const mica_net *net)
{
    const mica_plan *plan = mica_net_plan(net);
    for (int i = 0; i < plan->times; i++)
        if (plan->time[i].phase == MICA_PHASE_FORWARD && strcmp(plan->time[i].name, "mean") == 0)
            return true;
    return false;
}

static void check_ending(mica_context *ctx, const ending *e, bool learns, mica_index batch)
{
    static float want[8192], got[8192];
    mica_net *apart = mean_net(ctx, e, true, learns), *net = mean_net(ctx, e, false, learns);
    REQUIRE(apart != NULL && net != NULL);
    CHECK(mean_runs(apart));
    CHECK(mean_runs(net) == (learns && e->activation != MICA_NO_ACTIVATION));
    /* Where the images need scratch all the same, the means are there beside them, with a guard. */
    size_t fused = mica_net_plan(net)->total, means = BATCH * (size_t)e->out * sizeof(float) / 64 * 64 + 128;
    CHECK(fused <= mica_net_plan(apart)->total + means);
    size_t count = learns ? train(ctx, apart, want, 8192, batch) : infer(ctx, apart, want, batch);
    CHECK((learns ? train(ctx, net, got, 8192, batch) : infer(ctx, net, got, batch)) == count);
    for (size_t i = 0; i < count; i++)
        CHECK_MSG(fabsf(got[i] - want[i]) <= 2e-6f, "%g, wanted %g", (double)got[i], (double)want[i]);
    mica_net_destroy(apart);
    mica_net_destroy(net);
}

TEST(net_fuse_ends_convolutions_with_means)
{
    static const ending endings[] = {
        {2, 6, 12, 3, 1, MICA_NO_ACTIVATION, false, false},
        {2, 6, 12, 3, 1, MICA_RELU, false, true},
        {1, 8, 40, 5, 1, MICA_GELU, true, true},
        {1, 8, 40, 5, 1, MICA_NO_ACTIVATION, true, false},
        {8, 12, 7, 1, 1, MICA_RELU6, false, false},
        {6, 6, 9, 3, 6, MICA_SILU, false, false},
        {20, 32, 16, 3, 1, MICA_TANH, false, false},
    };
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        mica_context *ctx = test_context(1 + (int)i % 2);
        for (int learns = 0; learns < 2; learns++)
            for (mica_index batch = BATCH; batch >= BATCH - 1; batch--)
                check_ending(ctx, &endings[i], learns, batch);
    }
}
