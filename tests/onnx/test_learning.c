/* Imported models that are trained further: weights of recurrent layers and of batch normalization have the gradients
 * of finite differences, and running statistics move. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <mica/mica.h>

#include "onnx/proto.h"
#include "test.h"

static void put_random(proto *graph, test_random *r, const char *name, int rank, const int64_t *dims)
{
    float values[1024];
    int64_t count = 1;
    for (int k = 0; k < rank; k++)
        count *= dims[k];
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)test_uniform(r, 0.1, 0.9) * (i % 3 == 0 ? -1.0f : 1.0f);
    proto_message(graph, GRAPH_INITIALIZER,
                  proto_tensor(name, ONNX_FLOAT, rank, dims, values, (size_t)count * sizeof *values));
}

typedef struct learner {
    mica_onnx *model;
    mica_net *net;
    proto bytes;
} learner;

static bool learn(learner *l, mica_context *ctx, proto graph, int64_t opset)
{
    l->bytes = proto_model(graph, opset);
    return CHECK_OK(ctx, mica_onnx_over(ctx, &l->model, l->bytes.bytes, l->bytes.size, "a test")) &&
           CHECK_OK(ctx, mica_net_create(ctx, &l->net)) &&
           CHECK_OK(ctx, mica_onnx_build(l->model, l->net, &(mica_onnx_opts){.train = true}));
}

static bool compile(learner *l, mica_context *ctx)
{
    const mica_optimizer sgd = {.kind = MICA_SGD};
    return CHECK_OK(ctx, mica_net_compile(l->net, &(mica_compile_opts){.train = true, .optimizer = &sgd})) &&
           CHECK_OK(ctx, mica_net_bind(l->net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(l->net, 1)) &&
           CHECK_OK(ctx, mica_onnx_load(l->model, l->net));
}

static void drop(learner *l)
{
    mica_net_destroy(l->net);
    mica_onnx_close(l->model);
    proto_free(&l->bytes);
}

/* ---- Recurrent layers, and the loss of the model's own ---- */

enum { TIME = 3, BATCH = 2, INPUTS = 2, HIDDEN = 3, DIRECTIONS = 2 };

/* y, h and c of a recurrent node, all of which the loss depends on; its classes are the units. */
static proto recurrent_graph(const char *type, int64_t blocks, bool clipped)
{
    proto graph = {0};
    test_random r = test_seed(3);
    bool cells = strcmp(type, "LSTM") == 0;
    proto n = proto_node(type, cells ? "x w r b - h0 c0" : "x w r b - h0", cells ? "y h c" : "y h");
    proto_string(&n, "direction", "bidirectional");
    proto_int(&n, "hidden_size", HIDDEN);
    if (strcmp(type, "GRU") == 0)
        proto_int(&n, "linear_before_reset", 1);
    if (clipped)
        proto_real(&n, "clip", 3.0f);
    proto_message(&graph, GRAPH_NODE, n);
    /* [directions, batch, hidden] of the last step, of y's first, and of the cells, as rows of scores */
    proto mean = proto_node("ReduceSum", "y zero", "sum");
    proto_int(&mean, "keepdims", 0);
    proto_message(&graph, GRAPH_NODE, mean);
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "sum h", cells ? "both" : "all"));
    if (cells)
        proto_message(&graph, GRAPH_NODE, proto_node("Add", "both c", "all"));
    proto_message(&graph, GRAPH_NODE, proto_node("Reshape", "all shape", "rows"));
    proto_message(&graph, GRAPH_NODE, proto_node("SoftmaxCrossEntropyLoss", "rows target", "loss"));
    int64_t rows = blocks * HIDDEN, zero = 0, flat[] = {DIRECTIONS * BATCH, HIDDEN};
    put_random(&graph, &r, "w", 3, (int64_t[]){DIRECTIONS, rows, INPUTS});
    put_random(&graph, &r, "r", 3, (int64_t[]){DIRECTIONS, rows, HIDDEN});
    put_random(&graph, &r, "b", 2, (int64_t[]){DIRECTIONS, 2 * rows});
    put_random(&graph, &r, "h0", 3, (int64_t[]){DIRECTIONS, BATCH, HIDDEN});
    if (cells)
        put_random(&graph, &r, "c0", 3, (int64_t[]){DIRECTIONS, BATCH, HIDDEN});
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("zero", ONNX_INT64, 1, (int64_t[]){1}, &zero, 8));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("shape", ONNX_INT64, 1, (int64_t[]){2}, flat, 16));
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 3, (int64_t[]){TIME, BATCH, INPUTS}));
    proto_message(&graph, GRAPH_INPUT, proto_value("target", ONNX_INT64, 1, (int64_t[]){DIRECTIONS * BATCH}));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("loss", ONNX_FLOAT, 0, NULL));
    return graph;
}

static void check_recurrent(mica_context *ctx, const char *type, int64_t blocks, bool clipped)
{
    learner l = {0};
    test_random r = test_seed(4);
    mica_tensor x, target;
    mica_gradient_check found;
    if (learn(&l, ctx, recurrent_graph(type, blocks, clipped), 17) && compile(&l, ctx) &&
        CHECK_OK(ctx, mica_net_tensor(l.net, &x, "x")) &&
        CHECK_OK(ctx, mica_net_tensor(l.net, &target, "target"))) {
        for (size_t i = 0; i < mica_tensor_count(&x); i++)
            ((float *)x.data)[i] = (float)test_uniform(&r, -1, 1);
        for (int64_t i = 0; i < DIRECTIONS * BATCH; i++)
            ((int64_t *)target.data)[i] = i % HIDDEN;
        mica_status status = mica_check_gradients(l.net, &found, NULL);
        CHECK_MSG(status == MICA_OK && found.right && found.checked > 50,
                  "%s%s: element %zu of %s has the gradient %g, by differences %g; %zu checked", type,
                  clipped ? ", clipped" : "", found.element, found.name, found.gradient, found.difference,
                  found.checked);
    }
    drop(&l);
}

TEST(onnx_recurrent_layers_learn)
{
    mica_context *ctx = test_context(1);
    for (int clipped = 0; clipped < 2; clipped++) {
        check_recurrent(ctx, "LSTM", 4, clipped != 0);
        check_recurrent(ctx, "GRU", 3, clipped != 0);
        check_recurrent(ctx, "RNN", 1, clipped != 0);
    }
}

/* ---- Batch normalization ---- */

enum { SAMPLES = 4, CHANNELS = 2, WIDTH = 3 };

static void fill_with(const mica_tensor *t, uint64_t seed)
{
    test_random r = test_seed(seed);
    for (size_t i = 0; i < mica_tensor_count(t); i++)
        ((float *)t->data)[i] = (float)test_uniform(&r, -2, 3);
}

static proto norm_graph_of(const char *inputs, const char *output)
{
    proto graph = {0};
    test_random r = test_seed(6);
    const int64_t channels[] = {CHANNELS}, shape[] = {SAMPLES, CHANNELS, WIDTH};
    static const float start[2][CHANNELS] = {{0.5f, -1.0f}, {2.0f, 0.5f}};
    proto n = proto_node("BatchNormalization", inputs, output);
    proto_real(&n, "momentum", 0.8f);
    proto_message(&graph, GRAPH_NODE, n);
    put_random(&graph, &r, "s", 1, channels);
    put_random(&graph, &r, "b", 1, channels);
    for (int k = 0; k < 2; k++)
        proto_message(&graph, GRAPH_INITIALIZER,
                      proto_tensor(k == 0 ? "m" : "v", ONNX_FLOAT, 1, channels, start[k], sizeof start[k]));
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 3, shape));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 3, shape));
    return graph;
}

/* PyTorch's: towards the batch's mean and unbiased variance. */
static void check_statistics(mica_context *ctx, const learner *l, const float *x)
{
    static const double start[2][CHANNELS] = {{0.5, -1.0}, {2.0, 0.5}};
    mica_tensor now[2];
    for (int k = 0; k < 2; k++)
        if (!CHECK_OK(ctx, mica_net_tensor(l->net, &now[k], k == 0 ? "m" : "v")))
            return;
    for (int c = 0; c < CHANNELS; c++) {
        double mean = 0, square = 0;
        for (int i = 0; i < SAMPLES * WIDTH; i++)
            mean += (double)x[(i / WIDTH * CHANNELS + c) * WIDTH + i % WIDTH] / (SAMPLES * WIDTH);
        for (int i = 0; i < SAMPLES * WIDTH; i++) {
            double d = (double)x[(i / WIDTH * CHANNELS + c) * WIDTH + i % WIDTH] - mean;
            square += d * d / (SAMPLES * WIDTH - 1);
        }
        double want[] = {0.8 * start[0][c] + 0.2 * mean, 0.8 * start[1][c] + 0.2 * square};
        for (int k = 0; k < 2; k++)
            CHECK_MSG(fabs((double)((float *)now[k].data)[c] - want[k]) < 1e-5,
                      "channel %d: statistic %d is %g, expected %g", c, k, (double)((float *)now[k].data)[c],
                      want[k]);
    }
}

TEST(onnx_batch_normalization_learns)
{
    mica_context *ctx = test_context(1);
    learner l = {0};
    test_random r = test_seed(8);
    mica_tensor x, scale;
    float before = 0;
    if (!learn(&l, ctx, norm_graph_of("x s b m v", "y"), 15)) {
        drop(&l);
        return;
    }
    mica_value y = mica_net_named(l.net, "y");
    mica_value target = mica_net_input(l.net, "target", MICA_F32, 3,
                                       (mica_index[]){SAMPLES, CHANNELS, WIDTH});
    (void)mica_net_op(l.net, "loss", "mse_loss", (mica_value[]){y, target}, 2, NULL);
    if (compile(&l, ctx) && CHECK_OK(ctx, mica_net_tensor(l.net, &x, "x")) &&
        CHECK_OK(ctx, mica_net_tensor(l.net, &scale, "s"))) {
        for (size_t i = 0; i < mica_tensor_count(&x); i++)
            ((float *)x.data)[i] = (float)test_uniform(&r, -2, 3);
        before = ((float *)scale.data)[0];
        CHECK_OK(ctx, mica_train_step(l.net, 0.1f));
        check_statistics(ctx, &l, x.data);
        CHECK(((float *)scale.data)[0] != before);
    }
    drop(&l);
}

/* A layer that is used twice: both nodes read the same weights and move the same statistics, one after the other. */
static proto twice_graph(void)
{
    proto graph = norm_graph_of("x s b m v", "h");
    proto again = proto_node("BatchNormalization", "h s b m v", "y");
    proto_real(&again, "momentum", 0.8f);
    proto_message(&graph, GRAPH_NODE, again);
    return graph;
}

/* Its gradients are right, and the running mean is this, where h has the mean b. */
static void check_twice(mica_context *ctx, learner *l)
{
    mica_tensor x, mean, shift;
    mica_gradient_check found;
    double want[CHANNELS];
    if (!CHECK_OK(ctx, mica_net_tensor(l->net, &x, "x")) ||
        !CHECK_OK(ctx, mica_net_tensor(l->net, &mean, "m")) ||
        !CHECK_OK(ctx, mica_net_tensor(l->net, &shift, "b")))
        return;
    fill_with(&x, 9);
    for (int c = 0; c < CHANNELS; c++) {
        double batch = 0;
        for (int i = 0; i < SAMPLES * WIDTH; i++)
            batch += (double)((float *)x.data)[(i / WIDTH * CHANNELS + c) * WIDTH + i % WIDTH] /
                     (SAMPLES * WIDTH);
        want[c] = 0.8 * (0.8 * (double)((float *)mean.data)[c] + 0.2 * batch) +
                  0.2 * (double)((float *)shift.data)[c];
    }
    CHECK_OK(ctx, mica_net_forward_training(l->net, 0));
    for (int c = 0; c < CHANNELS; c++)
        CHECK_MSG(fabs((double)((float *)mean.data)[c] - want[c]) < 1e-5, "channel %d: mean %g, expected %g",
                  c, (double)((float *)mean.data)[c], want[c]);
    fill_with(&x, 10);
    mica_status status = mica_check_gradients(l->net, &found, NULL);
    CHECK_MSG(status == MICA_OK && found.right && found.checked == 2 * CHANNELS,
              "element %zu of %s has the gradient %g, by differences %g; %zu checked", found.element,
              found.name, found.gradient, found.difference, found.checked);
}

static bool learn_norm(learner *l, mica_context *ctx, proto graph)
{
    if (!learn(l, ctx, graph, 17))
        return false;
    mica_value target = mica_net_input(l->net, "target", MICA_F32, 3,
                                       (mica_index[]){SAMPLES, CHANNELS, WIDTH});
    (void)mica_net_op(l->net, "loss", "mse_loss", (mica_value[]){mica_net_named(l->net, "y"), target}, 2,
                      NULL);
    mica_tensor t;
    if (!compile(l, ctx) || !CHECK_OK(ctx, mica_net_tensor(l->net, &t, "target")))
        return false;
    fill_with(&t, 11);
    return true;
}

TEST(onnx_batch_normalization_twice)
{
    mica_context *ctx = test_context(1);
    learner l = {0};
    if (learn_norm(&l, ctx, twice_graph()))
        check_twice(ctx, &l);
    drop(&l);
}

/* Exporters store equal initializers once: a mean that is also the shift, a variance that is also the scale. What is
 * learned and what is kept are two values nevertheless. */
TEST(onnx_batch_normalization_of_shared_initializers)
{
    static const char *const inputs[] = {"x s b b v", "x v b m v", "x v m m v", "x s b v v"};
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        learner l = {0};
        mica_tensor x;
        mica_gradient_check found;
        if (learn_norm(&l, ctx, norm_graph_of(inputs[i], "y")) &&
            CHECK_OK(ctx, mica_net_tensor(l.net, &x, "x"))) {
            fill_with(&x, 12);
            mica_status status = mica_check_gradients(l.net, &found, NULL);
            CHECK_MSG(status == MICA_OK && found.right && found.checked == 2 * CHANNELS,
                      "%s: element %zu of %s has the gradient %g, by differences %g; %zu checked", inputs[i],
                      found.element, found.name, found.gradient, found.difference, found.checked);
        }
        drop(&l);
    }
}

/* ---- Layer normalization whose statistics are read ---- */

TEST(onnx_layer_normalization_statistics_learn)
{
    mica_context *ctx = test_context(1);
    learner l = {0};
    test_random r = test_seed(13);
    proto graph = {0}, n = proto_node("LayerNormalization", "a s b", "n mean inverse");
    const int64_t shape[] = {SAMPLES, CHANNELS, WIDTH}, width[] = {WIDTH};
    mica_tensor x;
    mica_gradient_check found;
    proto_real(&n, "epsilon", 0.1f);
    proto_message(&graph, GRAPH_NODE, proto_node("Mul", "x w", "a"));
    proto_message(&graph, GRAPH_NODE, n);
    proto_message(&graph, GRAPH_NODE, proto_node("Mul", "n inverse", "p"));
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "p mean", "y"));
    for (int k = 0; k < 3; k++)
        put_random(&graph, &r, (const char *[]){"w", "s", "b"}[k], 1, width);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 3, shape));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 3, shape));
    if (learn_norm(&l, ctx, graph) && CHECK_OK(ctx, mica_net_tensor(l.net, &x, "x"))) {
        fill_with(&x, 14);
        mica_status status = mica_check_gradients(l.net, &found, NULL);
        CHECK_MSG(status == MICA_OK && found.right && found.checked == 3 * WIDTH,
                  "element %zu of %s has the gradient %g, by differences %g; %zu checked", found.element,
                  found.name, found.gradient, found.difference, found.checked);
    }
    drop(&l);
}

/* ---- Norms ---- */

/* y = norm(w + x) + x of rows of three, where a row w + x of zeros has the norm 0. */
static void check_norm_of_zeros(mica_context *ctx, int64_t keep)
{
    const int64_t shape[] = {SAMPLES, CHANNELS, WIDTH}, last = -1;
    learner l = {0};
    test_random r = test_seed(15);
    proto graph = {0}, norm = proto_node("ReduceL2", "a", "length");
    mica_tensor x, w, grad;
    proto_ints(&norm, "axes", &last, 1);
    proto_int(&norm, "keepdims", keep);
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "x w", "a"));
    proto_message(&graph, GRAPH_NODE, norm);
    proto_message(&graph, GRAPH_NODE, proto_node("Reshape", "length as", "lengths"));
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "x lengths", "y"));
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("as", ONNX_INT64, 1, (const int64_t[]){3},
                               (const int64_t[]){SAMPLES, CHANNELS, 1}, 3 * sizeof(int64_t)));
    put_random(&graph, &r, "w", 3, shape);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 3, shape));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 3, shape));
    if (learn_norm(&l, ctx, graph) && CHECK_OK(ctx, mica_net_tensor(l.net, &x, "x")) &&
        CHECK_OK(ctx, mica_net_tensor(l.net, &w, "w"))) {
        fill_with(&x, 16);
        for (int i = 0; i < WIDTH; i++)
            ((float *)x.data)[i] = -((const float *)w.data)[i];
        if (CHECK_OK(ctx, mica_net_forward_training(l.net, 0)) &&
            CHECK_OK(ctx, mica_net_backward(l.net, NULL)) &&
            CHECK_OK(ctx, mica_net_gradient(l.net, &grad, "w")))
            for (int i = 0; i < SAMPLES * CHANNELS * WIDTH; i++) {
                float g = ((const float *)grad.data)[i];
                CHECK_MSG(i < WIDTH ? g == 0.0f : isfinite(g) && g != 0.0f, "gradient %d is %g", i,
                          (double)g);
            }
    }
    drop(&l);
}

TEST(onnx_norms_of_zeros_have_no_gradient)
{
    mica_context *ctx = test_context(1);
    check_norm_of_zeros(ctx, 1);
    check_norm_of_zeros(ctx, 0);
}

/* ---- Weights of subgraphs ---- */

/* The body of an If or a Loop: `out` = tanh(`from` * w) + b, w and b being its own. */
static proto body_graph(test_random *r, const char *from, const char *out)
{
    proto graph = {0};
    char ins[32];
    strcpy(ins, from);
    strcat(ins, " w");
    proto_message(&graph, GRAPH_NODE, proto_node("Mul", ins, "product"));
    proto_message(&graph, GRAPH_NODE, proto_node("Tanh", "product", "bent"));
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "bent b", out));
    put_random(&graph, r, "w", 1, (int64_t[]){WIDTH});
    put_random(&graph, r, "b", 1, (int64_t[]){WIDTH});
    return graph;
}

/* Two branches that are taken, then a loop of three turns, all of whose weights have the same names. */
static proto nested_graph(void)
{
    const int64_t shape[] = {SAMPLES, CHANNELS, WIDTH}, turns = 3;
    const uint8_t no = 0, yes = 1;
    test_random r = test_seed(21);
    proto graph = {0};
    for (int k = 0; k < 2; k++) {
        proto node = proto_node("If", k == 0 ? "yes" : "no", k == 0 ? "first" : "second");
        proto taken = body_graph(&r, k == 0 ? "x" : "first", "branch"),
              other = body_graph(&r, k == 0 ? "x" : "first", "branch");
        proto_message(&taken, GRAPH_OUTPUT, proto_value("branch", ONNX_FLOAT, 3, shape));
        proto_message(&other, GRAPH_OUTPUT, proto_value("branch", ONNX_FLOAT, 3, shape));
        proto_graph_attribute(&node, k == 0 ? "then_branch" : "else_branch", taken);
        proto_graph_attribute(&node, k == 0 ? "else_branch" : "then_branch", other);
        proto_message(&graph, GRAPH_NODE, node);
    }
    proto loop = proto_node("Loop", "turns yes second", "y"), body = body_graph(&r, "h", "next");
    proto_message(&body, GRAPH_NODE, proto_node("Identity", "go", "on"));
    proto_message(&body, GRAPH_INPUT, proto_value("turn", ONNX_INT64, 0, NULL));
    proto_message(&body, GRAPH_INPUT, proto_value("go", ONNX_BOOL, 0, NULL));
    proto_message(&body, GRAPH_INPUT, proto_value("h", ONNX_FLOAT, 3, shape));
    proto_message(&body, GRAPH_OUTPUT, proto_value("on", ONNX_BOOL, 0, NULL));
    proto_message(&body, GRAPH_OUTPUT, proto_value("next", ONNX_FLOAT, 3, shape));
    proto_graph_attribute(&loop, "body", body);
    proto_message(&graph, GRAPH_NODE, loop);
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("turns", ONNX_INT64, 0, NULL, &turns, 8));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("yes", ONNX_BOOL, 0, NULL, &yes, 1));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("no", ONNX_BOOL, 0, NULL, &no, 1));
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 3, shape));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 3, shape));
    return graph;
}

/* Each has a name of its own; the turns of the loop share theirs. */
TEST(onnx_weights_of_subgraphs_learn)
{
    static const char *const names[] = {"w", "b", "w.2", "b.2", "w.3", "b.3"};
    mica_context *ctx = test_context(1);
    learner l = {0};
    mica_tensor x, w;
    mica_gradient_check found;
    if (learn_norm(&l, ctx, nested_graph()) && CHECK_OK(ctx, mica_net_tensor(l.net, &x, "x"))) {
        fill_with(&x, 22);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            CHECK_OK(ctx, mica_net_tensor(l.net, &w, names[i]));
        mica_status status = mica_check_gradients(l.net, &found, NULL);
        CHECK_MSG(status == MICA_OK && found.right && found.checked == 6 * WIDTH,
                  "element %zu of %s has the gradient %g, by differences %g; %zu checked", found.element,
                  found.name, found.gradient, found.difference, found.checked);
    }
    drop(&l);
}

/* ---- Heads ---- */

/* The bias of a single output is learned; a single number elsewhere is a constant. */
TEST(onnx_single_weights_learn)
{
    mica_context *ctx = test_context(1);
    learner l = {0};
    test_random r = test_seed(23);
    proto graph = {0};
    const int64_t shape[] = {3, 4}, weight[] = {4, 1}, one[] = {1}, out[] = {3, 1};
    proto_message(&graph, GRAPH_NODE, proto_node("Gemm", "x w b", "sum"));
    proto_message(&graph, GRAPH_NODE, proto_node("Mul", "sum by", "y"));
    put_random(&graph, &r, "w", 2, weight);
    put_random(&graph, &r, "b", 1, one);
    put_random(&graph, &r, "by", 1, one);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, shape));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, out));
    if (learn(&l, ctx, graph, 17)) {
        mica_tensor t;
        CHECK(mica_net_named(l.net, "w") != 0 && mica_net_named(l.net, "b") != 0);
        const mica_optimizer sgd = {.kind = MICA_SGD};
        mica_value y = mica_net_named(l.net, "y");
        (void)mica_net_mse(l.net, y, mica_net_input(l.net, "target", MICA_F32, 2, out), NULL);
        if (CHECK_OK(ctx, mica_net_compile(l.net, &(mica_compile_opts){.train = true, .optimizer = &sgd})) &&
            CHECK_OK(ctx, mica_net_bind(l.net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(l.net, 1)) &&
            CHECK_OK(ctx, mica_onnx_load(l.model, l.net))) {
            CHECK_OK(ctx, mica_net_gradient(l.net, &t, "b"));
            CHECK(mica_net_gradient(l.net, &t, "by") != MICA_OK);
        }
    }
    drop(&l);
}

/* What is dropped is what the mask says. */
static void check_mask(mica_context *ctx, mica_net *net, const mica_tensor *x)
{
    mica_tensor y, mask;
    size_t dropped = 0;
    fill_with(x, 3);
    CHECK_OK(ctx, mica_net_gradients(net, NULL)); /* a forward alone drops nothing */
    if (!CHECK_OK(ctx, mica_net_tensor(net, &y, "y")) || !CHECK_OK(ctx, mica_net_tensor(net, &mask, "mask")))
        return;
    for (size_t i = 0; i < mica_tensor_count(&y); i++) {
        CHECK(((const float *)y.data)[i] == 0.0f);
        dropped += ((const unsigned char *)mask.data)[i] == 0;
    }
    CHECK(dropped > 30 && dropped < 98);
}

/* Exporters name the mask that dropout makes, though nothing reads it. */
TEST(onnx_dropout_with_a_mask)
{
    mica_context *ctx = test_context(1);
    learner l = {0};
    proto graph = {0};
    const int64_t shape[] = {8, 16};
    const float ratio = 0.5f;
    const unsigned char training = 1;
    const int64_t width[] = {16};
    test_random r = test_seed(29);
    proto_message(&graph, GRAPH_INITIALIZER,
                  proto_tensor("ratio", ONNX_FLOAT, 0, NULL, &ratio, sizeof ratio));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("on", 9, 0, NULL, &training, sizeof training));
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "x w", "a"));
    put_random(&graph, &r, "w", 1, width);
    proto_message(&graph, GRAPH_NODE, proto_node("Dropout", "a ratio on", "d mask"));
    proto_message(&graph, GRAPH_NODE, proto_node("CastLike", "mask x", "m"));
    proto_message(&graph, GRAPH_NODE, proto_node("Mul", "a m", "kept"));
    proto_message(&graph, GRAPH_NODE, proto_node("Add", "kept kept", "twice"));
    proto_message(&graph, GRAPH_NODE, proto_node("Sub", "d twice", "y"));
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, shape));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, shape));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("mask", 9, 2, shape));
    mica_tensor x;
    if (learn(&l, ctx, graph, 17)) {
        (void)mica_net_mse(l.net, mica_net_named(l.net, "y"),
                           mica_net_input(l.net, "target", MICA_F32, 2, shape), NULL);
        if (compile(&l, ctx) && CHECK_OK(ctx, mica_net_tensor(l.net, &x, "x")))
            check_mask(ctx, l.net, &x);
    }
    drop(&l);
}
