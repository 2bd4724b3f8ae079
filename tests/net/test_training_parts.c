/* Training batches in parts that are cheap (MICA_CHEAP_PARTS): which nets take them, what they save, and that what is
 * learned is the same within rounding, and bit for bit with any number of threads. */
#include <math.h>
#include <string.h>

#include <mica/netfile.h>
#include <mica/train.h>

#include "net/net.h"
#include "net/example_nets.h"

#define TOKENS "input x [48, 64]\n"
#define BLOCK                                                                                               \
    "residual {\nlayer_norm\nmulti_head_attention 4\n}\nresidual {\nlayer_norm\ndense 256 gelu\ndense 64\n" \
    "}\n"
#define END         "flatten\ndense 4\nloss cross_entropy\n"
#define TRANSFORMER TOKENS "repeat 3 {\n" BLOCK "}\nslice axis=1 start=0 stop=1\n" END

enum { BATCH = 16, STEPS = 4 };

static const mica_optimizer adam = {.kind = MICA_ADAM};
static const mica_compile_opts whole = {.train = true, .optimizer = &adam},
                               parted = {.train = true, .optimizer = &adam, .part_rows = MICA_CHEAP_PARTS};

static mica_net *made(mica_context *ctx, const char *text, mica_index batch, const mica_compile_opts *opts)
{
    mica_net *net;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    if (CHECK_OK(ctx, mica_netfile_build(net, NULL, text, &(mica_netfile_opts){.batch = batch})) &&
        CHECK_OK(ctx, mica_net_compile(net, opts)))
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

/* The losses of some steps of fewer and fewer samples. */
static mica_plan losses_of(float *losses, mica_context *ctx, const mica_compile_opts *opts)
{
    mica_net *net = made(ctx, TRANSFORMER, BATCH, opts);
    mica_plan plan = {0};
    if (net == NULL)
        return plan;
    plan = *mica_net_plan(net);
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 3));
    for (int step = 0; step < STEPS; step++) {
        CHECK_OK(ctx, mica_net_resize(net, BATCH - 5 * step));
        fill(net, (uint64_t)step);
        CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR));
        losses[step] = mica_net_loss(net);
    }
    mica_net_destroy(net);
    return plan;
}

TEST(training_parts_learn_the_same_in_less_memory)
{
    float at_once[STEPS], loss[3][STEPS];
    mica_plan all = losses_of(at_once, test_context(1), &whole);
    for (int k = 0; k < 3; k++) {
        mica_plan plan = losses_of(loss[k], test_context(k + 1), &parted);
        CHECK_MSG(all.parts == 1 && plan.parts > 1 && plan.total < all.total, "%zu bytes in %d parts of %zu",
                  plan.total, plan.parts, all.total);
        CHECK(memcmp(loss[0], loss[k], sizeof loss[0]) == 0);
    }
    for (int step = 0; step < STEPS; step++)
        CHECK_MSG(fabsf(loss[0][step] - at_once[step]) <= 1e-4f * at_once[step], "step %d: loss %g, %g", step,
                  (double)loss[0][step], (double)at_once[step]);
}

/* The number of parts, which no number of threads or ranks may change. */
static int parts_of(mica_context *const *with, const char *text, mica_index batch)
{
    int parts = 0;
    for (int k = 0; k < 4; k++) {
        mica_compile_opts opts = parted;
        opts.ranks = k == 3 ? 5 : 0;
        mica_net *net = made(with[k % 3], text, batch, &opts);
        int its = net != NULL ? mica_net_plan(net)->parts : 0;
        CHECK_MSG(k == 0 || its == parts, "%d parts, %d with other threads or ranks", parts, its);
        parts = its;
        mica_net_destroy(net);
    }
    return parts;
}

TEST(training_parts_only_where_they_are_cheap)
{
    mica_context *const with[] = {test_context(1), test_context(2), test_context(3)};
    static const struct {
        const char *why_not, *text;
        mica_index batch;
    } nets[] = {
        {"one sample", TRANSFORMER, 1},
        {"few rows", "input x [64]\ndense 64 relu\ndense 4\nloss cross_entropy\n", 64},
        {"recurrent", TOKENS "lstm 64\n" END, 64},
        {"convolutions", "input x [8, 32, 32]\nconv 16 3x3 relu\nconv 16 3x3\n" END, 32},
        {"statistics", TOKENS "repeat 3 {\n" BLOCK "}\nbatch_norm\n" END, BATCH},
    };
    CHECK(parts_of(with, TRANSFORMER, BATCH) > 1);
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        int parts = parts_of(with, nets[i].text, nets[i].batch);
        CHECK_MSG(parts == 1, "%s: %d parts", nets[i].why_not, parts);
    }
}

TEST(training_parts_within_a_budget)
{
    mica_context *ctx = test_context(1);
    mica_net *net = made(ctx, TRANSFORMER, BATCH, &parted);
    REQUIRE(net != NULL);
    int parts = mica_net_plan(net)->parts;
    mica_compile_opts opts = parted;
    opts.budget = mica_net_plan(net)->total;
    CHECK_OK(ctx, mica_net_compile(net, &opts));
    CHECK(mica_net_plan(net)->parts == parts && mica_net_plan(net)->total == opts.budget);
    opts.budget = opts.budget * 9 / 10;
    CHECK_OK(ctx, mica_net_compile(net, &opts));
    CHECK(mica_net_plan(net)->total <= opts.budget);
    mica_net_destroy(net);
}
