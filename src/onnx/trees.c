/* Ensembles of trees: random forests, gradient boosting.
 *
 * All trees are walked at once, one level after the other: at[b, t] is the node where sample b is in tree t. A level
 * looks up its feature and threshold, compares, and looks up where to go on. Leaves lead to themselves, so after as
 * many levels as the deepest tree has, all samples are at leaves, whose weights are added up. */
#include <string.h>

#include "base/sort.h"
#include "onnx/ml.h"

#define DEEPEST 512 /* levels; each becomes several calls */

/* A node by its name in the model. */
typedef struct named {
    int64_t tree, id, index;
} named;

typedef struct forest {
    size_t count, trees;
    const int64_t *tree, *id;
    int64_t *feature; /* of a leaf 0 */
    const float *threshold;
    const char *mode;   /* of all branches */
    const char *op;     /* that compares */
    named *names;       /* sorted */
    int64_t *down[2];   /* where a branch leads to that is not taken, and one that is */
    int64_t *roots;     /* [trees] */
    unsigned char *nan; /* [count] 1: NaN takes the branch; NULL: it never does */
    int depth;
} forest;

/* The elements of a list attribute; NULL, having failed: it is not as long as expected. */
static const int64_t *ints(mica_onnx_importing *n, const char *name, size_t count)
{
    const mica_onnx_attribute *a = mica_onnx_find(n, name);
    if (a != NULL && a->kind == MICA_ONNX_INTS && a->count == count)
        return a->ints;
    (void)mica_onnx_bad(n, "attribute \"%s\" has %zu integers, expected %zu", name, a != NULL ? a->count : 0,
                        count);
    return NULL;
}

static const float *reals(mica_onnx_importing *n, const char *name, size_t count)
{
    const mica_onnx_attribute *a = mica_onnx_find(n, name);
    if (a != NULL && a->kind == MICA_ONNX_FLOATS && a->count == count)
        return a->floats;
    (void)mica_onnx_bad(n, "attribute \"%s\" has %zu floats, expected %zu", name, a != NULL ? a->count : 0,
                        count);
    return NULL;
}

/* ---- Nodes ---- */

static int by_name(const void *a, const void *b)
{
    const named *p = a, *q = b;
    if (p->tree != q->tree)
        return p->tree < q->tree ? -1 : 1;
    return p->id < q->id ? -1 : p->id > q->id;
}

/* The index of a node; -1, having failed: there is none. */
static int64_t find(mica_onnx_importing *n, const forest *f, int64_t tree, int64_t id)
{
    named wanted = {tree, id, 0};
    size_t low = 0, high = f->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = by_name(&f->names[middle], &wanted);
        if (order == 0)
            return f->names[middle].index;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    (void)mica_onnx_bad(n, "there is no node %lld in tree %lld", (long long)id, (long long)tree);
    return -1;
}

/* The comparison of a branch; NULL, having failed: it is none, or not that of the others. */
static const char *compare_op(mica_onnx_importing *n, const forest *f, const char *mode)
{
    static const char *const known[][2] = {{"BRANCH_LEQ", "le"},
                                           {"BRANCH_LT", "lt"},
                                           {"BRANCH_GTE", "ge"},
                                           {"BRANCH_GT", "gt"},
                                           {"BRANCH_EQ", "eq"}};
    if (f->mode != NULL && strcmp(f->mode, mode) != 0) {
        (void)mica_onnx_unsupported(n, "branches of the modes %s and %s in one ensemble", f->mode, mode);
        return NULL;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i][0], mode) == 0)
            return known[i][1];
    (void)mica_onnx_unsupported(n, "nodes of the mode %s", mode);
    return NULL;
}

/* Where each node leads to, and which are roots: those that no other leads to. */
static void connect(mica_onnx_importing *n, forest *f, mica_index features)
{
    const int64_t *yes = ints(n, "nodes_truenodeids", f->count),
                  *no = ints(n, "nodes_falsenodeids", f->count),
                  *feature = ints(n, "nodes_featureids", f->count);
    const mica_onnx_attribute *modes = mica_onnx_find(n, "nodes_modes");
    unsigned char *child = mica_onnx_room(n, f->count, 1);
    if (modes == NULL || modes->kind != MICA_ONNX_STRINGS || modes->count != f->count)
        (void)mica_onnx_bad(n, "attribute \"nodes_modes\" does not have %zu strings", f->count);
    if (n->failed)
        return;
    memset(child, 0, f->count);
    for (size_t i = 0; i < f->count; i++) {
        f->down[0][i] = f->down[1][i] = (int64_t)i;
        f->feature[i] = 0;
        if (strcmp(modes->strings[i], "LEAF") == 0)
            continue;
        if ((f->op = compare_op(n, f, modes->strings[i])) == NULL)
            return;
        f->mode = modes->strings[i];
        f->feature[i] = feature[i];
        if (feature[i] < 0 || feature[i] >= features) {
            (void)mica_onnx_bad(n, "feature %lld of %td", (long long)feature[i], features);
            return;
        }
        for (int taken = 0; taken < 2; taken++) {
            int64_t to = find(n, f, f->tree[i], taken ? yes[i] : no[i]);
            if (to < 0)
                return;
            if (child[to]++ != 0) {
                (void)mica_onnx_bad(n, "two branches lead to node %lld of tree %lld", (long long)f->id[to],
                                    (long long)f->tree[to]);
                return;
            }
            f->down[taken][i] = to;
        }
    }
    for (size_t i = 0; i < f->count; i++)
        if (child[i] == 0)
            f->roots[f->trees++] = (int64_t)i;
}

/* How many branches the longest way from a root to a leaf has. A node has one parent at most, so this comes to an
 * end. */
static void measure(mica_onnx_importing *n, forest *f)
{
    int64_t *queue = mica_onnx_room(n, f->count, sizeof *queue);
    size_t end = f->trees, level_end = f->trees;
    if (n->failed)
        return;
    memcpy(queue, f->roots, f->trees * sizeof *queue);
    for (size_t i = 0; i < end; i++) {
        if (i == level_end) {
            f->depth++;
            level_end = end;
        }
        int64_t at = queue[i];
        if (f->down[0][at] != at) {
            queue[end++] = f->down[0][at];
            queue[end++] = f->down[1][at];
        }
    }
    if (end < f->count)
        (void)mica_onnx_bad(n, "%zu nodes that no root leads to", f->count - end);
    if (f->depth > DEEPEST)
        (void)mica_onnx_unsupported(n, "trees of more than %d levels", DEEPEST);
}

static void read_nan(mica_onnx_importing *n, forest *f)
{
    if (mica_onnx_count_of(n, "nodes_missing_value_tracks_true") == 0)
        return;
    const int64_t *tracks = ints(n, "nodes_missing_value_tracks_true", f->count);
    for (size_t i = 0; !n->failed && i < f->count; i++)
        if (tracks[i] != 0 && f->down[0][i] != (int64_t)i) {
            if (f->nan == NULL && (f->nan = mica_onnx_room(n, f->count, 1)) != NULL)
                memset(f->nan, 0, f->count);
            if (f->nan != NULL)
                f->nan[i] = 1;
        }
}

static void read_forest(mica_onnx_importing *n, forest *f, mica_index features)
{
    *f = (forest){.count = mica_onnx_count_of(n, "nodes_treeids")};
    if (mica_onnx_find(n, "nodes_values_as_tensor") != NULL) {
        (void)mica_onnx_unsupported(n, "trees in double precision");
        return;
    }
    f->tree = ints(n, "nodes_treeids", f->count);
    f->id = ints(n, "nodes_nodeids", f->count);
    f->threshold = reals(n, "nodes_values", f->count);
    f->names = mica_onnx_room(n, f->count, sizeof *f->names);
    f->feature = mica_onnx_room(n, f->count, sizeof *f->feature);
    f->roots = mica_onnx_room(n, f->count, sizeof *f->roots);
    f->down[0] = mica_onnx_room(n, f->count, sizeof *f->down[0]);
    f->down[1] = mica_onnx_room(n, f->count, sizeof *f->down[1]);
    if (n->failed)
        return;
    for (size_t i = 0; i < f->count; i++)
        f->names[i] = (named){f->tree[i], f->id[i], (int64_t)i};
    mica_sort(f->names, f->count, sizeof *f->names, by_name);
    for (size_t i = 1; i < f->count; i++)
        if (by_name(&f->names[i - 1], &f->names[i]) == 0) {
            (void)mica_onnx_bad(n, "two nodes %lld in tree %lld", (long long)f->names[i].id,
                                (long long)f->names[i].tree);
            return;
        }
    connect(n, f, features);
    if (!n->failed)
        measure(n, f);
    read_nan(n, f);
}

/* ---- Walking ---- */

static mica_onnx_ref table(mica_onnx_importing *n, mica_dtype dtype, const void *from, size_t count)
{
    mica_tensor t = {.data = NULL, .dtype = dtype, .rank = 1, .dim = {(mica_index)count}, .stride = {1}};
    memcpy(&t.data, &from, sizeof from); /* read only */
    return mica_onnx_constant(n, &t);
}

static mica_onnx_ref look_up(mica_onnx_importing *n, mica_onnx_ref in, mica_onnx_ref at)
{
    return mica_onnx_op2(n, "take", in, at, &(mica_axis_opts){.axis = 0});
}

/* The node that each sample ends at in each tree: [B, trees]; [trees] if all of them are leaves only. */
static mica_onnx_ref leaves(mica_onnx_importing *n, const forest *f, mica_onnx_ref x)
{
    mica_compare_opts truth = {.truth = true};
    mica_axis_opts columns = {.axis = 1};
    mica_onnx_ref feature = table(n, MICA_I64, f->feature, f->count);
    mica_onnx_ref threshold = table(n, MICA_F32, f->threshold, f->count);
    mica_onnx_ref no = table(n, MICA_I64, f->down[0], f->count);
    mica_onnx_ref yes = table(n, MICA_I64, f->down[1], f->count);
    mica_onnx_ref nan = f->nan != NULL ? table(n, MICA_BOOL, f->nan, f->count) : 0;
    mica_onnx_ref at = table(n, MICA_I64, f->roots, f->trees);
    for (int level = 0; level < f->depth && !n->failed; level++) {
        mica_onnx_ref value = mica_onnx_op2(n, level == 0 ? "take" : "gather", x, look_up(n, feature, at),
                                            &columns);
        mica_onnx_ref taken = mica_onnx_op2(n, f->op, value, look_up(n, threshold, at), &truth);
        if (nan != 0) {
            mica_onnx_ref missing = mica_onnx_op1(n, "isnan", value, &truth);
            missing = mica_onnx_op2(n, "bit_and", missing, look_up(n, nan, at), NULL);
            taken = mica_onnx_op2(n, "bit_or", taken, missing, NULL);
        }
        at = mica_onnx_op(n, "where", (mica_onnx_ref[]){taken, look_up(n, yes, at), look_up(n, no, at)}, 3,
                          NULL);
    }
    return at;
}

/* What leaves are worth: lists of nodes, columns and weights, which start with "target" or "class". */
typedef struct worth {
    size_t count;
    const int64_t *tree, *id, *column;
    const float *weight;
} worth;

static void read_worth(mica_onnx_importing *n, worth *w, bool classes)
{
    w->count = mica_onnx_count_of(n, classes ? "class_weights" : "target_weights");
    w->tree = ints(n, classes ? "class_treeids" : "target_treeids", w->count);
    w->id = ints(n, classes ? "class_nodeids" : "target_nodeids", w->count);
    w->column = ints(n, classes ? "class_ids" : "target_ids", w->count);
    w->weight = reals(n, classes ? "class_weights" : "target_weights", w->count);
}

/* [nodes, columns]. If `one`, all weights are of the one column, whatever its number. */
static mica_onnx_ref worth_table(mica_onnx_importing *n, const forest *f, const worth *w, mica_index columns,
                                 bool one)
{
    mica_index dims[] = {(mica_index)f->count, columns};
    if (n->failed)
        return 0;
    mica_onnx_ref ref = mica_onnx_zeros(n, MICA_F32, 2, dims);
    float *data = mica_onnx_shape(n, ref)->data;
    for (size_t i = 0; !n->failed && i < w->count; i++) {
        int64_t at = find(n, f, w->tree[i], w->id[i]), column = one ? 0 : w->column[i];
        if (column < 0 || column >= columns)
            return mica_onnx_bad(n, "a weight of column %lld of %td", (long long)column, columns);
        if (at >= 0)
            data[at * columns + column] += w->weight[i];
    }
    return ref;
}

/* [B, columns]: what the leaves of all trees are worth together. */
static mica_onnx_ref aggregated(mica_onnx_importing *n, const worth *w, mica_index columns, bool one)
{
    const char *how = mica_onnx_text(n, "aggregate_function", "SUM");
    mica_onnx_ref x = mica_onnx_rows(n);
    forest f;
    if (n->failed || mica_onnx_shape(n, x)->rank != 2)
        return mica_onnx_bad(n, "input of rank %d, expected 2", mica_onnx_shape(n, x)->rank);
    read_forest(n, &f, mica_onnx_shape(n, x)->dim[1]);
    if (n->failed)
        return 0;
    mica_onnx_ref y = look_up(n, worth_table(n, &f, w, columns, one), leaves(n, &f, x));
    mica_reduction_opts over_trees = {.axes = {-2}, .count = 1};
    const char *op = strcmp(how, "SUM") == 0 ? "sum" : strcmp(how, "AVERAGE") == 0 ? "mean" : NULL;
    if (columns == 1 && strcmp(how, "MIN") == 0)
        op = "amin";
    if (columns == 1 && strcmp(how, "MAX") == 0)
        op = "amax";
    if (op == NULL)
        return mica_onnx_unsupported(n, "aggregate_function %s of %td targets", how, columns);
    y = mica_onnx_op1(n, op, y, &over_trees);
    return f.depth > 0 ? y
                       : mica_onnx_expand(n, y, 2, (mica_index[]){mica_onnx_shape(n, x)->dim[0], columns});
}

/* ---- Operators ---- */

void mica_onnx_tree_regressor(mica_onnx_importing *n)
{
    mica_index targets = (mica_index)mica_onnx_int(n, "n_targets", 1);
    worth w;
    if (targets < 1 || targets > INT32_MAX) {
        (void)mica_onnx_bad(n, "%td targets", targets);
        return;
    }
    read_worth(n, &w, false);
    mica_onnx_ref y = aggregated(n, &w, targets, false);
    if (mica_onnx_count_of(n, "base_values") > 0)
        y = mica_onnx_op2(n, "add", y, mica_onnx_floats(n, "base_values", 1, &targets), NULL);
    mica_onnx_give(n, 0, mica_onnx_transformed(n, y));
}

/* Two classes and one score s, of the second. If no weight is negative, s is a probability; otherwise its sign
 * decides. This is how onnxruntime reads such a model. */
static void give_two_classes(mica_onnx_importing *n, const worth *w)
{
    size_t bases = mica_onnx_count_of(n, "base_values");
    bool probability = true, logistic = strcmp(mica_onnx_text(n, "post_transform", "NONE"), "LOGISTIC") == 0;
    mica_onnx_ref s = aggregated(n, w, 1, true);
    for (size_t i = 0; !n->failed && i < w->count; i++)
        probability = probability && w->weight[i] >= 0;
    if (n->failed)
        return;
    if (bases > 0) {
        const float *base = reals(n, "base_values", bases);
        s = mica_onnx_op1(n, "add_scalar", s, &(mica_scalar_opts){base[bases > 1]});
    }
    bool opposite = !probability || bases > 1;
    mica_onnx_ref other = mica_onnx_op1(n, "rsub_scalar", s, &(mica_scalar_opts){opposite ? 0.0f : 1.0f});
    mica_onnx_ref scores = mica_onnx_join(n, (mica_onnx_ref[]){other, s}, 2, 1);
    if (opposite && logistic)
        scores = mica_onnx_op1(n, "sigmoid", scores, NULL);
    mica_onnx_give(n, 1, scores);
    mica_onnx_ref limit = mica_onnx_scalar(n, MICA_F32, probability ? 0.5 : 0.0);
    mica_onnx_ref second = mica_onnx_op2(n, "gt", s, limit, &(mica_compare_opts){.truth = true});
    mica_onnx_give_labels(n, mica_onnx_drop_axis(n, mica_onnx_cast(n, second, MICA_I64), 1));
}

void mica_onnx_tree_classifier(mica_onnx_importing *n)
{
    mica_index classes = (mica_index)mica_onnx_classes(n);
    bool one = true;
    worth w;
    read_worth(n, &w, true);
    for (size_t i = 0; !n->failed && i < w.count; i++)
        one = one && w.column[i] == w.column[0];
    if (n->failed)
        return;
    if (classes == 2 && one) {
        give_two_classes(n, &w);
        return;
    }
    mica_onnx_ref scores = aggregated(n, &w, classes, false);
    if (mica_onnx_count_of(n, "base_values") > 0)
        scores = mica_onnx_op2(n, "add", scores, mica_onnx_floats(n, "base_values", 1, &classes), NULL);
    mica_onnx_give(n, 1, mica_onnx_transformed(n, scores));
    mica_onnx_give_labels(n, mica_onnx_op1(n, "argmax", scores, &(mica_arg_opts){.axis = 1, .wide = true}));
}
