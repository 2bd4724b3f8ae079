/* Comparisons of numbers that follow from a size: what they decide holds at every size, or sizes are fixed. */
#include <string.h>

#include <mica/mica.h>

#include "onnx/attack.h"
#include "onnx/proto.h"
#include "onnx/sized.h"
#include "test.h"

enum { ROWS = 8 };

/* -x if rows + add == other, else |x|. */
static proto branch_model(int64_t add, int64_t other)
{
    proto graph = sized_graph();
    sized_integer(&graph, "first", 0);
    sized_integer(&graph, "add", add);
    sized_integer(&graph, "other", other);
    proto_message(&graph, GRAPH_NODE, proto_node("Gather", "shape first", "rows"));
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "rows add", "number"));
    proto_message(&graph, GRAPH_NODE, proto_node("Equal", "number other", "same"));
    sized_branch(&graph, "same");
    return proto_model(graph, 17);
}

TEST(onnx_tests_for_equality_fix_sizes)
{
    static const struct {
        int64_t add, other;
        bool fixed;
    } cases[] = {{0, 4, true}, {-4, 0, true}, {-10, -1, true}, {0, -1, false}, {0, 0, false}, {2, 0, false}};
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_onnx *model;
        proto bytes = branch_model(cases[i].add, cases[i].other);
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
        mica_net *net = sized_net(ctx, model, ROWS);
        if (net != NULL) {
            mica_status status = mica_net_resize(net, 4);
            CHECK_MSG((status != MICA_OK) == cases[i].fixed, "rows %+d is %d: %s", (int)cases[i].add,
                      (int)cases[i].other, status == MICA_OK ? "not fixed" : mica_error(ctx));
        }
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}

/* A branch gives a long table of one type here, and a short one of another type where the size is smaller. */
TEST(onnx_hostile_branches_of_two_types)
{
    enum { MANY = 100000 };
    static int64_t many[MANY];
    const int32_t few[1] = {7};
    mica_context *ctx = attack_context();
    for (int empty = 0; empty < 2; empty++) {
        proto graph = sized_graph(), node = proto_node("If", "large", "table");
        sized_integer(&graph, "first", 0);
        sized_integer(&graph, "limit", ROWS - 1);
        proto_message(&graph, GRAPH_NODE, proto_node("Gather", "shape first", "rows"));
        proto_message(&graph, GRAPH_NODE, proto_node("Greater", "rows limit", "large"));
        for (int k = 0; k < 2; k++) {
            proto branch = {0};
            proto table = k == 0 ? proto_tensor("made", ONNX_INT64, 1, (int64_t[]){MANY}, many, sizeof many)
                                 : proto_tensor("made", ONNX_INT32, 1, (int64_t[]){1 - empty}, few,
                                                empty ? 0 : sizeof few);
            proto_message(&branch, GRAPH_INITIALIZER, table);
            proto_message(&branch, GRAPH_OUTPUT,
                          proto_value("made", k == 0 ? ONNX_INT64 : ONNX_INT32, -1, NULL));
            proto_graph_attribute(&node, k == 0 ? "then_branch" : "else_branch", branch);
        }
        proto_message(&graph, GRAPH_NODE, node);
        proto_message(&graph, GRAPH_NODE, proto_node("Equal", "table table", "same"));
        proto_message(&graph, GRAPH_NODE, proto_node("CastLike", "same x", "ones"));
        proto_message(&graph, GRAPH_NODE, proto_node("ReduceMin", "ones", "one"));
        proto_message(&graph, GRAPH_NODE, proto_node("Mul", "x one", "y"));
        proto bytes = proto_model(graph, 17);
        mica_onnx *model;
        if (CHECK_OK(ctx, mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test"))) {
            mica_net *net = sized_net(ctx, model, ROWS);
            if (net != NULL)
                CHECK(mica_net_resize(net, ROWS - 1) == MICA_ERR_SHAPE);
            mica_net_destroy(net);
            mica_onnx_close(model);
        }
        proto_free(&bytes);
    }
    mica_context_destroy(ctx);
}
