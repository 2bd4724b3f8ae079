/* The domain ai.onnx.ml: what scikit-learn's preprocessing and linear models become. Computed in f32. */
#include <math.h>
#include <string.h>

#include "onnx/ml.h"

size_t mica_onnx_count_of(const mica_onnx_importing *n, const char *name)
{
    const mica_onnx_attribute *a = mica_onnx_find(n, name);
    return a != NULL ? a->count : 0;
}

mica_onnx_ref mica_onnx_floats(mica_onnx_importing *n, const char *name, int rank, const mica_index *dims)
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

mica_onnx_ref mica_onnx_rows(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_cast(n, n->in[0], MICA_F32);
    return mica_onnx_shape(n, x)->rank == 1 ? mica_onnx_add_axis(n, x, 0) : x;
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
    if (mica_onnx_count_of(n, "offset") > 0) {
        mica_index count = (mica_index)mica_onnx_count_of(n, "offset");
        x = mica_onnx_op2(n, "sub", x, mica_onnx_floats(n, "offset", 1, &count), NULL);
    }
    if (mica_onnx_count_of(n, "scale") > 0) {
        mica_index count = (mica_index)mica_onnx_count_of(n, "scale");
        x = mica_onnx_op2(n, "mul", x, mica_onnx_floats(n, "scale", 1, &count), NULL);
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

/* What equals replaced_value becomes the imputed value of its column. */
static void imputer(mica_onnx_importing *n)
{
    const mica_onnx_attribute *ints = mica_onnx_find(n, "imputed_value_int64s");
    mica_compare_opts truth = {.truth = true};
    mica_onnx_ref x = n->in[0], value, missing;
    if (ints != NULL && ints->kind == MICA_ONNX_INTS) {
        value = mica_onnx_vector(n, ints->ints, (int)ints->count);
        missing = mica_onnx_vector(n, (int64_t[]){mica_onnx_int(n, "replaced_value_int64", 0)}, 1);
        missing = mica_onnx_op2(n, "eq", x, missing, &truth);
    } else {
        mica_index count = (mica_index)mica_onnx_count_of(n, "imputed_value_floats");
        float replaced = mica_onnx_float(n, "replaced_value_float", 0.0f);
        x = mica_onnx_cast(n, x, MICA_F32);
        value = mica_onnx_floats(n, "imputed_value_floats", 1, &count);
        missing = isnan(replaced)
                      ? mica_onnx_op1(n, "isnan", x, &truth)
                      : mica_onnx_op2(n, "eq", x, mica_onnx_scalar(n, MICA_F32, (double)replaced), &truth);
    }
    mica_onnx_give(n, 0, mica_onnx_op(n, "where", (mica_onnx_ref[]){missing, value, x}, 3, NULL));
}

/* Which of the keys [K] each element of x is: [..., K] in f32, 1 at its place. */
static mica_onnx_ref places(mica_onnx_importing *n, mica_onnx_ref x, mica_onnx_ref keys)
{
    x = mica_onnx_add_axis(n, x, mica_onnx_shape(n, x)->rank);
    mica_onnx_ref same = mica_onnx_op2(n, "eq", x, keys, &(mica_compare_opts){.truth = true});
    return mica_onnx_cast(n, same, MICA_F32);
}

static void one_hot_encoder(mica_onnx_importing *n)
{
    const mica_onnx_attribute *categories = mica_onnx_find(n, "cats_int64s");
    if (categories == NULL || categories->kind != MICA_ONNX_INTS) {
        (void)mica_onnx_unsupported(n, "categories that are strings");
        return;
    }
    mica_onnx_ref keys = mica_onnx_vector(n, categories->ints, (int)categories->count);
    mica_onnx_give(n, 0, places(n, mica_onnx_cast(n, n->in[0], MICA_I64), keys));
}

/* A list of numbers that is an attribute: ints or floats, by these names. 0, having failed: neither. */
static mica_onnx_ref numbers(mica_onnx_importing *n, const char *ints, const char *floats)
{
    const mica_onnx_attribute *a = mica_onnx_find(n, ints);
    mica_index count = (mica_index)mica_onnx_count_of(n, floats);
    if (a != NULL && a->kind == MICA_ONNX_INTS && a->count > 0)
        return mica_onnx_vector(n, a->ints, (int)a->count);
    return count > 0 ? mica_onnx_floats(n, floats, 1, &count)
                     : mica_onnx_unsupported(n, "keys or values other than lists of numbers");
}

/* Numbers that stand for others; those that are not among the keys become the default. */
static void label_encoder(mica_onnx_importing *n)
{
    mica_onnx_ref keys = numbers(n, "keys_int64s", "keys_floats");
    mica_onnx_ref values = numbers(n, "values_int64s", "values_floats");
    if (n->failed)
        return;
    mica_dtype dtype = mica_onnx_shape(n, values)->dtype;
    mica_index count = mica_onnx_shape(n, keys)->dim[0];
    if (mica_onnx_shape(n, values)->dim[0] != count) {
        (void)mica_onnx_bad(n, "%td keys and %td values", count, mica_onnx_shape(n, values)->dim[0]);
        return;
    }
    mica_onnx_ref otherwise = dtype == MICA_I64
                                  ? mica_onnx_vector(n, (int64_t[]){mica_onnx_int(n, "default_int64", -1)}, 1)
                                  : mica_onnx_scalar(n, MICA_F32,
                                                     (double)mica_onnx_float(n, "default_float", -0.0f));
    mica_onnx_ref at = places(n, mica_onnx_cast(n, n->in[0], mica_onnx_shape(n, keys)->dtype), keys);
    mica_onnx_ref found = mica_onnx_op1(n, "amax", at, &(mica_reduction_opts){.axes = {-1}, .count = 1});
    at = mica_onnx_op1(n, "argmax", at, &(mica_arg_opts){.axis = -1, .wide = true});
    at = mica_onnx_op2(n, "take", values, at, &(mica_axis_opts){.axis = 0});
    found = mica_onnx_cast(n, found, MICA_BOOL);
    mica_onnx_give(n, 0, mica_onnx_op(n, "where", (mica_onnx_ref[]){found, at, otherwise}, 3, NULL));
}

/* ---- Linear models ---- */

/* x [B, N] times coefficients [rows, N], plus intercepts. */
static mica_onnx_ref linear(mica_onnx_importing *n, mica_index rows)
{
    mica_onnx_ref x = mica_onnx_rows(n);
    mica_index dims[] = {rows, mica_onnx_shape(n, x)->dim[1]};
    mica_onnx_ref w = mica_onnx_permute(n, mica_onnx_floats(n, "coefficients", 2, dims), (int[]){1, 0});
    mica_onnx_ref y = mica_onnx_op2(n, "matmul", x, w, NULL);
    return mica_onnx_count_of(n, "intercepts") > 0
               ? mica_onnx_op2(n, "add", y, mica_onnx_floats(n, "intercepts", 1, &rows), NULL)
               : y;
}

mica_onnx_ref mica_onnx_transformed(mica_onnx_importing *n, mica_onnx_ref y)
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
    mica_onnx_give(n, 0, mica_onnx_transformed(n, linear(n, (mica_index)mica_onnx_int(n, "targets", 1))));
}

/* ---- Classes ---- */

size_t mica_onnx_classes(const mica_onnx_importing *n)
{
    size_t classes = mica_onnx_count_of(n, "classlabels_ints") + mica_onnx_count_of(n, "classlabels_int64s");
    return classes > 0 ? classes : mica_onnx_count_of(n, "classlabels_strings");
}

void mica_onnx_give_labels(mica_onnx_importing *n, mica_onnx_ref classes)
{
    const mica_onnx_attribute *labels = mica_onnx_find(n, "classlabels_ints");
    if (!mica_onnx_wants(n, 0))
        return;
    if (labels == NULL)
        labels = mica_onnx_find(n, "classlabels_int64s");
    if (labels == NULL || labels->kind != MICA_ONNX_INTS) {
        if (labels == NULL)
            (void)mica_onnx_unsupported(n, "labels that are strings");
        else
            (void)mica_onnx_bad(n, "attribute \"%s\" is no list of integers", labels->name);
        return;
    }
    mica_onnx_ref names = mica_onnx_vector(n, labels->ints, (int)labels->count);
    mica_onnx_give(n, 0, mica_onnx_op2(n, "take", names, classes, &(mica_axis_opts){.axis = 0}));
}

static void linear_classifier(mica_onnx_importing *n)
{
    size_t classes = mica_onnx_classes(n), intercepts = mica_onnx_count_of(n, "intercepts");
    if (classes < 2 || intercepts < classes) {
        (void)mica_onnx_unsupported(n, "%zu classes with %zu intercepts", classes, intercepts);
        return;
    }
    mica_onnx_ref scores = linear(n, (mica_index)classes);
    mica_onnx_give(n, 1, mica_onnx_transformed(n, scores));
    mica_onnx_give_labels(n, mica_onnx_op1(n, "argmax", scores, &(mica_arg_opts){.axis = 1, .wide = true}));
}

const mica_onnx_operator mica_onnx_ml_operators[] = {
    {"ai.onnx.ml:ArrayFeatureExtractor", 1, array_feature_extractor},
    {"ai.onnx.ml:Binarizer", 1, binarizer},
    {"ai.onnx.ml:Scaler", 1, scaler},
    {"ai.onnx.ml:Normalizer", 1, normalizer},
    {"ai.onnx.ml:Imputer", 1, imputer},
    {"ai.onnx.ml:LabelEncoder", 2, label_encoder},
    {"ai.onnx.ml:OneHotEncoder", 1, one_hot_encoder},
    {"ai.onnx.ml:LinearRegressor", 1, linear_regressor},
    {"ai.onnx.ml:LinearClassifier", 1, linear_classifier},
    {"ai.onnx.ml:TreeEnsembleRegressor", 1, mica_onnx_tree_regressor},
    {"ai.onnx.ml:TreeEnsembleClassifier", 1, mica_onnx_tree_classifier},
    {NULL, 0, NULL}};
