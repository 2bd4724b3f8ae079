/* Gemm between bytes: its C is a bias for each column, or one for each row, or neither. */
#include <math.h>

#include <mica/onnx.h>

#include "onnx/proto.h"
#include "test.h"

enum { ROWS = 3, VALUES = 4, COLUMNS = 3 };

/* y = bytes of x times bytes of w, plus C [rank 2: dims]. */
static proto gemm(const int64_t *dims, const float *c)
{
    static const float scale[] = {0.02f};
    static const signed char w[VALUES * COLUMNS] = {10, -20, 30, 40, 50, -60, 70, 80, -90, 100, 110, -120};
    static const unsigned char zero[] = {128};
    proto g = {0};
    proto_message(&g, GRAPH_NODE, proto_node("QuantizeLinear", "x s z", "q"));
    proto_message(&g, GRAPH_NODE, proto_node("DequantizeLinear", "q s z", "f"));
    proto_message(&g, GRAPH_NODE, proto_node("DequantizeLinear", "w s", "v"));
    proto_message(&g, GRAPH_NODE, proto_node("Gemm", "f v c", "y"));
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){ROWS, VALUES}));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("s", ONNX_FLOAT, 0, NULL, scale, sizeof scale));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("z", ONNX_UINT8, 0, NULL, zero, sizeof zero));
    proto_message(&g, GRAPH_INITIALIZER,
                  proto_tensor("w", ONNX_INT8, 2, (int64_t[]){VALUES, COLUMNS}, w, sizeof w));
    proto_message(&g, GRAPH_INITIALIZER,
                  proto_tensor("c", ONNX_FLOAT, 2, dims, c, (size_t)(dims[0] * dims[1]) * sizeof *c));
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){ROWS, COLUMNS}));
    return proto_model(g, 17);
}

static bool run(mica_context *ctx, proto bytes, bool rounded, float out[ROWS * COLUMNS])
{
    mica_onnx *model = NULL;
    mica_net *net = NULL;
    mica_tensor x, y;
    bool ran = CHECK_OK(ctx, mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "gemm")) &&
               CHECK_OK(ctx, mica_net_create(ctx, &net)) &&
               CHECK_OK(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.rounded = rounded})) &&
               CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
               CHECK_OK(ctx, mica_net_tensor(net, &x, "x"));
    for (int i = 0; ran && i < ROWS * VALUES; i++)
        ((float *)x.data)[i] = 0.1f * (float)(i - 5);
    ran = ran && CHECK_OK(ctx, mica_net_forward(net)) && CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
    for (int i = 0; ran && i < ROWS * COLUMNS; i++)
        out[i] = ((const float *)y.data)[i];
    mica_net_destroy(net);
    mica_onnx_close(model);
    return ran;
}

TEST(onnx_int8_gemm_bias)
{
    static const int64_t shapes[][2] = {{1, COLUMNS}, {ROWS, 1}, {1, 1}, {ROWS, COLUMNS}};
    static const float c[ROWS * COLUMNS] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        float bytes[ROWS * COLUMNS], floats[ROWS * COLUMNS];
        proto model = gemm(shapes[i], c);
        if (run(ctx, model, false, bytes) && run(ctx, model, true, floats))
            for (int k = 0; k < ROWS * COLUMNS; k++)
                CHECK_MSG(fabsf(bytes[k] - floats[k]) < 1e-3f, "C [%d, %d]: y[%d] is %g, expected %g",
                          (int)shapes[i][0], (int)shapes[i][1], k, (double)bytes[k], (double)floats[k]);
        proto_free(&model);
    }
}
