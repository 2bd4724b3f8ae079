/* Batch, layer, RMS, group and instance norm. */
#include <mica/layers.h>

#include "node/entry.h"

/* A learned "weight", 1 at first, and "bias", 0. */
static mica_value weight(mica_net *net, int rank, const mica_index *dims)
{
    return mica_net_learned(net, "weight", rank, dims, (mica_init){MICA_INIT_CONSTANT, 1.0f});
}

static mica_value bias(mica_net *net, int rank, const mica_index *dims)
{
    return mica_net_learned(net, "bias", rank, dims, (mica_init){MICA_INIT_CONSTANT, 0.0f});
}

/* Whether x is f32 [N, C, ...]; else the layer has failed or ended. */
static bool has_channels(mica_net *net, mica_tensor *t, mica_value x)
{
    if (mica_net_shape(net, t, x) != MICA_OK)
        (void)mica_net_layer_end(net, 0);
    else if (t->dtype != MICA_F32 || t->rank < 2)
        (void)mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected f32 [N, C, ...] of rank 2 or more");
    else
        return true;
    return false;
}

/* ---- Batch norm ---- */

mica_value mica_net_batch_norm(mica_net *net, mica_value x, const mica_net_batch_norm_opts *opts)
{
    static const mica_net_batch_norm_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_tensor t;
    mica_net_layer_begin(net, "batch_norm", opts->name, x);
    if (!has_channels(net, &t, x))
        return 0;
    if (opts->momentum < 0.0f || opts->momentum > 1.0f)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "momentum is %g: expected 0 to 1",
                                   (double)opts->momentum);
    const mica_index *channels = &t.dim[1];
    mica_value in[5] = {x};
    if (!opts->no_affine) {
        in[1] = weight(net, 1, channels);
        in[2] = bias(net, 1, channels);
    }
    in[3] = mica_net_kept(net, "running_mean", MICA_KEPT_STATISTICS, MICA_F32, 1, channels, 0.0f);
    in[4] = mica_net_kept(net, "running_var", MICA_KEPT_STATISTICS, MICA_F32, 1, channels, 1.0f);
    mica_norm_opts how = {.eps = opts->eps, .momentum = opts->momentum};
    return mica_net_layer_end(net, mica_net_call(net, NULL, &mica_op_batch_norm, in, 5, &how));
}

/* ---- Layer and RMS norm ---- */

static mica_value over_rows(mica_net *net, mica_value x, const mica_op *op,
                            const mica_net_layer_norm_opts *opts, const mica_norm_opts *how, bool with_bias)
{
    mica_tensor t;
    mica_net_layer_begin(net, op->name, opts->name, x);
    if (mica_net_shape(net, &t, x) != MICA_OK)
        return mica_net_layer_end(net, 0);
    int axes = opts->axes != 0 ? opts->axes : 1;
    if (t.dtype != MICA_F32 || axes < 1 || axes > t.rank)
        return mica_net_layer_fail(net, MICA_ERR_SHAPE,
                                   "expected f32 with at least %d axes to normalize over", axes);
    const mica_index *dims = t.dim + t.rank - axes;
    mica_value in[3] = {x};
    if (!opts->no_affine)
        in[1] = weight(net, axes, dims);
    if (!opts->no_affine && with_bias)
        in[2] = bias(net, axes, dims);
    return mica_net_layer_end(net, mica_net_call(net, NULL, op, in, op->ins + op->optional_ins, how));
}

mica_value mica_net_layer_norm(mica_net *net, mica_value x, const mica_net_layer_norm_opts *opts)
{
    static const mica_net_layer_norm_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_norm_opts how = {.eps = opts->eps, .axes = opts->axes};
    return over_rows(net, x, &mica_op_layer_norm, opts, &how, !opts->no_bias);
}

mica_value mica_net_rms_norm(mica_net *net, mica_value x, const mica_net_layer_norm_opts *opts)
{
    static const mica_net_layer_norm_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_norm_opts how = {.eps = opts->eps != 0.0f ? opts->eps : 1.1920929e-7f, .axes = opts->axes};
    return over_rows(net, x, &mica_op_rms_norm, opts, &how, false);
}

/* ---- Group and instance norm ---- */

static mica_value over_channels(mica_net *net, mica_value x, const mica_op *op, const mica_tensor *t,
                                bool affine, const mica_norm_opts *how)
{
    mica_value in[3] = {x};
    if (affine) {
        in[1] = weight(net, 1, &t->dim[1]);
        in[2] = bias(net, 1, &t->dim[1]);
    }
    return mica_net_layer_end(net, mica_net_call(net, NULL, op, in, 3, how));
}

mica_value mica_net_group_norm(mica_net *net, mica_value x, const mica_net_group_norm_opts *opts)
{
    static const mica_net_group_norm_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_tensor t;
    mica_net_layer_begin(net, "group_norm", opts->name, x);
    if (!has_channels(net, &t, x))
        return 0;
    mica_index groups = opts->groups != 0 ? opts->groups : 1;
    if (groups < 1 || t.dim[1] % groups != 0)
        return mica_net_layer_fail(net, MICA_ERR_SHAPE,
                                   "expected a multiple of %td groups in dimension 1, got %td", groups,
                                   t.dim[1]);
    mica_norm_opts how = {.eps = opts->eps, .groups = opts->groups};
    return over_channels(net, x, &mica_op_group_norm, &t, !opts->no_affine, &how);
}

mica_value mica_net_instance_norm(mica_net *net, mica_value x, const mica_net_group_norm_opts *opts)
{
    static const mica_net_group_norm_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_tensor t;
    mica_net_layer_begin(net, "instance_norm", opts->name, x);
    if (!has_channels(net, &t, x))
        return 0;
    return over_channels(net, x, &mica_op_instance_norm, &t, opts->affine,
                         &(mica_norm_opts){.eps = opts->eps});
}
