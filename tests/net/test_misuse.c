/* Nets used wrongly: every mistake is an error that says what is wrong, and what was there before goes on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/mica.h>

#include "test.h"

#define DIMS(...) \
    (int)(sizeof((mica_index[]){__VA_ARGS__}) / sizeof(mica_index)), (mica_index[]) { __VA_ARGS__ }

static const mica_optimizer sgd = {.kind = MICA_SGD};
static const mica_compile_opts training = {.train = true, .optimizer = &sgd};

static mica_net *new_net(void)
{
    mica_net *net = NULL;
    CHECK(mica_net_create(test_context(1), &net) == MICA_OK);
    return net;
}

/* x [4, 6] through dense "fc" to "y" [4, 3], and a cross-entropy with classes "t" [4]. */
static mica_net *classifier(void)
{
    mica_net *net = new_net();
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(4, 6));
    mica_value y = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 3});
    mica_net_output(net, "y", y);
    mica_net_cross_entropy(net, y, mica_net_input(net, "t", MICA_I32, DIMS(4)), NULL);
    return net;
}

static void make_ready(mica_net *net, const mica_compile_opts *opts)
{
    mica_context *ctx = mica_net_context(net);
    CHECK_OK(ctx, mica_net_compile(net, opts));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 1));
}

/* Numbers for every f32 input, class 0 for the others. */
static void fill_inputs(mica_net *net)
{
    for (int i = 0; i < mica_net_inputs(net); i++) {
        mica_tensor t;
        REQUIRE(mica_net_input_tensor(net, NULL, &t, i) == MICA_OK && t.data != NULL);
        if (t.dtype != MICA_F32)
            memset(t.data, 0, mica_tensor_bytes(&t));
        for (size_t k = 0; t.dtype == MICA_F32 && k < mica_tensor_count(&t); k++)
            ((float *)t.data)[k] = (float)(k % 5) - 1.0f;
    }
}

static bool has_rows(mica_net *net, const char *name, mica_index rows)
{
    mica_tensor t;
    return mica_net_tensor(net, &t, name) == MICA_OK && t.dim[0] == rows;
}

/* The net does what it should: a step of training changes its loss. */
static void check_learns(mica_net *net)
{
    mica_context *ctx = mica_net_context(net);
    fill_inputs(net);
    CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR));
    float before = mica_net_loss(net);
    fill_inputs(net);
    CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR));
    CHECK(mica_net_loss(net) < before);
}

/* ---- Names ---- */

/* One line for each thing to build on x [4, 6] that is refused. */
#define REFUSES(status, text, build)                                                   \
    do {                                                                               \
        mica_net *net = new_net();                                                     \
        mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(4, 6));                 \
        (void)x;                                                                       \
        build;                                                                         \
        CHECK_ERROR(mica_net_context(net), mica_net_compile(net, NULL), status, text); \
        mica_net_destroy(net);                                                         \
    } while (0)

static mica_value dense(mica_net *net, mica_value x, const char *name)
{
    return mica_net_dense(net, x, &(mica_net_dense_opts){.name = name, .units = 2});
}

TEST(misuse_of_names)
{
    char name[1000];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: an input needs a name",
            mica_net_input(net, NULL, MICA_F32, DIMS(2)));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: mica_net_enter needs a name", mica_net_enter(net, NULL));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: a tensor of rank 2 whose dims are NULL",
            mica_net_input(net, "x", MICA_F32, 2, NULL));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: a tensor of rank 2 whose dims are NULL",
            mica_net_kept(net, "x", MICA_KEPT_STATE, MICA_F32, 2, NULL, 0.0f));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: a parameter needs a name",
            mica_net_learned(net, NULL, DIMS(2), (mica_init){0}));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: shares \"\", which is not a parameter of this net",
            mica_net_shared(net, NULL, DIMS(2)));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: derived by an operation that is NULL",
            mica_net_derived(net, "table", MICA_F32, DIMS(2), NULL, NULL, 0, NULL));
    REFUSES(MICA_ERR_ARGUMENT,
            "argument error: net: scopes are nested too deeply at \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"",
            mica_net_enter(net, name));
    REFUSES(MICA_ERR_ARGUMENT,
            "argument error: net: the name \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\" is too long (at most 400 "
            "bytes, with its scopes)",
            dense(net, x, name));
    /* Names that a node had before its output got another, and those of parameters. */
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: the name \"fc\" is already in use",
            (mica_net_output(net, "y", dense(net, x, "fc")), dense(net, x, "fc")));
    REFUSES(MICA_ERR_ARGUMENT,
            "argument error: layer 0 \"fc\" (dense)\n"
            "  input is [4, 6], the net's input \"x\"\n"
            "  the name of its parameter \"fc.bias\" is already in use",
            (mica_net_input(net, "fc.bias", MICA_F32, DIMS(2)), dense(net, x, "fc")));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: output \"b\" is already named \"a\"",
            (x = dense(net, x, "fc"), mica_net_output(net, "a", x), mica_net_output(net, "b", x)));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: output \"y\" is the input \"x\"",
            mica_net_output(net, "y", x));
}

TEST(misuse_of_names_that_are_null)
{
    mica_net *net = classifier();
    mica_context *ctx = mica_net_context(net);
    mica_tensor t;
    char text[100];
    mica_plan_print(text, sizeof text, mica_net_plan(net));
    CHECK(strcmp(text, "no plan: the net is not compiled\n") == 0);
    CHECK_ERROR(ctx, mica_net_freeze(net, NULL, true), MICA_ERR_ARGUMENT,
                "argument error: net_freeze: prefix is NULL");
    make_ready(net, &training);
    CHECK_ERROR(ctx, mica_net_tensor(net, &t, NULL), MICA_ERR_ARGUMENT,
                "argument error: net: the name of the requested tensor is NULL");
    CHECK_ERROR(ctx, mica_net_gradient(net, &t, NULL), MICA_ERR_ARGUMENT,
                "argument error: net: the name of the requested tensor is NULL");
    CHECK_ERROR(ctx, mica_net_set_size(net, NULL, 1), MICA_ERR_ARGUMENT,
                "argument error: net_set_size: name is NULL");
    CHECK_ERROR(ctx, mica_checkpoint_save(net, "unused", NULL), MICA_ERR_ARGUMENT,
                "argument error: checkpoint_save: state is NULL");
    CHECK_ERROR(ctx, mica_checkpoint_load(net, NULL, "unused"), MICA_ERR_ARGUMENT,
                "argument error: checkpoint_load: state is NULL");
    check_learns(net);
    mica_net_destroy(net);
}

/* ---- Values and options ---- */

TEST(misuse_of_values)
{
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: dense: value 0 does not belong to this net",
            dense(net, 0, "fc"));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: dense: value 99 does not belong to this net",
            dense(net, 99, "fc"));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: output: value 0 does not belong to this net",
            mica_net_output(net, "y", 0));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: concat: the list of values is NULL",
            mica_net_concat(net, NULL, 2, NULL));
}

TEST(misuse_of_sizes_that_overflow)
{
#define ON_X      "  input is [4, 6], the net's input \"x\"\n"
#define ON_PLANES "  input is [4, 3, 2, 1], produced by layer 0 \"planes\"\n"
    const mica_index huge = PTRDIFF_MAX;
    const mica_net_reshape_opts planes = {.name = "planes", .rank = 4, .dims = {0, 3, 2, 1}};
    REFUSES(
        MICA_ERR_SHAPE,
        "shape error: tensor_init: the tensor [9223372036854775807, 6] has more elements than memory can hold",
        mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = huge}));
    REFUSES(MICA_ERR_MEMORY,
            "memory error: net_compile: the tensors take 6.34e+18 bytes in all, more than can be addressed",
            mica_net_dense(net, x, &(mica_net_dense_opts){.units = (mica_index)1 << 57}));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: mlp: hidden is 9223372036854775807",
            mica_net_mlp(net, x, &(mica_net_mlp_opts){.hidden = huge, .swiglu = true}));
    REFUSES(MICA_ERR_ARGUMENT,
            "argument error: layer 1 \"c\" (conv2d)\n" ON_PLANES
            "  along the height kernel is 1, stride 1, pad 9223372036854775807, dilation 1: too large",
            mica_net_conv2d(
                net, mica_net_reshape(net, x, &planes),
                &(mica_net_conv_opts){.name = "c", .out_channels = 1, .kernel = {1, 1}, .pad = {huge, 0}}));
    REFUSES(MICA_ERR_SHAPE,
            "shape error: layer 1 \"p\" (max_pool2d)\n" ON_PLANES
            "  a window of 2 (dilation 9223372036854775807) does not fit into height 2 padded by 0",
            mica_net_max_pool2d(net, mica_net_reshape(net, x, &planes),
                                &(mica_net_pool_opts){.name = "p", .kernel = {2, 1}, .dilation = {huge, 1}}));
    REFUSES(MICA_ERR_ARGUMENT,
            "argument error: layer 1 \"rnn\" (lstm)\n"
            "  input is [4, 1, 6], produced by layer 0 \"steps\"\n"
            "  units is 9223372036854775807: expected 1 to 2147483647",
            mica_net_lstm(net, mica_net_unsqueeze(net, x, &(mica_net_axis_opts){.name = "steps", .axis = 1}),
                          &(mica_net_recurrent_opts){.name = "rnn", .units = huge}));
}

TEST(misuse_of_options)
{
    REFUSES(MICA_ERR_ARGUMENT,
            "argument error: layer 0 \"fc\" (dense)\n" ON_X "  units is -3: expected 1 or more",
            mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = -3}));
    REFUSES(MICA_ERR_ARGUMENT,
            "argument error: layer 0 \"fc\" (dense)\n" ON_X "  unknown init 55 for \"weight\"",
            mica_net_dense(
                net, x,
                &(mica_net_dense_opts){.name = "fc", .units = 3, .weight_init = {(mica_init_kind)55, 1.0f}}));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: unknown activation 99",
            mica_net_activation(net, x, &(mica_net_activation_opts){.kind = (mica_activation)99}));
    REFUSES(MICA_ERR_ARGUMENT,
            "argument error: layer 0 \"d\" (dropout)\n" ON_X "  rate is nan: expected 0 to 1",
            mica_net_dropout(net, x, &(mica_net_dropout_opts){.name = "d", .rate = NAN}));
    REFUSES(
        MICA_ERR_ARGUMENT, "argument error: net: unknown gpt kind 9",
        mica_net_gpt(net, x,
                     &(mica_net_gpt_opts){
                         .kind = (mica_gpt_kind)9, .vocabulary = 9, .width = 8, .layers = 1, .heads = 2}));
    REFUSES(MICA_ERR_ARGUMENT,
            "argument error: layer 0 \"p\" (sinusoidal_positions)\n" ON_X
            "  base is -2: expected more than 0",
            mica_net_sinusoidal_positions(net, x, &(mica_net_positions_opts){.name = "p", .base = -2.0}));
}

/* A layer that failed leaves nothing behind that a report would trip over. */
TEST(misuse_leaves_no_half_layer)
{
    mica_net *net = new_net();
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(4, 6));
    CHECK(mica_net_dense(net, x, &(mica_net_dense_opts){.units = -1}) == 0);
    char text[1000];
    CHECK(mica_net_summary(text, sizeof text, net) < sizeof text);
    CHECK(mica_net_layers(net) == 0 && mica_net_parameters(net) == 0);
    mica_net_destroy(net);
}

/* ---- The order of calls ---- */

TEST(misuse_of_order)
{
    mica_net *net = classifier();
    mica_context *ctx = mica_net_context(net);
    mica_tensor t;
    CHECK_ERROR(ctx, mica_net_forward(net), MICA_ERR_STATE,
                "state error: net: step called before mica_net_bind");
    CHECK_ERROR(ctx, mica_net_gradients(net, NULL), MICA_ERR_STATE,
                "state error: net_gradients: the net was not compiled with .train");
    CHECK_ERROR(ctx, mica_net_resize(net, 2), MICA_ERR_STATE,
                "state error: net_resize: the net is not compiled");
    CHECK_ERROR(ctx, mica_net_initialize(net, 1), MICA_ERR_STATE,
                "state error: net_initialize: the net is not bound");
    CHECK_ERROR(ctx, mica_train_update(net, MICA_OPTIMIZER_LR), MICA_ERR_STATE,
                "state error: train_update: the net is not bound, or was compiled without an optimizer");
    CHECK_ERROR(ctx, mica_net_tensor(net, &t, "x"), MICA_ERR_STATE,
                "state error: net: \"x\" requested before mica_net_bind");
    make_ready(net, &training);
    CHECK_ERROR(ctx, mica_net_bind(net, NULL, 0), MICA_ERR_STATE,
                "state error: net_bind: the net is already bound");
    CHECK_ERROR(ctx, mica_net_compile(net, NULL), MICA_ERR_STATE,
                "state error: net_compile: the net is already bound");
    CHECK_ERROR(ctx, mica_net_freeze(net, "fc", true), MICA_ERR_STATE,
                "state error: net_freeze: the net is already bound");
    CHECK_ERROR(ctx, mica_net_gradient(net, &t, "x"), MICA_ERR_ARGUMENT,
                "argument error: net: \"x\" has no gradient");
    check_learns(net);
    mica_net_destroy(net);
}

TEST(misuse_builds_on_a_bound_net)
{
    mica_net *net = classifier();
    mica_context *ctx = mica_net_context(net);
    make_ready(net, &training);
    CHECK(dense(net, 1, "late") == 0);
    CHECK(mica_net_input(net, "z", MICA_F32, DIMS(4)) == 0);
    CHECK(strcmp(mica_error(ctx), "state error: net: nothing can be added after mica_net_compile") == 0);
    CHECK(mica_net_inputs(net) == 2 && mica_net_layers(net) == 2);
    check_learns(net);
    CHECK_OK(ctx, mica_net_resize(net, 2));
    check_learns(net);
    mica_net_destroy(net);
}

/* Compiled again and again, resized in between: the last plan is as that of a net that was not. */
TEST(misuse_compiles_again)
{
    mica_net *net = classifier();
    mica_context *ctx = mica_net_context(net);
    CHECK_OK(ctx, mica_net_compile(net, &training));
    CHECK_OK(ctx, mica_net_resize(net, 2));
    mica_tensor shape;
    CHECK_OK(ctx, mica_net_shape(net, &shape, 1));
    CHECK(shape.dim[0] == 4);
    CHECK(mica_net_compile(net, &(mica_compile_opts){.train = true, .budget = 1}) == MICA_ERR_MEMORY);
    CHECK_ERROR(ctx, mica_net_bind(net, NULL, 0), MICA_ERR_STATE,
                "state error: net_bind: the net is not compiled");
    CHECK_OK(ctx, mica_net_compile(net, NULL));
    make_ready(net, &training);
    CHECK(has_rows(net, "x", 4) && has_rows(net, "y", 4));
    check_learns(net);
    mica_net_destroy(net);
}

TEST(misuse_of_compile)
{
    mica_net *net = classifier();
    mica_context *ctx = mica_net_context(net);
    mica_optimizer bad[] = {{.kind = (mica_optimizer_kind)77},
                            {.lr = -1.0f},
                            {.kind = MICA_ADAM, .beta1 = 1.0f},
                            {.clip_norm = -1.0f},
                            {.weight_decay = NAN}};
    const char *const texts[] = {"argument error: net_compile: unknown optimizer 77",
                                 "argument error: net_compile: the optimizer's lr is -1",
                                 "argument error: net_compile: the optimizer's beta1 is 1",
                                 "argument error: net_compile: the optimizer's clip_norm is -1",
                                 "argument error: net_compile: the optimizer's weight_decay is nan"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_ERROR(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &bad[i]}),
                    MICA_ERR_ARGUMENT, texts[i]);
    make_ready(net, &(mica_compile_opts){.train = true, .optimizer = &sgd, .budget = SIZE_MAX});
    check_learns(net);
    mica_net_destroy(net);

    net = new_net();
    ctx = mica_net_context(net);
    CHECK_ERROR(ctx, mica_net_compile(net, &training), MICA_ERR_STATE,
                "state error: net_compile: the net has no loss to minimize");
    mica_net_input(net, "x", MICA_F32, DIMS(4, 100));
    CHECK_ERROR(ctx, mica_net_compile(net, &(mica_compile_opts){.budget = 1}), MICA_ERR_MEMORY,
                "memory error: net: needs at least 1600 bytes, the budget is 1 (1599 short)");
    make_ready(net, NULL);
    CHECK_OK(ctx, mica_net_forward(net));
    mica_net_destroy(net);
}

/* ---- Batches ---- */

/* Inputs whose first axis is not the batch keep it, whatever is planned and resized. */
TEST(misuse_of_inputs_without_the_batch)
{
    mica_net *net = new_net();
    mica_context *ctx = mica_net_context(net);
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(8, 3)),
               b = mica_net_input(net, "b", MICA_F32, DIMS(1, 3));
    mica_value large = mica_net_input(net, "large", MICA_F32, DIMS(50, 3));
    mica_net_output(net, "y", mica_net_plus(net, x, b, NULL));
    mica_net_output(net, "z", dense(net, large, "fc"));
    make_ready(net, NULL);
    for (mica_index rows = 8; rows >= 0; rows--) {
        CHECK_OK(ctx, mica_net_resize(net, rows));
        CHECK(has_rows(net, "x", rows) && has_rows(net, "b", 1) && has_rows(net, "large", 50));
        fill_inputs(net);
        CHECK_OK(ctx, mica_net_forward(net));
        CHECK(has_rows(net, "y", rows) && has_rows(net, "z", 50));
    }
    mica_net_destroy(net);
}

/* x [16, 3, 12] through two attentions with one mask for all samples. Its loss after a step, in `parts`. */
static float masked_loss(size_t budget, int *parts, size_t *total)
{
    mica_net *net = new_net();
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(16, 3, 12));
    mica_value mask = mica_net_input(net, "mask", MICA_F32, DIMS(1, 1, 3, 3));
    for (int i = 0; i < 2; i++)
        h = mica_net_multi_head_attention(
            net, h, &(mica_net_multi_head_attention_opts){.heads = 4, .mask = i == 0 ? mask : 0});
    mica_net_mse(net, h, mica_net_input(net, "t", MICA_F32, DIMS(16, 3, 12)), NULL);
    float loss = NAN;
    if (mica_net_compile(net, &(mica_compile_opts){.train = true, .budget = budget}) == MICA_OK &&
        mica_net_bind(net, NULL, 0) == MICA_OK && mica_net_initialize(net, 1) == MICA_OK) {
        *parts = mica_net_plan(net)->parts;
        *total = mica_net_plan(net)->total;
        fill_inputs(net);
        CHECK(has_rows(net, "mask", 1));
        CHECK_OK(mica_net_context(net), mica_net_gradients(net, NULL));
        loss = mica_net_loss(net);
    }
    mica_net_destroy(net);
    return loss;
}

TEST(misuse_of_a_mask_in_parts)
{
    int parts = 0;
    size_t total = 0;
    float whole = masked_loss(0, &parts, &total);
    CHECK(isfinite(whole) && parts == 1);
    int most = 1;
    for (size_t budget = total - total / 8; budget > total / 8; budget -= total / 8) {
        float loss = masked_loss(budget, &parts, &total);
        if (isnan(loss))
            break;
        most = parts;
        CHECK_MSG(fabsf(loss - whole) < 1e-5f * whole, "in %d parts the loss is %g, not %g", parts,
                  (double)loss, (double)whole);
    }
    CHECK(most > 1);
}

TEST(misuse_of_resize_changes_nothing)
{
    mica_net *net = new_net();
    mica_context *ctx = mica_net_context(net);
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(4, 6));
    mica_net_output(
        net, "y",
        mica_net_reshape(net, x, &(mica_net_reshape_opts){.name = "r", .rank = 3, .dims = {4, 2, 3}}));
    make_ready(net, NULL);
    CHECK_ERROR(ctx, mica_net_resize(net, 5), MICA_ERR_SHAPE,
                "shape error: net_resize: the batch is 5, but the net was built for at most 4");
    CHECK(mica_net_resize(net, -1) == MICA_ERR_SHAPE);
    for (mica_index rows = 0; rows < 4; rows++) {
        CHECK(mica_net_resize(net, rows) == MICA_ERR_SHAPE);
        CHECK(mica_net_set_size(net, "batch", rows) == MICA_ERR_SHAPE);
        mica_tensor t;
        CHECK_OK(ctx, mica_net_tensor(net, &t, "x"));
        CHECK(t.dim[0] == 4 && t.dim[1] == 6);
        fill_inputs(net);
        CHECK_OK(ctx, mica_net_forward(net));
    }
    mica_net_destroy(net);
}

/* A batch of none, also in parts: no gradient is left of the step before. */
TEST(misuse_of_a_batch_of_none)
{
    for (int in_parts = 0; in_parts < 2; in_parts++) {
        mica_net *net = new_net();
        mica_context *ctx = mica_net_context(net);
        mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(64, 60));
        for (int i = 0; i < 3; i++)
            h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 16, .activation = MICA_TANH});
        mica_net_mse(net, h, mica_net_input(net, "t", MICA_F32, DIMS(64, 16)), NULL);
        CHECK_OK(ctx, mica_net_compile(net, &training));
        size_t total = mica_net_plan(net)->total;
        make_ready(net, &(mica_compile_opts){
                            .train = true, .optimizer = &sgd, .budget = in_parts ? total * 4 / 5 : 0});
        CHECK((mica_net_plan(net)->parts > 1) == in_parts);
        check_learns(net);
        CHECK_OK(ctx, mica_net_resize(net, 0));
        CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR));
        mica_tensor gradients;
        CHECK_OK(ctx, mica_net_flat(net, NULL, &gradients));
        for (mica_index i = 0; i < gradients.dim[0]; i++)
            if (!CHECK(((float *)gradients.data)[i] == 0.0f))
                break;
        CHECK_OK(ctx, mica_net_resize(net, 64));
        check_learns(net);
        mica_net_destroy(net);
    }
}

/* ---- Data ---- */

TEST(misuse_of_classes_out_of_range)
{
    for (int debug = 0; debug < 2; debug++) {
        mica_net *net = classifier();
        mica_context *ctx = mica_net_context(net);
        make_ready(net, &(mica_compile_opts){.train = true, .optimizer = &sgd, .debug = debug});
        mica_tensor t;
        for (int32_t class = -1; class <= 3; class += 4) {
            fill_inputs(net);
            CHECK_OK(ctx, mica_net_tensor(net, &t, "t"));
            ((int32_t *)t.data)[2] = class;
            char text[100];
            snprintf(text, sizeof text,
                     "index error: cross_entropy: target 2 is class %d, but there are 3 classes", (int)class);
            CHECK_ERROR(ctx, mica_train_step(net, MICA_OPTIMIZER_LR), MICA_ERR_INDEX, text);
            CHECK(mica_train_steps(net) == 0);
        }
        check_learns(net);
        mica_net_destroy(net);
    }
}

/* ---- Weights ---- */

TEST(misuse_of_another_nets_weights)
{
    /* Inputs with the names and shapes of the parameters are no parameters. */
    mica_net *lender = new_net(), *net = NULL;
    mica_context *ctx = mica_net_context(lender);
    mica_net_input(lender, "fc.weight", MICA_F32, DIMS(2, 6));
    mica_net_input(lender, "fc.bias", MICA_F32, DIMS(2));
    make_ready(lender, NULL);
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    dense(net, mica_net_input(net, "x", MICA_F32, DIMS(4, 6)), "fc");
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.weights = lender}));
    CHECK_ERROR(ctx, mica_net_bind(net, NULL, 0), MICA_ERR_SHAPE,
                "shape error: net_bind: the net that lends its weights has no \"fc.weight\" of this shape");
    mica_net_destroy(net);
    mica_net_destroy(lender);
}

TEST(misuse_of_paths)
{
    mica_net *net = classifier();
    mica_context *ctx = mica_net_context(net);
    make_ready(net, &training);
    CHECK(mica_weights_save(net, "no-such-folder/weights") == MICA_ERR_IO);
    CHECK_ERROR(ctx, mica_weights_save(net, "."), MICA_ERR_IO,
                "file error: \".\": not a regular file, cannot be replaced");
    CHECK_ERROR(ctx, mica_weights_save(net, NULL), MICA_ERR_ARGUMENT,
                "argument error: safetensors_write: path is NULL");
    check_learns(net);
    mica_net_destroy(net);
}

/* ---- The training loop ---- */

static mica_status fit_on(mica_net *net, mica_index samples, mica_fit_opts opts, bool drop_last)
{
    static float inputs[10 * 6];
    static int32_t classes[10];
    mica_context *ctx = mica_net_context(net);
    mica_tensor x, t;
    mica_dataset set;
    mica_batches *batches = NULL;
    CHECK_OK(ctx, mica_tensor_init(ctx, &x, inputs, MICA_F32, DIMS(samples, 6)));
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, classes, MICA_I32, DIMS(samples)));
    CHECK_OK(ctx, mica_dataset_over(ctx, &set, &x, &t));
    CHECK_OK(ctx, mica_batches_create(ctx, &batches, &set,
                                      &(mica_batches_opts){.batch = 4, .drop_last = drop_last}));
    opts.train = mica_source_of_batches(batches);
    mica_fit_result result;
    mica_status status = mica_fit(net, &result, &opts);
    mica_batches_destroy(ctx, batches);
    return status;
}

TEST(misuse_of_fit)
{
    mica_net *net = classifier();
    mica_context *ctx = mica_net_context(net);
    const char *const not_ready =
        "state error: fit: the net is not bound, or was compiled without an optimizer";
    CHECK_ERROR(ctx, fit_on(net, 10, (mica_fit_opts){0}, false), MICA_ERR_STATE, not_ready);
    make_ready(net, &training);
    mica_fit_result result;
    CHECK_ERROR(ctx, mica_fit(net, &result, NULL), MICA_ERR_ARGUMENT, "argument error: fit: opts is NULL");
    CHECK_ERROR(ctx, mica_fit(net, NULL, &(mica_fit_opts){0}), MICA_ERR_ARGUMENT,
                "argument error: fit: result is NULL");
    CHECK_ERROR(ctx, mica_fit(net, &result, &(mica_fit_opts){0}), MICA_ERR_ARGUMENT,
                "argument error: fit: no source of training data");
    CHECK_ERROR(ctx, fit_on(net, 10, (mica_fit_opts){.output = "nothing"}, false), MICA_ERR_ARGUMENT,
                "argument error: net: there is no \"nothing\"");
    CHECK_ERROR(ctx, fit_on(net, 10, (mica_fit_opts){.accumulate = -1}, false), MICA_ERR_ARGUMENT,
                "argument error: fit: accumulate is -1");
    CHECK_ERROR(
        ctx, fit_on(net, 10, (mica_fit_opts){.accumulate = 4}, false), MICA_ERR_ARGUMENT,
        "argument error: fit: an epoch has 3 batches, but an update accumulates 4: no update would happen");
    CHECK_ERROR(
        ctx, fit_on(net, 3, (mica_fit_opts){.epochs = UINT64_MAX}, true), MICA_ERR_ARGUMENT,
        "argument error: fit: an epoch has 0 batches, but an update accumulates 1: no update would happen");
    CHECK(mica_train_steps(net) == 0);
    CHECK_OK(ctx, fit_on(net, 3, (mica_fit_opts){0}, false));
    CHECK_OK(ctx, fit_on(net, 10, (mica_fit_opts){.accumulate = 3, .output = "y"}, false));
    CHECK(mica_train_steps(net) == 2);
    mica_score score;
    CHECK_ERROR(ctx, mica_evaluate(net, &score, NULL, NULL), MICA_ERR_ARGUMENT,
                "argument error: evaluate: no source of data");
    mica_net_destroy(net);
}

/* A source of the caller's that has no cursor, and claims more than there is room for. */
static mica_status one_too_many(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                                mica_index *count, void *user)
{
    (void)ctx, (void)targets, (void)user;
    *count = inputs->dim[0] + 1;
    return MICA_OK;
}

TEST(misuse_of_sources)
{
    mica_net *net = classifier();
    mica_context *ctx = mica_net_context(net);
    make_ready(net, &training);
    mica_fit_opts opts = {.train = {.next = one_too_many}, .checkpoint = "unused"};
    mica_fit_result result;
    CHECK_ERROR(ctx, mica_fit(net, &result, &opts), MICA_ERR_ARGUMENT,
                "argument error: fit: a checkpoint needs a source with cursor and seek");
    opts.checkpoint = NULL;
    CHECK_ERROR(ctx, mica_fit(net, &result, &opts), MICA_ERR_SHAPE,
                "shape error: fit: a source returned 5 samples: expected at most 4, the batch size");
    mica_net_destroy(net);
}
