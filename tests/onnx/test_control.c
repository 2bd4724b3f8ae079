/* Loops and scans: what the tests of ONNX leave out. */
#include <string.h>

#include <mica/mica.h>

#include "net/net.h"
#include "onnx/proto.h"
#include "test.h"

enum { TURNS = 40, COLUMNS = 3 };

/* Builds and runs it, with x = 0, 1, 2, ... */
static mica_net *ran(mica_context *ctx, mica_onnx **model, const proto *bytes)
{
    mica_net *net = NULL;
    mica_tensor x;
    *model = NULL;
    if (CHECK_OK(ctx, mica_onnx_over(ctx, model, bytes->bytes, bytes->size, "a test")) &&
        CHECK_OK(ctx, mica_net_create(ctx, &net)) && CHECK_OK(ctx, mica_onnx_build(*model, net, NULL)) &&
        CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
        CHECK_OK(ctx, mica_net_tensor(net, &x, "x"))) {
        for (size_t i = 0; i < mica_tensor_count(&x); i++)
            ((float *)x.data)[i] = (float)i;
        if (CHECK_OK(ctx, mica_net_forward(net)))
            return net;
    }
    mica_net_destroy(net);
    mica_onnx_close(*model);
    return NULL;
}

/* Rows [T, C]: their sums so far, and each row added to itself. */
static proto scan_model(bool reverse)
{
    proto graph = {0}, body = {0}, node = proto_node("Scan", "zero x", "last rows");
    static const float zeros[COLUMNS];
    const int64_t row[] = {COLUMNS}, all[] = {TURNS, COLUMNS}, back = 1;
    proto_message(&body, GRAPH_INPUT, proto_value("sum", ONNX_FLOAT, 1, row));
    proto_message(&body, GRAPH_INPUT, proto_value("row", ONNX_FLOAT, 1, row));
    proto_message(&body, GRAPH_NODE, proto_node("Add", "sum row", "next"));
    proto_message(&body, GRAPH_NODE, proto_node("Add", "row row", "twice"));
    proto_message(&body, GRAPH_OUTPUT, proto_value("next", ONNX_FLOAT, 1, row));
    proto_message(&body, GRAPH_OUTPUT, proto_value("twice", ONNX_FLOAT, 1, row));
    proto_int(&node, "num_scan_inputs", 1);
    if (reverse)
        proto_ints(&node, "scan_output_directions", &back, 1);
    proto_graph_attribute(&node, "body", body);
    proto_message(&graph, GRAPH_NODE, node);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, all));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("zero", ONNX_FLOAT, 1, row, zeros, sizeof zeros));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("last", ONNX_FLOAT, 1, row));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("rows", ONNX_FLOAT, 2, all));
    return proto_model(graph, 17);
}

/* Rows are joined in few calls, not once in every turn. */
TEST(onnx_scan_joins_once)
{
    mica_context *ctx = test_context(1);
    for (int reverse = 0; reverse < 2; reverse++) {
        proto bytes = scan_model(reverse != 0);
        mica_onnx *model;
        mica_net *net = ran(ctx, &model, &bytes);
        mica_tensor rows, last;
        REQUIRE(net != NULL);
        CHECK_OK(ctx, mica_net_tensor(net, &rows, "rows"));
        CHECK_OK(ctx, mica_net_tensor(net, &last, "last"));
        CHECK(rows.rank == 2 && rows.dim[0] == TURNS && rows.dim[1] == COLUMNS);
        for (int i = 0; i < TURNS * COLUMNS; i++) {
            int turn = reverse ? TURNS - 1 - i / COLUMNS : i / COLUMNS;
            CHECK(((const float *)rows.data)[i] == (float)(2 * (turn * COLUMNS + i % COLUMNS)));
        }
        CHECK(2.0f * ((const float *)last.data)[0] == (float)(COLUMNS * TURNS * (TURNS - 1)));
        int joins = 0;
        for (int k = 0; k < net->node_count; k++)
            joins += strcmp(net->nodes[k].op->name, "concat") == 0;
        CHECK_MSG(joins > 0 && joins <= TURNS / 4, "%d of them", joins);
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}

/* A Loop without a condition: its body reads one all the same, which is a bool that holds. */
TEST(onnx_loop_without_a_condition)
{
    mica_context *ctx = test_context(1);
    const int64_t row[] = {COLUMNS}, turns = 3;
    proto graph = {0}, body = {0}, node = proto_node("Loop", "turns - x", "y");
    proto_message(&body, GRAPH_INPUT, proto_value("turn", ONNX_INT64, 0, NULL));
    proto_message(&body, GRAPH_INPUT, proto_value("before", ONNX_BOOL, 0, NULL));
    proto_message(&body, GRAPH_INPUT, proto_value("value", ONNX_FLOAT, 1, row));
    proto_message(&body, GRAPH_NODE, proto_node("Equal", "turn turn", "true"));
    proto_message(&body, GRAPH_NODE, proto_node("And", "before true", "after"));
    proto_message(&body, GRAPH_NODE, proto_node("Add", "value value", "next"));
    proto_message(&body, GRAPH_OUTPUT, proto_value("after", ONNX_BOOL, 0, NULL));
    proto_message(&body, GRAPH_OUTPUT, proto_value("next", ONNX_FLOAT, 1, row));
    proto_graph_attribute(&node, "body", body);
    proto_message(&graph, GRAPH_NODE, node);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, row));
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("turns", ONNX_INT64, 0, NULL, &turns, sizeof turns));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, row));
    proto bytes = proto_model(graph, 17);
    mica_onnx *model;
    mica_tensor y;
    mica_net *net = ran(ctx, &model, &bytes);
    if (net != NULL && CHECK_OK(ctx, mica_net_tensor(net, &y, "y")))
        for (int i = 0; i < COLUMNS; i++)
            CHECK(((const float *)y.data)[i] == (float)(8 * i));
    mica_net_destroy(net);
    mica_onnx_close(net != NULL ? model : NULL);
    proto_free(&bytes);
}
