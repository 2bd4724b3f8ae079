/* Lengths behind a stride or a slice: the same at several sizes, and yet no constants. Steps are refused, or give what
 * a net of that size gives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/mica.h>

#include "io/scratch.h"
#include "onnx/proto.h"
#include "onnx/sized.h"
#include "test.h"

enum { MOST = 1000 };

typedef enum way { BY_STEP, FIRST_FIVE, LAST_FIVE, BY_WINDOW, WAYS } way;
typedef enum reader { DIVIDES, DECIDES, READERS } reader;

/* `part`: some of the rows of x; `length`: how many. */
static void put_length(proto *graph, way how)
{
    static const int64_t start[] = {0, 0, -5}, stop[] = {INT64_MAX, 5, INT64_MAX}, step[] = {4, 1, 1};
    sized_integer(graph, "axis", how == BY_WINDOW ? 2 : 0);
    if (how == BY_WINDOW) {
        proto pool = proto_node("MaxPool", "planes", "part");
        proto_ints(&pool, "kernel_shape", (int64_t[]){1}, 1);
        proto_ints(&pool, "strides", (int64_t[]){4}, 1);
        sized_integer(graph, "zero", 0);
        proto_message(graph, GRAPH_NODE, proto_node("Transpose", "x", "turned"));
        proto_message(graph, GRAPH_NODE, proto_node("Unsqueeze", "turned zero", "planes"));
        proto_message(graph, GRAPH_NODE, pool);
    } else {
        sized_integer(graph, "start", start[how]);
        sized_integer(graph, "stop", stop[how]);
        sized_integer(graph, "step", step[how]);
        sized_integer(graph, "zero", 0);
        proto_message(graph, GRAPH_NODE, proto_node("Slice", "x start stop zero step", "part"));
    }
    proto_message(graph, GRAPH_NODE, proto_node("Shape", "part", "parts"));
    proto_message(graph, GRAPH_NODE, proto_node("Gather", "parts axis", "length"));
}

/* x divided by the length; or -x where the length is 3, else |x|. */
static proto length_model(way how, reader reads)
{
    proto graph = sized_graph();
    put_length(&graph, how);
    if (reads == DIVIDES) {
        proto_message(&graph, GRAPH_NODE, proto_node("CastLike", "length x", "count"));
        proto_message(&graph, GRAPH_NODE, proto_node("Div", "x count", "y"));
        return proto_model(graph, 17);
    }
    sized_integer(&graph, "3", 3);
    proto_message(&graph, GRAPH_NODE, proto_node("Equal", "length 3", "three"));
    sized_branch(&graph, "three");
    return proto_model(graph, 17);
}

/* Whether a step of so many rows is allowed, and right. */
static bool check_step(mica_context *ctx, mica_onnx *model, mica_net *net, mica_index rows)
{
    static float got[MOST * SIZED_COLUMNS], want[MOST * SIZED_COLUMNS];
    if (mica_net_resize(net, rows) != MICA_OK)
        return false;
    mica_net *exact = sized_net(ctx, model, rows);
    if (exact == NULL)
        return false;
    sized_run(ctx, net, got);
    sized_run(ctx, exact, want);
    mica_net_destroy(exact);
    return CHECK(memcmp(got, want, (size_t)(rows * SIZED_COLUMNS) * sizeof *got) == 0);
}

TEST(onnx_lengths_behind_strides_are_no_constants)
{
    static const mica_index planned[] = {8, 40, MOST}, some[] = {999, 500, 13, 12, 11, 9, 5, 4, 1};
    mica_context *ctx = test_context(1);
    int allowed = 0;
    for (int i = 0; i < WAYS * READERS * 3; i++) {
        mica_index rows = planned[i % 3];
        proto bytes = length_model((way)(i / 3 % WAYS), (reader)(i / 3 / WAYS));
        mica_onnx *model;
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
        mica_net *net = sized_net(ctx, model, rows);
        for (mica_index k = rows; net != NULL && rows < MOST && k > 0; k--)
            allowed += check_step(ctx, model, net, k);
        for (size_t k = 0; net != NULL && rows == MOST && k < sizeof some / sizeof some[0]; k++)
            allowed += check_step(ctx, model, net, some[k]);
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
    CHECK(allowed > 0);
}

/* A table of equal elements, as first states are, is written without an end: larger batches than were planned run. */
TEST(onnx_written_states_have_no_end)
{
    enum { FEW = 2, MORE = 9 };
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    char path[300];
    snprintf(path, sizeof path, "%s", scratch_path(&s, "a.onnx"));
    proto graph = sized_graph(), states = proto_node("ConstantOfShape", "shape", "states");
    const float half = 0.5f;
    proto_tensor_attribute(&states, "value",
                           proto_tensor("", ONNX_FLOAT, 1, (int64_t[]){1}, &half, sizeof half));
    proto_message(&graph, GRAPH_NODE, states);
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "x states", "y"));
    proto bytes = proto_model(graph, 17);
    mica_onnx *model = NULL, *written = NULL;
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    mica_net *few = sized_net(ctx, model, FEW), *more = NULL;
    if (few != NULL && CHECK_OK(ctx, mica_onnx_write(few, path, NULL)) &&
        CHECK_OK(ctx, mica_onnx_open(ctx, &written, path))) {
        mica_onnx_set set = {.name = "batch", .size = MORE};
        float y[MORE * SIZED_COLUMNS];
        CHECK_OK(ctx, mica_net_create(ctx, &more));
        if (CHECK_OK(ctx, mica_onnx_build(written, more, &(mica_onnx_opts){.sets = &set, .count = 1})) &&
            CHECK_OK(ctx, mica_net_compile(more, &(mica_compile_opts){0})) &&
            CHECK_OK(ctx, mica_net_bind(more, NULL, 0))) {
            sized_run(ctx, more, y);
            for (int i = 0; i < MORE * SIZED_COLUMNS; i++)
                CHECK(y[i] == (float)i * 0.37f + 0.5f);
        }
    }
    mica_net_destroy(more);
    mica_net_destroy(few);
    mica_onnx_close(written);
    mica_onnx_close(model);
    proto_free(&bytes);
    scratch_remove(&s);
}
