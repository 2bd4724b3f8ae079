/* The domain ai.onnx.ml: trees, and tables of values. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <mica/mica.h>

#include "onnx/proto.h"
#include "test.h"

enum { FEATURES = 4, ROWS = 5, PLANNED = 8, TREES = 6, MOST = 200, COLUMNS = 3 };

/* A model of one node: x [batch, FEATURES] in, `outs` out. */
static proto model_of(proto node, const char *outs, int type)
{
    proto graph = {0};
    char name[16];
    proto_text(&node, 7, "ai.onnx.ml");
    proto_message(&graph, GRAPH_NODE, node);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", type, 2, (int64_t[]){-1, FEATURES}));
    for (const char *at = outs; *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, at);
        proto_message(&graph, GRAPH_OUTPUT, proto_value(name, ONNX_FLOAT, 2, (int64_t[]){-1, -1}));
        at += length;
    }
    proto model = proto_model(graph, 17);
    proto_domain(&model, "ai.onnx.ml", 3);
    return model;
}

/* Plans the model for PLANNED rows, and runs ROWS of them. NULL, having failed. */
static mica_net *run(mica_context *ctx, mica_onnx *model, const void *rows, size_t bytes)
{
    mica_onnx_set set = {.name = "n", .size = PLANNED};
    mica_tensor x;
    mica_net *net;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    if (CHECK_OK(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = &set, .count = 1})) &&
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_resize(net, ROWS)) &&
        CHECK_OK(ctx, mica_net_tensor(net, &x, "x"))) {
        memcpy(x.data, rows, bytes);
        if (CHECK_OK(ctx, mica_net_forward(net)))
            return net;
    }
    mica_net_destroy(net);
    return NULL;
}

/* ---- Trees ---- */

typedef struct forest {
    int count, roots[TREES];
    int64_t tree[MOST], id[MOST], feature[MOST], yes[MOST], no[MOST], nan[MOST];
    float value[MOST], weight[MOST][COLUMNS];
    const char *mode[MOST];
} forest;

static float draw_value(test_random *r) { return (float)test_int(r, -4, 4); }

/* A tree below this node, whose number is returned; nodes are named backwards, so that no order of them is assumed. */
static int grow(forest *f, int tree, int levels, const char *mode, test_random *r)
{
    int at = f->count++;
    f->tree[at] = tree;
    f->id[at] = 1000 - at;
    f->feature[at] = test_int(r, 0, FEATURES - 1);
    f->value[at] = draw_value(r);
    f->nan[at] = test_chance(r, 50);
    f->mode[at] = levels > 0 && test_chance(r, 80) ? mode : "LEAF";
    f->yes[at] = f->no[at] = 0;
    for (int k = 0; k < COLUMNS; k++)
        f->weight[at][k] = draw_value(r);
    if (strcmp(f->mode[at], "LEAF") == 0) {
        f->feature[at] = -2; /* as scikit-learn has it */
        return at;
    }
    f->yes[at] = f->id[grow(f, tree, levels - 1, mode, r)];
    f->no[at] = f->id[grow(f, tree, levels - 1, mode, r)];
    return at;
}

static void grow_all(forest *f, const char *mode, unsigned seed)
{
    test_random r = test_seed(seed);
    f->count = 0;
    for (int t = 0; t < TREES; t++)
        f->roots[t] = grow(f, t, t % 5, mode, &r);
}

static const float *leaf_of(const forest *f, int at, const float *x)
{
    while (strcmp(f->mode[at], "LEAF") != 0) {
        float v = x[f->feature[at]], limit = f->value[at];
        bool le = strcmp(f->mode[at], "BRANCH_LEQ") == 0  ? v <= limit
                  : strcmp(f->mode[at], "BRANCH_GT") == 0 ? v > limit
                                                          : v < limit;
        at = 1000 - (int)((le || (isnan(v) && f->nan[at] != 0)) ? f->yes[at] : f->no[at]);
    }
    return f->weight[at];
}

static void put_nodes(proto *node, const forest *f)
{
    proto_ints(node, "nodes_treeids", f->tree, f->count);
    proto_ints(node, "nodes_nodeids", f->id, f->count);
    proto_ints(node, "nodes_featureids", f->feature, f->count);
    proto_ints(node, "nodes_truenodeids", f->yes, f->count);
    proto_ints(node, "nodes_falsenodeids", f->no, f->count);
    proto_ints(node, "nodes_missing_value_tracks_true", f->nan, f->count);
    proto_reals(node, "nodes_values", f->value, f->count);
    proto_strings(node, "nodes_modes", f->mode, f->count);
}

/* What leaves are worth in the first columns of their weights. */
static void put_weights(proto *node, const forest *f, const char *prefix, int columns)
{
    int64_t tree[MOST * COLUMNS], id[MOST * COLUMNS], column[MOST * COLUMNS];
    float weight[MOST * COLUMNS];
    char name[32];
    int count = 0;
    for (int i = 0; i < f->count; i++)
        for (int k = 0; k < columns && strcmp(f->mode[i], "LEAF") == 0; k++, count++) {
            tree[count] = f->tree[i];
            id[count] = f->id[i];
            column[count] = k;
            weight[count] = f->weight[i][k];
        }
    (void)snprintf(name, sizeof name, "%s_treeids", prefix);
    proto_ints(node, name, tree, count);
    (void)snprintf(name, sizeof name, "%s_nodeids", prefix);
    proto_ints(node, name, id, count);
    (void)snprintf(name, sizeof name, "%s_ids", prefix);
    proto_ints(node, name, column, count);
    (void)snprintf(name, sizeof name, "%s_weights", prefix);
    proto_reals(node, name, weight, count);
}

static void draw_rows(float *x)
{
    test_random r = test_seed(7);
    for (int i = 0; i < ROWS * FEATURES; i++)
        x[i] = i % 6 == 5 ? NAN : draw_value(&r);
}

/* What all trees say together of a row, in a column. */
static float told(const forest *f, const float *x, int column)
{
    float sum = 0;
    for (int t = 0; t < TREES; t++)
        sum += leaf_of(f, f->roots[t], x)[column];
    return sum;
}

TEST(onnx_ml_tree_regressor)
{
    static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT"};
    mica_context *ctx = test_context(2);
    float x[ROWS * FEATURES], base[COLUMNS] = {1, 2, 3};
    draw_rows(x);
    for (unsigned seed = 0; seed < 30; seed++) {
        static forest f;
        mica_onnx *model;
        mica_tensor y;
        proto node = proto_node("TreeEnsembleRegressor", "x", "y");
        grow_all(&f, modes[seed % 3], seed);
        put_nodes(&node, &f);
        put_weights(&node, &f, "target", COLUMNS);
        proto_int(&node, "n_targets", COLUMNS);
        proto_reals(&node, "base_values", base, COLUMNS);
        if (seed % 2 != 0)
            proto_string(&node, "aggregate_function", "AVERAGE");
        proto bytes = model_of(node, "y", ONNX_FLOAT);
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "trees") == MICA_OK);
        mica_net *net = run(ctx, model, x, sizeof x);
        if (net != NULL && CHECK_OK(ctx, mica_net_tensor(net, &y, "y")) && CHECK(y.dim[0] == ROWS))
            for (int i = 0; i < ROWS * COLUMNS; i++) {
                float sum = told(&f, x + i / COLUMNS * FEATURES, i % COLUMNS);
                float want = (seed % 2 != 0 ? sum / TREES : sum) + base[i % COLUMNS];
                CHECK(fabsf(((const float *)y.data)[i] - want) < 1e-5f);
            }
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}

/* Three classes: the largest sum. Two classes with one weight per leaf: its sign. */
static void check_classifier(mica_context *ctx, unsigned seed, int classes)
{
    static const int64_t labels[] = {30, 10, 20};
    static forest f;
    float x[ROWS * FEATURES];
    mica_onnx *model;
    mica_tensor label, scores;
    proto node = proto_node("TreeEnsembleClassifier", "x", "label scores");
    draw_rows(x);
    grow_all(&f, "BRANCH_LEQ", seed);
    put_nodes(&node, &f);
    put_weights(&node, &f, "class", classes == 2 ? 1 : classes);
    proto_ints(&node, "classlabels_int64s", labels, classes);
    if (classes == 2)
        proto_string(&node, "post_transform", "LOGISTIC");
    proto bytes = model_of(node, "label scores", ONNX_FLOAT);
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "trees") == MICA_OK);
    mica_net *net = run(ctx, model, x, sizeof x);
    if (net != NULL && CHECK_OK(ctx, mica_net_tensor(net, &label, "label")) &&
        CHECK_OK(ctx, mica_net_tensor(net, &scores, "scores")))
        for (int i = 0; i < ROWS; i++) {
            const float *row = x + i * FEATURES, *got = (const float *)scores.data + i * classes;
            int best = classes == 2 && told(&f, row, 0) > 0;
            for (int k = 0; k < classes; k++) {
                float s = told(&f, row, k), sign = k == 0 ? 1.0f : -1.0f;
                best = classes > 2 && s > told(&f, row, best) ? k : best;
                float want = classes > 2 ? s : 1 / (1 + expf(sign * told(&f, row, 0)));
                CHECK(fabsf(got[k] - want) < 1e-5f);
            }
            CHECK(((const int64_t *)label.data)[i] == labels[best]);
        }
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}

TEST(onnx_ml_tree_classifier)
{
    mica_context *ctx = test_context(1);
    for (unsigned seed = 0; seed < 20; seed++)
        check_classifier(ctx, seed, seed % 2 != 0 ? 2 : COLUMNS);
}

/* Trees that are none are refused. */
TEST(onnx_ml_trees_are_checked)
{
    mica_context *ctx = test_context(1);
    for (int wrong = 0; wrong < 6; wrong++) {
        static forest f;
        mica_onnx *model;
        mica_net *net;
        proto node = proto_node("TreeEnsembleRegressor", "x", "y");
        test_random r = test_seed(3);
        do {
            f.count = 0;
            (void)grow(&f, 0, 4, "BRANCH_LEQ", &r);
        } while (f.count < 5);
        if (wrong == 0)
            f.yes[0] = f.id[0]; /* its own child */
        else if (wrong == 1)
            f.no[0] = f.yes[0];
        else if (wrong == 2)
            f.yes[0] = 5;
        else if (wrong == 3)
            f.feature[0] = FEATURES;
        else if (wrong == 4)
            f.mode[0] = "BRANCH_NOWHERE";
        else
            f.id[1] = f.id[2];
        put_nodes(&node, &f);
        put_weights(&node, &f, "target", 1);
        proto bytes = model_of(node, "y", ONNX_FLOAT);
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "trees") == MICA_OK);
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        mica_onnx_set set = {.name = "n", .size = PLANNED};
        CHECK(mica_onnx_build(model, net, &(mica_onnx_opts){.sets = &set, .count = 1}) != MICA_OK);
        mica_net_destroy(net);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}

/* ---- Tables ---- */

static void check_table(mica_context *ctx, proto node, int type, const void *rows, size_t bytes,
                        const float *want, int count)
{
    mica_onnx *model;
    mica_tensor y;
    proto file = model_of(node, "y", type);
    REQUIRE(mica_onnx_over(ctx, &model, file.bytes, file.size, "a table") == MICA_OK);
    mica_net *net = run(ctx, model, rows, bytes);
    if (net != NULL && CHECK_OK(ctx, mica_net_tensor(net, &y, "y")) &&
        CHECK(mica_tensor_count(&y) == (size_t)(ROWS * count)))
        for (int i = 0; i < ROWS * count; i++)
            CHECK((y.dtype == MICA_I64 ? (float)((const int64_t *)y.data)[i] : ((const float *)y.data)[i]) ==
                  want[i]);
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&file);
}

TEST(onnx_ml_tables)
{
    static const int64_t keys[] = {2, -1, 5}, values[] = {70, 80, 90};
    static const float means[FEATURES] = {10, 20, 30, 40}, halves[] = {0.5f, 1.5f, 2.5f};
    mica_context *ctx = test_context(1);
    float x[ROWS * FEATURES], filled[ROWS * FEATURES], coded[ROWS * FEATURES], real[ROWS * FEATURES],
        hot[ROWS * FEATURES * 3];
    int64_t whole[ROWS * FEATURES];
    for (int i = 0; i < ROWS * FEATURES; i++) {
        x[i] = i % 3 == 0 ? NAN : (float)i;
        filled[i] = i % 3 == 0 ? means[i % FEATURES] : (float)i;
        whole[i] = i % 7 - 1;
        coded[i] = -3;
        real[i] = -0.25f;
        for (int k = 0; k < 3; k++) {
            hot[i * 3 + k] = whole[i] == keys[k] ? 1.0f : 0.0f;
            coded[i] = whole[i] == keys[k] ? (float)values[k] : coded[i];
            real[i] = whole[i] == keys[k] ? halves[k] : real[i];
        }
    }
    proto node = proto_node("Imputer", "x", "y");
    proto_reals(&node, "imputed_value_floats", means, FEATURES);
    proto_real(&node, "replaced_value_float", NAN);
    check_table(ctx, node, ONNX_FLOAT, x, sizeof x, filled, FEATURES);
    node = proto_node("LabelEncoder", "x", "y");
    proto_ints(&node, "keys_int64s", keys, 3);
    proto_ints(&node, "values_int64s", values, 3);
    proto_int(&node, "default_int64", -3);
    check_table(ctx, node, ONNX_INT64, whole, sizeof whole, coded, FEATURES);
    node = proto_node("LabelEncoder", "x", "y");
    proto_ints(&node, "keys_int64s", keys, 3);
    proto_reals(&node, "values_floats", halves, 3);
    proto_real(&node, "default_float", -0.25f);
    check_table(ctx, node, ONNX_INT64, whole, sizeof whole, real, FEATURES);
    node = proto_node("OneHotEncoder", "x", "y");
    proto_ints(&node, "cats_int64s", keys, 3);
    check_table(ctx, node, ONNX_INT64, whole, sizeof whole, hot, FEATURES * 3);
}

/* As many inputs of Concat as there are products of 10 features. */
TEST(onnx_many_inputs)
{
    enum { INPUTS = 130 };
    mica_context *ctx = test_context(1);
    proto graph = {0};
    char names[INPUTS * 2];
    float x[ROWS * FEATURES];
    mica_onnx *model;
    mica_tensor y;
    for (int i = 0; i < INPUTS; i++)
        memcpy(names + i * 2, i == INPUTS - 1 ? "x" : "x ", 2);
    for (int i = 0; i < ROWS * FEATURES; i++)
        x[i] = (float)i;
    proto node = proto_node("Concat", names, "y");
    proto_int(&node, "axis", 1);
    proto_message(&graph, GRAPH_NODE, node);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){-1, FEATURES}));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){-1, -1}));
    proto bytes = proto_model(graph, 17);
    REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "concat") == MICA_OK);
    mica_net *net = run(ctx, model, x, sizeof x);
    if (net != NULL && CHECK_OK(ctx, mica_net_tensor(net, &y, "y")) && CHECK(y.dim[1] == INPUTS * FEATURES))
        for (int i = 0; i < ROWS * INPUTS * FEATURES; i++) {
            int row = i / (INPUTS * FEATURES), column = i % FEATURES;
            CHECK(((const float *)y.data)[i] == (float)(row * FEATURES + column));
        }
    mica_net_destroy(net);
    mica_onnx_close(model);
    proto_free(&bytes);
}
