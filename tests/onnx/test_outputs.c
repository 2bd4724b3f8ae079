/* Outputs of a model that no call makes, and names that the import makes up, or that the model does not have. */
#include <stdio.h>
#include <string.h>

#include <mica/mica.h>

#include "io/scratch.h"
#include "onnx/proto.h"
#include "test.h"

enum { COUNT = 6 };
static const int64_t six[] = {COUNT};

static mica_net *built(mica_context *ctx, mica_onnx *model, bool train)
{
    mica_net *net;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    if (CHECK_OK(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.train = train})) &&
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_onnx_load(model, net)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

/* Runs it with x = -3, -2, ... */
static void run(mica_context *ctx, mica_net *net)
{
    mica_tensor x;
    if (!CHECK_OK(ctx, mica_net_tensor(net, &x, "x")))
        return;
    for (int i = 0; i < COUNT; i++)
        ((float *)x.data)[i] = (float)(i - 3);
    CHECK_OK(ctx, mica_net_forward(net));
}

static float element(mica_context *ctx, mica_net *net, const char *name, int i)
{
    mica_tensor t;
    return CHECK_OK(ctx, mica_net_tensor(net, &t, name)) && CHECK((size_t)i < mica_tensor_count(&t))
               ? ((const float *)t.data)[i]
               : -100.0f;
}

/* The input and a weight are outputs, under their own names; y is made by calls that could take over the memory of
 * x. */
static proto passing_model(void)
{
    static const float weights[COUNT] = {1, 2, 3, 4, 5, 6};
    proto graph = {0};
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, six));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("w", ONNX_FLOAT, 1, six, weights, sizeof weights));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("x", ONNX_FLOAT, 1, six));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("w", ONNX_FLOAT, 1, six));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, six));
    proto_message(&graph, GRAPH_NODE, proto_node("Relu", "x", "positive"));
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "positive w", "sum"));
    proto_message(&graph, GRAPH_NODE, proto_node("Neg", "sum", "y"));
    return proto_model(graph, 17);
}

TEST(onnx_inputs_and_weights_can_be_outputs)
{
    mica_context *ctx = test_context(1);
    proto bytes = passing_model();
    mica_onnx *model;
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    for (int train = 0; train < 2; train++) {
        mica_net *net = built(ctx, model, train != 0);
        if (net != NULL) {
            run(ctx, net);
            for (int i = 0; i < COUNT; i++) {
                float x = (float)(i - 3), w = (float)(i + 1);
                CHECK(element(ctx, net, "x", i) == x);
                CHECK(element(ctx, net, "w", i) == w);
                CHECK(element(ctx, net, "y", i) == -((x > 0 ? x : 0) + w));
            }
        }
        mica_net_destroy(net);
    }
    mica_onnx_close(model);
    proto_free(&bytes);
}

/* A model that is its input, and nothing else. */
TEST(onnx_output_is_the_input)
{
    mica_context *ctx = test_context(1);
    proto graph = {0};
    mica_onnx *model;
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, six));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("x", ONNX_FLOAT, 1, six));
    proto bytes = proto_model(graph, 17);
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    mica_net *net = built(ctx, model, false);
    if (net != NULL) {
        run(ctx, net);
        CHECK(element(ctx, net, "x", 5) == 2.0f);
    }
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}

/* Weights that are called as the import would call its calls and constants. */
TEST(onnx_made_names_stand_back)
{
    mica_context *ctx = test_context(1);
    static const float one[COUNT] = {1, 1, 1, 1, 1, 1};
    proto graph = {0};
    mica_onnx *model;
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, six));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("add.2", ONNX_FLOAT, 1, six));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("relu.0", ONNX_FLOAT, 1, six, one, sizeof one));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("constant.0", ONNX_FLOAT, 1, six, one, sizeof one));
    proto_message(&graph, GRAPH_NODE, proto_node("Relu", "x", "a"));
    proto_message(&graph, GRAPH_NODE, proto_node("Neg", "constant.0", "minus")); /* folded, without a name */
    proto_message(&graph, GRAPH_NODE, proto_node("Mul", "a minus", "b"));
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "b constant.0", "c"));
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "c relu.0", "add.2"));
    proto bytes = proto_model(graph, 17);
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    mica_net *net = built(ctx, model, false);
    if (net != NULL) {
        run(ctx, net);
        CHECK(element(ctx, net, "add.2", 5) == -2.0f + 1.0f + 1.0f);
    }
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}

/* ---- What the caller sets ---- */

TEST(onnx_build_misuse)
{
    mica_context *ctx = test_context(1);
    proto bytes = passing_model();
    mica_onnx *model;
    mica_net *net;
    double numbers[COUNT] = {0};
    mica_tensor wide = {.data = numbers, .dtype = MICA_F64, .rank = 1, .dim = {COUNT}, .stride = {1}},
                less = {.dtype = MICA_F32, .rank = 1, .dim = {COUNT - 1}, .stride = {1}};
    const mica_tensor *const wrong[] = {&wide, &less};
    static const char *const why[] = {"dtype error: onnx: input \"x\" is set to f64: expected f32",
                                      "shape error: onnx: input \"x\" is set to [5], which is not its shape"};
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    for (int i = 0; i < 2; i++) {
        mica_onnx_set set = {.name = "x", .value = wrong[i]};
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        CHECK_ERROR(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = &set, .count = 1}),
                    i == 0 ? MICA_ERR_DTYPE : MICA_ERR_SHAPE, why[i]);
        mica_net_destroy(net);
    }
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    CHECK_OK(ctx, mica_onnx_build(model, net, NULL));
    CHECK_ERROR(ctx, mica_onnx_build(model, net, NULL), MICA_ERR_ARGUMENT,
                "argument error: onnx_build: expected an empty net");
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}

/* Concat takes as many as there are: y = x and 19 times |x|, then w, a number of one byte by a scale of one element. */
TEST(onnx_concat_of_many_and_a_scale_for_one_element)
{
    enum { MANY = 20 };
    static const int64_t one[] = {1}, all[] = {MANY * COUNT + 1};
    static const int8_t byte[] = {-7};
    static const float scale[] = {0.5f};
    char names[8 * MANY] = "x";
    for (int i = 1; i < MANY; i++)
        strcat(names, " a");
    strcat(names, " w");
    proto graph = {0}, concat = proto_node("Concat", names, "y");
    proto_int(&concat, "axis", 0);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, six));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("q", ONNX_INT8, 1, one, byte, sizeof byte));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("s", ONNX_FLOAT, 1, one, scale, sizeof scale));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, all));
    proto_message(&graph, GRAPH_NODE, proto_node("DequantizeLinear", "q s", "w"));
    proto_message(&graph, GRAPH_NODE, proto_node("Abs", "x", "a"));
    proto_message(&graph, GRAPH_NODE, concat);
    proto bytes = proto_model(graph, 17);
    mica_context *ctx = test_context(1);
    mica_onnx *model;
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    mica_net *net = built(ctx, model, false);
    if (net != NULL) {
        run(ctx, net);
        for (int i = 0; i < MANY * COUNT; i++) {
            float x = (float)(i % COUNT - 3);
            CHECK(element(ctx, net, "y", i) == (i < COUNT || x > 0.0f ? x : -x));
        }
        CHECK(element(ctx, net, "y", MANY * COUNT) == -3.5f);
    }
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}

/* An input that has an initializer is that, or what was set. */
TEST(onnx_initializers_are_defaults)
{
    static const float weights[COUNT] = {1, 2, 3, 4, 5, 6};
    static float others[COUNT] = {10, 20, 30, 40, 50, 60};
    mica_context *ctx = test_context(1);
    proto graph = {0};
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, six));
    proto_message(&graph, GRAPH_INPUT, proto_value("w", ONNX_FLOAT, 1, six));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("w", ONNX_FLOAT, 1, six, weights, sizeof weights));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, six));
    proto_message(&graph, GRAPH_NODE, proto_node("Mul", "x w", "y"));
    proto bytes = proto_model(graph, 17);
    mica_tensor value = mica_1d(others, COUNT), wrong = mica_1d(others, COUNT);
    wrong.dtype = MICA_I32;
    const mica_onnx_set sets[] = {{.name = "w", .value = &value}, {.name = "w", .value = &wrong}};
    for (int given = 0; given < 2; given++) {
        mica_onnx *model;
        mica_net *net;
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "defaults") == MICA_OK);
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        CHECK(mica_onnx_inputs(model) == 1);
        CHECK_OK(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = sets, .count = given}));
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0}));
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
        run(ctx, net);
        CHECK(element(ctx, net, "y", 5) == (given ? 120.0f : 12.0f));
        mica_net_destroy(net);
        if (CHECK_OK(ctx, mica_net_create(ctx, &net)))
            CHECK_ERROR(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = sets + 1, .count = 1}),
                        MICA_ERR_DTYPE, "dtype error: onnx: input \"w\" is set to i32: expected f32");
        mica_net_destroy(net);
        mica_onnx_close(model);
    }
    proto_free(&bytes);
}

/* How many outputs the file has that a model is written as. */
static int outputs_written(proto bytes)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    mica_onnx *model, *again = NULL;
    int count = -1;
    if (CHECK_OK(ctx, mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "model"))) {
        mica_net *net = built(ctx, model, false);
        const char *path = scratch_path(&s, "a.onnx");
        if (net != NULL && CHECK_OK(ctx, mica_onnx_write(net, path, NULL)) &&
            CHECK_OK(ctx, mica_onnx_open(ctx, &again, path)))
            count = mica_onnx_outputs(again);
        mica_onnx_close(again);
        mica_net_destroy(net);
        mica_onnx_close(model);
    }
    proto_free(&bytes);
    scratch_remove(&s);
    return count;
}

/* y is the places of the largest, which nobody asked for: what is written has no other output. */
TEST(onnx_results_that_nobody_reads_are_no_outputs)
{
    proto graph = {0}, top = proto_node("TopK", "x k", "most places"),
          cast = proto_node("Cast", "places", "y");
    const int64_t one = 1, two = 2;
    proto_int(&cast, "to", ONNX_FLOAT);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, six));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("k", ONNX_INT64, 1, &one, &two, sizeof two));
    proto_message(&graph, GRAPH_NODE, top);
    proto_message(&graph, GRAPH_NODE, cast);
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, &two));
    CHECK(outputs_written(proto_model(graph, 17)) == 1);
}

/* Of an LSTM, the last state alone, as the last cells alone. */
TEST(onnx_sequences_that_nobody_reads_are_no_outputs)
{
    enum { TIME = 3, WIDE = 2, UNITS = 2, ROWS = 4 * UNITS };
    static const float weights[ROWS * WIDE] = {0.5f, -0.25f, 1.0f};
    static const char *const states[] = {"h", "c"};
    for (int k = 0; k < 2; k++) {
        proto graph = {0}, node = proto_node("LSTM", "x w r", "y h c");
        proto_int(&node, "hidden_size", UNITS);
        proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 3, (const int64_t[]){TIME, 1, WIDE}));
        proto_message(
            &graph, GRAPH_INITIALIZER,
            proto_tensor("w", ONNX_FLOAT, 3, (const int64_t[]){1, ROWS, WIDE}, weights, sizeof weights));
        proto_message(
            &graph, GRAPH_INITIALIZER,
            proto_tensor("r", ONNX_FLOAT, 3, (const int64_t[]){1, ROWS, UNITS}, weights, sizeof weights));
        proto_message(&graph, GRAPH_NODE, node);
        proto_message(&graph, GRAPH_OUTPUT,
                      proto_value(states[k], ONNX_FLOAT, 3, (const int64_t[]){1, 1, UNITS}));
        CHECK(outputs_written(proto_model(graph, 17)) == 1);
    }
}

/* What is set by a name that the model does not have is an error, which says what it has. */
TEST(onnx_names_that_the_model_does_not_have)
{
    mica_context *ctx = test_context(1);
    const int64_t named[] = {-1}; /* "n" */
    proto graph = {0};
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, named));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, named));
    proto_message(&graph, GRAPH_NODE, proto_node("Relu", "x", "y"));
    proto bytes = proto_model(graph, 17);
    mica_onnx *model;
    float number = 0;
    const mica_tensor value = {.data = &number, .dtype = MICA_F32};
    const struct {
        mica_onnx_set set;
        const char *error;
    } cases[] = {
        {{.name = "batch", .size = 4}, "\"a test\" has no size \"batch\" to set; its sizes: \"n\""},
        {{.name = "x", .size = 4}, "\"a test\" has no size \"x\" to set; its sizes: \"n\""},
        {{.name = "n", .value = &value}, "\"a test\" has no input \"n\" to set; its inputs: \"x\""},
    };
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_net *net;
        mica_onnx_set sets[] = {{.name = "n", .size = 4}, cases[i].set};
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        CHECK(mica_onnx_build(model, net, &(mica_onnx_opts){.sets = sets, .count = 2}) == MICA_ERR_ARGUMENT);
        CHECK_MSG(strstr(mica_error(ctx), cases[i].error) != NULL, "%s", mica_error(ctx));
        mica_net_destroy(net);
    }
    mica_onnx_close(model);
    proto_free(&bytes);
}
