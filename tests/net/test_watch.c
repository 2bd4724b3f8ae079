/* Watching a net: everything that runs is told of, in order, with its arithmetic and bytes; nothing changes. */
#include <string.h>

#include <mica/layers.h>

#include "test.h"

enum { BATCH = 8, MOST = 512 };

typedef struct record {
    mica_work work[MOST];
    int begun, done;
    bool in_order;
} record;

static void note(void *user, const mica_work *work, bool done)
{
    record *r = user;
    if (done) {
        r->in_order = r->in_order && r->begun == r->done + 1;
        r->in_order = r->in_order && memcmp(&r->work[r->done], work, sizeof *work) == 0;
        r->done++;
    } else if (r->begun < MOST) {
        r->work[r->begun++] = *work;
    }
}

static mica_net *small_net(mica_context *ctx, size_t budget)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_value x = mica_net_input(net, "x", MICA_F32, 4, (mica_index[]){BATCH, 2, 10, 10});
    mica_value labels = mica_net_input(net, "labels", MICA_I32, 1, (mica_index[]){BATCH});
    mica_value h = mica_net_conv2d(
        net, x, &(mica_net_conv_opts){.name = "conv", .out_channels = 3, .kernel = {3, 3}});
    h = mica_net_activation(net, h, &(mica_net_activation_opts){.name = "gelu", .kind = MICA_GELU});
    h = mica_net_flatten(net, h, NULL);
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "fc1", .units = 16, .activation = MICA_RELU});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "fc2", .units = 5});
    mica_net_cross_entropy(net, h, labels, &(mica_net_loss_opts){.name = "loss"});
    mica_compile_opts opts = {
        .train = true, .optimizer = &(mica_optimizer){.kind = MICA_ADAM}, .budget = budget};
    if (mica_net_compile(net, &opts) == MICA_OK && mica_net_bind(net, NULL, 0) == MICA_OK &&
        mica_net_initialize(net, 1) == MICA_OK)
        return net;
    mica_net_destroy(net);
    return NULL;
}

static void fill(mica_net *net)
{
    mica_tensor x, labels;
    mica_net_tensor(net, &x, "x");
    mica_net_tensor(net, &labels, "labels");
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)(i % 7) * 0.1f;
    for (mica_index i = 0; i < labels.dim[0]; i++)
        ((int32_t *)labels.data)[i] = (int32_t)(i % 5);
}

static record watched_step(mica_context *ctx, mica_net *net)
{
    record r = {.in_order = true};
    mica_net_watch(net, note, &r);
    fill(net);
    CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR));
    mica_net_watch(net, NULL, NULL);
    CHECK(r.in_order && r.begun == r.done);
    return r;
}

/* The first record of a layer's phase, or NULL. */
static const mica_work *find(const record *r, const char *name, mica_phase phase)
{
    for (int i = 0; i < r->begun; i++)
        if (r->work[i].phase == phase && strcmp(r->work[i].name, name) == 0)
            return &r->work[i];
    return NULL;
}

/* Of all calls of a layer's phase. */
static double flops_of(const record *r, const char *name, mica_phase phase)
{
    double flops = 0.0;
    for (int i = 0; i < r->begun; i++)
        if (r->work[i].phase == phase && strcmp(r->work[i].name, name) == 0)
            flops += r->work[i].flops;
    return flops;
}

TEST(net_watch_tells_what_runs)
{
    mica_context *ctx = test_context(1);
    mica_net *net = small_net(ctx, 0);
    REQUIRE(net != NULL);
    record r = watched_step(ctx, net);
    const mica_work *conv = find(&r, "conv", MICA_PHASE_FORWARD),
                    *back = find(&r, "conv", MICA_PHASE_BACKWARD);
    REQUIRE(conv != NULL && back != NULL);
    double products = 2.0 * BATCH * 64 * 3 * 2 * 9;
    CHECK(conv->flops == products && back->flops == products); /* the image has no gradient */
    CHECK(conv->layer == 0 && strcmp(conv->kind, "conv2d") == 0);
    CHECK(conv->bytes == 4.0 * (BATCH * 200 + BATCH * 192 + 3 * 2 * 9 + 3));
    const mica_work *fc1 = find(&r, "fc1", MICA_PHASE_FORWARD),
                    *fc1_back = find(&r, "fc1", MICA_PHASE_BACKWARD);
    REQUIRE(fc1 != NULL && fc1_back != NULL);
    CHECK(fc1->fused != NULL && strcmp(fc1->fused, "relu") == 0 && fc1_back->fused == NULL);
    CHECK(fc1->flops == 2.0 * BATCH * 192 * 16 &&
          flops_of(&r, "fc1", MICA_PHASE_BACKWARD) == 2.0 * fc1->flops);
    CHECK(strcmp(fc1->op, "linear") == 0 && strcmp(fc1->kind, "dense") == 0);
    const mica_work *update = &r.work[r.begun - 1];
    CHECK(update->phase == MICA_PHASE_UPDATE && update->layer == -1 && strcmp(update->kind, "adam") == 0);
    CHECK(update->flops == 0.0 && update->bytes >= 7.0 * 4.0 * (57 + 192 * 16 + 16 + 16 * 5 + 5));
    CHECK(find(&r, "gelu", MICA_PHASE_BACKWARD)->flops == 0.0);
    CHECK(find(&r, "flatten", MICA_PHASE_FORWARD) == NULL);
    CHECK(strcmp(mica_phase_text(MICA_PHASE_RECOMPUTE), "recompute") == 0);
    CHECK(strcmp(mica_phase_text((mica_phase)99), "unknown") == 0);

    CHECK_OK(ctx, mica_net_resize(net, BATCH / 2));
    record half = watched_step(ctx, net);
    CHECK(find(&half, "conv", MICA_PHASE_FORWARD)->flops == products / 2);
    mica_net_destroy(net);
}

TEST(net_watch_changes_nothing)
{
    float losses[2];
    for (int watched = 0; watched < 2; watched++) {
        mica_context *ctx = test_context(2);
        mica_net *net = small_net(ctx, 0);
        REQUIRE(net != NULL);
        record r = {.in_order = true};
        for (int step = 0; step < 4; step++) {
            fill(net);
            CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR));
            test_heap heap = test_heap_now();
            r = (record){.in_order = true};
            mica_net_watch(net, watched ? note : NULL, &r);
            fill(net);
            CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR));
            CHECK(test_heap_now().calls == heap.calls);
        }
        CHECK((r.begun > 0) == (watched == 1));
        losses[watched] = mica_net_loss(net);
        mica_net_destroy(net);
    }
    CHECK(losses[0] == losses[1]);
}

TEST(net_watch_tells_of_recomputation)
{
    mica_context *ctx = test_context(1);
    mica_net *net = small_net(ctx, 0);
    REQUIRE(net != NULL);
    size_t budget = mica_net_plan(net)->total;
    mica_net_destroy(net);
    int again = 0;
    for (; again == 0 && budget > 0; budget -= 512) {
        net = small_net(ctx, budget);
        REQUIRE(net != NULL);
        record r = watched_step(ctx, net);
        for (int i = 0; i < r.begun; i++)
            again += r.work[i].phase == MICA_PHASE_RECOMPUTE;
        CHECK(again == mica_net_plan(net)->recomputed * mica_net_plan(net)->parts);
        mica_net_destroy(net);
    }
    CHECK(again > 0);
}

TEST(measure_counts_arithmetic)
{
    mica_context *ctx = test_context(1);
    mica_tensor q = mica_4d(NULL, 2, 4, 10, 8), k = mica_4d(NULL, 2, 2, 30, 8);
    mica_measure_begin(ctx);
    CHECK_OK(ctx, mica_attention(ctx, &q, &q, &k, &k, NULL));
    CHECK(mica_measure_flops(ctx) == 4.0 * 2 * 4 * 10 * 30 * 8);
    CHECK_OK(ctx, mica_attention(ctx, &q, &q, &k, &k, &(mica_attention_opts){.causal = true}));
    (void)mica_measure_end(ctx);
    CHECK(mica_measure_flops(ctx) == 4.0 * 2 * 4 * 8 * (300 + 300 - 45));
    mica_tensor y = mica_3d(NULL, 5, 3, 6), x = mica_3d(NULL, 5, 3, 4);
    mica_tensor w_ih = mica_2d(NULL, 24, 4), w_hh = mica_2d(NULL, 24, 6);
    mica_recurrent_weights weights = {.w_ih = &w_ih, .w_hh = &w_hh};
    mica_measure_begin(ctx);
    CHECK_OK(ctx, mica_lstm(ctx, &y, &x, &weights, NULL));
    (void)mica_measure_end(ctx);
    CHECK(mica_measure_flops(ctx) == 2.0 * 5 * 3 * 24 * 10);
    mica_tensor a = mica_2d(NULL, 3, 7), v = mica_1d(NULL, 7), to = mica_1d(NULL, 3);
    mica_measure_begin(ctx);
    CHECK_OK(ctx, mica_matvec(ctx, &to, &a, &v));
    CHECK_OK(ctx, mica_relu(ctx, &a, &a));
    (void)mica_measure_end(ctx);
    CHECK(mica_measure_flops(ctx) == 2.0 * 3 * 7);
}
