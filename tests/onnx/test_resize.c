/* Resize, with scales that do not give a whole size. */
#include <math.h>

#include <mica/mica.h>

#include "onnx/proto.h"
#include "test.h"

enum { MOST = 9, TRIALS = 40 };

/* y = x [1, size] resized by a scale, the corners being aligned. */
static proto aligned_model(int64_t size, float scale)
{
    const float scales[] = {1.0f, scale};
    proto graph = {0}, resize = proto_node("Resize", "x - scales", "y");
    proto_string(&resize, "mode", "linear");
    proto_string(&resize, "coordinate_transformation_mode", "align_corners");
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){1, size}));
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("scales", ONNX_FLOAT, 1, (int64_t[]){2}, scales, sizeof scales));
    proto_message(&graph, GRAPH_NODE, resize);
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){1, PROTO_OPEN}));
    return proto_model(graph, 17);
}

/* As PyTorch and onnxruntime: the first and the last element stay what they are. */
static void check_aligned(mica_context *ctx, mica_net *net, int64_t size, float scale, test_random *r)
{
    mica_tensor x, y;
    mica_index count = (mica_index)floorf((float)size * scale);
    if (!CHECK_OK(ctx, mica_net_tensor(net, &x, "x")) || !CHECK_OK(ctx, mica_net_tensor(net, &y, "y")) ||
        !CHECK(y.dim[1] == count))
        return;
    float *in = x.data;
    for (int64_t i = 0; i < size; i++)
        in[i] = (float)test_uniform(r, -1, 1);
    if (!CHECK_OK(ctx, mica_net_forward(net)))
        return;
    for (mica_index i = 0; i < count; i++) {
        double at = count > 1 ? (double)i * (double)(size - 1) / (double)(count - 1) : 0.0;
        int64_t below = (int64_t)at, above = below + 1 < size ? below + 1 : below;
        double part = at - (double)below, want = (double)in[below] * (1 - part) + (double)in[above] * part;
        CHECK_MSG(fabs((double)((float *)y.data)[i] - want) < 1e-5,
                  "%d by %g: element %td is %g, expected %g", (int)size, (double)scale, i,
                  (double)((float *)y.data)[i], want);
    }
}

TEST(onnx_resize_aligns_corners_of_whole_sizes)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(3);
    for (int i = 0; i < TRIALS; i++) {
        int64_t size = test_int(&r, 2, MOST);
        float scale = (float)test_uniform(&r, 0.6, 3.0);
        proto bytes = aligned_model(size, scale);
        mica_onnx *model = NULL;
        mica_net *net = NULL;
        if (CHECK_OK(ctx, mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "resized")) &&
            CHECK_OK(ctx, mica_net_create(ctx, &net)) && CHECK_OK(ctx, mica_onnx_build(model, net, NULL)) &&
            CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)))
            check_aligned(ctx, net, size, scale, &r);
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}
