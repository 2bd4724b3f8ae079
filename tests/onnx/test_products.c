/* Products and convolutions: what the tests of ONNX leave out. */
#include <string.h>

#include <mica/mica.h>

#include "onnx/proto.h"
#include "test.h"

enum { LENGTH = 6, MOST = 8 };

/* One window of 1 and stride 3, in six samples: auto_pad asks for less than no padding, which is none. */
static proto window_model(const char *type, const char *auto_pad)
{
    static const float one = 1.0f;
    static const unsigned char zero = 0, unit = 1;
    bool floats = strcmp(type, "Conv") == 0, scaled = strcmp(type, "QLinearConv") == 0;
    int number = floats ? ONNX_FLOAT : ONNX_UINT8;
    proto graph = {0}, node = proto_node(type, scaled ? "x s z w s z s z" : "x w", "y");
    proto_string(&node, "auto_pad", auto_pad);
    proto_ints(&node, "strides", (int64_t[]){3}, 1);
    proto_message(&graph, GRAPH_NODE, node);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", number, 3, (int64_t[]){1, 1, LENGTH}));
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("w", number, 3, (int64_t[]){1, 1, 1}, floats ? (const void *)&one : &unit,
                               floats ? sizeof one : 1));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("s", ONNX_FLOAT, 0, NULL, &one, sizeof one));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("z", ONNX_UINT8, 0, NULL, &zero, 1));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", number, 3, (int64_t[]){1, 1, PROTO_OPEN}));
    return proto_model(graph, 17);
}

/* Of x = 0, 1, 2, ...; how many numbers y has. */
static size_t run(mica_context *ctx, const proto *bytes, double *y)
{
    mica_onnx *model;
    mica_net *net = NULL;
    mica_tensor t;
    size_t count = 0;
    if (CHECK_OK(ctx, mica_onnx_over(ctx, &model, bytes->bytes, bytes->size, "a test")) &&
        CHECK_OK(ctx, mica_net_create(ctx, &net)) && CHECK_OK(ctx, mica_onnx_build(model, net, NULL)) &&
        CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
        CHECK_OK(ctx, mica_net_tensor(net, &t, "x"))) {
        for (mica_index i = 0; i < LENGTH; i++)
            CHECK_OK(ctx, mica_set_at(ctx, &t, (mica_index[]){0, 0, i}, (double)i));
        if (CHECK_OK(ctx, mica_net_forward(net)) && CHECK_OK(ctx, mica_net_tensor(net, &t, "y")))
            for (; count < MOST && count < mica_tensor_count(&t); count++)
                CHECK_OK(ctx, mica_at(ctx, &y[count], &t, (mica_index[]){0, 0, (mica_index)count}));
    }
    mica_net_destroy(net);
    mica_onnx_close(model);
    return count;
}

TEST(onnx_integer_convolutions_pad_as_others_do)
{
    static const char *const types[] = {"Conv", "ConvInteger", "QLinearConv"};
    static const char *const pads[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    mica_context *ctx = test_context(1);
    for (int i = 0; i < 9; i++) {
        double y[MOST] = {0};
        proto bytes = window_model(types[i % 3], pads[i / 3]);
        CHECK_MSG(run(ctx, &bytes, y) == 2 && y[0] == 0.0 && y[1] == 3.0, "%s, %s: %g, %g", types[i % 3],
                  pads[i / 3], y[0], y[1]);
        proto_free(&bytes);
    }
}

/* The product of a [..., 4] and b, which has as many rows, or is a vector. */
static proto product_model(int a_rank, int b_rank)
{
    static const int64_t left[] = {2, 3, 4}, right[] = {2, 4, 3}, vector[] = {4};
    proto graph = {0};
    proto_message(&graph, GRAPH_NODE, proto_node("MatMul", "x b", "y"));
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, a_rank, left + 3 - a_rank));
    proto_message(&graph, GRAPH_INPUT,
                  proto_value("b", ONNX_FLOAT, b_rank, b_rank == 1 ? vector : right + 3 - b_rank));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
    return proto_model(graph, 17);
}

/* As NumPy has it: the axis of a vector is not in the result. */
TEST(onnx_products_of_vectors)
{
    mica_context *ctx = test_context(1);
    for (int a = 1; a <= 3; a++)
        for (int b = 1; b <= 3; b++) {
            proto bytes = product_model(a, b);
            mica_onnx *model;
            mica_net *net = NULL;
            mica_tensor t;
            int wide = a > b ? a : b, rank = wide < 2 ? 0 : wide - (a == 1) - (b == 1);
            if (CHECK_OK(ctx, mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a product")) &&
                CHECK_OK(ctx, mica_net_create(ctx, &net)) &&
                CHECK_OK(ctx, mica_onnx_build(model, net, NULL)) &&
                CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0))) {
                for (int k = 0; k < 2; k++)
                    if (CHECK_OK(ctx, mica_net_tensor(net, &t, k == 0 ? "x" : "b")))
                        CHECK_OK(ctx, mica_fill(ctx, &t, 2.0));
                CHECK_OK(ctx, mica_net_forward(net));
                CHECK_OK(ctx, mica_net_tensor(net, &t, "y"));
                CHECK_MSG(t.rank == rank, "ranks %d and %d give %d", a, b, t.rank);
                CHECK(((const float *)t.data)[0] == 16.0f);
            }
            mica_net_destroy(net);
            mica_onnx_close(model);
            proto_free(&bytes);
        }
}
