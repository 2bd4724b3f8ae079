/* Sizes that a model knows by name: steps of any smaller size give the bits of a net that was built for it, or are
 * refused because something in the model is computed from the size. */
#include <stdio.h>
#include <string.h>

#include <mica/mica.h>

#include "onnx/proto.h"
#include "onnx/sized.h"
#include "test.h"

enum { ROWS = 5, COLUMNS = SIZED_COLUMNS, EVEN = 8 };

/* x, reshaped to a shape that is computed from it, plus a table of as many rows. */
static proto table_model(void)
{
    proto graph = sized_graph();
    int64_t first = 0;
    float zero = 0.0f, one = 1.0f;
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("axis", ONNX_INT64, 0, NULL, &first, sizeof first));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("from", ONNX_FLOAT, 0, NULL, &zero, sizeof zero));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("step", ONNX_FLOAT, 0, NULL, &one, sizeof one));
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("columns", ONNX_INT64, 1, (int64_t[]){1}, (int64_t[]){1}, sizeof(int64_t)));
    proto_message(&graph, GRAPH_NODE, proto_node("Gather", "shape axis", "rows"));
    proto cast = proto_node("Cast", "rows", "end");
    proto_int(&cast, "to", ONNX_FLOAT);
    proto_message(&graph, GRAPH_NODE, cast);
    proto_message(&graph, GRAPH_NODE, proto_node("Range", "from end step", "line"));
    proto_message(&graph, GRAPH_NODE, proto_node("Unsqueeze", "line columns", "table"));
    proto_message(&graph, GRAPH_NODE, proto_node("Reshape", "x shape", "again"));
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "again table", "y"));
    return proto_model(graph, 17);
}

/* x divided by the number of its elements. */
static proto mean_model(void)
{
    proto graph = sized_graph();
    proto_message(&graph, GRAPH_NODE, proto_node("Size", "x", "size"));
    proto cast = proto_node("Cast", "size", "count");
    proto_int(&cast, "to", ONNX_FLOAT);
    proto_message(&graph, GRAPH_NODE, cast);
    proto_message(&graph, GRAPH_NODE, proto_node("Div", "x count", "y"));
    return proto_model(graph, 17);
}

TEST(onnx_sizes_by_name_may_be_smaller)
{
    mica_context *ctx = test_context(1);
    proto bytes = table_model();
    mica_onnx *model;
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    mica_net *most = sized_net(ctx, model, ROWS);
    for (mica_index rows = ROWS; most != NULL && rows > 0; rows--) {
        float got[ROWS * COLUMNS] = {0}, want[ROWS * COLUMNS] = {0};
        mica_net *exact = sized_net(ctx, model, rows);
        if (exact == NULL || !CHECK_OK(ctx, mica_net_resize(most, rows)))
            break;
        sized_run(ctx, most, got);
        sized_run(ctx, exact, want);
        CHECK_MSG(memcmp(got, want, sizeof got) == 0, "%d rows of %d", (int)rows, ROWS);
        CHECK(got[COLUMNS * (rows - 1)] == (float)(COLUMNS * (rows - 1)) * 0.37f + (float)(rows - 1));
        mica_net_destroy(exact);
    }
    mica_net_destroy(most);
    mica_onnx_close(model);
    proto_free(&bytes);
}

TEST(onnx_numbers_from_sizes_fix_them)
{
    mica_context *ctx = test_context(1);
    proto bytes = mean_model();
    mica_onnx *model;
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    mica_net *net = sized_net(ctx, model, ROWS);
    if (net != NULL)
        CHECK_ERROR(
            ctx, mica_net_resize(net, ROWS - 1), MICA_ERR_SHAPE,
            "shape error: net: batch cannot be 4, only 5 as planned: a constant of the model is computed from "
            "its sizes");
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}

/* What follows is told to an operation as an option, of which its shapes say nothing. */
typedef struct option_case {
    const char *type, *ins;
    bool real;   /* "number" is a float, otherwise an integer */
    bool halved; /* and half of the rows */
} option_case;

/* `half` is the number of rows divided by 2, `after` that and 2; half and after are also the only rows of a slice. */
static proto option_model(const option_case *o)
{
    proto graph = sized_graph();
    const int64_t first = 0, two = 2;
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("first", ONNX_INT64, 0, NULL, &first, sizeof first));
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("two", ONNX_INT64, 1, (int64_t[]){1}, &two, sizeof two));
    proto_message(&graph, GRAPH_NODE, proto_node("Gather", "shape first", "rows"));
    proto_message(&graph, GRAPH_NODE, proto_node("Div", "rows two", "half"));
    proto cast = proto_node("Cast", o->halved ? "half" : "rows", "number");
    proto_int(&cast, "to", o->real ? ONNX_FLOAT : ONNX_INT64);
    proto_message(&graph, GRAPH_NODE, cast);
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "half two", "after"));
    proto_message(&graph, GRAPH_NODE, proto_node(o->type, o->ins, "y"));
    return proto_model(graph, 17);
}

TEST(onnx_options_from_sizes_fix_them)
{
    static const option_case cases[] = {{"Clip", "x - number", true, false},
                                        {"Trilu", "x number", false, false},
                                        {"Slice", "x half after", false, false}};
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        proto bytes = option_model(&cases[i]);
        mica_onnx *model;
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, cases[i].type) == MICA_OK);
        mica_net *net = sized_net(ctx, model, EVEN);
        if (net != NULL)
            CHECK_ERROR(
                ctx, mica_net_resize(net, EVEN - 1), MICA_ERR_SHAPE,
                "shape error: net: batch cannot be 7, only 8 as planned: an option of an operation is "
                "computed from the model's sizes");
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}

/* Columns of x up to 4, of which a small size has fewer: that is nobody's bound. */
TEST(onnx_slices_of_more_than_there_is_fix_nothing)
{
    mica_context *ctx = test_context(1);
    for (mica_index columns = 3; columns <= EVEN; columns++) {
        proto graph = {0};
        const int64_t first = 0, bound = 4, axis = 1;
        mica_onnx *model;
        mica_net *net;
        proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){-1, -2}));
        proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){-1, PROTO_OPEN}));
        proto_message(&graph, GRAPH_INITIALIZER,
                      proto_tensor("first", ONNX_INT64, 1, (int64_t[]){1}, &first, sizeof first));
        proto_message(&graph, GRAPH_INITIALIZER,
                      proto_tensor("bound", ONNX_INT64, 1, (int64_t[]){1}, &bound, sizeof bound));
        proto_message(&graph, GRAPH_INITIALIZER,
                      proto_tensor("axis", ONNX_INT64, 1, (int64_t[]){1}, &axis, sizeof axis));
        proto_message(&graph, GRAPH_NODE, proto_node("Shape", "x", "shape"));
        proto_message(&graph, GRAPH_NODE, proto_node("Reshape", "x shape", "again"));
        proto_message(&graph, GRAPH_NODE, proto_node("Slice", "again first bound axis", "part"));
        proto_message(&graph, GRAPH_NODE, proto_node("Neg", "part", "y"));
        proto bytes = proto_model(graph, 17);
        const mica_onnx_set sets[] = {{.name = "n", .size = 7}, {.name = "m", .size = columns}};
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        CHECK_OK(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = sets, .count = 2}));
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0}));
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
        for (mica_index m = columns; m >= 0; m--) {
            mica_tensor y;
            if (CHECK_OK(ctx, mica_net_set_size(net, "m", m)) && CHECK_OK(ctx, mica_net_tensor(net, &y, "y")))
                CHECK(y.dim[1] == (m < 4 ? m : 4));
        }
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}

/* y = x, or twice x if there are more than four rows. */
static proto branch_model(void)
{
    proto graph = sized_graph(), node = proto_node("If", "many", "y"), then = {0}, otherwise = {0};
    const int64_t first = 0, four = 4;
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("first", ONNX_INT64, 0, NULL, &first, sizeof first));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("four", ONNX_INT64, 0, NULL, &four, sizeof four));
    proto_message(&graph, GRAPH_NODE, proto_node("Gather", "shape first", "rows"));
    proto_message(&graph, GRAPH_NODE, proto_node("Greater", "rows four", "many"));
    proto_message(&then, GRAPH_NODE, proto_node("Add", "x x", "z"));
    proto_message(&then, GRAPH_OUTPUT, proto_value("z", ONNX_FLOAT, 2, (int64_t[]){-1, COLUMNS}));
    proto_message(&otherwise, GRAPH_NODE, proto_node("Identity", "x", "z"));
    proto_message(&otherwise, GRAPH_OUTPUT, proto_value("z", ONNX_FLOAT, 2, (int64_t[]){-1, COLUMNS}));
    proto_graph_attribute(&node, "then_branch", then);
    proto_graph_attribute(&node, "else_branch", otherwise);
    proto_message(&graph, GRAPH_NODE, node);
    return proto_model(graph, 17);
}

/* What is the same at the planned size and one less, but not at others. */
TEST(onnx_steps_of_numbers_from_sizes_fix_them)
{
    static const option_case slice = {"Slice", "x half after", false, true},
                             div = {"Div", "x number", true, true};
    static const char *const why[] = {"an option of an operation is computed from the model's sizes",
                                      "a constant of the model is computed from its sizes",
                                      "a branch or a loop of the model depends on its sizes"};
    mica_context *ctx = test_context(1);
    for (int i = 0; i < 3; i++) {
        proto bytes = i == 0 ? option_model(&slice) : i == 1 ? option_model(&div) : branch_model();
        char text[200];
        mica_onnx *model;
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
        mica_net *net = sized_net(ctx, model, EVEN + 1);
        snprintf(text, sizeof text, "shape error: net: batch cannot be 4, only 9 as planned: %s", why[i]);
        if (net != NULL)
            CHECK_ERROR(ctx, mica_net_resize(net, 4), MICA_ERR_SHAPE, text);
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}

/* The same where there is nothing at the least size: windows of 5 along n, times half of n. */
TEST(onnx_windows_times_half_a_size_fix_it)
{
    mica_context *ctx = test_context(1);
    const int64_t last = 2, two = 2, kernel = 5;
    proto graph = {0}, pool = proto_node("AveragePool", "x", "pool");
    mica_onnx *model;
    proto_ints(&pool, "kernel_shape", &kernel, 1);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 3, (int64_t[]){1, 1, -1}));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 3, (int64_t[]){1, 1, PROTO_OPEN}));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("last", ONNX_INT64, 0, NULL, &last, sizeof last));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("two", ONNX_INT64, 0, NULL, &two, sizeof two));
    proto_message(&graph, GRAPH_NODE, pool);
    proto_message(&graph, GRAPH_NODE, proto_node("Shape", "x", "shape"));
    proto_message(&graph, GRAPH_NODE, proto_node("Gather", "shape last", "n"));
    proto_message(&graph, GRAPH_NODE, proto_node("Div", "n two", "half"));
    proto_message(&graph, GRAPH_NODE, proto_node("CastLike", "half x", "number"));
    proto_message(&graph, GRAPH_NODE, proto_node("Mul", "pool number", "y"));
    proto bytes = proto_model(graph, 17);
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    for (mica_index most = 9; most <= 17; most += 8) {
        mica_net *net = sized_net(ctx, model, most);
        char wanted[200];
        (void)snprintf(
            wanted, sizeof wanted,
            "shape error: net: n cannot be 6, only %td as planned: a constant of the model is computed "
            "from its sizes",
            most);
        if (net != NULL)
            CHECK_ERROR(ctx, mica_net_set_size(net, "n", 6), MICA_ERR_SHAPE, wanted);
        mica_net_destroy(net);
    }
    mica_onnx_close(model);
    proto_free(&bytes);
}

/* What is the first ten rows of twenty is all of them where there are two: that alone fixes nothing. */
TEST(onnx_slices_that_become_nothing_fix_nothing)
{
    mica_context *ctx = test_context(1);
    proto graph = {0};
    const int64_t none = 0, ten = 10, axis = 1;
    const int64_t one[] = {1};
    mica_onnx *model;
    mica_tensor y;
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){1, -1}));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){1, PROTO_OPEN}));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("none", ONNX_INT64, 1, one, &none, sizeof none));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("ten", ONNX_INT64, 1, one, &ten, sizeof ten));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("axis", ONNX_INT64, 1, one, &axis, sizeof axis));
    proto_message(&graph, GRAPH_NODE, proto_node("Slice", "x none ten axis", "rows"));
    proto_message(&graph, GRAPH_NODE, proto_node("Relu", "rows", "y"));
    proto bytes = proto_model(graph, 17);
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    mica_net *net = sized_net(ctx, model, 20);
    for (mica_index size = 20; net != NULL && size > 0; size--)
        if (CHECK_OK(ctx, mica_net_set_size(net, "n", size)) && CHECK_OK(ctx, mica_net_tensor(net, &y, "y")))
            CHECK(y.dim[1] == (size < ten ? size : ten));
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}

/* Windows of 3 with a stride, along axis "m", which is even both as planned and where it is compared: an odd one would
 * have padding in front. */
static proto window_model(const char *type, int64_t stride)
{
    static const float ones[3] = {1.0f, 1.0f, 1.0f};
    proto graph = {0}, node = proto_node(type, strcmp(type, "Conv") == 0 ? "x w" : "x", "y");
    proto_string(&node, "auto_pad", "SAME_UPPER");
    proto_ints(&node, "kernel_shape", (int64_t[]){3}, 1);
    proto_ints(&node, "strides", &stride, 1);
    proto_message(&graph, GRAPH_NODE, node);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 3, (int64_t[]){-1, 1, -2}));
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("w", ONNX_FLOAT, 3, (int64_t[]){1, 1, 3}, ones, sizeof ones));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 3, (int64_t[]){-1, 1, PROTO_OPEN}));
    return proto_model(graph, 17);
}

TEST(onnx_auto_pad_with_a_stride_fixes_sizes)
{
    static const char *const types[] = {"Conv", "MaxPool", "AveragePool"};
    const mica_onnx_set sets[] = {{.name = "n", .size = 4}, {.name = "m", .size = EVEN}};
    mica_context *ctx = test_context(1);
    for (int i = 0; i < 2 * 3; i++) {
        int64_t stride = 1 + i / 3;
        proto bytes = window_model(types[i % 3], stride);
        mica_onnx *model;
        mica_net *net;
        mica_tensor y;
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, types[i % 3]) == MICA_OK);
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        CHECK_OK(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = sets, .count = 2}));
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0}));
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
        mica_status status = mica_net_set_size(net, "m", EVEN - 1);
        if (status == MICA_OK && CHECK_OK(ctx, mica_net_tensor(net, &y, "y")))
            CHECK_MSG(y.dim[2] == (EVEN - 1 + stride - 1) / stride, "%s gives %d", types[i % 3],
                      (int)y.dim[2]);
        CHECK_MSG((status == MICA_OK) == (stride == 1), "%s, stride %d: %s", types[i % 3], (int)stride,
                  mica_error(ctx));
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}

typedef struct reach_case {
    const char *type;
    int64_t kernel, stride, before, after;
    bool ceil_mode;
} reach_case;

static proto reach_model(const reach_case *c)
{
    proto graph = {0}, node = proto_node(c->type, "x", "y");
    proto_ints(&node, "kernel_shape", &c->kernel, 1);
    proto_ints(&node, "strides", &c->stride, 1);
    proto_ints(&node, "pads", (int64_t[]){c->before, c->after}, 2);
    proto_int(&node, "ceil_mode", c->ceil_mode);
    proto_message(&graph, GRAPH_NODE, node);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 3, (int64_t[]){1, 1, -1}));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 3, (int64_t[]){1, 1, PROTO_OPEN}));
    return proto_model(graph, 17);
}

/* What is behind the last window follows from the size, not always by one. */
TEST(onnx_windows_are_right_at_every_size)
{
    static const char *const types[] = {"MaxPool", "AveragePool", "LpPool"};
    mica_context *ctx = test_context(1);
    test_random r = test_seed(3);
    int free = 0, trials = test_effort(800);
    for (int number = 0; number < trials; number++) {
        reach_case c = {types[test_int(&r, 0, 2)], test_int(&r, 1, 4), test_int(&r, 1, 4), 0, 0, false};
        c.before = test_int(&r, 0, (int)c.kernel - 1);
        c.after = test_int(&r, 0, (int)c.kernel - 1);
        c.ceil_mode = strcmp(c.type, "LpPool") != 0 && test_chance(&r, 50);
        proto bytes = reach_model(&c);
        mica_onnx *model;
        mica_index most = test_int(&r, 4, 12);
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, c.type) == MICA_OK);
        mica_net *net = sized_net(ctx, model, most);
        for (mica_index size = most; net != NULL && size >= c.kernel; size--) {
            float got[16] = {0}, want[16] = {0};
            mica_tensor y, exact_y;
            if (mica_net_set_size(net, "n", size) != MICA_OK)
                break;
            mica_net *exact = sized_net(ctx, model, size);
            if (exact == NULL)
                break;
            free++;
            sized_run(ctx, net, got);
            sized_run(ctx, exact, want);
            CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
            CHECK_OK(ctx, mica_net_tensor(exact, &exact_y, "y"));
            CHECK_MSG(y.dim[2] == exact_y.dim[2] && memcmp(got, want, sizeof got) == 0,
                      "%s of %d by %d, pads %d and %d, ceil_mode %d: %d of %d", c.type, (int)c.kernel,
                      (int)c.stride, (int)c.before, (int)c.after, c.ceil_mode, (int)size, (int)most);
            mica_net_destroy(exact);
        }
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
    CHECK(free > trials / 8);
}

/* y = x @ w, where w is an input, too, of sizes that the model fixes; before or behind x. */
static proto product_model(bool w_first)
{
    proto graph = {0};
    for (int i = 0; i < 2; i++)
        if ((i == 0) == w_first)
            proto_message(&graph, GRAPH_INPUT, proto_value("w", ONNX_FLOAT, 2, (int64_t[]){COLUMNS, 2}));
        else
            proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){-1, COLUMNS}));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){-1, 2}));
    proto_message(&graph, GRAPH_NODE, proto_node("MatMul", "x w", "y"));
    return proto_model(graph, 17);
}

/* A size that the model fixes is none of the batch, even where the batch is as large. */
TEST(onnx_sizes_that_are_fixed_are_no_batch)
{
    mica_context *ctx = test_context(1);
    for (int w_first = 0; w_first < 2; w_first++)
        for (mica_index most = 2; most <= 5; most++) {
            proto bytes = product_model(w_first);
            mica_onnx *model;
            REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
            mica_net *net = sized_net(ctx, model, most);
            for (mica_index rows = most; net != NULL && rows > 0; rows--) {
                mica_tensor w, y;
                float made[8 * 2] = {0};
                CHECK_OK(ctx, mica_net_resize(net, rows));
                CHECK_OK(ctx, mica_net_tensor(net, &w, "w"));
                REQUIRE(CHECK(w.rank == 2 && w.dim[0] == COLUMNS && w.dim[1] == 2));
                for (int i = 0; i < COLUMNS * 2; i++)
                    ((float *)w.data)[i] = (float)(i % 2 + 1);
                sized_run(ctx, net, made);
                CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
                CHECK(y.dim[0] == rows && y.dim[1] == 2);
                for (mica_index i = 0; i < rows; i++) { /* of 0.37 times 3 i, 3 i + 1 and 3 i + 2 */
                    float sum = 0.37f * (float)(9 * i + 3);
                    CHECK(made[2 * i] > 0.999f * sum && made[2 * i] < 1.001f * sum);
                    CHECK(made[2 * i + 1] > 1.998f * sum && made[2 * i + 1] < 2.002f * sum);
                }
            }
            mica_net_destroy(net);
            mica_onnx_close(model);
            proto_free(&bytes);
        }
}

/* Nor is one that has another name, even where it is set to as many: w, whose shape is set, stays as it is. */
TEST(onnx_sizes_of_another_name_are_no_batch)
{
    mica_context *ctx = test_context(1);
    proto graph = {0};
    mica_onnx *model;
    mica_net *net;
    mica_tensor shape, w;
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){-1, COLUMNS}));
    proto_message(&graph, GRAPH_INPUT, proto_value("w", ONNX_FLOAT, 2, (int64_t[]){-2, COLUMNS}));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){-1, COLUMNS}));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("z", ONNX_FLOAT, 2, (int64_t[]){-2, COLUMNS}));
    proto_message(&graph, GRAPH_NODE, proto_node("Relu", "x", "y"));
    proto_message(&graph, GRAPH_NODE, proto_node("Relu", "w", "z"));
    proto bytes = proto_model(graph, 17);
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    CHECK_OK(ctx, mica_tensor_init(ctx, &shape, NULL, MICA_F32, 2, (mica_index[]){ROWS, COLUMNS}));
    mica_onnx_set sets[] = {{.name = "n", .size = ROWS}, {.name = "w", .value = &shape}};
    CHECK_OK(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = sets, .count = 2}));
    CHECK_OK(ctx, mica_net_compile(net, NULL));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_resize(net, 2));
    CHECK_OK(ctx, mica_net_tensor(net, &w, "w"));
    CHECK_MSG(w.dim[0] == ROWS, "w has %d rows, expected %d", (int)w.dim[0], ROWS);
    CHECK_OK(ctx, mica_net_tensor(net, &w, "x"));
    CHECK(w.dim[0] == 2);
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}

/* Only a length has a name: the first axis, which the model fixes, stays what it is. */
TEST(onnx_batches_without_a_name_are_fixed)
{
    mica_context *ctx = test_context(1);
    proto graph = {0};
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){ROWS, -1}));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){ROWS, -1}));
    proto_message(&graph, GRAPH_NODE, proto_node("Relu", "x", "y"));
    proto bytes = proto_model(graph, 17);
    mica_onnx *model;
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    mica_net *net = sized_net(ctx, model, 4);
    REQUIRE(net != NULL);
    mica_tensor x;
    CHECK_OK(ctx, mica_net_resize(net, ROWS));
    CHECK_OK(ctx, mica_net_set_size(net, "n", 2));
    CHECK_ERROR(ctx, mica_net_resize(net, ROWS - 1), MICA_ERR_SHAPE,
                "shape error: net: batch cannot be 4, only 5 as planned: the model has no size of this name");
    CHECK_OK(ctx, mica_net_tensor(net, &x, "x"));
    CHECK(x.dim[0] == ROWS && x.dim[1] == 2);
    CHECK_OK(ctx, mica_net_forward(net));
    CHECK(!mica_net_samples_apart(net));
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}

/* What a caller may get wrong: sizes below 0, and no model or net at all. */
TEST(onnx_sizes_below_0)
{
    mica_context *ctx = test_context(1);
    proto bytes = table_model();
    mica_onnx *model;
    mica_net *net;
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_onnx_set set = {.name = "n", .size = -4};
    CHECK_ERROR(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = &set, .count = 1}),
                MICA_ERR_ARGUMENT, "argument error: onnx: size \"n\" is set to -4: expected 0 or more");
    CHECK(mica_onnx_load(NULL, net) == MICA_ERR_ARGUMENT);
    CHECK(mica_onnx_load(model, NULL) == MICA_ERR_ARGUMENT);
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}

/* x [?, 3] and, if there are two of them, z [?, 3]; y = relu(x). */
static proto unnamed(int inputs)
{
    static const int64_t dims[] = {PROTO_OPEN, 3};
    proto graph = {0};
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, dims));
    if (inputs > 1)
        proto_message(&graph, GRAPH_INPUT, proto_value("z", ONNX_FLOAT, 2, dims));
    proto_message(&graph, GRAPH_NODE, proto_node("Relu", "x", "y"));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, dims));
    return proto_model(graph, 17);
}

/* A batch without a name is "batch", where nothing else can be. */
TEST(onnx_batch_without_a_name)
{
    mica_context *ctx = test_context(1);
    for (int inputs = 1; inputs < 3; inputs++) {
        proto bytes = unnamed(inputs);
        mica_onnx *model;
        mica_net *net;
        mica_tensor y;
        mica_onnx_set set = {.name = "batch", .size = 4};
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "unnamed") == MICA_OK);
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        if (inputs > 1)
            CHECK_ERROR(
                ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = &set, .count = 1}),
                MICA_ERR_ARGUMENT,
                "argument error: onnx: input \"x\": the size of axis 0 is open: set the input's shape");
        else if (CHECK_OK(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = &set, .count = 1})) &&
                 CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0})) &&
                 CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_resize(net, 2)) &&
                 CHECK_OK(ctx, mica_net_forward(net)) && CHECK_OK(ctx, mica_net_tensor(net, &y, "y")))
            CHECK(y.dim[0] == 2);
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}

/* Nothing is known of steps smaller than 1, but not because the size had no name. */
TEST(onnx_sizes_of_1)
{
    mica_context *ctx = test_context(1);
    proto bytes = table_model();
    mica_onnx *model;
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
    mica_net *net = sized_net(ctx, model, 1);
    if (net != NULL)
        CHECK_ERROR(
            ctx, mica_net_resize(net, 0), MICA_ERR_SHAPE,
            "shape error: net: batch cannot be 0, only 1 as planned: at a size of 1 there is no smaller "
            "one to compare with");
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}
