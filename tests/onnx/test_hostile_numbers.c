/* Numbers in a model that overflow whatever is computed from them: each is refused. Most of these are found by the
 * undefined-behaviour sanitizer alone. */
#include "onnx/attack.h"

/* A node that reads values of model_of, and its one attribute. */
typedef struct extreme {
    const char *type, *ins, *attribute;
    int64_t values[2];
    int count;    /* of values; 0: there is no attribute; -1: values[0] is a single integer */
    bool allowed; /* by the standard, however absurd */
} extreme;

static const extreme extremes[] = {
    {"Pad", "x ends", NULL, {0}, 0, false},
    {"Tile", "x many", NULL, {0}, 0, false},
    {"MaxUnpool", "x places ends4", "kernel_shape", {1, 1}, 2, false},
    {"HannWindow", "min", "periodic", {0}, -1, false},
    {"MelWeightMatrix", "one one one zero huge", NULL, {0}, 0, true},
    {"DequantizeLinear", "u scales", "block_size", {INT64_MAX}, -1, false},
    {"MatMulInteger", "u w huge", NULL, {0}, 0, false},
    {"DFT", "signal length", NULL, {0}, 0, false},
    {"ConvTranspose", "x taps", "strides", {1 << 30, 1 << 20}, 2, false},
};

static proto model_of(const extreme *e)
{
    static const int64_t min[] = {INT64_MIN, 0, 0, 0, 0, 0, 0, 0}, many[] = {1, INT64_MAX, 1, 1}, one[] = {1},
                         length[] = {1000003};
    static const float huge[] = {1e30f}, none[] = {0.0f}, scales[] = {1.0f, 1.0f};
    static const signed char w[] = {1, 2, 3, 4};
    proto g = {0}, node = proto_node(e->type, e->ins, "y");
    if (e->count > 0)
        proto_ints(&node, e->attribute, e->values, e->count);
    else if (e->count < 0)
        proto_int(&node, e->attribute, e->values[0]);
    proto_message(&g, GRAPH_NODE, node);
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 4, (int64_t[]){1, 2, 3, 4}));
    proto_message(&g, GRAPH_INPUT, proto_value("places", ONNX_INT64, 4, (int64_t[]){1, 2, 3, 4}));
    proto_message(&g, GRAPH_INPUT, proto_value("u", ONNX_UINT8, 2, (int64_t[]){2, 2}));
    proto_message(&g, GRAPH_INPUT, proto_value("signal", ONNX_FLOAT, 3, (int64_t[]){1, 1000003, 2}));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("min", ONNX_INT64, 0, NULL, min, 8));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("one", ONNX_INT64, 0, NULL, one, 8));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("length", ONNX_INT64, 0, NULL, length, 8));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("huge", ONNX_FLOAT, 0, NULL, huge, 4));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("zero", ONNX_FLOAT, 0, NULL, none, 4));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("ends", ONNX_INT64, 1, (int64_t[]){8}, min, 64));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("ends4", ONNX_INT64, 1, (int64_t[]){4}, min, 32));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("many", ONNX_INT64, 1, (int64_t[]){4}, many, 32));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("scales", ONNX_FLOAT, 2, (int64_t[]){2, 1}, scales, 8));
    proto_message(&g, GRAPH_INITIALIZER,
                  proto_tensor("taps", ONNX_FLOAT, 4, (int64_t[]){2, 1, 1, 1}, scales, 8));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("w", ONNX_INT8, 2, (int64_t[]){2, 2}, w, 4));
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
    return proto_model(g, 20);
}

TEST(onnx_hostile_numbers)
{
    mica_context *ctx = attack_context();
    for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++) {
        attack_end end = attack_with(ctx, model_of(&extremes[i]));
        CHECK_MSG((end != ATTACK_UNSUPPORTED) == extremes[i].allowed, "%s: %d: %s", extremes[i].type,
                  (int)end, mica_error(ctx));
    }
    mica_context_destroy(ctx);
}

/* Padding that a convolution would take in, if its own were not as large already. */
TEST(onnx_hostile_pads)
{
    static const int64_t pads[] = {INT64_MAX, 0, 0, 0}, around[] = {0, 0, 1, 1, 0, 0, 1, 1};
    static const float w[] = {1.0f};
    mica_context *ctx = attack_context();
    proto g = {0}, pad = proto_node("Pad", "x around", "p"), conv = proto_node("Conv", "p w", "y");
    proto_ints(&conv, "pads", pads, 4);
    proto_message(&g, GRAPH_NODE, pad);
    proto_message(&g, GRAPH_NODE, conv);
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 4, (int64_t[]){1, 1, 3, 4}));
    proto_message(&g, GRAPH_INITIALIZER,
                  proto_tensor("around", ONNX_INT64, 1, (int64_t[]){8}, around, sizeof around));
    proto_message(&g, GRAPH_INITIALIZER,
                  proto_tensor("w", ONNX_FLOAT, 4, (int64_t[]){1, 1, 1, 1}, w, sizeof w));
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
    CHECK(attack_with(ctx, proto_model(g, 17)) == ATTACK_UNSUPPORTED);
    mica_context_destroy(ctx);
}

/* Axes as large as one likes beside one without elements, or where nothing is computed yet: none is gone through. */
TEST(onnx_hostile_large_axes)
{
    enum { TAPS = 1 << 14, PIXELS = 64, PADS = 1 << 29 };
    static const struct {
        const char *type, *ins;
        attack_end end;
    } cases[] = {{"Col2Im", "patches image taps", ATTACK_UNSUPPORTED},
                 {"NonMaxSuppression", "boxes scores one", ATTACK_RAN},
                 {"DepthToSpace", "nothing", ATTACK_UNSUPPORTED},
                 {"SpaceToDepth", "nothing", ATTACK_UNSUPPORTED}};
    const int64_t many = (int64_t)1 << 40, some = (int64_t)1 << 20, one = 1, image = PIXELS, taps = TAPS;
    const int64_t boxes[] = {many, 0, 4}, scores[] = {many, some, 0}, nothing[] = {1, 0, many, 1},
                  patches[] = {1, TAPS, PIXELS + 2 * PADS - TAPS + 1};
    mica_context *ctx = attack_context();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        proto g = {0}, node = proto_node(cases[i].type, cases[i].ins, "y");
        if (i == 0)
            proto_ints(&node, "pads", (int64_t[]){PADS, PADS}, 2);
        if (i >= 2)
            proto_int(&node, "blocksize", INT32_MAX);
        proto_message(&g, GRAPH_NODE, node);
        proto_message(&g, GRAPH_INITIALIZER, proto_tensor("boxes", ONNX_FLOAT, 3, boxes, "", 0));
        proto_message(&g, GRAPH_INITIALIZER, proto_tensor("scores", ONNX_FLOAT, 3, scores, "", 0));
        proto_message(&g, GRAPH_INITIALIZER, proto_tensor("one", ONNX_INT64, 0, NULL, &one, 8));
        proto_message(&g, GRAPH_INITIALIZER, proto_tensor("image", ONNX_INT64, 1, &one, &image, 8));
        proto_message(&g, GRAPH_INITIALIZER, proto_tensor("taps", ONNX_INT64, 1, &one, &taps, 8));
        proto_message(&g, GRAPH_INPUT, proto_value("patches", ONNX_FLOAT, 3, patches));
        proto_message(&g, GRAPH_INPUT, proto_value("nothing", ONNX_FLOAT, 4, nothing));
        proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
        attack_end end = attack_with(ctx, proto_model(g, 20));
        CHECK_MSG(end == cases[i].end || (end == ATTACK_BUILT && cases[i].end == ATTACK_RAN), "%s: %d: %s",
                  cases[i].type, (int)end, mica_error(ctx));
    }
    mica_context_destroy(ctx);
}

TEST(onnx_hostile_scan_inputs)
{
    static const int64_t counts[] = {INT32_MIN, INT64_MIN, INT64_MAX, 0, 2, ((int64_t)1 << 32) + 1};
    mica_context *ctx = attack_context();
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        proto g = {0}, body = {0}, node = proto_node("Scan", "x", "y");
        proto_message(&body, GRAPH_INPUT, proto_value("a", ONNX_FLOAT, 0, NULL));
        proto_message(&body, GRAPH_OUTPUT, proto_value("a", ONNX_FLOAT, 0, NULL));
        proto_int(&node, "num_scan_inputs", counts[i]);
        proto_graph_attribute(&node, "body", body);
        proto_message(&g, GRAPH_NODE, node);
        proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, (int64_t[]){4}));
        proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, (int64_t[]){4}));
        CHECK(attack_with(ctx, proto_model(g, 17)) == ATTACK_UNSUPPORTED);
    }
    mica_context_destroy(ctx);
}

static void put_floats(proto *node, const char *name, int count)
{
    proto a = {0};
    proto_text(&a, 1, name);
    proto_number(&a, 20, 6); /* FLOATS */
    for (int i = 0; i < count; i++)
        proto_float(&a, 7, 1.0f);
    proto_message(node, 5, a);
}

/* Labels that are floats where the classifier's are integers. */
TEST(onnx_hostile_labels)
{
    mica_context *ctx = attack_context();
    proto g = {0}, node = proto_node("LinearClassifier", "x", "y z"), domain = {0};
    proto_text(&node, 7, "ai.onnx.ml");
    put_floats(&node, "classlabels_ints", 2);
    put_floats(&node, "intercepts", 2);
    put_floats(&node, "coefficients", 6);
    proto_message(&g, GRAPH_NODE, node);
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){1, 3}));
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_INT64, 1, (int64_t[]){1}));
    proto model = proto_model(g, 17);
    proto_text(&domain, 1, "ai.onnx.ml");
    proto_number(&domain, 2, 1);
    proto_message(&model, 8, domain);
    CHECK(attack_with(ctx, model) == ATTACK_UNSUPPORTED);
    mica_context_destroy(ctx);
}
