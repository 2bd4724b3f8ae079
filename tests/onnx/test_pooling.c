/* Pooling of signals: all small windows, in a model, against sums in double. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <mica/mica.h>

#include "onnx/proto.h"
#include "test.h"

typedef struct windows {
    int64_t size, kernel, stride, pads[2];
    bool ceil_mode, padded, largest;
} windows;

/* As PyTorch and the standard count them; with ceil_mode the last one begins inside. */
static int64_t count_of(const windows *w)
{
    int64_t room = w->size + w->pads[0] + w->pads[1] - w->kernel + (w->ceil_mode ? w->stride - 1 : 0);
    int64_t count = room < 0 ? 0 : room / w->stride + 1;
    return count > 0 && w->ceil_mode && (count - 1) * w->stride >= w->size + w->pads[0] ? count - 1 : count;
}

static double wanted(const windows *w, const float *x, int64_t at)
{
    int64_t from = at * w->stride - w->pads[0], inside = 0, padded = 0;
    double most = -INFINITY, sum = 0.0;
    for (int64_t i = from; i < from + w->kernel; i++) {
        padded += i < w->size + w->pads[1];
        if (i < 0 || i >= w->size)
            continue;
        most = x[i] > most ? (double)x[i] : most;
        sum += (double)x[i];
        inside++;
    }
    return w->largest ? most : sum / (double)(w->padded ? padded : inside);
}

static proto pooling_model(const windows *w)
{
    proto graph = {0}, node = proto_node(w->largest ? "MaxPool" : "AveragePool", "x", "y");
    const int64_t dims[] = {1, 1, w->size}, open[] = {1, 1, PROTO_OPEN};
    proto_ints(&node, "kernel_shape", &w->kernel, 1);
    proto_ints(&node, "strides", &w->stride, 1);
    proto_ints(&node, "pads", w->pads, 2);
    proto_int(&node, "ceil_mode", w->ceil_mode);
    if (!w->largest)
        proto_int(&node, "count_include_pad", w->padded);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 3, dims));
    proto_message(&graph, GRAPH_NODE, node);
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 3, open));
    return proto_model(graph, 19);
}

static void check_pooling(mica_context *ctx, const windows *w)
{
    static const float numbers[] = {0.7f, -1.3f, 2.1f, 0.4f, -0.2f, 1.9f};
    proto bytes = pooling_model(w);
    mica_onnx *model;
    mica_net *net;
    mica_tensor x, y;
    char what[96];
    snprintf(what, sizeof what, "%s of %d: %d by %d, pads %d %d%s%s", w->largest ? "max" : "average",
             (int)w->size, (int)w->kernel, (int)w->stride, (int)w->pads[0], (int)w->pads[1],
             w->ceil_mode ? ", ceil" : "", w->padded ? ", padded" : "");
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, what) == MICA_OK);
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    if (CHECK_OK(ctx, mica_onnx_build(model, net, NULL)) &&
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_tensor(net, &x, "x"))) {
        memcpy(x.data, numbers, (size_t)w->size * sizeof *numbers);
        CHECK_OK(ctx, mica_net_forward(net));
        CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
        if (CHECK_MSG(y.dim[2] == count_of(w), "%s: %td windows", what, y.dim[2]))
            for (int64_t i = 0; i < y.dim[2]; i++)
                CHECK_MSG(fabs((double)((float *)y.data)[i] - wanted(w, numbers, i)) < 1e-6, "%s: number %d",
                          what, (int)i);
    }
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}

/* With ceil_mode there is a window even where it is larger than the padded signal. */
TEST(onnx_pooling_of_small_signals)
{
    mica_context *ctx = test_context(1);
    for (int64_t code = 0; code < 6 * 5 * 3 * 3 * 3 * 8; code++) {
        int64_t rest = code / 8;
        windows w = {.largest = (code & 1) != 0, .ceil_mode = (code & 2) != 0, .padded = (code & 4) != 0};
        w.size = 1 + rest % 6;
        w.kernel = 1 + rest / 6 % 5;
        w.stride = 1 + rest / 30 % 3;
        w.pads[0] = rest / 90 % 3;
        w.pads[1] = rest / 270;
        bool empty = w.pads[0] >= w.kernel || w.pads[1] >= w.kernel || (w.largest && w.padded);
        if (!empty && count_of(&w) > 0)
            check_pooling(ctx, &w);
    }
}
