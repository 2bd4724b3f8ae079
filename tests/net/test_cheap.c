/* Calls that run again for the backward: less memory, the same bits, and running statistics that move once a step. */
#include <string.h>

#include <mica/netfile.h>
#include <mica/train.h>

#include "net/example_nets.h"
#include "net/net.h"

#define PICTURE                                                                                          \
    "input image [3, 16, 16]\nconv 32 3x3 pad=1 no_bias\nbatch_norm relu\nconv 32 3x3 pad=1 name=wide\n" \
    "residual relu {\nconv 32 3x3 pad=1 no_bias\nbatch_norm relu\nconv 32 3x3 pad=1 no_bias\nbatch_norm\n}\n"

static const struct {
    const char *name, *text, *frozen;
    bool smaller; /* its plan must be */
} nets[] = {
    {"residual", PICTURE "global_avg_pool\ndense 4\nloss cross_entropy\n", NULL, true},
    {"frozen", PICTURE "global_avg_pool\ndense 4\nloss cross_entropy\n", "conv1", true},
    {"dropout",
     PICTURE "dropout 0.3\nconv 32 3x3 pad=1 relu\ndropout 0.2\nflatten\ndense 4\nloss cross_entropy\n", NULL,
     true},
    {"joined",
     PICTURE "max_pool 2x2\nconv 16 3x3 pad=1 relu\nconv_transpose 8 2x2 stride=2\nconcat wide\n"
             "conv 4 3x3 pad=1 gelu\nglobal_avg_pool\ndense 4\nloss cross_entropy\n",
     NULL, true},
    {"deep",
     "input x [32]\nrepeat 12 {\nresidual {\nlayer_norm\ndense 32 silu\ndense 32\n}\n}\ndense 4\nloss cross_entropy\n",
     NULL, false},
    {"recurrent",
     "input text [12] i32\nembedding 20 24\nlstm 32\ngru 16\nlayer_norm\ndense 20\nloss cross_entropy\n",
     NULL, false},
};

static mica_net *made(mica_context *ctx, int n, const mica_compile_opts *opts, mica_netfile_info *info)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    bool good = CHECK_OK(ctx, mica_netfile_build(net, info, nets[n].text, &(mica_netfile_opts){.batch = 6}));
    if (good && nets[n].frozen != NULL)
        good = CHECK_OK(ctx, mica_net_freeze(net, nets[n].frozen, true));
    if (good && mica_net_compile(net, opts) == MICA_OK)
        return net;
    mica_net_destroy(net);
    return NULL;
}

static void fill(mica_net *net, uint64_t seed)
{
    test_random r = test_seed(seed);
    for (int i = 0; i < mica_net_inputs(net); i++) {
        mica_tensor t;
        mica_net_input_tensor(net, NULL, &t, i);
        for (size_t j = 0; j < mica_tensor_count(&t); j++)
            if (t.dtype == MICA_F32)
                ((float *)t.data)[j] = (float)test_uniform(&r, -1.0, 1.0);
            else
                ((int32_t *)t.data)[j] = test_int(&r, 0, 3);
    }
}

/* All that lasts after some steps, one of them of parts whose gradients are added, one of a smaller batch. */
static float *trained(mica_net *net, float *loss)
{
    mica_context *ctx = mica_net_context(net);
    if (!CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) || !CHECK_OK(ctx, mica_net_initialize(net, 3)))
        return NULL;
    for (int step = 0; step < 3; step++) {
        fill(net, (uint64_t)step);
        CHECK_OK(ctx, mica_train_step(net, 0.01f));
    }
    for (int part = 0; part < 2; part++) {
        fill(net, 10 + (uint64_t)part);
        CHECK_OK(ctx, mica_train_accumulate(net, part, 2));
    }
    CHECK_OK(ctx, mica_train_update(net, 0.01f));
    CHECK_OK(ctx, mica_net_resize(net, 4));
    fill(net, 20);
    CHECK_OK(ctx, mica_train_step(net, 0.01f));
    *loss = mica_net_loss(net);
    return (float *)(void *)net->block; /* parameters, gradients, optimizer state, running statistics */
}

static void compare(mica_net *want, const float *bits, float loss, mica_net *got, const char *name,
                    const char *how)
{
    float other;
    const float *theirs = trained(got, &other);
    REQUIRE(bits != NULL && theirs != NULL && got->persistent == want->persistent);
    CHECK_MSG(memcmp(&loss, &other, sizeof loss) == 0 && memcmp(bits, theirs, want->persistent) == 0,
              "%s, %s: other bits than with everything kept", name, how);
}

TEST(cheap_recomputing_changes_no_bit)
{
    mica_context *ctx = test_context(2);
    mica_optimizer adam = {.kind = MICA_ADAM};
    for (int n = 0; n < (int)(sizeof nets / sizeof nets[0]); n++) {
        mica_compile_opts opts = {.train = true, .optimizer = &adam, .keep_cheap = true};
        mica_netfile_info info;
        mica_net *all = made(ctx, n, &opts, &info);
        REQUIRE(all != NULL);
        size_t kept = mica_net_plan(all)->total;
        CHECK(mica_net_plan(all)->recomputed == 0);
        float loss;
        const float *bits = trained(all, &loss);

        opts.keep_cheap = false;
        opts.debug = true; /* guards, and NaN where nothing lives */
        mica_net *net = made(ctx, n, &opts, &info);
        REQUIRE(net != NULL);
        check_plan(mica_net_plan(net));
        compare(all, bits, loss, net, nets[n].name, "cheap");
        mica_net_destroy(net);

        opts.debug = false;
        net = made(ctx, n, &opts, &info);
        REQUIRE(net != NULL);
        size_t total = mica_net_plan(net)->total;
        CHECK_MSG(nets[n].smaller ? total < kept : total <= kept, "%s: %zu of %zu bytes", nets[n].name, total,
                  kept);
        size_t packed = total - net->persistent;
        mica_net_destroy(net);

        for (size_t eighths = 4; eighths < 8; eighths++) { /* single calls, whatever they cost, or segments */
            opts.budget = total - packed * (8 - eighths) / 8;
            net = made(ctx, n, &opts, &info);
            if (net == NULL) {
                CHECK(mica_context_status(ctx) == MICA_ERR_MEMORY);
                continue;
            }
            CHECK(mica_net_plan(net)->total <= opts.budget);
            if (mica_net_plan(net)->parts == 1)
                compare(all, bits, loss, net, nets[n].name, "with a budget");
            mica_net_destroy(net);
        }
        mica_net_destroy(all);
    }
}

/* A call that runs again does so before what reads it, once; what it makes is dead between both. */
TEST(cheap_recomputing_is_told_by_the_plan)
{
    mica_context *ctx = test_context(1);
    mica_netfile_info info;
    mica_net *net = made(ctx, 0, &(mica_compile_opts){.train = true, .optimizer = &(mica_optimizer){0}},
                         &info);
    REQUIRE(net != NULL);
    const mica_plan *plan = mica_net_plan(net);
    int again = 0;
    bool backward = false;
    for (int t = 0; t < plan->times; t++) {
        backward = backward || plan->time[t].phase == MICA_PHASE_BACKWARD;
        again += plan->time[t].phase == MICA_PHASE_RECOMPUTE;
        CHECK(plan->time[t].phase != MICA_PHASE_FORWARD || !backward);
    }
    CHECK(again == plan->recomputed && again > 0 && plan->extra_work < 0.2);
    mica_net_destroy(net);
}
