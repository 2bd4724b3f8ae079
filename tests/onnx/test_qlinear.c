/* Operators on bytes of the domain com.microsoft: each gives the bytes of the nodes that it stands for. */
#include <stdio.h>
#include <string.h>

#include <mica/mica.h>

#include "onnx/proto.h"
#include "onnx/quantized.h"
#include "test.h"

enum { BATCH = 2, CHANNELS = 3, SIDE = 4, ELEMENTS = BATCH * CHANNELS * SIDE * SIDE };

typedef struct qlinear {
    const char *type, *ins; /* of the node */
    const char *floats;     /* the operator on floats */
    const char *operands;   /* of that */
    const char *step;       /* scale and zero point of y; NULL: y is of floats */
} qlinear;

/* x and z are u8 inputs. Scales and zero points are sx, zx and so on; w [SIDE, SIDE] and b [SIDE] are constants. */
static const qlinear cases[] = {
    {"QLinearAdd", "x sx zx z sz zz sy zy", "Add", "xf zf", "sy zy"},
    {"QLinearMul", "x sx zx z sz zz sy zy", "Mul", "xf zf", "sy zy"},
    {"QLinearSigmoid", "x sx zx sy zy", "Sigmoid", "xf", "sy zy"},
    {"QLinearLeakyRelu", "x sx zx sy zy", "LeakyRelu", "xf", "sy zy"},
    {"QLinearSoftmax", "x sx zx sy zy", "Softmax", "xf", "sy zy"},
    {"QLinearGlobalAveragePool", "x sx zx sy zy", "GlobalAveragePool", "xf", "sy zy"},
    {"QLinearAveragePool", "x sx zx sy zy", "AveragePool", "xf", "sy zy"},
    {"QLinearConcat", "sy zy x sx zx z sz zz", "Concat", "xf zf", "sy zy"},
    {"QLinearWhere", "condition x sx zx z sz zz sy zy", "Where", "condition xf zf", "sy zy"},
    {"QGemm", "x sx zx w sw zw b sy zy", "Gemm", "xf wf bf", "sy zy"},
    {"QGemm", "x sx zx w sw zw b", "Gemm", "xf wf bf", NULL},
};

static void put_attributes(proto *node, const qlinear *q)
{
    if (strcmp(q->floats, "LeakyRelu") == 0)
        proto_real(node, "alpha", 0.2f);
    if (strcmp(q->floats, "Concat") == 0)
        proto_int(node, "axis", 1);
    if (strcmp(q->floats, "Softmax") == 0)
        proto_int(node, "axis", -1);
    if (strcmp(q->floats, "Gemm") == 0)
        proto_int(node, "transB", 1);
    if (strcmp(q->floats, "AveragePool") == 0)
        proto_ints(node, "kernel_shape", (int64_t[]){2, 2}, 2);
}

static void put_constant(proto *graph, const char *name, int type, int count, const void *data, size_t bytes)
{
    int64_t dims[] = {count};
    proto_message(graph, GRAPH_INITIALIZER, proto_tensor(name, type, count > 0, dims, data, bytes));
}

static void put_constants(proto *graph)
{
    static const float sx = 0.05f, sz = 0.03f, sy = 0.02f, sw[SIDE] = {0.01f, 0.02f, 0.03f, 0.04f};
    static const unsigned char zx = 120, zz = 100, zy = 90;
    static const signed char zw[SIDE] = {0, 0, 0, 0};
    static const int32_t b[SIDE] = {100, -200, 300, -400};
    static const unsigned char condition[SIDE] = {1, 0, 0, 1};
    signed char w[SIDE * SIDE];
    float sb[SIDE];
    for (int i = 0; i < SIDE * SIDE; i++)
        w[i] = (signed char)(i * 37 % 101 - 50);
    for (int i = 0; i < SIDE; i++)
        sb[i] = sx * sw[i];
    put_constant(graph, "sx", ONNX_FLOAT, 0, &sx, sizeof sx);
    put_constant(graph, "sz", ONNX_FLOAT, 0, &sz, sizeof sz);
    put_constant(graph, "sy", ONNX_FLOAT, 0, &sy, sizeof sy);
    put_constant(graph, "zx", ONNX_UINT8, 0, &zx, 1);
    put_constant(graph, "zz", ONNX_UINT8, 0, &zz, 1);
    put_constant(graph, "zy", ONNX_UINT8, 0, &zy, 1);
    put_constant(graph, "sw", ONNX_FLOAT, SIDE, sw, sizeof sw);
    put_constant(graph, "zw", ONNX_INT8, SIDE, zw, sizeof zw);
    put_constant(graph, "b", ONNX_INT32, SIDE, b, sizeof b);
    put_constant(graph, "sb", ONNX_FLOAT, SIDE, sb, sizeof sb);
    put_constant(graph, "condition", ONNX_BOOL, SIDE, condition, sizeof condition);
    proto_message(graph, GRAPH_INITIALIZER,
                  proto_tensor("w", ONNX_INT8, 2, (int64_t[]){SIDE, SIDE}, w, sizeof w));
}

static void put_rows_node(proto *graph, const char *ins, const char *out)
{
    proto node = proto_node("DequantizeLinear", ins, out);
    proto_int(&node, "axis", 0);
    proto_message(graph, GRAPH_NODE, node);
}

/* The node itself, or what it stands for. */
static proto model_of(const qlinear *q, bool apart)
{
    int64_t image[] = {BATCH, CHANNELS, SIDE, SIDE}, matrix[] = {BATCH * CHANNELS * SIDE, SIDE};
    bool flat = strcmp(q->floats, "Gemm") == 0;
    proto graph = {0};
    put_constants(&graph);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_UINT8, flat ? 2 : 4, flat ? matrix : image));
    if (strstr(q->operands, "zf") != NULL)
        proto_message(&graph, GRAPH_INPUT, proto_value("z", ONNX_UINT8, 4, image));
    if (apart) {
        char ins[32];
        proto node = proto_node(q->floats, q->operands, q->step != NULL ? "yf" : "y");
        put_attributes(&node, q);
        proto_message(&graph, GRAPH_NODE, proto_node("DequantizeLinear", "x sx zx", "xf"));
        if (strstr(q->operands, "zf") != NULL)
            proto_message(&graph, GRAPH_NODE, proto_node("DequantizeLinear", "z sz zz", "zf"));
        if (flat) {
            put_rows_node(&graph, "w sw zw", "wf");
            put_rows_node(&graph, "b sb", "bf");
        }
        proto_message(&graph, GRAPH_NODE, node);
        if (q->step != NULL) {
            (void)snprintf(ins, sizeof ins, "yf %s", q->step);
            proto_message(&graph, GRAPH_NODE, proto_node("QuantizeLinear", ins, "y"));
        }
    } else {
        proto node = proto_node(q->type, q->ins, "y");
        put_attributes(&node, q);
        proto_text(&node, 7, "com.microsoft");
        proto_message(&graph, GRAPH_NODE, node);
    }
    proto_message(&graph, GRAPH_OUTPUT,
                  proto_value("y", q->step != NULL ? ONNX_UINT8 : ONNX_FLOAT, 2, (int64_t[]){-1, -1}));
    proto model = proto_model(graph, 17);
    proto_domain(&model, "com.microsoft", 1);
    return model;
}

/* Runs the model; the bytes of y, at most `room`, go to `to`, and the names of its calls to `made`. Returns how many
 * bytes; 0 after a failure. */
static size_t run(mica_context *ctx, const qlinear *q, bool apart, bool rounded, unsigned char *to,
                  size_t room, quantized_ran *made)
{
    made->calls[0] = '\0';
    proto bytes = model_of(q, apart);
    mica_onnx *model;
    mica_net *net = NULL;
    mica_tensor t;
    size_t count = 0;
    if (CHECK_OK(ctx, mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, q->type)) &&
        CHECK_OK(ctx, mica_net_create(ctx, &net)) &&
        CHECK_OK(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.rounded = rounded})) &&
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0))) {
        for (int k = 0; k < 2; k++)
            if (mica_net_tensor(net, &t, k == 0 ? "x" : "z") == MICA_OK)
                for (int i = 0; i < ELEMENTS; i++)
                    ((unsigned char *)t.data)[i] = (unsigned char)(i * (k == 0 ? 7 : 11) % 256);
        quantized_list_calls(made, net);
        if (CHECK_OK(ctx, mica_net_forward(net)) && CHECK_OK(ctx, mica_net_tensor(net, &t, "y")) &&
            CHECK(mica_tensor_bytes(&t) <= room)) {
            count = mica_tensor_bytes(&t);
            memcpy(to, t.data, count);
        }
    }
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
    return count;
}

TEST(onnx_qlinear)
{
    static unsigned char want[ELEMENTS * 4], got[ELEMENTS * 4];
    static quantized_ran apart, one;
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int rounded = 0; rounded < 2; rounded++) {
            size_t count = run(ctx, &cases[i], true, rounded != 0, want, sizeof want, &apart);
            CHECK(count > 0 && run(ctx, &cases[i], false, rounded != 0, got, sizeof got, &one) == count);
            CHECK_MSG(memcmp(want, got, count) == 0, "%s, rounded %d", cases[i].type, rounded);
            CHECK_MSG(strcmp(apart.calls, one.calls) == 0, "%s becomes %s: expected %s", cases[i].type,
                      one.calls, apart.calls);
        }
}
