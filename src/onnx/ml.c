/* The domain ai.onnx.ml: what scikit-learn's preprocessing and linear models become. Computed in f32. */
#include <string.h>

#include "onnx/moves.h"

/* An attribute's floats as a constant of this shape. */
static mica_onnx_ref floats(mica_onnx_importing *n, const char *name, int rank, const mica_index *dims)
{
    const mica_onnx_attribute *a = mica_onnx_find(n, name);
    size_t count = 1;
    void *data;
    for (int k = 0; k < rank; k++)
        count *= (size_t)dims[k];
    if (a == NULL || a->kind != MICA_ONNX_FLOATS || a->count != count)
        return mica_onnx_bad(n, "attribute \"%s\" has %zu floats, expected %zu", name,
                             a != NULL ? a->count : 0, count);
    mica_onnx_ref ref = mica_onnx_fresh(n, MICA_F32, rank, dims, &data);
    if (data != NULL)
        memcpy(data, a->floats, count * sizeof(float));
    return ref;
}

static size_t count_of(const mica_onnx_importing *n, const char *name)
{
    const mica_onnx_attribute *a = mica_onnx_find(n, name);
    return a != NULL ? a->count : 0;
}

/* ---- Preprocessing ---- */

static void array_feature_extractor(mica_onnx_importing *n)
{
    mica_onnx_ref x = n->in[0], index = mica_onnx_cast(n, n->in[1], MICA_I64);
    if (mica_onnx_shape(n, x)->rank == 1)
        x = mica_onnx_add_axis(n, x, 0);
    int last = mica_onnx_shape(n, x)->rank - 1;
    index = mica_onnx_reshape(n, index, 1, (mica_index[]){-1});
    index = mica_onnx_indices(n, index, x, &(mica_wrap_opts){.axis = last});
    mica_onnx_give(n, 0, mica_onnx_op2(n, "take", x, index, &(mica_axis_opts){.axis = last}));
}

static void binarizer(mica_onnx_importing *n)
{
    mica_onnx_ref threshold = mica_onnx_scalar(n, MICA_F32, (double)mica_onnx_float(n, "threshold", 0.0f));
    mica_onnx_ref x = mica_onnx_cast(n, n->in[0], MICA_F32);
    mica_onnx_give_like(n, 0, mica_onnx_op2(n, "gt", x, threshold, NULL), n->in[0]);
}

static void scaler(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_cast(n, n->in[0], MICA_F32);
    if (count_of(n, "offset") > 0) {
        mica_index count = (mica_index)count_of(n, "offset");
        x = mica_onnx_op2(n, "sub", x, floats(n, "offset", 1, &count), NULL);
    }
    if (count_of(n, "scale") > 0) {
        mica_index count = (mica_index)count_of(n, "scale");
        x = mica_onnx_op2(n, "mul", x, floats(n, "scale", 1, &count), NULL);
    }
    mica_onnx_give(n, 0, x);
}

/* Rows divided by their norm; a norm of 0 leaves them as they are. */
static void normalizer(mica_onnx_importing *n)
{
    const char *norm = mica_onnx_text(n, "norm", "MAX");
    mica_onnx_ref x = mica_onnx_cast(n, n->in[0], MICA_F32), size, one = mica_onnx_scalar(n, MICA_F32, 1.0);
    mica_reduction_opts opts = {.axes = {-1}, .count = 1, .keep = true};
    if (strcmp(norm, "MAX") == 0) {
        size = mica_onnx_op1(n, "amax", x, &opts);
    } else if (strcmp(norm, "L1") == 0 || strcmp(norm, "L2") == 0) {
        opts.kind = norm[1] == '1' ? MICA_NORM_L1 : MICA_NORM_L2;
        size = mica_onnx_op1(n, "norm", x, &opts);
    } else {
        (void)mica_onnx_bad(n, "norm \"%s\"", norm);
        return;
    }
    mica_onnx_ref zero = mica_onnx_scalar(n, MICA_F32, 0.0);
    mica_onnx_ref none = mica_onnx_op2(n, "eq", size, zero, NULL);
    size = mica_onnx_op(n, "where", (mica_onnx_ref[]){none, one, size}, 3, NULL);
    mica_onnx_give(n, 0, mica_onnx_op2(n, "div", x, size, NULL));
}

/* ---- Linear models ---- */

/* x [B, N] times coefficients [rows, N], plus intercepts. */
static mica_onnx_ref linear(mica_onnx_importing *n, mica_index rows)
{
    mica_onnx_ref x = mica_onnx_cast(n, n->in[0], MICA_F32);
    if (mica_onnx_shape(n, x)->rank == 1)
        x = mica_onnx_add_axis(n, x, 0);
    mica_index dims[] = {rows, mica_onnx_shape(n, x)->dim[1]};
    mica_onnx_ref w = mica_onnx_permute(n, floats(n, "coefficients", 2, dims), (int[]){1, 0});
    mica_onnx_ref y = mica_onnx_op2(n, "matmul", x, w, NULL);
    return count_of(n, "intercepts") > 0 ? mica_onnx_op2(n, "add", y, floats(n, "intercepts", 1, &rows), NULL)
                                         : y;
}

static mica_onnx_ref transformed(mica_onnx_importing *n, mica_onnx_ref y)
{
    const char *transform = mica_onnx_text(n, "post_transform", "NONE");
    if (strcmp(transform, "NONE") == 0)
        return y;
    if (strcmp(transform, "LOGISTIC") == 0)
        return mica_onnx_op1(n, "sigmoid", y, NULL);
    if (strcmp(transform, "SOFTMAX") == 0)
        return mica_onnx_op1(n, "softmax", y, &(mica_axis_opts){.axis = -1});
    return mica_onnx_unsupported(n, "post_transform %s", transform);
}

static void linear_regressor(mica_onnx_importing *n)
{
    mica_onnx_give(n, 0, transformed(n, linear(n, (mica_index)mica_onnx_int(n, "targets", 1))));
}

/* Labels that are numbers: those of the largest scores. */
static void linear_classifier(mica_onnx_importing *n)
{
    const mica_onnx_attribute *labels = mica_onnx_find(n, "classlabels_ints");
    if (labels != NULL && labels->kind != MICA_ONNX_INTS) {
        (void)mica_onnx_bad(n, "attribute \"classlabels_ints\" is no list of integers");
        return;
    }
    size_t classes = labels != NULL ? labels->count : count_of(n, "classlabels_strings");
    if (classes < 2 || count_of(n, "intercepts") < classes) {
        (void)mica_onnx_unsupported(n, "%zu classes with %zu intercepts", classes, count_of(n, "intercepts"));
        return;
    }
    mica_onnx_ref scores = linear(n, (mica_index)classes);
    mica_onnx_give(n, 1, transformed(n, scores));
    if (!mica_onnx_wants(n, 0))
        return;
    if (labels == NULL) {
        (void)mica_onnx_unsupported(n, "labels that are strings");
        return;
    }
    mica_arg_opts opts = {.axis = 1, .wide = true};
    mica_onnx_ref best = mica_onnx_op1(n, "argmax", scores, &opts);
    mica_onnx_ref names = mica_onnx_vector(n, labels->ints, (int)classes);
    mica_onnx_give(n, 0, mica_onnx_op2(n, "take", names, best, &(mica_axis_opts){.axis = 0}));
}

const mica_onnx_operator mica_onnx_ml_operators[] = {
    {"ai.onnx.ml:ArrayFeatureExtractor", 1, array_feature_extractor},
    {"ai.onnx.ml:Binarizer", 1, binarizer},
    {"ai.onnx.ml:Scaler", 1, scaler},
    {"ai.onnx.ml:Normalizer", 1, normalizer},
    {"ai.onnx.ml:LinearRegressor", 1, linear_regressor},
    {"ai.onnx.ml:LinearClassifier", 1, linear_classifier},
    {NULL, 0, NULL}};
