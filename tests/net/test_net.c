/* Nets: building, errors, plans, resizing, sharing weights, budgets. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/layer_case.h"
#include "net/example_nets.h"

/* x [batch, 6] through `depth` dense layers with relu, to a weighted sum. */
static mica_net *mlp(mica_context *ctx, mica_index batch, int depth)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_value h = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){batch, 6});
    for (int i = 0; i < depth; i++) {
        char name[16];
        snprintf(name, sizeof name, "fc%d", i);
        h = mica_net_dense(net, h,
                           &(mica_net_dense_opts){.name = name, .units = 32, .activation = MICA_RELU});
    }
    mica_net_output(net, "y", h);
    layer_weighted_sum(net, h);
    return net;
}

static void fill_input(mica_net *net)
{
    mica_tensor x;
    mica_net_tensor(net, &x, "x");
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)(i % 13) / 6.5f - 1.0f;
}

TEST(net_first_failure_sticks)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_I32, 2, (mica_index[]){4, 3});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc1", .units = 8});
    CHECK(h == 0);
    CHECK(mica_net_dense(net, h, &(mica_net_dense_opts){.name = "fc2", .units = 0}) == 0);
    CHECK_ERROR(ctx, mica_net_compile(net, NULL), MICA_ERR_SHAPE,
                "shape error: layer 0 \"fc1\" (dense)\n"
                "  input is [4, 3], the net's input \"x\"\n"
                "  expected f32 of rank 1 or more");
    mica_net_destroy(net);
}

TEST(net_names_are_unique_and_nest)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){4, 3});
    mica_net_enter(net, "block0");
    mica_net_enter(net, "mlp.deep"); /* one scope, whatever its name */
    mica_net_leave(net);
    mica_net_enter(net, "mlp");
    x = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 8});
    mica_net_leave(net);
    mica_net_leave(net);
    mica_net_leave(net); /* one too many does nothing */
    x = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 8});
    const char *name;
    CHECK_OK(ctx, mica_net_parameter(net, &name, NULL, 0));
    CHECK(strcmp(name, "block0.mlp.fc.weight") == 0);
    CHECK_OK(ctx, mica_net_parameter(net, &name, NULL, 3));
    CHECK(strcmp(name, "fc.bias") == 0);
    CHECK_ERROR(ctx, mica_net_parameter(net, &name, NULL, 4), MICA_ERR_INDEX,
                "index error: net: parameter 4 of 4");
    CHECK(mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 8}) == 0);
    CHECK_ERROR(ctx, mica_net_compile(net, NULL), MICA_ERR_ARGUMENT,
                "argument error: net: the name \"fc\" is already in use");
    mica_net_destroy(net);
}

static mica_value same_width(mica_net *net, mica_value x, void *user)
{
    (void)user;
    return mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 8});
}

TEST(net_blocks_without_names_do_not_clash)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){4, 8});
    for (int i = 0; i < 2; i++)
        x = mica_net_residual(net, x, &(mica_net_residual_opts){.body = same_width});
    x = mica_net_reshape(net, x, &(mica_net_reshape_opts){.rank = 3, .dims = {4, 4, 2}});
    for (int i = 0; i < 2; i++)
        x = mica_net_squeeze_excite(net, x, NULL);
    CHECK_OK(ctx, mica_net_compile(net, NULL));
    mica_net_destroy(net);
}

TEST(net_a_loss_says_what_it_expected)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){4, 3});
    mica_value target = mica_net_input(net, "target", MICA_F32, 2, (mica_index[]){4, 2});
    CHECK(mica_net_mse(net, x, target, NULL) == 0);
    CHECK_ERROR(ctx, mica_net_compile(net, NULL), MICA_ERR_SHAPE,
                "shape error: layer 0 \"mse_0\" (mse)\n"
                "  input is [4, 3], the net's input \"x\"\n"
                "  target is [4, 2], pred is [4, 3]: expected the same shape");
    mica_net_destroy(net);
}

TEST(net_is_not_added_to_after_compile)
{
    mica_context *ctx = test_context(1);
    mica_net *net = mlp(ctx, 4, 1);
    REQUIRE(net != NULL);
    REQUIRE(CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true})));
    CHECK(mica_net_input(net, "late", MICA_F32, 1, (mica_index[]){4}) == 0);
    CHECK_ERROR(ctx, mica_net_compile(net, NULL), MICA_ERR_STATE,
                "state error: net: nothing can be added after mica_net_compile");
    mica_net_destroy(net);
}

TEST(net_plan_is_exact)
{
    mica_context *ctx = test_context(1);
    mica_net *net = mlp(ctx, 16, 4);
    mica_heap_stats before = mica_context_heap(ctx);
    REQUIRE(mica_net_compile(net, &(mica_compile_opts){.train = true,
                                                       .optimizer = &(mica_optimizer){.kind = MICA_ADAM}}) ==
            MICA_OK);
    const mica_plan *plan = mica_net_plan(net);
    check_plan(plan);
    /* Compiling took no memory for tensors: less is live than the parameters alone take. */
    CHECK(mica_context_heap(ctx).live_bytes - before.live_bytes <
          plan->kind_bytes[MICA_BUFFER_OPTIMIZER] * 4);
    before = mica_context_heap(ctx);
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    mica_heap_stats after = mica_context_heap(ctx);
    CHECK(after.allocations == before.allocations + 1);
    CHECK(after.live_bytes == before.live_bytes + plan->total);
    mica_net_destroy(net);
}

TEST(net_binds_the_callers_block)
{
    mica_context *ctx = test_context(1);
    mica_net *net = mlp(ctx, 4, 2);
    CHECK_ERROR(ctx, mica_net_bind(net, NULL, 0), MICA_ERR_STATE,
                "state error: net_bind: the net is not compiled");
    REQUIRE(mica_net_compile(net, NULL) == MICA_OK);
    size_t total = mica_net_plan(net)->total;
    char *block = aligned_alloc(64, total), text[200];
    snprintf(text, sizeof text, "memory error: the net needs %zu bytes, the block has %zu (64 short)", total,
             total - 64);
    CHECK_ERROR(ctx, mica_net_bind(net, block, total - 64), MICA_ERR_MEMORY, text);
    CHECK_OK(ctx, mica_net_bind(net, block, total));
    CHECK_OK(ctx, mica_net_initialize(net, 1));
    fill_input(net);
    test_heap heap = test_heap_now();
    CHECK_OK(ctx, mica_net_forward(net));
    CHECK(test_heap_now().calls == heap.calls);
    mica_net_destroy(net);
    free(block);
}

/* The first `count` elements of the output of a forward, as a copy. */
static void forward_into(mica_net *net, float *out, size_t count)
{
    fill_input(net);
    CHECK_OK(mica_net_context(net), mica_net_forward(net));
    mica_tensor y;
    mica_net_tensor(net, &y, "y");
    memcpy(out, y.data, count * sizeof *out);
}

TEST(net_runs_smaller_batches_in_the_same_plan)
{
    mica_context *ctx = test_context(1);
    mica_net *net = mlp(ctx, 8, 3);
    REQUIRE(mica_net_compile(net, NULL) == MICA_OK && mica_net_bind(net, NULL, 0) == MICA_OK &&
            mica_net_initialize(net, 3) == MICA_OK);
    float whole[8 * 32], part[3 * 32];
    forward_into(net, whole, 8 * 32);
    CHECK_OK(ctx, mica_net_resize(net, 3));
    forward_into(net, part, 3 * 32);
    CHECK(memcmp(whole, part, sizeof part) == 0);
    CHECK_ERROR(ctx, mica_net_resize(net, 9), MICA_ERR_SHAPE,
                "shape error: net_resize: the batch is 9, but the net was built for at most 8");
    CHECK_OK(ctx, mica_net_resize(net, 8));
    float again[8 * 32];
    forward_into(net, again, 8 * 32);
    CHECK(memcmp(whole, again, sizeof again) == 0);
    mica_net_destroy(net);
}

TEST(net_shares_weights_of_another)
{
    mica_context *ctx = test_context(1), *other = test_context(2);
    mica_net *owner = mlp(ctx, 8, 3), *user = mlp(other, 2, 3);
    REQUIRE(mica_net_compile(owner, NULL) == MICA_OK && mica_net_bind(owner, NULL, 0) == MICA_OK &&
            mica_net_initialize(owner, 3) == MICA_OK);
    mica_net *stranger = mlp(other, 2, 4);
    REQUIRE(mica_net_compile(stranger, &(mica_compile_opts){.weights = owner}) == MICA_OK);
    CHECK_ERROR(other, mica_net_bind(stranger, NULL, 0), MICA_ERR_SHAPE,
                "shape error: net_bind: the net that lends its weights has no \"fc3.weight\" of this shape");
    CHECK_ERROR(other, mica_net_forward(stranger), MICA_ERR_STATE,
                "state error: net: step called before mica_net_bind");
    mica_net_destroy(stranger);
    REQUIRE(mica_net_compile(user, &(mica_compile_opts){.weights = owner}) == MICA_OK);
    CHECK(mica_net_plan(user)->kind_bytes[MICA_BUFFER_PARAMETER] == 0);
    CHECK_OK(other, mica_net_bind(user, NULL, 0));
    float theirs[8 * 32], ours[2 * 32];
    forward_into(owner, theirs, 8 * 32);
    forward_into(user, ours, 2 * 32);
    CHECK(memcmp(theirs, ours, sizeof ours) == 0);
    mica_net_destroy(user);
    mica_net_destroy(owner);
}

TEST(net_frozen_parameters_have_no_gradient)
{
    mica_context *ctx = test_context(1);
    mica_net *net = mlp(ctx, 4, 3);
    CHECK_OK(ctx, mica_net_freeze(net, "fc0.", true));
    CHECK_OK(ctx, mica_net_freeze(net, "fc1.", true));
    CHECK_ERROR(ctx, mica_net_freeze(net, "nothing", true), MICA_ERR_ARGUMENT,
                "argument error: net: no parameter's name starts with \"nothing\"");
    REQUIRE(mica_net_compile(
                net, &(mica_compile_opts){.train = true, .optimizer = &(mica_optimizer){.kind = MICA_SGD}}) ==
            MICA_OK);
    REQUIRE(mica_net_bind(net, NULL, 0) == MICA_OK && mica_net_initialize(net, 1) == MICA_OK);
    mica_tensor t;
    CHECK_ERROR(ctx, mica_net_gradient(net, &t, "fc0.weight"), MICA_ERR_ARGUMENT,
                "argument error: net: \"fc0.weight\" has no gradient");
    CHECK_ERROR(ctx, mica_net_freeze(net, "fc0.", false), MICA_ERR_STATE,
                "state error: net_freeze: the net is already bound");
    mica_tensor frozen, learned;
    mica_net_tensor(net, &frozen, "fc0.weight");
    mica_net_tensor(net, &learned, "fc2.weight");
    float frozen_before = *(float *)frozen.data;
    float before[32 * 32];
    memcpy(before, learned.data, sizeof before);
    fill_input(net);
    CHECK_OK(ctx, mica_train_step(net, 0.1f));
    CHECK(*(float *)frozen.data == frozen_before);
    CHECK(memcmp(before, learned.data, sizeof before) != 0);
    mica_net_destroy(net);
}

TEST(net_fits_a_budget_with_the_same_bits)
{
    mica_context *ctx = test_context(1);
    enum { DEPTH = 12, STEPS = 5 };
    float loss[2][STEPS];
    size_t unlimited = 0;
    for (int budgeted = 0; budgeted < 2; budgeted++) {
        mica_net *net = mlp(ctx, 512, DEPTH);
        mica_compile_opts opts = {
            .train = true, .optimizer = &(mica_optimizer){.kind = MICA_ADAM}, .debug = true};
        opts.budget = budgeted ? unlimited * 7 / 10 : 0;
        opts.keep_cheap = !budgeted;
        if (!CHECK_OK(ctx, mica_net_compile(net, &opts)))
            return;
        const mica_plan *plan = mica_net_plan(net);
        check_plan(plan);
        if (!budgeted)
            unlimited = plan->total;
        else
            CHECK(plan->total <= opts.budget && plan->recomputed > 0 && plan->extra_work > 0.0);
        REQUIRE(mica_net_bind(net, NULL, 0) == MICA_OK && mica_net_initialize(net, 9) == MICA_OK);
        for (int step = 0; step < STEPS; step++) {
            fill_input(net);
            CHECK_OK(ctx, mica_train_step(net, 0.01f));
            loss[budgeted][step] = mica_net_loss(net);
        }
        mica_net_destroy(net);
    }
    CHECK(memcmp(loss[0], loss[1], sizeof loss[0]) == 0);
}

TEST(net_says_the_smallest_budget)
{
    mica_context *ctx = test_context(1);
    mica_net *net = mlp(ctx, 64, 6);
    mica_compile_opts opts = {.train = true, .budget = 1000};
    CHECK(mica_net_compile(net, &opts) == MICA_ERR_MEMORY);
    size_t least = 0;
    REQUIRE(sscanf(mica_error(ctx), "memory error: net: needs at least %zu bytes", &least) == 1);
    opts.budget = least - 1;
    CHECK(mica_net_compile(net, &opts) == MICA_ERR_MEMORY);
    opts.budget = least;
    CHECK_OK(ctx, mica_net_compile(net, &opts));
    CHECK(mica_net_plan(net) != NULL && mica_net_plan(net)->total == least);
    mica_net_destroy(net);
}

/* The same with a mean squared error against zero: a loss that does not depend on the size of a part. */
static mica_net *regression(mica_context *ctx, mica_index batch, int depth)
{
    mica_net *net;
    mica_net_create(ctx, &net);
    mica_value h = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){batch, 6});
    mica_value target = mica_net_input(net, "target", MICA_F32, 2, (mica_index[]){batch, 32});
    for (int i = 0; i < depth; i++)
        h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 32, .activation = MICA_TANH});
    mica_net_output(net, "y", h);
    mica_net_mse(net, h, target, NULL);
    return net;
}

TEST(net_runs_a_batch_in_parts_when_memory_is_short)
{
    mica_context *ctx = test_context(1);
    enum { STEPS = 4, ROWS = 150 };
    static float loss[2][STEPS], outputs[2][ROWS * 32];
    size_t unlimited = 0;
    for (int budgeted = 0; budgeted < 2; budgeted++) {
        mica_net *net = regression(ctx, ROWS, 3);
        mica_compile_opts opts = {
            .train = true, .optimizer = &(mica_optimizer){.kind = MICA_SGD}, .debug = true};
        opts.budget = budgeted ? unlimited * 6 / 10 : 0;
        if (!CHECK_OK(ctx, mica_net_compile(net, &opts)))
            return;
        const mica_plan *plan = mica_net_plan(net);
        check_plan(plan);
        if (!budgeted)
            unlimited = plan->total;
        else
            CHECK_MSG(plan->parts > 1 && plan->total <= opts.budget, "%d parts, %zu bytes of %zu",
                      plan->parts, plan->total, unlimited);
        REQUIRE(mica_net_bind(net, NULL, 0) == MICA_OK && mica_net_initialize(net, 9) == MICA_OK);
        for (int step = 0; step < STEPS; step++) {
            CHECK_OK(ctx, mica_net_resize(net, step == 2 ? ROWS - 23 : ROWS));
            fill_input(net);
            mica_tensor target;
            mica_net_tensor(net, &target, "target");
            CHECK(target.dim[0] == (step == 2 ? ROWS - 23 : ROWS));
            memset(target.data, 0, mica_tensor_bytes(&target));
            test_heap heap = test_heap_now();
            CHECK_OK(ctx, mica_train_step(net, 0.5f));
            CHECK(test_heap_now().calls == heap.calls);
            loss[budgeted][step] = mica_net_loss(net);
        }
        forward_into(net, outputs[budgeted], ROWS * 32);
        mica_net_destroy(net);
    }
    for (int step = 0; step < STEPS; step++)
        CHECK_MSG(fabsf(loss[0][step] - loss[1][step]) < 1e-6f, "step %d: %g and %g", step,
                  (double)loss[0][step], (double)loss[1][step]);
    CHECK(loss[0][3] < 0.9f * loss[0][0]);
    float worst = 0.0f;
    for (int i = 0; i < ROWS * 32; i++)
        worst = fmaxf(worst, fabsf(outputs[0][i] - outputs[1][i]));
    CHECK_MSG(worst < 1e-5f, "outputs differ by %g", (double)worst);
}

/* The calls of a program are its plan's times: a fused activation has none of its own. */
TEST(net_fuses_activations_it_need_not_look_behind)
{
    mica_context *ctx = test_context(1);
    static const struct {
        mica_activation kind;
        bool train, output;
        int forwards; /* dense, activation, loss */
    } cases[] = {
        {MICA_RELU, false, false, 2}, {MICA_RELU, true, false, 2}, {MICA_GELU, false, false, 2},
        {MICA_GELU, true, false, 3},  {MICA_RELU, false, true, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_net *net;
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){4, 6});
        mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 5});
        if (cases[i].output)
            mica_net_output(net, "before", h);
        layer_weighted_sum(net,
                           mica_net_activation(net, h, &(mica_net_activation_opts){.kind = cases[i].kind}));
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = cases[i].train}));
        int forwards = 0;
        for (int t = 0; t < mica_net_plan(net)->times; t++)
            forwards += mica_net_plan(net)->time[t].phase == MICA_PHASE_FORWARD;
        CHECK_MSG(forwards == cases[i].forwards, "case %zu: %d forward calls", i, forwards);
        mica_net_destroy(net);
    }
}

TEST(net_runs_shorter_inputs_in_the_same_plan)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_index length = mica_net_size(net, "length", 8);
    mica_value x = mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){4, length, 6});
    mica_net_output(net, "y",
                    mica_net_dense(net, x, &(mica_net_dense_opts){.units = 5, .activation = MICA_TANH}));
    REQUIRE(mica_net_compile(net, NULL) == MICA_OK && mica_net_bind(net, NULL, 0) == MICA_OK);
    REQUIRE(mica_net_initialize(net, 1) == MICA_OK);
    mica_tensor y;
    CHECK_OK(ctx, mica_net_resize(net, 2));
    CHECK_OK(ctx, mica_net_set_size(net, "length", 3));
    fill_input(net);
    CHECK_OK(ctx, mica_net_forward(net));
    CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
    CHECK(y.dim[0] == 2 && y.dim[1] == 3 && y.dim[2] == 5);
    CHECK_ERROR(ctx, mica_net_set_size(net, "length", 9), MICA_ERR_SHAPE,
                "shape error: net_set_size: length is 9, but the net was built for at most 8");
    CHECK_ERROR(ctx, mica_net_set_size(net, "width", 1), MICA_ERR_ARGUMENT,
                "argument error: net_set_size: the net has no size \"width\"");
    CHECK_OK(ctx, mica_net_set_size(net, "batch", 4));
    CHECK_OK(ctx, mica_net_set_size(net, "length", 8));
    CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
    CHECK(y.dim[0] == 4 && y.dim[1] == 8);
    mica_net_destroy(net);
}

TEST(net_reports_fit_any_buffer)
{
    mica_context *ctx = test_context(1);
    mica_net *net = mlp(ctx, 4, 2);
    REQUIRE(mica_net_compile(net, NULL) == MICA_OK);
    char whole[4096], cut[100];
    size_t length = mica_net_summary(whole, sizeof whole, net);
    CHECK(length == strlen(whole) && strstr(whole, "\nfc1 ") != NULL &&
          strstr(whole, "1280 parameters, 5.00 KiB\n") != NULL);
    CHECK(mica_net_summary(cut, sizeof cut, net) == length && strncmp(cut, whole, sizeof cut - 1) == 0 &&
          cut[99] == '\0');
    CHECK(mica_net_summary(NULL, 0, net) == length);
    length = mica_plan_print(whole, sizeof whole, mica_net_plan(net));
    CHECK(length == strlen(whole) && strncmp(whole, "total ", 6) == 0 && strstr(whole, "parameters") != NULL);
    mica_net_destroy(net);
}

/* Thousands of names, of which some were given to outputs later: each is found, and none twice. */
TEST(net_finds_thousands_of_names)
{
    enum { NODES = 1500 };
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){1, 2});
    char name[32];
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "fc%d", i);
        x = mica_net_dense(net, x, &(mica_net_dense_opts){.name = name, .units = 2});
        snprintf(name, sizeof name, "out%d", i);
        if (i % 3 == 0)
            CHECK_OK(ctx, mica_net_output(net, name, x));
    }
    REQUIRE(mica_net_compile(net, NULL) == MICA_OK && mica_net_bind(net, NULL, 0) == MICA_OK);
    mica_tensor t;
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "fc%d.weight", i);
        CHECK_OK(ctx, mica_net_tensor(net, &t, name));
        snprintf(name, sizeof name, "out%d", i);
        CHECK((mica_net_tensor(net, &t, name) == MICA_OK) == (i % 3 == 0));
    }
    mica_net_destroy(net);
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){1, 2});
    x = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 2});
    CHECK_OK(ctx, mica_net_output(net, "y", x));
    CHECK(mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 2}) ==
          0); /* still the node's */
    mica_net_destroy(net);
}

/* Trying plans for a budget takes no more memory than one of them. */
TEST(net_plans_that_were_tried_leave_nothing)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    mica_optimizer adam = {.kind = MICA_ADAM};
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    CHECK_OK(ctx, mica_netfile_build(net, NULL, mica_netfile_builtin("gpt-tiny"), NULL));
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam}));
    uint64_t once = mica_context_heap(ctx).live_bytes;
    for (int i = 0; i < 8; i++)
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam}));
    uint64_t after = mica_context_heap(ctx).live_bytes;
    CHECK_MSG(after <= once, "%llu bytes, then %llu", (unsigned long long)once, (unsigned long long)after);
    mica_net_destroy(net);
}

/* With .same_parts, a budget splits the batch alike for any number of threads and ranks, or is refused. */
TEST(net_parts_of_a_budget_do_not_depend_on_threads)
{
    mica_optimizer adam = {.kind = MICA_ADAM};
    mica_context *with[] = {test_context(1), test_context(2), test_context(4)};
    int refused = 0, planned = 0;
    for (size_t budget = 1900000; budget <= 3200000; budget += 100000) {
        int parts = 0;
        for (int k = 0; k < 6; k++) {
            mica_context *ctx = with[k < 3 ? k : 0];
            mica_net *net;
            CHECK_OK(ctx, mica_net_create(ctx, &net));
            CHECK_OK(ctx, mica_netfile_build(net, NULL, mica_netfile_builtin("lenet"),
                                             &(mica_netfile_opts){.batch = 32}));
            mica_compile_opts opts = {.train = true,
                                      .optimizer = &adam,
                                      .budget = budget,
                                      .same_parts = true,
                                      .ranks = k < 3 ? 0 : k};
            mica_status status = mica_net_compile(net, &opts);
            CHECK(status == MICA_OK || status == MICA_ERR_MEMORY);
            if (status == MICA_OK) {
                CHECK(mica_net_plan(net)->total <= budget);
                CHECK_MSG(parts == 0 || mica_net_plan(net)->parts == parts, "%zu bytes: %d parts, then %d",
                          budget, parts, mica_net_plan(net)->parts);
                parts = mica_net_plan(net)->parts;
            }
            planned += status == MICA_OK;
            refused += status != MICA_OK;
            mica_net_destroy(net);
        }
    }
    bool alone = mica_context_threads(with[2]) == 1; /* a build without threads, whose scratch always fits */
    CHECK_MSG(planned > 10 && (alone || refused > 0), "%d planned, %d refused", planned, refused);
}
