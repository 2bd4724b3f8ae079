/* Slices of an axis that varies between steps: at every smaller size they take what ONNX says, or the size is refused
 * with a reason. */
#include <string.h>

#include <mica/mica.h>

#include "onnx/sized.h"
#include "test.h"

enum { ROWS = 6, BOUND = 7 }; /* starts and stops lie beyond both ends */

typedef struct range {
    int64_t start, stop, step;
} range;

static int64_t clamped(int64_t at, int64_t low, int64_t high)
{
    return at < low ? low : at > high ? high : at;
}

/* The rows that ONNX takes of `size`; how many. */
static int taken(range r, int64_t size, int64_t *rows)
{
    int64_t back = r.step < 0, at = clamped(r.start + (r.start < 0 ? size : 0), 0, size - back);
    int64_t stop = clamped(r.stop + (r.stop < 0 ? size : 0), -back, size - back);
    int count = 0;
    for (; size > 0 && (back ? at > stop : at < stop); at += r.step)
        rows[count++] = at;
    return count;
}

/* y = slice(x), or slice(x) and x joined. */
static proto slice_model(range r, int axis, bool joined)
{
    proto graph = {0};
    const int64_t dims[2][2] = {{-1, 1}, {1, -1}}, one[] = {1}, axes[] = {axis};
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, dims[axis]));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){-1, -1}));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("start", ONNX_INT64, 1, one, &r.start, 8));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("stop", ONNX_INT64, 1, one, &r.stop, 8));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("axis", ONNX_INT64, 1, one, axes, 8));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("step", ONNX_INT64, 1, one, &r.step, 8));
    proto_message(&graph, GRAPH_NODE, proto_node("Slice", "x start stop axis step", joined ? "part" : "y"));
    if (joined) {
        proto concat = proto_node("Concat", "part x", "y");
        proto_int(&concat, "axis", axis);
        proto_message(&graph, GRAPH_NODE, concat);
    }
    return proto_model(graph, 17);
}

/* Whether the step gives the rows that ONNX takes. */
static bool is_right(mica_context *ctx, mica_net *net, range r, int axis, mica_index size, bool joined)
{
    int64_t rows[2 * ROWS];
    int count = taken(r, size, rows);
    mica_tensor x, y;
    for (mica_index i = 0; joined && i < size; i++)
        rows[count++] = i;
    if (!CHECK_OK(ctx, mica_net_tensor(net, &x, "x")))
        return false;
    for (mica_index i = 0; i < size; i++)
        ((float *)x.data)[i] = (float)i;
    if (!CHECK_OK(ctx, mica_net_forward(net)) || !CHECK_OK(ctx, mica_net_tensor(net, &y, "y")))
        return false;
    bool right = y.rank == 2 && y.dim[axis] == count && y.dim[1 - axis] == 1;
    for (int i = 0; right && i < count; i++)
        right = ((const float *)y.data)[i] == (float)rows[i];
    return right;
}

/* Runs it at every size. Returns how many smaller ones were refused. */
static int run_slice(mica_context *ctx, range r, int axis, bool joined)
{
    proto bytes = slice_model(r, axis, joined);
    mica_onnx *model = NULL;
    int refused = 0;
    mica_net *net = CHECK_OK(ctx, mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test"))
                        ? sized_net(ctx, model, ROWS)
                        : NULL;
    for (mica_index size = ROWS; net != NULL && size >= 0; size--) {
        mica_status status = axis == 0 ? mica_net_resize(net, size) : mica_net_set_size(net, "n", size);
        if (status == MICA_ERR_SHAPE && size < ROWS && strstr(mica_error(ctx), "only 6 as planned: ") != NULL)
            refused++;
        else if (CHECK_OK(ctx, status))
            CHECK_MSG(is_right(ctx, net, r, axis, size, joined), "[%d:%d:%d] of %d of %d, axis %d%s",
                      (int)r.start, (int)r.stop, (int)r.step, (int)size, ROWS, axis,
                      joined ? ", joined" : "");
    }
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
    return refused;
}

TEST(onnx_slices_are_right_at_every_size)
{
    mica_context *ctx = test_context(1);
    for (int variant = 0; variant < 4; variant++)
        for (range r = {.step = -3}; r.step <= 3; r.step++)
            for (r.start = -BOUND; r.step != 0 && r.start <= BOUND; r.start++)
                for (r.stop = -BOUND; r.stop <= BOUND; r.stop++)
                    (void)run_slice(ctx, r, variant / 2, variant % 2 != 0);
}

/* The usual ones are not refused. */
TEST(onnx_slices_follow_the_size)
{
    static const range ranges[] = {{1, INT64_MAX, 1}, {0, -1, 1},          {-2, INT64_MAX, 1}, {1, 3, 1},
                                   {0, INT64_MAX, 2}, {-1, INT64_MIN, -1}, {2, INT64_MIN, -1}, {-1, 0, -1},
                                   {3, 0, -2},        {-3, -1, 1},         {INT64_MAX, 1, -1}, {0, 2, 1}};
    mica_context *ctx = test_context(1);
    for (int axis = 0; axis < 2; axis++)
        for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
            for (int joined = 0; joined < 2; joined++)
                CHECK_MSG(run_slice(ctx, ranges[i], axis, joined) == 0, "[%lld:%lld:%lld] is refused",
                          (long long)ranges[i].start, (long long)ranges[i].stop, (long long)ranges[i].step);
}
