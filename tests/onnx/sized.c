#include "onnx/sized.h"

#include <string.h>

#include "test.h"

proto sized_graph(void)
{
    proto graph = {0};
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){-1, SIZED_COLUMNS}));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){-1, SIZED_COLUMNS}));
    proto_message(&graph, GRAPH_NODE, proto_node("Shape", "x", "shape"));
    return graph;
}

void sized_integer(proto *graph, const char *name, int64_t value)
{
    proto_message(graph, GRAPH_INITIALIZER,
                  proto_tensor(name, ONNX_INT64, 1, (int64_t[]){1}, &value, sizeof value));
}

void sized_branch(proto *graph, const char *condition)
{
    proto node = proto_node("If", condition, "y");
    for (int k = 0; k < 2; k++) {
        proto branch = {0};
        proto_message(&branch, GRAPH_NODE, proto_node(k == 0 ? "Neg" : "Abs", "x", "made"));
        proto_message(&branch, GRAPH_OUTPUT, proto_value("made", ONNX_FLOAT, -1, NULL));
        proto_graph_attribute(&node, k == 0 ? "then_branch" : "else_branch", branch);
    }
    proto_message(graph, GRAPH_NODE, node);
}

mica_net *sized_net(mica_context *ctx, mica_onnx *model, mica_index rows)
{
    mica_net *net;
    mica_onnx_set set = {.name = "n", .size = rows};
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    if (CHECK_OK(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = &set, .count = 1})) &&
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

void sized_run(mica_context *ctx, mica_net *net, float *y)
{
    mica_tensor x, out;
    if (!CHECK_OK(ctx, mica_net_tensor(net, &x, "x")))
        return;
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)i * 0.37f;
    if (CHECK_OK(ctx, mica_net_forward(net)) && CHECK_OK(ctx, mica_net_tensor(net, &out, "y")))
        memcpy(y, out.data, mica_tensor_bytes(&out));
}
