/* What net files build: the same nets as C does, with names, branches and repeats as they say. */
#include <stdio.h>
#include <string.h>

#include <mica/layers.h>
#include <mica/netfile.h>

#include "test.h"

static mica_net *build(mica_context *ctx, mica_netfile_info *info, const char *text,
                       const mica_netfile_opts *opts)
{
    mica_net *net;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    if (CHECK_OK(ctx, mica_netfile_build(net, info, text, opts)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

/* ---- The same as in C ---- */

static float loss_of(mica_context *ctx, mica_net *net, int below)
{
    mica_optimizer adam = {.kind = MICA_ADAM};
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 3));
    for (int step = 0; step < 3; step++) {
        test_random r = test_seed(5);
        for (int i = 0; i < mica_net_inputs(net); i++) {
            mica_tensor t;
            CHECK_OK(ctx, mica_net_input_tensor(net, NULL, &t, i));
            for (size_t j = 0; j < mica_tensor_count(&t); j++)
                if (t.dtype == MICA_F32)
                    ((float *)t.data)[j] = (float)test_uniform(&r, -1.0, 1.0);
                else
                    ((int32_t *)t.data)[j] = test_int(&r, 0, below - 1);
        }
        CHECK_OK(ctx, mica_train_step(net, 1e-3f));
    }
    return mica_net_loss(net);
}

TEST(netfile_gpt_is_the_one_of_c)
{
    mica_context *ctx = test_context(1);
    mica_netfile_info info;
    mica_netfile_constant set[] = {{"width", 16, false}, {"length", 8, false}, {"vocabulary", 20, false}};
    mica_netfile_opts opts = {.batch = 3, .constants = set, .constant_count = 3};
    mica_net *ours = build(ctx, &info, mica_netfile_builtin("gpt-tiny"), &opts), *theirs;
    REQUIRE(ours != NULL && CHECK_OK(ctx, mica_net_create(ctx, &theirs)));
    CHECK(info.task == MICA_TASK_TEXT && info.classes == 20 && info.length == 8 && info.logits);
    mica_value x = mica_net_input(theirs, "x", MICA_I32, 2, (mica_index[]){3, 8});
    mica_net_gpt_opts gpt = {.vocabulary = 20, .width = 16, .layers = 4, .heads = 4};
    mica_value logits = mica_net_gpt(theirs, x, &gpt);
    mica_value target = mica_net_input(theirs, "target", MICA_I32, 2, (mica_index[]){3, 8});
    mica_net_cross_entropy(theirs, logits, target, NULL);
    float a = loss_of(ctx, ours, 20), b = loss_of(ctx, theirs, 20);
    CHECK_MSG(a == b, "losses %a and %a", (double)a, (double)b);
    mica_net_destroy(ours);
    mica_net_destroy(theirs);
}

TEST(netfile_lenet_is_the_one_of_c)
{
    mica_context *ctx = test_context(1);
    mica_netfile_info info;
    mica_net *ours = build(ctx, &info, mica_netfile_builtin("lenet"), &(mica_netfile_opts){.batch = 3}),
             *theirs;
    REQUIRE(ours != NULL && CHECK_OK(ctx, mica_net_create(ctx, &theirs)));
    CHECK(info.task == MICA_TASK_CLASSES && info.classes == 10 && info.logits);
    CHECK(strcmp(info.input, "image") == 0 && strcmp(info.target, "target") == 0 &&
          strcmp(info.output, "logits") == 0);
    mica_value h = mica_net_input(theirs, "x", MICA_F32, 4, (mica_index[]){3, 1, 28, 28});
    for (int i = 0; i < 2; i++) {
        mica_net_conv_opts conv = {
            .out_channels = 8 << i, .kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU};
        h = mica_net_max_pool2d(theirs, mica_net_conv2d(theirs, h, &conv),
                                &(mica_net_pool_opts){.kernel = {2, 2}});
    }
    h = mica_net_flatten(theirs, h, NULL);
    h = mica_net_dense(theirs, h, &(mica_net_dense_opts){.units = 128, .activation = MICA_RELU});
    h = mica_net_dense(theirs, h, &(mica_net_dense_opts){.units = 10});
    mica_value label = mica_net_input(theirs, "label", MICA_I32, 1, (mica_index[]){3});
    mica_net_cross_entropy(theirs, h, label, NULL);
    float a = loss_of(ctx, ours, 10), b = loss_of(ctx, theirs, 10);
    CHECK_MSG(a == b, "losses %a and %a", (double)a, (double)b);
    mica_net_destroy(ours);
    mica_net_destroy(theirs);
}

/* ---- Names, branches, repeats ---- */

static bool has_layer(const mica_net *net, const char *wanted)
{
    for (int i = 0; i < mica_net_layers(net); i++) {
        const char *name;
        if (mica_net_layer(net, &name, NULL, NULL, i) == MICA_OK && strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

TEST(netfile_scopes_and_labels)
{
    mica_context *ctx = test_context(1);
    mica_netfile_info info;
    mica_net *net = build(ctx, &info,
                          "input x [4]\n"
                          "dense 3 relu name=trunk\n"
                          "dense 2\n"
                          "dense 5 from=trunk\n"
                          "concat dense1 trunk x name=all\n"
                          "output joined\n"
                          "repeat 2 name=half {\n"
                          "    dense 7 tanh\n"
                          "    block name=inner {\n"
                          "        dense 7\n"
                          "        add dense1 relu   # the one in here\n"
                          "    }\n"
                          "    add dense1\n"
                          "}\n"
                          "add half0 half1.inner.dense1\n"
                          "repeat 3 index=i {\n"
                          "    dense 2^i*(i + 1)\n"
                          "}\n"
                          "repeat 0 {\n"
                          "    never { built }\n"
                          "}\n",
                          NULL);
    REQUIRE(net != NULL);
    static const char *const names[] = {"trunk",
                                        "trunk.relu",
                                        "dense1",
                                        "dense2",
                                        "all",
                                        "half0.dense1",
                                        "half0.dense1.tanh",
                                        "half0.inner.dense1",
                                        "half0.inner.add1.relu",
                                        "half0.add1",
                                        "half1.inner.dense1",
                                        "add1.0",
                                        "add1",
                                        "dense3",
                                        "dense4",
                                        "dense5"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        CHECK_MSG(has_layer(net, names[i]), "no layer is called %s", names[i]);
    mica_tensor shape;
    CHECK_OK(ctx, mica_net_shape(net, &shape, info.output_value));
    CHECK(strcmp(info.output, "joined") == 0 && shape.dim[1] == 5 + 2 + 3 + 4);
    CHECK(info.task == MICA_TASK_NONE && info.target == NULL);
    mica_net_destroy(net);
}

TEST(netfile_losses_and_targets)
{
    mica_context *ctx = test_context(1);
    mica_netfile_info info;
    const char *text =
        "input x [4]\n"
        "dense 4 name=code\n"
        "loss mse target=x\n"
        "dense 3 from=code name=logits\n"
        "loss cross_entropy weight=0.5\n";
    mica_net *net = build(ctx, &info, text, NULL);
    REQUIRE(net != NULL);
    CHECK(info.task == MICA_TASK_REGRESSION && info.target == NULL && strcmp(info.output, "code") == 0);
    CHECK(mica_net_inputs(net) == 2);
    mica_net_destroy(net);
    net = build(ctx, &info, text, &(mica_netfile_opts){.inference = true});
    REQUIRE(net != NULL);
    CHECK(mica_net_inputs(net) == 1 && mica_net_layers(net) == 2 && info.task == MICA_TASK_REGRESSION);
    mica_net_destroy(net);
}

/* ---- What is given from outside ---- */

TEST(netfile_text_keeps_what_was_given)
{
    mica_context *ctx = test_context(1);
    mica_netfile_info info, again;
    mica_netfile_constant set[] = {{"width", 0.1, false}, {"classes", 7, true}, {"vocabulary", 9, true}};
    mica_netfile_opts opts = {.constants = set, .constant_count = 3, .sample_rank = 2, .sample = {9, 6}};
    mica_net *net = build(ctx, &info,
                          "let width = 2 * 4 # of it\n"
                          "let hidden = width * 40\n"
                          "let classes=10\n"
                          "input x [ 1, 8,8 ]# picture\n"
                          "dense hidden\n"
                          "dense classes\n",
                          &opts);
    REQUIRE(net != NULL);
    CHECK_MSG(strcmp(info.text,
                     "let width = 0.1 # of it\n"
                     "let hidden = width * 40\n"
                     "let classes=7\n"
                     "input x [1, 9, 6]# picture\n"
                     "dense hidden\n"
                     "dense classes\n") == 0,
              "%s", info.text);
    CHECK(info.constant_count == 3 && strcmp(info.constants[1].name, "hidden") == 0 &&
          info.constants[1].value == 4);
    mica_net *copy = build(ctx, &again, info.text, NULL);
    REQUIRE(copy != NULL);
    CHECK(again.classes == 7 && strcmp(again.text, info.text) == 0);
    mica_net_destroy(copy);
    mica_net_destroy(net);
}

TEST(netfile_inputs_take_the_shape_of_samples)
{
    mica_context *ctx = test_context(1);
    static const struct {
        const char *shape;
        int rank;
        mica_index sample[3], want[3];
        int want_rank;
    } cases[] = {
        {"[1, 28, 28]", 2, {28, 28}, {1, 28, 28}, 3},    /* as many elements */
        {"[784]", 2, {28, 28}, {784}, 1},                /* the same */
        {"[784]", 3, {3, 4, 5}, {60}, 1},                /* flat takes any */
        {"[1, 28, 28]", 2, {20, 30}, {1, 20, 30}, 3},    /* grey pictures */
        {"[1, 28, 28]", 3, {3, 32, 32}, {3, 32, 32}, 3}, /* as many axes */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "input x %s\nrelu\n", cases[i].shape);
        mica_netfile_opts opts = {.batch = 2, .sample_rank = cases[i].rank};
        memcpy(opts.sample, cases[i].sample, sizeof cases[i].sample);
        mica_netfile_info info;
        mica_net *net = build(ctx, &info, text, &opts);
        mica_tensor shape;
        if (net == NULL || !CHECK_OK(ctx, mica_net_shape(net, &shape, info.output_value)))
            continue;
        CHECK(shape.rank == cases[i].want_rank + 1 && shape.dim[0] == 2);
        for (int k = 0; k < cases[i].want_rank; k++)
            CHECK_MSG(shape.dim[k + 1] == cases[i].want[k], "case %zu axis %d: %td", i, k, shape.dim[k + 1]);
        mica_net_destroy(net);
    }
}
