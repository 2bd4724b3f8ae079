/* Every operator that there is, with inputs and attributes that do not suit it: refused with a message, or run. */
#include <stdio.h>
#include <string.h>

#include "onnx/attack.h"
#include "onnx/import.h"

static const mica_onnx_operator *const families[] = {
#define LISTED(family) mica_onnx_##family##_operators,
    MICA_ONNX_FAMILIES(LISTED)
#undef LISTED
};

static const char *const input_sets[] = {
    "",      "x",       "x x",     "x x x", "i", "x i",           "x i i",           "i i i",
    "x c",   "x c c c", "x s s s", "- x",   "c", "c c c c c c c", "x x x x x x x x", "b",
    "b x x", "x e",     "e e"};
enum { INPUT_SETS = sizeof input_sets / sizeof input_sets[0], ATTRIBUTE_SETS = 7 };

static const char *const attribute_names[] = {"axis",
                                              "axes",
                                              "kernel_shape",
                                              "pads",
                                              "strides",
                                              "perm",
                                              "value",
                                              "mode",
                                              "body",
                                              "then_branch",
                                              "else_branch",
                                              "group",
                                              "dilations",
                                              "auto_pad",
                                              "to",
                                              "num_outputs",
                                              "hidden_size",
                                              "blocksize",
                                              "batch_dims",
                                              "equation",
                                              "num_groups",
                                              "q_num_heads",
                                              "direction",
                                              "split",
                                              "output_shape",
                                              "block_size",
                                              "num_scan_inputs",
                                              "p",
                                              "size",
                                              "k"};

/* Attributes of kinds that are not expected, and values that cannot be. */
static void put_attributes(proto *node, int set)
{
    static const int64_t many[100] = {INT64_MAX, INT64_MIN, -1, 0, 1, 2, 3}, two[] = {-1, 1000000};
    for (size_t k = 0; set > 0 && k < sizeof attribute_names / sizeof attribute_names[0]; k++) {
        const char *name = attribute_names[k];
        switch (set) {
        case 1:
            proto_int(node, name, INT64_MIN);
            break;
        case 2:
            proto_int(node, name, 3);
            break;
        case 3:
            proto_ints(node, name, k % 2 == 0 ? many : two, k % 2 == 0 ? 100 : 2);
            break;
        case 4:
            proto_string(node, name, "%n%s");
            break;
        case 5:
            proto_graph_attribute(node, name, (proto){0});
            break;
        default:
            proto_real(node, name, -1e38f);
        }
    }
}

/* A node of this type in a graph with values of several kinds, or without any. */
static proto node_of(const mica_onnx_operator *row, const char *ins, int attributes)
{
    static const float floats[4] = {1, 2, 3, 4};
    static const int64_t integers[4] = {INT64_MAX, -1, 0, 2};
    const char *colon = strrchr(row->type, ':'), *type = colon != NULL ? colon + 1 : row->type;
    proto g = {0}, node = proto_node(type, ins, "y z"), domain = {0};
    put_attributes(&node, attributes);
    if (colon != NULL)
        proto_bytes(&node, 7, row->type, (size_t)(colon - row->type));
    proto_message(&g, GRAPH_NODE, node);
    if (ins[0] != '\0') {
        proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 4, (int64_t[]){1, 2, 3, 4}));
        proto_message(&g, GRAPH_INPUT, proto_value("b", ONNX_BOOL, 1, (int64_t[]){2}));
        proto_message(&g, GRAPH_INPUT, proto_value("e", ONNX_FLOAT, 2, (int64_t[]){0, 3}));
        proto_message(&g, GRAPH_INITIALIZER,
                      proto_tensor("c", ONNX_FLOAT, 1, (int64_t[]){4}, floats, sizeof floats));
        proto_message(&g, GRAPH_INITIALIZER, proto_tensor("s", ONNX_INT64, 0, NULL, integers, 8));
        proto_message(&g, GRAPH_INITIALIZER,
                      proto_tensor("i", ONNX_INT64, 1, (int64_t[]){4}, integers, sizeof integers));
    }
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
    proto model = proto_model(g, 25);
    if (colon != NULL) {
        proto_bytes(&domain, 1, row->type, (size_t)(colon - row->type));
        proto_number(&domain, 2, 1);
        proto_message(&model, 8, domain);
    }
    return model;
}

TEST(onnx_hostile_operators)
{
    mica_context *ctx = attack_context();
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
        for (const mica_onnx_operator *row = families[f]; row->type != NULL; row++)
            for (int i = 0; i < INPUT_SETS * ATTRIBUTE_SETS; i++)
                (void)attack_with(ctx, node_of(row, input_sets[i % INPUT_SETS], i / INPUT_SETS));
    mica_context_destroy(ctx);
}

/* More inputs and outputs than any operator has; none at all. */
TEST(onnx_hostile_many_inputs)
{
    mica_context *ctx = attack_context();
    const char *const types[] = {"Relu", "Concat", "Sum", "Max", "Split", "If", "Loop", ""};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int kind = 0; kind < 4; kind++) {
            proto g = {0}, node = proto_node(types[i], "x", kind == 1 ? "" : "y");
            for (int k = 0; kind >= 2 && k < 5000; k++)
                proto_text(&node, kind == 2 ? 1 : 2, kind == 2 ? "x" : "more");
            proto_message(&g, GRAPH_NODE, node);
            proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, (int64_t[]){4}));
            proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
            (void)attack_with(ctx, proto_model(g, 17));
        }
    mica_context_destroy(ctx);
}

/* A body with more outputs than any node: states and scans each within their limits, but not together. */
TEST(onnx_hostile_scan_outputs)
{
    enum { STATES = 60, OUTPUTS = 90 };
    mica_context *ctx = attack_context();
    proto g = {0}, body = {0}, node = proto_node("Scan", "", "y");
    char name[16];
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, (int64_t[]){4}));
    for (int i = 0; i <= STATES; i++) {
        proto_text(&node, 1, "x");
        (void)snprintf(name, sizeof name, "in%d", i);
        proto_message(&body, GRAPH_INPUT, proto_value(name, ONNX_FLOAT, i < STATES, (int64_t[]){4}));
    }
    for (int k = 0; k < OUTPUTS; k++)
        proto_message(&body, GRAPH_OUTPUT, proto_value("in0", ONNX_FLOAT, 1, (int64_t[]){4}));
    proto_int(&node, "num_scan_inputs", 1);
    proto_graph_attribute(&node, "body", body);
    proto_message(&g, GRAPH_NODE, node);
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, (int64_t[]){4}));
    CHECK(attack_with(ctx, proto_model(g, 17)) == ATTACK_UNSUPPORTED);
    mica_context_destroy(ctx);
}

TEST(onnx_hostile_versions)
{
    mica_context *ctx = attack_context();
    static const int64_t opsets[] = {0, -1, INT64_MIN, INT64_MAX, 1, 1000000};
    for (size_t i = 0; i < sizeof opsets / sizeof opsets[0]; i++) {
        proto model = {0}, g = {0}, version = {0};
        proto_message(&g, GRAPH_NODE, proto_node("Relu", "x", "y"));
        proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, (int64_t[]){2}));
        proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, (int64_t[]){2}));
        proto_number(&model, 1, (uint64_t)opsets[i]);
        proto_message(&model, 7, g);
        proto_number(&version, 2, (uint64_t)opsets[i]);
        proto_message(&model, 8, version);
        (void)attack_with(ctx, model);
    }
    mica_context_destroy(ctx);
}
