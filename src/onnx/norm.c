/* Normalization, and softmax in its forms. */
#include <string.h>

#include "onnx/compose.h"

/* ---- Over the last axes ---- */

/* How many axes from `axis` on; 0 after an error. */
static int trailing(mica_onnx_importing *n)
{
    const mica_tensor *x = mica_onnx_shape(n, n->in[0]);
    int axis = mica_onnx_axis(n, mica_onnx_int(n, "axis", -1), n->in[0]);
    return n->failed ? 0 : x->rank - axis;
}

/* Input `number` has exactly the shape of the axes that are normalized over. */
static bool fits_rows(mica_onnx_importing *n, int number, int axes)
{
    const mica_tensor *x = mica_onnx_shape(n, n->in[0]);
    mica_onnx_ref ref = number < n->ins ? n->in[number] : 0;
    return ref == 0 || mica_onnx_has_shape(n, ref, axes, x->dim + x->rank - axes);
}

/* A statistic of the leading axes, with the others as size 1. */
static mica_onnx_ref keep_axes(mica_onnx_importing *n, mica_onnx_ref statistic, int axes)
{
    mica_index dims[MICA_MAX_RANK];
    const mica_tensor *x = mica_onnx_shape(n, n->in[0]);
    for (int k = 0; k < x->rank; k++)
        dims[k] = k < x->rank - axes ? x->dim[k] : 1;
    return mica_onnx_reshape(n, statistic, x->rank, dims);
}

/* The mean, and 1 / sqrt(variance + eps), by operations that have a gradient, as what layer_norm gives has not. */
static void by_rows(mica_onnx_importing *n, mica_onnx_ref x, int axes, float eps, mica_onnx_ref *mean,
                    mica_onnx_ref *rstd)
{
    mica_reduction_opts opts = {.count = axes, .keep = true};
    for (int k = 0; k < axes; k++)
        opts.axes[k] = mica_onnx_shape(n, x)->rank - axes + k;
    *mean = mica_onnx_op1(n, "mean", x, &opts);
    *rstd = mica_onnx_op1(n, "rsqrt", mica_onnx_plus(n, mica_onnx_op1(n, "variance", x, &opts), eps), NULL);
}

/* The statistics in the type that they are computed in ("stash_type"): f32 by default. */
static void give_statistic(mica_onnx_importing *n, int number, mica_onnx_ref ref)
{
    if (mica_onnx_wants(n, number))
        mica_onnx_give(n, number,
                       mica_onnx_cast(n, ref, mica_onnx_dtype_of(n, mica_onnx_int(n, "stash_type", 1))));
}

static void layer_normalization(mica_onnx_importing *n)
{
    int axes = trailing(n);
    mica_norm_opts opts = {.eps = mica_onnx_not_0(mica_onnx_float(n, "epsilon", 1e-5f)), .axes = axes};
    mica_onnx_ref x = mica_onnx_f32(n, 0), scale = mica_onnx_f32(n, 1), bias = mica_onnx_f32(n, 2), y;
    bool fused = fits_rows(n, 1, axes) && fits_rows(n, 2, axes);
    y = mica_onnx_op(n, "layer_norm", (mica_onnx_ref[]){x, fused ? scale : 0, fused ? bias : 0}, 3, &opts);
    mica_onnx_ref mean = mica_onnx_result(n, y, 1), rstd = mica_onnx_result(n, y, 2);
    if (mica_onnx_training(n) && (mica_onnx_wants(n, 1) || mica_onnx_wants(n, 2)))
        by_rows(n, x, axes, opts.eps, &mean, &rstd);
    if (!fused) {
        y = mica_onnx_mul(n, y, scale);
        y = bias != 0 ? mica_onnx_add(n, y, bias) : y;
    }
    mica_onnx_give_like(n, 0, y, n->in[0]);
    if (mica_onnx_wants(n, 1))
        give_statistic(n, 1, keep_axes(n, mean, axes));
    if (mica_onnx_wants(n, 2))
        give_statistic(n, 2, keep_axes(n, rstd, axes));
}

static void rms_normalization(mica_onnx_importing *n)
{
    int axes = trailing(n);
    mica_norm_opts opts = {.eps = mica_onnx_not_0(mica_onnx_float(n, "epsilon", 1e-5f)), .axes = axes};
    mica_onnx_ref scale = mica_onnx_f32(n, 1);
    bool fused = fits_rows(n, 1, axes);
    mica_onnx_ref y = mica_onnx_op2(n, "rms_norm", mica_onnx_f32(n, 0), fused ? scale : 0, &opts);
    mica_onnx_give_like(n, 0, fused ? y : mica_onnx_mul(n, y, scale), n->in[0]);
}

/* (x + skip + bias), normalized: what exported transformers carry. */
static void skip_norm(mica_onnx_importing *n, const char *op, int bias_number)
{
    mica_norm_opts opts = {.eps = mica_onnx_not_0(mica_onnx_float(n, "epsilon", 1e-12f))};
    bool simplified = strcmp(op, "rms_norm") == 0;
    mica_onnx_ref sum = mica_onnx_add(n, mica_onnx_f32(n, 0), mica_onnx_f32(n, 1));
    mica_onnx_ref bias = mica_onnx_f32(n, bias_number);
    sum = bias != 0 ? mica_onnx_add(n, sum, bias) : sum;
    mica_onnx_ref in[] = {sum, mica_onnx_f32(n, 2), simplified ? 0 : mica_onnx_f32(n, 3)};
    mica_onnx_give_like(n, 0, mica_onnx_op(n, op, in, simplified ? 2 : 3, &opts), n->in[0]);
    if (mica_onnx_wants(n, 3))
        mica_onnx_give_like(n, 3, sum, n->in[0]);
}

static void skip_layer_normalization(mica_onnx_importing *n) { skip_norm(n, "layer_norm", 4); }
static void skip_simplified(mica_onnx_importing *n) { skip_norm(n, "rms_norm", 3); }

/* ---- By channel ---- */

static mica_onnx_ref channels_of(mica_onnx_importing *n, const char *op, const mica_norm_opts *opts,
                                 mica_onnx_ref scale, mica_onnx_ref bias)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    return mica_onnx_op(n, op, (mica_onnx_ref[]){x, scale, bias}, 3, opts);
}

static void instance_normalization(mica_onnx_importing *n)
{
    mica_norm_opts opts = {.eps = mica_onnx_not_0(mica_onnx_float(n, "epsilon", 1e-5f))};
    mica_onnx_ref y = channels_of(n, "instance_norm", &opts, mica_onnx_f32(n, 1), mica_onnx_f32(n, 2));
    mica_onnx_give_like(n, 0, y, n->in[0]);
}

/* [groups] as [C]: what opset 18 has for each group, for each channel. */
static mica_onnx_ref by_group(mica_onnx_importing *n, mica_onnx_ref ref, mica_index groups)
{
    mica_index each = groups > 0 ? mica_onnx_shape(n, n->in[0])->dim[1] / groups : 0;
    ref = mica_onnx_reshape(n, ref, 2, (mica_index[]){groups, 1});
    ref = mica_onnx_expand(n, ref, 2, (mica_index[]){groups, each});
    return mica_onnx_reshape(n, ref, 1, (mica_index[]){groups * each});
}

static void group_normalization(mica_onnx_importing *n)
{
    const mica_tensor *x = mica_onnx_shape(n, n->in[0]);
    int64_t groups = mica_onnx_int(n, "num_groups", 0);
    if (x->rank < 2 || groups < 1 || groups > INT32_MAX || x->dim[1] % groups != 0) {
        (void)mica_onnx_bad(n, "%lld groups of channels of %s", (long long)groups, MICA_SHAPE(x));
        return;
    }
    mica_norm_opts opts = {.eps = mica_onnx_not_0(mica_onnx_float(n, "epsilon", 1e-5f)),
                           .groups = (int)groups};
    mica_onnx_ref scale = mica_onnx_f32(n, 1), bias = mica_onnx_f32(n, 2);
    if (n->opset < 21) {
        scale = by_group(n, scale, (mica_index)groups);
        bias = by_group(n, bias, (mica_index)groups);
    }
    mica_onnx_give_like(n, 0, channels_of(n, "group_norm", &opts, scale, bias), n->in[0]);
}

/* ---- Batch normalization ---- */

/* y = x a + b by channel: a = scale / sqrt(var + eps), b = bias - mean a. Of constants both are constants, and a
 * convolution before it may take them in. */
static mica_onnx_ref by_statistics(mica_onnx_importing *n, mica_onnx_ref x, mica_onnx_ref mean,
                                   mica_onnx_ref var)
{
    float eps = mica_onnx_float(n, "epsilon", 1e-5f);
    int rank = mica_onnx_shape(n, x)->rank;
    mica_onnx_ref rstd = mica_onnx_op1(n, "rsqrt", mica_onnx_plus(n, var, eps), NULL);
    mica_onnx_ref factor = mica_onnx_mul(n, mica_onnx_f32(n, 1), rstd);
    mica_onnx_ref shift = mica_onnx_sub(n, mica_onnx_f32(n, 2), mica_onnx_mul(n, mean, factor));
    mica_onnx_ref y = mica_onnx_mul(n, x, mica_onnx_by_channel(n, factor, rank));
    return mica_onnx_add(n, y, mica_onnx_by_channel(n, shift, rank));
}

/* The batch's own statistics; `running` = momentum running + (1 - momentum) batch. */
static void by_batch(mica_onnx_importing *n, mica_onnx_ref x)
{
    mica_reduction_opts opts = {.count = 0};
    float momentum = mica_onnx_float(n, "momentum", 0.9f);
    for (int k = 0; k < mica_onnx_shape(n, x)->rank; k++)
        if (k != 1)
            opts.axes[opts.count++] = k;
    mica_onnx_ref mean = mica_onnx_op1(n, "mean", x, &opts), var = mica_onnx_op1(n, "variance", x, &opts);
    mica_onnx_give_like(n, 0, by_statistics(n, x, mean, var), n->in[0]);
    const mica_onnx_ref batch[] = {mean, var};
    for (int k = 1; k <= 2; k++) {
        mica_onnx_ref before = mica_onnx_scale(n, mica_onnx_f32(n, 2 + k), momentum);
        mica_onnx_ref now = mica_onnx_scale(n, batch[k - 1], 1.0f - momentum);
        if (mica_onnx_wants(n, k))
            mica_onnx_give_like(n, k, mica_onnx_add(n, before, now), n->in[2 + k]);
    }
}

/* In a net that is trained: the batch's statistics in training steps, running ones otherwise. What a model that was
 * exported for training gives of them are the running ones, moved. */
static void learned(mica_onnx_importing *n, mica_onnx_ref x)
{
    mica_norm_opts opts = {.eps = mica_onnx_not_0(mica_onnx_float(n, "epsilon", 1e-5f)),
                           .momentum = mica_onnx_not_0(1.0f - mica_onnx_float(n, "momentum", 0.9f))};
    mica_onnx_ref in[] = {x, mica_onnx_f32(n, 1), mica_onnx_f32(n, 2), mica_onnx_kept(n, n->in[3], 0),
                          mica_onnx_kept(n, n->in[4], 1)};
    mica_onnx_give_like(n, 0, mica_onnx_op(n, "batch_norm", in, 5, &opts), n->in[0]);
    for (int k = 1; k <= 2; k++)
        if (mica_onnx_wants(n, k))
            mica_onnx_give(n, k, mica_onnx_op1(n, "copy", in[2 + k], NULL));
}

/* Whether what stands at input `number` is a weight of the model. */
static bool is_weight(mica_onnx_importing *n, int number)
{
    return mica_onnx_shape(n, n->in[number])->dtype == MICA_F32 &&
           mica_onnx_shape(n, n->in[number])->data != NULL;
}

static void batch_normalization(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    const mica_tensor *shape = mica_onnx_shape(n, x);
    bool more = mica_onnx_wants(n, 1) || mica_onnx_wants(n, 2) || mica_onnx_wants(n, 3) ||
                mica_onnx_wants(n, 4);
    if (n->ins < 5 || shape->rank < 2)
        (void)mica_onnx_bad(n, "%d inputs, the first %s: expected 5, the first [N, C, ...]", n->ins,
                            MICA_SHAPE(shape));
    else if (mica_onnx_int(n, "spatial", 1) == 0)
        (void)mica_onnx_unsupported(n, "spatial 0, statistics of each element");
    else if (n->opset < 14 && more)
        (void)mica_onnx_unsupported(n, "running statistics as outputs before opset 14");
    else if (mica_onnx_training(n) && is_weight(n, 3) && is_weight(n, 4))
        learned(n, x);
    else if (mica_onnx_int(n, "training_mode", 0) != 0)
        by_batch(n, x);
    else
        mica_onnx_give_like(n, 0, by_statistics(n, x, mica_onnx_f32(n, 3), mica_onnx_f32(n, 4)), n->in[0]);
}

/* ---- By a norm, or by mean and variance ---- */

static void lp_normalization(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    int64_t p = mica_onnx_int(n, "p", 2);
    mica_reduction_opts opts = {.axes = {mica_onnx_axis(n, mica_onnx_int(n, "axis", -1), x)},
                                .count = 1,
                                .keep = true,
                                .kind = p == 1 ? MICA_NORM_L1 : MICA_NORM_L2};
    if (p != 1 && p != 2)
        (void)mica_onnx_bad(n, "p is %lld: expected 1 or 2", (long long)p);
    mica_onnx_ref norm = mica_onnx_op1(n, "norm", x, &opts);
    mica_onnx_give_like(n, 0, mica_onnx_div(n, x, norm), n->in[0]);
}

static void mean_variance_normalization(mica_onnx_importing *n)
{
    int64_t axes[MICA_MAX_RANK] = {0, 2, 3};
    int given = mica_onnx_int_list(n, "axes", axes, MICA_MAX_RANK);
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    mica_reduction_opts opts = {.count = given >= 0 ? given : 3, .keep = true};
    for (int k = 0; k < opts.count; k++)
        opts.axes[k] = mica_onnx_axis(n, axes[k], x);
    mica_onnx_ref apart = mica_onnx_sub(n, x, mica_onnx_op1(n, "mean", x, &opts));
    mica_onnx_ref deviation = mica_onnx_op1(n, "sqrt", mica_onnx_op1(n, "variance", x, &opts), NULL);
    mica_onnx_give_like(n, 0, mica_onnx_div(n, apart, mica_onnx_plus(n, deviation, 1e-9f)), n->in[0]);
}

/* ---- Softmax ---- */

static mica_onnx_ref hardmax_of(mica_onnx_importing *n, mica_onnx_ref x, int axis)
{
    mica_index dims[MICA_MAX_RANK];
    const mica_tensor *shape = mica_onnx_shape(n, x);
    for (int k = 0; k < shape->rank; k++)
        dims[k] = k == axis ? shape->dim[k] : 1;
    mica_make_opts range = {.rank = 1, .dims = {shape->rank > 0 ? dims[axis] : 1}, .dtype = MICA_F32};
    int rank = shape->rank;
    mica_onnx_ref first = mica_onnx_op1(n, "argmax", x, &(mica_arg_opts){.axis = axis, .keep = true});
    mica_onnx_ref places = mica_onnx_reshape(n, mica_onnx_op(n, "range", NULL, 0, &range), rank, dims);
    return mica_onnx_op2(n, "eq", mica_onnx_cast(n, first, MICA_F32), places, NULL);
}

static mica_onnx_ref softmax_of(mica_onnx_importing *n, const char *op, mica_onnx_ref x, int axis)
{
    if (strcmp(op, "hardmax") == 0)
        return hardmax_of(n, x, axis);
    return mica_onnx_op1(n, op, x, &(mica_axis_opts){axis});
}

/* Before opset 13 x is a matrix, whose rows are the axes from `axis` on. */
static void softmax_like(mica_onnx_importing *n, const char *op)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0), y;
    mica_tensor shape = *mica_onnx_shape(n, x);
    bool rows = n->opset < 13;
    int axis = mica_onnx_axis(n, mica_onnx_int(n, "axis", rows ? 1 : -1), x);
    if (n->failed)
        return;
    mica_index flat[] = {1, 1};
    for (int k = 0; k < shape.rank; k++)
        flat[k < axis ? 0 : 1] *= shape.dim[k];
    if (!rows || axis == shape.rank - 1)
        y = softmax_of(n, op, x, axis);
    else
        y = mica_onnx_reshape(n, softmax_of(n, op, mica_onnx_reshape(n, x, 2, flat), 1), shape.rank,
                              shape.dim);
    mica_onnx_give_like(n, 0, y, n->in[0]);
}

static void softmax(mica_onnx_importing *n) { softmax_like(n, "softmax"); }
static void log_softmax(mica_onnx_importing *n) { softmax_like(n, "log_softmax"); }
static void hardmax(mica_onnx_importing *n) { softmax_like(n, "hardmax"); }

const mica_onnx_operator mica_onnx_norm_operators[] = {
    {"BatchNormalization", 7, batch_normalization},
    {"InstanceNormalization", 1, instance_normalization},
    {"GroupNormalization", 18, group_normalization},
    {"LayerNormalization", 1,
     layer_normalization}, /* of opset 17; earlier in the main domain by onnxruntime's tools */
    {"RMSNormalization", 23, rms_normalization},
    {"SimplifiedLayerNormalization", 1, rms_normalization},
    {"com.microsoft:SkipLayerNormalization", 1, skip_layer_normalization},
    {"com.microsoft:SkipSimplifiedLayerNormalization", 1, skip_simplified},
    {"LpNormalization", 1, lp_normalization},
    {"MeanVarianceNormalization", 9, mean_variance_normalization},
    {"Softmax", 1, softmax},
    {"LogSoftmax", 1, log_softmax},
    {"Hardmax", 1, hardmax},
    {NULL, 0, NULL}};
