/* Numbers that a model rounds, limits or compares after it has computed them from a size: they may be the same at the
 * planned size and just below, but not further below. */
#include <stdio.h>
#include <string.h>

#include <mica/mica.h>

#include "onnx/proto.h"
#include "onnx/sized.h"
#include "test.h"

enum { COLUMNS = SIZED_COLUMNS, EVEN = 8 };

/* What rounds or has a bound may be the same of the next smaller size, too: y is x
 *   times at least 4 rows; from a quarter of the rows on; negative if there are more than 4, or more than 1. */
static proto bounded_model(int which)
{
    static const char *const types[] = {"Min", "Div", "Greater", "Greater"};
    const int64_t first = 0, bound = which < 3 ? 4 : 1, far_end = INT64_MAX;
    proto graph = sized_graph(), node;
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("first", ONNX_INT64, 1, (int64_t[]){1}, &first, sizeof first));
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("bound", ONNX_INT64, 1, (int64_t[]){1}, &bound, sizeof bound));
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("end", ONNX_INT64, 1, (int64_t[]){1}, &far_end, sizeof far_end));
    proto_message(&graph, GRAPH_NODE, proto_node("Gather", "shape first", "rows"));
    proto_message(&graph, GRAPH_NODE, proto_node(types[which], "rows bound", "number"));
    if (which == 0) {
        node = proto_node("Cast", "number", "factor");
        proto_int(&node, "to", ONNX_FLOAT);
        proto_message(&graph, GRAPH_NODE, node);
        proto_message(&graph, GRAPH_NODE, proto_node("Mul", "x factor", "y"));
    } else if (which == 1) {
        proto_message(&graph, GRAPH_NODE, proto_node("Slice", "x number end first", "y"));
    } else {
        sized_branch(&graph, "number");
    }
    return proto_model(graph, 17);
}

TEST(onnx_bounds_and_quotients_of_sizes_fix_them)
{
    static const char *const why[] = {"a constant of the model is computed from its sizes",
                                      "a shape in the model is computed from its sizes",
                                      "a branch or a loop of the model depends on its sizes",
                                      "a branch or a loop of the model depends on its sizes"};
    mica_context *ctx = test_context(1);
    for (int which = 0; which < 4; which++) {
        proto bytes = bounded_model(which);
        mica_onnx *model;
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
        mica_net *net = sized_net(ctx, model, EVEN + 1);
        char wanted[200];
        (void)snprintf(wanted, sizeof wanted, "shape error: net: batch cannot be 8, only 9 as planned: %s",
                       why[which]);
        if (net != NULL)
            CHECK_ERROR(ctx, mica_net_resize(net, EVEN), MICA_ERR_SHAPE, wanted);
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}

/* ---- Rounded sizes ---- */

/* The first (rows + add) / divisor * times rows of x, or min(rows, divisor) * times if add is below 0. */
static proto rounded_model(int64_t add, int64_t divisor, int64_t times)
{
    proto graph = sized_graph();
    const char *const names[] = {"add", "divisor", "times", "from", "axis"};
    const int64_t values[] = {add, divisor, times, 0, 0}, one = 1;
    for (int i = 0; i < 5; i++)
        proto_message(&graph, GRAPH_INITIALIZER,
                      proto_tensor(names[i], ONNX_INT64, 1, &one, &values[i], sizeof values[i]));
    proto_message(&graph, GRAPH_NODE, proto_node("Gather", "shape axis", "rows"));
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "rows add", "more"));
    proto_message(&graph, GRAPH_NODE,
                  add < 0 ? proto_node("Min", "rows divisor", "parts")
                          : proto_node("Div", "more divisor", "parts"));
    proto_message(&graph, GRAPH_NODE, proto_node("Mul", "parts times", "end"));
    proto_message(&graph, GRAPH_NODE, proto_node("Slice", "x from end axis", "y"));
    return proto_model(graph, 17);
}

/* Steps of fewer rows that are not refused take as many as a net of so many rows. */
static void check_rounded(mica_context *ctx, mica_onnx *model, mica_index rows, const char *what)
{
    mica_net *most = sized_net(ctx, model, rows);
    for (mica_index fewer = rows - 1; most != NULL && fewer > 0; fewer--) {
        mica_tensor x, got, want;
        if (mica_net_resize(most, fewer) != MICA_OK)
            continue;
        mica_net *exact = sized_net(ctx, model, fewer);
        CHECK_OK(ctx, mica_net_tensor(most, &x, "x"));
        memset(x.data, 0, mica_tensor_bytes(&x));
        if (exact != NULL && CHECK_OK(ctx, mica_net_forward(most)) &&
            CHECK_OK(ctx, mica_net_tensor(most, &got, "y")) &&
            CHECK_OK(ctx, mica_net_tensor(exact, &want, "y")))
            CHECK_MSG(got.dim[0] == want.dim[0], "%s, %td of %td rows: %td, expected %td", what, fewer, rows,
                      got.dim[0], want.dim[0]);
        mica_net_destroy(exact);
    }
    mica_net_destroy(most);
}

/* 12 rows and 11 have a third, rounded up, of 4 rows; 9 rows have not. */
TEST(onnx_rounded_sizes_fix_them)
{
    mica_context *ctx = test_context(1);
    for (int64_t divisor = 2; divisor < 7; divisor++)
        for (int64_t add = -1; add < divisor; add += 1 + divisor / 4)
            for (int64_t times = 1; times < 4; times += 2) {
                proto bytes = rounded_model(add, divisor, times);
                mica_onnx *model;
                char what[64];
                snprintf(what, sizeof what, "(rows + %d) / %d * %d", (int)add, (int)divisor, (int)times);
                REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
                for (mica_index rows = 2 + divisor % 2; rows < 16; rows += 4)
                    check_rounded(ctx, model, rows, what);
                mica_onnx_close(model);
                proto_free(&bytes);
            }
}

/* ---- Random numbers from sizes ---- */

typedef enum made_into { MADE_START, MADE_END, MADE_FACTOR, MADE_BRANCH, MADE_TABLE, MADE_WAYS } made_into;

/* A number that up to three random operations make of the rows, which then becomes y of x. */
static proto random_model(test_random *r, made_into way, char *what, size_t size)
{
    static const char *const types[] = {"Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Where"};
    proto graph = sized_graph();
    const int64_t one = 1, zero = 0, far_end = INT64_MAX, minus = -1;
    char last[16] = "rows", name[16], ins[64];
    const int steps = test_int(r, 1, 3);
    const struct {
        const char *name;
        int64_t value;
    } constants[] = {{"zero", zero}, {"one", one}, {"end", far_end}, {"minus", minus}};
    for (int i = 0; i < 4; i++)
        proto_message(&graph, GRAPH_INITIALIZER,
                      proto_tensor(constants[i].name, ONNX_INT64, 1, &one, &constants[i].value,
                                   sizeof constants[i].value));
    proto_message(&graph, GRAPH_NODE, proto_node("Gather", "shape zero", "rows"));
    size_t at = (size_t)snprintf(what, size, "way %d:", (int)way);
    for (int i = 0; i < steps; i++) {
        const char *type = types[test_int(r, 0, 7)];
        const int64_t value = test_int(r, 1, 9);
        at += (size_t)snprintf(what + at, size - at, " %s %d", type, (int)value);
        snprintf(name, sizeof name, "by%d", i);
        proto_message(&graph, GRAPH_INITIALIZER,
                      proto_tensor(name, ONNX_INT64, 1, &one, &value, sizeof value));
        if (strcmp(type, "Where") == 0) { /* less than the number, or itself */
            snprintf(ins, sizeof ins, "%s by%d", last, i);
            proto_message(&graph, GRAPH_NODE, proto_node("Less", ins, "less"));
            snprintf(ins, sizeof ins, "less %s by%d", last, i);
        } else {
            snprintf(ins, sizeof ins, "%s by%d", last, i);
        }
        snprintf(last, sizeof last, "n%d", i);
        proto_message(&graph, GRAPH_NODE, proto_node(type, ins, last));
        if (strcmp(type, "Where") == 0)
            break;
    }
    proto node;
    switch (way) {
    case MADE_START:
        snprintf(ins, sizeof ins, "x %s end zero", last);
        node = proto_node("Slice", ins, "y");
        break;
    case MADE_END:
        snprintf(ins, sizeof ins, "x zero %s zero", last);
        node = proto_node("Slice", ins, "y");
        break;
    case MADE_FACTOR:
        snprintf(ins, sizeof ins, "%s x", last);
        proto_message(&graph, GRAPH_NODE, proto_node("CastLike", ins, "factor"));
        node = proto_node("Mul", "x factor", "y");
        break;
    case MADE_BRANCH:
        snprintf(ins, sizeof ins, "%s %s", last,
                 (const char *const[]){"one", "by0", "zero", "minus"}[test_int(r, 0, 3)]);
        proto_message(&graph, GRAPH_NODE, proto_node(test_chance(r, 50) ? "Equal" : "Greater", ins, "many"));
        node = proto_node("If", "many", "y");
        for (int k = 0; k < 2; k++) {
            proto branch = {0};
            proto_message(&branch, GRAPH_NODE, proto_node(k == 0 ? "Neg" : "Abs", "x", "made"));
            proto_message(&branch, GRAPH_OUTPUT, proto_value("made", ONNX_FLOAT, -1, NULL));
            proto_graph_attribute(&node, k == 0 ? "then_branch" : "else_branch", branch);
        }
        break;
    default: { /* every second number up to it */
        const int64_t nothing = 0, two = test_int(r, 1, 3);
        proto_message(&graph, GRAPH_INITIALIZER,
                      proto_tensor("from", ONNX_INT64, 0, NULL, &nothing, sizeof nothing));
        proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("step", ONNX_INT64, 0, NULL, &two, sizeof two));
        snprintf(ins, sizeof ins, "%s zero", last);
        proto_message(&graph, GRAPH_NODE, proto_node("Squeeze", ins, "limit"));
        proto_message(&graph, GRAPH_NODE, proto_node("Range", "from limit step", "line"));
        proto_message(&graph, GRAPH_NODE, proto_node("Gather", "x line", "y"));
        return proto_model(graph, 17);
    }
    }
    proto_message(&graph, GRAPH_NODE, node);
    return proto_model(graph, 17);
}

/* Elements that are not there are an error. */
static mica_status forward(mica_net *net, float *y)
{
    mica_tensor x, out;
    mica_status status = mica_net_tensor(net, &x, "x");
    for (size_t i = 0; status == MICA_OK && i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)i * 0.37f;
    status = status == MICA_OK ? mica_net_forward(net) : status;
    if (status == MICA_OK && mica_net_tensor(net, &out, "y") == MICA_OK)
        memcpy(y, out.data, mica_tensor_bytes(&out));
    return status;
}

/* NULL, too, where the model is none of so many rows. */
static mica_net *built_if_any(mica_context *ctx, mica_onnx *model, mica_index rows)
{
    mica_net *net;
    const mica_onnx_set set = {.name = "n", .size = rows};
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    if (mica_onnx_build(model, net, &(mica_onnx_opts){.sets = &set, .count = 1}) == MICA_OK &&
        mica_net_compile(net, &(mica_compile_opts){0}) == MICA_OK && mica_net_bind(net, NULL, 0) == MICA_OK)
        return net;
    mica_net_destroy(net);
    return NULL;
}

/* Steps that are not refused give what a net of so many rows gives. */
TEST(onnx_random_numbers_from_sizes)
{
    enum { MOST = 33 }; /* above, not all are compared */
    mica_context *ctx = test_context(1);
    test_random r = test_seed(7);
    int free = 0;
    for (int number = 0; number < test_effort(600); number++) {
        char what[100];
        proto bytes = random_model(&r, (made_into)test_int(&r, 0, MADE_WAYS - 1), what, sizeof what);
        mica_onnx *model;
        mica_index rows = test_int(&r, 2, MOST);
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
        mica_net *most = built_if_any(ctx, model, rows);
        for (mica_index fewer = rows - 1; most != NULL && fewer > 0; fewer--) {
            float got[MOST * COLUMNS] = {0}, want[MOST * COLUMNS] = {0};
            mica_tensor y, exact_y;
            if (mica_net_resize(most, fewer) != MICA_OK)
                break;
            mica_net *exact = built_if_any(ctx, model, fewer);
            if (exact == NULL)
                continue;
            free++;
            CHECK_OK(ctx, mica_net_tensor(most, &y, "y"));
            CHECK_OK(ctx, mica_net_tensor(exact, &exact_y, "y"));
            if (CHECK_MSG(y.dim[0] == exact_y.dim[0], "%s: %d of %d rows give %d, expected %d", what,
                          (int)fewer, (int)rows, (int)y.dim[0], (int)exact_y.dim[0])) {
                mica_status status = forward(most, got);
                CHECK_MSG(status == forward(exact, want), "%s: %d of %d rows: %s", what, (int)fewer,
                          (int)rows, mica_error(ctx));
                CHECK_MSG(memcmp(got, want, sizeof got) == 0, "%s: %d of %d rows", what, (int)fewer,
                          (int)rows);
            }
            mica_net_destroy(exact);
        }
        mica_net_destroy(most);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
    CHECK_MSG(free > test_effort(600), "only %d steps are not refused", free);
}
