/* Patterns: each small model gives the same numbers with its nodes fused as with every value between them an output,
 * which keeps them apart; and is the calls that it should be. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/proto.h"
#include "test.h"

#define MOST 24

/* A value that the model has: an input, or a constant. Dims end with 0; `number` fills it, unless it is NAN: then they
 * are random. */
typedef struct given {
    const char *name;
    int64_t dims[5];
    float number;
    bool integer; /* i64: dims are its elements */
} given;

typedef struct node {
    const char *type, *ins, *outs;
    const char *attributes; /* "axis=-1 perm=0,2,1,3 epsilon=0.1f mode='reflect'" */
} node;

typedef struct pattern_case {
    const char *name;
    given input, constants[MOST];
    node nodes[MOST];
    int rank;          /* of y */
    const char *calls; /* the program, with blanks between them */
    int opset;         /* 0: 17 */
} pattern_case;

static void put_attributes(proto *n, const char *text)
{
    char copy[256], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text != NULL ? text : "");
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        *value++ = '\0';
        size_t length = strlen(value);
        int64_t numbers[8];
        int count = 0;
        if (*value == '\'') {
            value[length - 1] = '\0';
            proto_string(n, word, value + 1);
        } else if (value[length - 1] == 'f') {
            proto_real(n, word, strtof(value, NULL));
        } else if (strchr(value, ',') == NULL) {
            proto_int(n, word, strtol(value, NULL, 10));
        } else {
            char *more = NULL;
            for (char *part = strtok_r(value, ",", &more); part != NULL; part = strtok_r(NULL, ",", &more))
                numbers[count++] = strtol(part, NULL, 10);
            proto_ints(n, word, numbers, count);
        }
    }
}

static int rank_of(const given *g)
{
    int rank = 0;
    while (rank < 5 && g->dims[rank] != 0)
        rank++;
    return rank;
}

static void put_constant(proto *graph, const given *g, test_random *r)
{
    float values[4096];
    int64_t count = 1;
    int rank = rank_of(g);
    if (g->integer) {
        int64_t shape[] = {rank};
        proto_message(graph, GRAPH_INITIALIZER,
                      proto_tensor(g->name, ONNX_INT64, 1, shape, g->dims, (size_t)rank * sizeof g->dims[0]));
        return;
    }
    for (int k = 0; k < rank; k++)
        count *= g->dims[k];
    for (int64_t i = 0; i < count; i++)
        values[i] = isnan(g->number) ? (float)test_uniform(r, 0.2, 1.2) : g->number;
    proto_message(graph, GRAPH_INITIALIZER,
                  proto_tensor(g->name, ONNX_FLOAT, rank, g->dims, values, (size_t)count * sizeof *values));
}

/* With `apart`, every value between is an output. */
static proto make_model(const pattern_case *c, bool apart)
{
    proto graph = {0};
    test_random r = test_seed(7);
    int64_t any[] = {-1, -1, -1, -1, -1};
    for (int i = 0; c->nodes[i].type != NULL; i++) {
        proto n = proto_node(c->nodes[i].type, c->nodes[i].ins, c->nodes[i].outs);
        put_attributes(&n, c->nodes[i].attributes);
        proto_message(&graph, GRAPH_NODE, n);
    }
    for (int i = 0; c->constants[i].name != NULL; i++)
        put_constant(&graph, &c->constants[i], &r);
    proto_message(&graph, GRAPH_INPUT,
                  proto_value(c->input.name, ONNX_FLOAT, rank_of(&c->input), c->input.dims));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, c->rank, any));
    for (int i = 0; apart && c->nodes[i + 1].type != NULL; i++) {
        char copy[64], *rest = NULL;
        snprintf(copy, sizeof copy, "%s", c->nodes[i].outs);
        for (char *name = strtok_r(copy, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest))
            proto_message(&graph, GRAPH_OUTPUT, proto_value(name, ONNX_FLOAT, c->rank, any));
    }
    return proto_model(graph, c->opset != 0 ? c->opset : 17);
}

typedef struct built {
    mica_onnx *model;
    mica_net *net;
    float y[4096];
    size_t count;
    char calls[512];
} built;

static void list_calls(built *b)
{
    for (int i = 0; i < mica_net_program(b->net); i++) {
        mica_program_call call;
        if (mica_net_program_call(b->net, &call, i) != MICA_OK)
            return;
        size_t used = strlen(b->calls);
        snprintf(b->calls + used, sizeof b->calls - used, "%s%s", used > 0 ? " " : "", call.op->name);
        if (call.fused != NULL) {
            used = strlen(b->calls);
            snprintf(b->calls + used, sizeof b->calls - used, "+%s", call.fused);
        }
    }
}

static bool build(mica_context *ctx, built *b, const pattern_case *c, proto bytes)
{
    mica_tensor x, y;
    test_random r = test_seed(5);
    if (!CHECK_OK(ctx, mica_onnx_over(ctx, &b->model, bytes.bytes, bytes.size, c->name)) ||
        !CHECK_OK(ctx, mica_net_create(ctx, &b->net)) ||
        !CHECK_OK(ctx, mica_onnx_build(b->model, b->net, NULL)) ||
        !CHECK_OK(ctx, mica_net_compile(b->net, &(mica_compile_opts){0})) ||
        !CHECK_OK(ctx, mica_net_bind(b->net, NULL, 0)) || !CHECK_OK(ctx, mica_onnx_load(b->model, b->net)) ||
        !CHECK_OK(ctx, mica_net_tensor(b->net, &x, c->input.name)))
        return false;
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)test_uniform(&r, -2, 2);
    if (!CHECK_OK(ctx, mica_net_forward(b->net)) || !CHECK_OK(ctx, mica_net_tensor(b->net, &y, "y")))
        return false;
    b->count = mica_tensor_count(&y);
    list_calls(b);
    if (!CHECK(b->count <= sizeof b->y / sizeof *b->y))
        return false;
    memcpy(b->y, y.data, b->count * sizeof *b->y);
    return true;
}

static void drop(built *b, proto *bytes)
{
    mica_net_destroy(b->net);
    mica_onnx_close(b->model);
    proto_free(bytes);
}

static void check_case(mica_context *ctx, const pattern_case *c)
{
    static built fused, apart;
    fused = apart = (built){0};
    proto one = make_model(c, false), other = make_model(c, true);
    if (build(ctx, &fused, c, one) && build(ctx, &apart, c, other)) {
        double worst = 0;
        CHECK_MSG(fused.count == apart.count, "%s: %zu numbers, apart %zu", c->name, fused.count,
                  apart.count);
        for (size_t i = 0; i < fused.count && i < apart.count; i++)
            worst = fmax(worst,
                         fabs((double)fused.y[i] - (double)apart.y[i]) / (1 + fabs((double)apart.y[i])));
        CHECK_MSG(worst < 2e-6, "%s: off by %g from its nodes apart", c->name, worst);
        CHECK_MSG(strcmp(fused.calls, c->calls) == 0, "%s is \"%s\", expected \"%s\"; apart \"%s\"", c->name,
                  fused.calls, c->calls, apart.calls);
    }
    drop(&fused, &one);
    drop(&apart, &other);
}

/* ---- Cases ---- */

#define X_ROWS .input = {.name = "x", .dims = {3, 8}}
#define NUMBER(name, value)     \
    {                           \
        name, {0}, value, false \
    }
#define RANDOM(name, ...)               \
    {                                   \
        name, {__VA_ARGS__}, NAN, false \
    }
#define SHAPE(name, ...)             \
    {                                \
        name, {__VA_ARGS__}, 0, true \
    }

static const pattern_case cases[] = {
    {"linear",
     X_ROWS,
     {RANDOM("w", 8, 5), RANDOM("b", 5)},
     {{"MatMul", "x w", "p", NULL}, {"Add", "b p", "y", NULL}},
     2,
     "linear",
     0},
    {"linear and relu",
     X_ROWS,
     {RANDOM("w", 8, 5), RANDOM("b", 5)},
     {{"MatMul", "x w", "p", NULL}, {"Add", "p b", "q", NULL}, {"Relu", "q", "y", NULL}},
     2,
     "linear+relu",
     0},
    {"linear, turned weights",
     X_ROWS,
     {RANDOM("w", 5, 8), RANDOM("b", 5)},
     {{"Transpose", "w", "t", "perm=1,0"}, {"MatMul", "x t", "p", NULL}, {"Add", "p b", "y", NULL}},
     2,
     "linear",
     0},
    {"gelu by erf",
     X_ROWS,
     {NUMBER("r", 1.41421356f), NUMBER("o", 1), NUMBER("h", 0.5f)},
     {{"Div", "x r", "a", NULL},
      {"Erf", "a", "b", NULL},
      {"Add", "b o", "c", NULL},
      {"Mul", "x c", "d", NULL},
      {"Mul", "d h", "y", NULL}},
     2,
     "gelu",
     0},
    {"gelu, halved first",
     X_ROWS,
     {NUMBER("r", 0.70710678f), NUMBER("o", 1), NUMBER("h", 0.5f)},
     {{"Mul", "x r", "a", NULL},
      {"Erf", "a", "b", NULL},
      {"Add", "o b", "c", NULL},
      {"Mul", "h x", "d", NULL},
      {"Mul", "d c", "y", NULL}},
     2,
     "gelu",
     0},
    {"gelu by tanh",
     X_ROWS,
     {NUMBER("t", 3), NUMBER("k", 0.044715f), NUMBER("r", 0.79788456f), NUMBER("o", 1), NUMBER("h", 0.5f)},
     {{"Pow", "x t", "a", NULL},
      {"Mul", "k a", "b", NULL},
      {"Add", "x b", "c", NULL},
      {"Mul", "r c", "d", NULL},
      {"Tanh", "d", "e", NULL},
      {"Add", "e o", "f", NULL},
      {"Mul", "h x", "g", NULL},
      {"Mul", "g f", "y", NULL}},
     2,
     "gelu_tanh",
     0},
    {"gelu by tanh, as JAX writes it",
     X_ROWS,
     {NUMBER("k", 0.044715f), NUMBER("r", 0.79788456f), NUMBER("o", 1), NUMBER("h", 0.5f)},
     {{"Mul", "k x", "a", NULL},
      {"Mul", "x a", "b", NULL},
      {"Mul", "x b", "c", NULL},
      {"Add", "x c", "d", NULL},
      {"Mul", "r d", "e", NULL},
      {"Tanh", "e", "f", NULL},
      {"Add", "o f", "g", NULL},
      {"Mul", "h g", "i", NULL},
      {"Mul", "x i", "y", NULL}},
     2,
     "gelu_tanh",
     0},
    {"a square", X_ROWS, {NUMBER("t", 2)}, {{"Pow", "x t", "y", NULL}}, 2, "square", 0},
    {"a power of -1", X_ROWS, {NUMBER("t", -1)}, {{"Pow", "x t", "y", NULL}}, 2, "reciprocal", 0},
    {"slices of all that there is",
     X_ROWS,
     {{0}},
     {{"Slice", "x", "a", "starts=0,0 ends=1000000000,1000000000"},
      {"Slice", "a", "b", "starts=0, ends=8, axes=1,"},
      {"Relu", "b", "y", NULL}},
     2,
     "relu",
     9},
    {"rows by one-hot products",
     .input = {.name = "x", .dims = {3, 8, 1}},
     {NUMBER("f", 3), SHAPE("s", 1, 2, 3, 4), SHAPE("o", 1), RANDOM("w", 4, 5), RANDOM("b", 1, 5)},
     {{"Mul", "x f", "a", NULL},
      {"Cast", "a", "i", "to=7"},
      {"Sub", "s o", "r", NULL},
      {"Equal", "r i", "e", NULL},
      {"Cast", "e", "c", "to=1"},
      {"MatMul", "c w", "p", NULL},
      {"Add", "b p", "y", NULL}},
     3,
     "mul copy max min add take",
     0},
    {"rows by one-hot products, without a bias",
     .input = {.name = "x", .dims = {3, 8, 1}},
     {NUMBER("f", 4), SHAPE("s", 1, 2, 3, 4), SHAPE("o", 1), RANDOM("w", 4, 5)},
     {{"Mul", "x f", "a", NULL},
      {"Cast", "a", "i", "to=6"},
      {"Sub", "s o", "l", NULL},
      {"Cast", "l", "r", "to=6"},
      {"Equal", "i r", "e", NULL},
      {"Cast", "e", "c", "to=1"},
      {"MatMul", "c w", "y", NULL}},
     3,
     "mul copy max min add take",
     0},
    {"silu", X_ROWS, {{0}}, {{"Sigmoid", "x", "s", NULL}, {"Mul", "s x", "y", NULL}}, 2, "silu", 0},
    {"hard-swish of a hard sigmoid",
     X_ROWS,
     {{0}},
     {{"HardSigmoid", "x", "s", "alpha=0.16666667f beta=0.5f"}, {"Mul", "x s", "y", NULL}},
     2,
     "hard_swish",
     0},
    {"hard-swish of a clip",
     X_ROWS,
     {NUMBER("t", 3), NUMBER("z", 0), NUMBER("s", 6)},
     {{"Add", "x t", "a", NULL},
      {"Clip", "a z s", "b", NULL},
      {"Mul", "x b", "c", NULL},
      {"Div", "c s", "y", NULL}},
     2,
     "hard_swish",
     0},
    {"relu6", X_ROWS, {NUMBER("z", 0), NUMBER("s", 6)}, {{"Clip", "x z s", "y", NULL}}, 2, "relu6", 0},
    {"layer norm",
     X_ROWS,
     {NUMBER("t", 2), NUMBER("e", 1e-5f), RANDOM("g", 8), RANDOM("b", 8)},
     {{"ReduceMean", "x", "m", "axes=-1,"},
      {"Sub", "x m", "d", NULL},
      {"Pow", "d t", "p", NULL},
      {"ReduceMean", "p", "v", "axes=-1,"},
      {"Add", "v e", "a", NULL},
      {"Sqrt", "a", "s", NULL},
      {"Div", "d s", "n", NULL},
      {"Mul", "n g", "o", NULL},
      {"Add", "o b", "y", NULL}},
     2,
     "layer_norm",
     0},
    {"layer norm, opset 18",
     X_ROWS,
     {SHAPE("l", -1), NUMBER("e", 1e-5f), RANDOM("g", 8), RANDOM("b", 8)},
     {{"ReduceMean", "x l", "m", NULL},
      {"Sub", "x m", "d", NULL},
      {"Mul", "d d", "p", NULL},
      {"ReduceMean", "p l", "v", NULL},
      {"Add", "v e", "a", NULL},
      {"Sqrt", "a", "s", NULL},
      {"Div", "d s", "n", NULL},
      {"Mul", "n g", "o", NULL},
      {"Add", "o b", "y", NULL}},
     2,
     "layer_norm",
     18},
    {"rms norm",
     X_ROWS,
     {NUMBER("t", 2), NUMBER("e", 1e-5f), RANDOM("g", 8)},
     {{"Pow", "x t", "p", NULL},
      {"ReduceMean", "p", "v", "axes=-1,"},
      {"Add", "v e", "a", NULL},
      {"Sqrt", "a", "s", NULL},
      {"Reciprocal", "s", "r", NULL},
      {"Mul", "x r", "n", NULL},
      {"Mul", "g n", "y", NULL}},
     2,
     "rms_norm",
     0},
    {"the mean of planes",
     .input = {.name = "x", .dims = {2, 3, 6, 6}},
     {{0}},
     {{"ReduceMean", "x", "a", "axes=-1,-2"}, {"Relu", "a", "y", NULL}},
     4,
     "global_avg_pool relu",
     0},
    {"batch norm in a convolution",
     .input = {.name = "x", .dims = {2, 3, 6, 6}},
     {RANDOM("w", 4, 3, 3, 3), RANDOM("c", 4), RANDOM("g", 4), RANDOM("b", 4), RANDOM("m", 4),
      RANDOM("v", 4)},
     {{"Conv", "x w c", "p", "pads=1,1,1,1"},
      {"BatchNormalization", "p g b m v", "q", NULL},
      {"Relu", "q", "y", NULL}},
     4,
     "conv2d+relu",
     0},
    {"padding in a convolution",
     .input = {.name = "x", .dims = {2, 3, 6, 6}},
     {RANDOM("w", 4, 3, 3, 3)},
     {{"Pad", "x", "q", "pads=0,0,1,1,0,0,1,1"}, {"Conv", "q w", "y", NULL}},
     4,
     "conv2d",
     10},
    {"attention, divided, with a mask",
     .input = {.name = "x", .dims = {2, 5, 8}},
     {RANDOM("w", 8, 8), SHAPE("h", 2, 5, 2, 4), SHAPE("j", 2, 5, 8), NUMBER("c", 2),
      RANDOM("m", 2, 1, 1, 5)},
     {{"MatMul", "x w", "a", NULL},
      {"Reshape", "a h", "b", NULL},
      {"Transpose", "b", "q", "perm=0,2,1,3"},
      {"Transpose", "b", "t", "perm=0,2,3,1"},
      {"Reshape", "x h", "e", NULL},
      {"Transpose", "e", "v", "perm=0,2,1,3"},
      {"MatMul", "q t", "s", NULL},
      {"Div", "s c", "r", NULL},
      {"Add", "r m", "f", NULL},
      {"Softmax", "f", "p", "axis=-1"},
      {"MatMul", "p v", "o", NULL},
      {"Transpose", "o", "n", "perm=0,2,1,3"},
      {"Reshape", "n j", "y", NULL}},
     3,
     "linear attention_rows",
     0},
    {"attention, packed, both scaled",
     .input = {.name = "x", .dims = {2, 5, 24}},
     {SHAPE("h", 2, 5, 3, 2, 4), SHAPE("j", 2, 5, 8), NUMBER("c", 0.7f)},
     {{"Reshape", "x h", "a", NULL},
      {"Transpose", "a", "b", "perm=2,0,3,1,4"},
      {"Split", "b", "i k l", "axis=0"},
      {"Squeeze", "i", "q", "axes=0,"},
      {"Squeeze", "k", "r", "axes=0,"},
      {"Squeeze", "l", "v", "axes=0,"},
      {"Transpose", "r", "t", "perm=0,1,3,2"},
      {"Mul", "q c", "d", NULL},
      {"Mul", "t c", "e", NULL},
      {"MatMul", "d e", "s", NULL},
      {"Softmax", "s", "p", "axis=3"},
      {"MatMul", "p v", "o", NULL},
      {"Transpose", "o", "n", "perm=0,2,1,3"},
      {"Reshape", "n j", "y", NULL}},
     3,
     "attention_packed",
     12},
    {"the operator Attention, causal",
     .input = {.name = "x", .dims = {2, 5, 8}},
     {RANDOM("w", 8, 8), SHAPE("h", 2, 5, 2, 4), SHAPE("j", 2, 5, 8)},
     {{"MatMul", "x w", "a", NULL},
      {"Reshape", "a h", "b", NULL},
      {"Transpose", "b", "q", "perm=0,2,1,3"},
      {"Reshape", "x h", "e", NULL},
      {"Transpose", "e", "v", "perm=0,2,1,3"},
      {"Attention", "q v v", "o", "is_causal=1"},
      {"Transpose", "o", "n", "perm=0,2,1,3"},
      {"Reshape", "n j", "y", NULL}},
     3,
     "linear attention_rows",
     23},
    {"the operator Attention, of two heads that share keys and values",
     .input = {.name = "x", .dims = {2, 5, 8}},
     {RANDOM("w", 8, 4), SHAPE("h", 2, 5, 2, 4), SHAPE("k", 2, 5, 1, 4), SHAPE("j", 2, 5, 8)},
     {{"Reshape", "x h", "b", NULL},
      {"Transpose", "b", "q", "perm=0,2,1,3"},
      {"MatMul", "x w", "a", NULL},
      {"Reshape", "a k", "e", NULL},
      {"Transpose", "e", "v", "perm=0,2,1,3"},
      {"Attention", "q v v", "o", NULL},
      {"Transpose", "o", "n", "perm=0,2,1,3"},
      {"Reshape", "n j", "y", NULL}},
     3,
     "linear attention_rows",
     23},
    {"attention of one head",
     .input = {.name = "x", .dims = {2, 5, 8}},
     {{0}},
     {{"Transpose", "x", "t", "perm=0,2,1"},
      {"MatMul", "x t", "s", NULL},
      {"Softmax", "s", "p", "axis=2"},
      {"MatMul", "p x", "y", NULL}},
     3,
     "attention",
     0},
};

/* Almost patterns: moves that look like those of heads, and numbers with axes of their own. */
static const pattern_case near[] = {
    {"parts that are not heads",
     .input = {.name = "x", .dims = {2, 4, 24}},
     {SHAPE("h", 2, 4, 3, 2, 4), SHAPE("g", 2, 4, 4, 2), SHAPE("j", 2, 4, 8)},
     {{"Reshape", "x h", "a", NULL},
      {"Transpose", "a", "b", "perm=2,0,3,1,4"},
      {"Split", "b", "i k l", "axis=0"},
      {"Reshape", "i g", "q", NULL},
      {"Reshape", "k g", "r", NULL},
      {"Reshape", "l g", "v", NULL},
      {"Transpose", "r", "t", "perm=0,1,3,2"},
      {"MatMul", "q t", "s", NULL},
      {"Softmax", "s", "p", "axis=3"},
      {"MatMul", "p v", "o", NULL},
      {"Transpose", "o", "n", "perm=0,2,1,3"},
      {"Reshape", "n j", "y", NULL}},
     3,
     "permute split attention permute",
     12},
    {"rows of two heads at once, exchanged",
     .input = {.name = "x", .dims = {2, 4, 3, 2}},
     {SHAPE("a", 4, 3, 4), SHAPE("b", 2, 4, 2, 3)},
     {{"Reshape", "x a", "c", NULL},
      {"Transpose", "c", "d", "perm=0,2,1"},
      {"Reshape", "d b", "t", NULL},
      {"MatMul", "x t", "s", NULL},
      {"Softmax", "s", "p", "axis=3"},
      {"MatMul", "p x", "y", NULL}},
     4,
     "permute permute attention",
     12},
    {"a number of more axes",
     X_ROWS,
     {NUMBER("r", 1.41421356f), NUMBER("o", 1), {"h", {1, 1, 1}, 0.5f, false}},
     {{"Div", "x r", "a", NULL},
      {"Erf", "a", "b", NULL},
      {"Add", "b o", "c", NULL},
      {"Mul", "x c", "d", NULL},
      {"Mul", "d h", "y", NULL}},
     3,
     "div erf add mul mul",
     0},
};

TEST(onnx_patterns_that_are_near)
{
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        check_case(ctx, &near[i]);
}

TEST(onnx_patterns)
{
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(ctx, &cases[i]);
}

/* What looks like a pattern and is none stays as it is. */
static const pattern_case others[] = {
    {"another constant",
     X_ROWS,
     {NUMBER("r", 1.5f), NUMBER("o", 1), NUMBER("h", 0.5f)},
     {{"Div", "x r", "a", NULL},
      {"Erf", "a", "b", NULL},
      {"Add", "b o", "c", NULL},
      {"Mul", "x c", "d", NULL},
      {"Mul", "d h", "y", NULL}},
     2,
     NULL,
     0},
    {"numbers from 1 on",
     .input = {.name = "x", .dims = {3, 8, 1}},
     {SHAPE("r", 1, 2, 3, 4), RANDOM("w", 4, 5)},
     {{"Cast", "x", "i", "to=7"},
      {"Equal", "i r", "e", NULL},
      {"Cast", "e", "c", "to=1"},
      {"MatMul", "c w", "y", NULL}},
     3,
     NULL,
     0},
    {"another slope",
     X_ROWS,
     {{0}},
     {{"HardSigmoid", "x", "s", "alpha=0.2f beta=0.5f"}, {"Mul", "x s", "y", NULL}},
     2,
     NULL,
     0},
    {"another axis",
     X_ROWS,
     {NUMBER("t", 2), NUMBER("e", 1e-5f)},
     {{"ReduceMean", "x", "m", "axes=0,"},
      {"Sub", "x m", "d", NULL},
      {"Pow", "d t", "p", NULL},
      {"ReduceMean", "p", "v", "axes=0,"},
      {"Add", "v e", "a", NULL},
      {"Sqrt", "a", "s", NULL},
      {"Div", "d s", "y", NULL}},
     2,
     NULL,
     0},
    {"a softmax over another axis",
     .input = {.name = "x", .dims = {2, 5, 5}},
     {{0}},
     {{"Transpose", "x", "t", "perm=0,2,1"},
      {"MatMul", "x t", "s", NULL},
      {"Softmax", "s", "p", "axis=1"},
      {"MatMul", "p x", "y", NULL}},
     3,
     NULL,
     0},
};

TEST(onnx_patterns_that_are_none)
{
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        static const char *const fusing[] = {"gelu", "hard_swish", "layer_norm", "attention"};
        built b = {0};
        proto bytes = make_model(&others[i], false);
        if (build(ctx, &b, &others[i], bytes))
            for (size_t k = 0; k < sizeof fusing / sizeof *fusing; k++)
                CHECK_MSG(strstr(b.calls, fusing[k]) == NULL, "%s is \"%s\"", others[i].name, b.calls);
        drop(&b, &bytes);
    }
}

/* ---- Many values ---- */

/* A convolution of one weight, 0.5, and a batch norm that doubles it and adds 1. */
static void put_pair(proto *graph, int number)
{
    char conv[96], norm[96], name[32];
    snprintf(conv, sizeof conv, "a%d w%d", number, number);
    snprintf(norm, sizeof norm, "b%d two one zero one", number);
    snprintf(name, sizeof name, "b%d", number);
    proto_message(graph, GRAPH_NODE, proto_node("Conv", conv, name));
    snprintf(name, sizeof name, "a%d", number + 1);
    proto batch_norm = proto_node("BatchNormalization", norm, name);
    proto_real(&batch_norm, "epsilon", 0.0f);
    proto_message(graph, GRAPH_NODE, batch_norm);
    snprintf(name, sizeof name, "w%d", number);
    proto_message(graph, GRAPH_INITIALIZER,
                  proto_tensor(name, ONNX_FLOAT, 4, (int64_t[]){1, 1, 1, 1}, &(float){0.5f}, sizeof(float)));
}

/* Patterns make values while they look at others, wherever these end a page or a table. */
TEST(onnx_patterns_at_any_number_of_values)
{
    enum { PAIRS = 24 };
    mica_context *ctx = test_context(1);
    static const float numbers[] = {0.0f, 1.0f, 2.0f};
    static const char *const names[] = {"zero", "one", "two"};
    for (int before = 0; before < 24; before++) {
        proto graph = {0};
        mica_onnx *model;
        mica_net *net;
        mica_tensor x, y;
        char from[16] = "x", to[16];
        for (int i = 0; i < 3; i++)
            proto_message(
                &graph, GRAPH_INITIALIZER,
                proto_tensor(names[i], ONNX_FLOAT, 1, (int64_t[]){1}, &numbers[i], sizeof numbers[i]));
        proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 4, (int64_t[]){1, 1, 1, 1}));
        for (int i = 0; i <= before; i++) {
            snprintf(to, sizeof to, i == before ? "a0" : "r%d", i);
            proto_message(&graph, GRAPH_NODE, proto_node("Relu", from, to));
            memcpy(from, to, sizeof to);
        }
        for (int i = 0; i < PAIRS; i++)
            put_pair(&graph, i);
        snprintf(to, sizeof to, "a%d", PAIRS);
        proto_message(&graph, GRAPH_OUTPUT, proto_value(to, ONNX_FLOAT, 4, (int64_t[]){1, 1, 1, 1}));
        proto bytes = proto_model(graph, 17);
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "a test") == MICA_OK);
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        if (CHECK_OK(ctx, mica_onnx_build(model, net, NULL)) && CHECK_OK(ctx, mica_net_compile(net, NULL)) &&
            CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_tensor(net, &x, "x"))) {
            *(float *)x.data = 3.0f;
            CHECK_OK(ctx, mica_net_forward(net));
            CHECK_OK(ctx, mica_net_tensor(net, &y, to));
            CHECK(*(const float *)y.data == 3.0f + PAIRS);
        }
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}
