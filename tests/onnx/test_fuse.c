/* Patterns of nodes, and the calls that they become. */
#include <stdio.h>
#include <string.h>

#include "onnx/pattern.h"

static const pattern_case cases[] = {
    {"linear",
     X_ROWS,
     {RANDOM("w", 8, 5), RANDOM("b", 5)},
     {{"MatMul", "x w", "p", NULL}, {"Add", "b p", "y", NULL}},
     2,
     "linear",
     0},
    {"linear and relu",
     X_ROWS,
     {RANDOM("w", 8, 5), RANDOM("b", 5)},
     {{"MatMul", "x w", "p", NULL}, {"Add", "p b", "q", NULL}, {"Relu", "q", "y", NULL}},
     2,
     "linear+relu",
     0},
    {"linear, turned weights",
     X_ROWS,
     {RANDOM("w", 5, 8), RANDOM("b", 5)},
     {{"Transpose", "w", "t", "perm=1,0"}, {"MatMul", "x t", "p", NULL}, {"Add", "p b", "y", NULL}},
     2,
     "linear",
     0},
    {"gelu by erf",
     X_ROWS,
     {NUMBER("r", 1.41421356f), NUMBER("o", 1), NUMBER("h", 0.5f)},
     {{"Div", "x r", "a", NULL},
      {"Erf", "a", "b", NULL},
      {"Add", "b o", "c", NULL},
      {"Mul", "x c", "d", NULL},
      {"Mul", "d h", "y", NULL}},
     2,
     "gelu",
     0},
    {"gelu, halved first",
     X_ROWS,
     {NUMBER("r", 0.70710678f), NUMBER("o", 1), NUMBER("h", 0.5f)},
     {{"Mul", "x r", "a", NULL},
      {"Erf", "a", "b", NULL},
      {"Add", "o b", "c", NULL},
      {"Mul", "h x", "d", NULL},
      {"Mul", "d c", "y", NULL}},
     2,
     "gelu",
     0},
    {"gelu by tanh",
     X_ROWS,
     {NUMBER("t", 3), NUMBER("k", 0.044715f), NUMBER("r", 0.79788456f), NUMBER("o", 1), NUMBER("h", 0.5f)},
     {{"Pow", "x t", "a", NULL},
      {"Mul", "k a", "b", NULL},
      {"Add", "x b", "c", NULL},
      {"Mul", "r c", "d", NULL},
      {"Tanh", "d", "e", NULL},
      {"Add", "e o", "f", NULL},
      {"Mul", "h x", "g", NULL},
      {"Mul", "g f", "y", NULL}},
     2,
     "gelu_tanh",
     0},
    {"gelu by tanh, as JAX writes it",
     X_ROWS,
     {NUMBER("k", 0.044715f), NUMBER("r", 0.79788456f), NUMBER("o", 1), NUMBER("h", 0.5f)},
     {{"Mul", "k x", "a", NULL},
      {"Mul", "x a", "b", NULL},
      {"Mul", "x b", "c", NULL},
      {"Add", "x c", "d", NULL},
      {"Mul", "r d", "e", NULL},
      {"Tanh", "e", "f", NULL},
      {"Add", "o f", "g", NULL},
      {"Mul", "h g", "i", NULL},
      {"Mul", "x i", "y", NULL}},
     2,
     "gelu_tanh",
     0},
    {"a square", X_ROWS, {NUMBER("t", 2)}, {{"Pow", "x t", "y", NULL}}, 2, "square", 0},
    {"a power of -1", X_ROWS, {NUMBER("t", -1)}, {{"Pow", "x t", "y", NULL}}, 2, "reciprocal", 0},
    {"slices of all that there is",
     X_ROWS,
     {{0}},
     {{"Slice", "x", "a", "starts=0,0 ends=1000000000,1000000000"},
      {"Slice", "a", "b", "starts=0, ends=8, axes=1,"},
      {"Relu", "b", "y", NULL}},
     2,
     "relu",
     9},
    {"rows by one-hot products",
     .input = {.name = "x", .dims = {3, 8, 1}},
     {NUMBER("f", 3), SHAPE("s", 1, 2, 3, 4), SHAPE("o", 1), RANDOM("w", 4, 5), RANDOM("b", 1, 5)},
     {{"Mul", "x f", "a", NULL},
      {"Cast", "a", "i", "to=7"},
      {"Sub", "s o", "r", NULL},
      {"Equal", "r i", "e", NULL},
      {"Cast", "e", "c", "to=1"},
      {"MatMul", "c w", "p", NULL},
      {"Add", "b p", "y", NULL}},
     3,
     "mul copy max min add take",
     0},
    {"rows by one-hot products, without a bias",
     .input = {.name = "x", .dims = {3, 8, 1}},
     {NUMBER("f", 4), SHAPE("s", 1, 2, 3, 4), SHAPE("o", 1), RANDOM("w", 4, 5)},
     {{"Mul", "x f", "a", NULL},
      {"Cast", "a", "i", "to=6"},
      {"Sub", "s o", "l", NULL},
      {"Cast", "l", "r", "to=6"},
      {"Equal", "i r", "e", NULL},
      {"Cast", "e", "c", "to=1"},
      {"MatMul", "c w", "y", NULL}},
     3,
     "mul copy max min add take",
     0},
    {"silu", X_ROWS, {{0}}, {{"Sigmoid", "x", "s", NULL}, {"Mul", "s x", "y", NULL}}, 2, "silu", 0},
    {"hard-swish of a hard sigmoid",
     X_ROWS,
     {{0}},
     {{"HardSigmoid", "x", "s", "alpha=0.16666667f beta=0.5f"}, {"Mul", "x s", "y", NULL}},
     2,
     "hard_swish",
     0},
    {"hard-swish of a clip",
     X_ROWS,
     {NUMBER("t", 3), NUMBER("z", 0), NUMBER("s", 6)},
     {{"Add", "x t", "a", NULL},
      {"Clip", "a z s", "b", NULL},
      {"Mul", "x b", "c", NULL},
      {"Div", "c s", "y", NULL}},
     2,
     "hard_swish",
     0},
    {"relu6", X_ROWS, {NUMBER("z", 0), NUMBER("s", 6)}, {{"Clip", "x z s", "y", NULL}}, 2, "relu6", 0},
    {"layer norm",
     X_ROWS,
     {NUMBER("t", 2), NUMBER("e", 1e-5f), RANDOM("g", 8), RANDOM("b", 8)},
     {{"ReduceMean", "x", "m", "axes=-1,"},
      {"Sub", "x m", "d", NULL},
      {"Pow", "d t", "p", NULL},
      {"ReduceMean", "p", "v", "axes=-1,"},
      {"Add", "v e", "a", NULL},
      {"Sqrt", "a", "s", NULL},
      {"Div", "d s", "n", NULL},
      {"Mul", "n g", "o", NULL},
      {"Add", "o b", "y", NULL}},
     2,
     "layer_norm",
     0},
    {"layer norm, opset 18",
     X_ROWS,
     {SHAPE("l", -1), NUMBER("e", 1e-5f), RANDOM("g", 8), RANDOM("b", 8)},
     {{"ReduceMean", "x l", "m", NULL},
      {"Sub", "x m", "d", NULL},
      {"Mul", "d d", "p", NULL},
      {"ReduceMean", "p l", "v", NULL},
      {"Add", "v e", "a", NULL},
      {"Sqrt", "a", "s", NULL},
      {"Div", "d s", "n", NULL},
      {"Mul", "n g", "o", NULL},
      {"Add", "o b", "y", NULL}},
     2,
     "layer_norm",
     18},
    {"rms norm",
     X_ROWS,
     {NUMBER("t", 2), NUMBER("e", 1e-5f), RANDOM("g", 8)},
     {{"Pow", "x t", "p", NULL},
      {"ReduceMean", "p", "v", "axes=-1,"},
      {"Add", "v e", "a", NULL},
      {"Sqrt", "a", "s", NULL},
      {"Reciprocal", "s", "r", NULL},
      {"Mul", "x r", "n", NULL},
      {"Mul", "g n", "y", NULL}},
     2,
     "rms_norm",
     0},
    {"the mean of planes",
     .input = {.name = "x", .dims = {2, 3, 6, 6}},
     {{0}},
     {{"ReduceMean", "x", "a", "axes=-1,-2"}, {"Relu", "a", "y", NULL}},
     4,
     "global_avg_pool relu",
     0},
    {"batch norm in a convolution",
     .input = {.name = "x", .dims = {2, 3, 6, 6}},
     {RANDOM("w", 4, 3, 3, 3), RANDOM("c", 4), RANDOM("g", 4), RANDOM("b", 4), RANDOM("m", 4),
      RANDOM("v", 4)},
     {{"Conv", "x w c", "p", "pads=1,1,1,1"},
      {"BatchNormalization", "p g b m v", "q", NULL},
      {"Relu", "q", "y", NULL}},
     4,
     "conv2d+relu",
     0},
    {"padding in a convolution",
     .input = {.name = "x", .dims = {2, 3, 6, 6}},
     {RANDOM("w", 4, 3, 3, 3)},
     {{"Pad", "x", "q", "pads=0,0,1,1,0,0,1,1"}, {"Conv", "q w", "y", NULL}},
     4,
     "conv2d",
     10},
    {"attention, divided, with a mask",
     .input = {.name = "x", .dims = {2, 5, 8}},
     {RANDOM("w", 8, 8), SHAPE("h", 2, 5, 2, 4), SHAPE("j", 2, 5, 8), NUMBER("c", 2),
      RANDOM("m", 2, 1, 1, 5)},
     {{"MatMul", "x w", "a", NULL},
      {"Reshape", "a h", "b", NULL},
      {"Transpose", "b", "q", "perm=0,2,1,3"},
      {"Transpose", "b", "t", "perm=0,2,3,1"},
      {"Reshape", "x h", "e", NULL},
      {"Transpose", "e", "v", "perm=0,2,1,3"},
      {"MatMul", "q t", "s", NULL},
      {"Div", "s c", "r", NULL},
      {"Add", "r m", "f", NULL},
      {"Softmax", "f", "p", "axis=-1"},
      {"MatMul", "p v", "o", NULL},
      {"Transpose", "o", "n", "perm=0,2,1,3"},
      {"Reshape", "n j", "y", NULL}},
     3,
     "linear attention_rows",
     0},
    {"attention, packed, both scaled",
     .input = {.name = "x", .dims = {2, 5, 24}},
     {SHAPE("h", 2, 5, 3, 2, 4), SHAPE("j", 2, 5, 8), NUMBER("c", 0.7f)},
     {{"Reshape", "x h", "a", NULL},
      {"Transpose", "a", "b", "perm=2,0,3,1,4"},
      {"Split", "b", "i k l", "axis=0"},
      {"Squeeze", "i", "q", "axes=0,"},
      {"Squeeze", "k", "r", "axes=0,"},
      {"Squeeze", "l", "v", "axes=0,"},
      {"Transpose", "r", "t", "perm=0,1,3,2"},
      {"Mul", "q c", "d", NULL},
      {"Mul", "t c", "e", NULL},
      {"MatMul", "d e", "s", NULL},
      {"Softmax", "s", "p", "axis=3"},
      {"MatMul", "p v", "o", NULL},
      {"Transpose", "o", "n", "perm=0,2,1,3"},
      {"Reshape", "n j", "y", NULL}},
     3,
     "attention_packed",
     12},
    {"the operator Attention, causal",
     .input = {.name = "x", .dims = {2, 5, 8}},
     {RANDOM("w", 8, 8), SHAPE("h", 2, 5, 2, 4), SHAPE("j", 2, 5, 8)},
     {{"MatMul", "x w", "a", NULL},
      {"Reshape", "a h", "b", NULL},
      {"Transpose", "b", "q", "perm=0,2,1,3"},
      {"Reshape", "x h", "e", NULL},
      {"Transpose", "e", "v", "perm=0,2,1,3"},
      {"Attention", "q v v", "o", "is_causal=1"},
      {"Transpose", "o", "n", "perm=0,2,1,3"},
      {"Reshape", "n j", "y", NULL}},
     3,
     "linear attention_rows",
     23},
    {"the operator Attention, of two heads that share keys and values",
     .input = {.name = "x", .dims = {2, 5, 8}},
     {RANDOM("w", 8, 4), SHAPE("h", 2, 5, 2, 4), SHAPE("k", 2, 5, 1, 4), SHAPE("j", 2, 5, 8)},
     {{"Reshape", "x h", "b", NULL},
      {"Transpose", "b", "q", "perm=0,2,1,3"},
      {"MatMul", "x w", "a", NULL},
      {"Reshape", "a k", "e", NULL},
      {"Transpose", "e", "v", "perm=0,2,1,3"},
      {"Attention", "q v v", "o", NULL},
      {"Transpose", "o", "n", "perm=0,2,1,3"},
      {"Reshape", "n j", "y", NULL}},
     3,
     "linear attention_rows",
     23},
    {"attention of one head",
     .input = {.name = "x", .dims = {2, 5, 8}},
     {{0}},
     {{"Transpose", "x", "t", "perm=0,2,1"},
      {"MatMul", "x t", "s", NULL},
      {"Softmax", "s", "p", "axis=2"},
      {"MatMul", "p x", "y", NULL}},
     3,
     "attention",
     0},
};

TEST(onnx_patterns)
{
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        pattern_check(ctx, &cases[i]);
}

/* ---- Many values ---- */

/* A convolution of one weight, 0.5, and a batch norm that doubles it and adds 1. */
static void put_pair(proto *graph, int number)
{
    char conv[96], norm[96], name[32];
    snprintf(conv, sizeof conv, "a%d w%d", number, number);
    snprintf(norm, sizeof norm, "b%d two one zero one", number);
    snprintf(name, sizeof name, "b%d", number);
    proto_message(graph, GRAPH_NODE, proto_node("Conv", conv, name));
    snprintf(name, sizeof name, "a%d", number + 1);
    proto batch_norm = proto_node("BatchNormalization", norm, name);
    proto_real(&batch_norm, "epsilon", 0.0f);
    proto_message(graph, GRAPH_NODE, batch_norm);
    snprintf(name, sizeof name, "w%d", number);
    proto_message(graph, GRAPH_INITIALIZER,
                  proto_tensor(name, ONNX_FLOAT, 4, (int64_t[]){1, 1, 1, 1}, &(float){0.5f}, sizeof(float)));
}

/* Patterns make values while they look at others, wherever these end a page or a table. */
TEST(onnx_patterns_at_any_number_of_values)
{
    enum { PAIRS = 24 };
    mica_context *ctx = test_context(1);
    static const float numbers[] = {0.0f, 1.0f, 2.0f};
    static const char *const names[] = {"zero", "one", "two"};
    for (int before = 0; before < 24; before++) {
        proto graph = {0};
        mica_onnx *model;
        mica_net *net;
        mica_tensor x, y;
        char from[16] = "x", to[16];
        for (int i = 0; i < 3; i++)
            proto_message(
                &graph, GRAPH_INITIALIZER,
                proto_tensor(names[i], ONNX_FLOAT, 1, (int64_t[]){1}, &numbers[i], sizeof numbers[i]));
        proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 4, (int64_t[]){1, 1, 1, 1}));
        for (int i = 0; i <= before; i++) {
            snprintf(to, sizeof to, i == before ? "a0" : "r%d", i);
            proto_message(&graph, GRAPH_NODE, proto_node("Relu", from, to));
            memcpy(from, to, sizeof to);
        }
        for (int i = 0; i < PAIRS; i++)
            put_pair(&graph, i);
        snprintf(to, sizeof to, "a%d", PAIRS);
        proto_message(&graph, GRAPH_OUTPUT, proto_value(to, ONNX_FLOAT, 4, (int64_t[]){1, 1, 1, 1}));
        proto bytes = proto_model(graph, 17);
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        if (CHECK_OK(ctx, mica_onnx_build(model, net, NULL)) && CHECK_OK(ctx, mica_net_compile(net, NULL)) &&
            CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_tensor(net, &x, "x"))) {
            *(float *)x.data = 3.0f;
            CHECK_OK(ctx, mica_net_forward(net));
            CHECK_OK(ctx, mica_net_tensor(net, &y, to));
            CHECK(*(const float *)y.data == 3.0f + PAIRS);
        }
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}
