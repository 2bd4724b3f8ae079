/* Pooling of images and signals. */
#include <mica/layers.h>

#include "node/entry.h"
#include "node/planes.h"

/* Begins a layer over [N, C, L] or [N, C, H, W]; false if x is none. */
static bool begin(mica_net *net, const char *kind, const char *name, mica_value x, bool flat)
{
    mica_tensor t;
    mica_net_layer_begin(net, kind, name, x);
    if (mica_net_shape(net, &t, x) != MICA_OK) {
        mica_net_layer_end(net, 0);
        return false;
    }
    if (t.dtype == MICA_F32 && t.rank == (flat ? 3 : 4))
        return true;
    mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected f32 [N, C, %s]", flat ? "L" : "H, W");
    return false;
}

static mica_value end(mica_net *net, const mica_op *op, mica_value x, const void *opts)
{
    return mica_net_layer_end(net, mica_net_call(net, NULL, op, &x, 1, opts));
}

/* ---- Windows ---- */

static mica_value add_max(mica_net *net, const char *kind, mica_value x, const mica_net_pool_opts *opts,
                          bool flat)
{
    static const mica_net_pool_opts defaults = {0};
    const mica_net_pool_opts *o = opts != NULL ? opts : &defaults;
    if (!begin(net, kind, o->name, x, flat))
        return 0;
    mica_pooling_opts op = {.ceil_mode = o->ceil_mode};
    mica_plane_sizes(op.kernel, o->kernel, flat, 1, 0);
    mica_plane_sizes(op.stride, o->stride, flat, 0, 0);
    mica_plane_sizes(op.pad, o->pad, flat, 0, 0);
    mica_plane_sizes(op.dilation, o->dilation, flat, 1, 1);
    return end(net, &mica_op_max_pool2d, x, &op); /* also of signals, as conv2d: it can go on with this */
}

mica_value mica_net_max_pool1d(mica_net *net, mica_value x, const mica_net_pool_opts *opts)
{
    return add_max(net, "max_pool1d", x, opts, true);
}

mica_value mica_net_max_pool2d(mica_net *net, mica_value x, const mica_net_pool_opts *opts)
{
    return add_max(net, "max_pool2d", x, opts, false);
}

static mica_value add_average(mica_net *net, const mica_op *op, mica_value x, const mica_net_pool_opts *opts,
                              bool flat)
{
    static const mica_net_pool_opts defaults = {0};
    const mica_net_pool_opts *o = opts != NULL ? opts : &defaults;
    if (!begin(net, op->name, o->name, x, flat))
        return 0;
    return end(net, op, x,
               &(mica_pooling_opts){.kernel = {o->kernel[0], o->kernel[1]},
                                    .stride = {o->stride[0], o->stride[1]},
                                    .pad = {o->pad[0], o->pad[1]},
                                    .dilation = {o->dilation[0], o->dilation[1]},
                                    .ceil_mode = o->ceil_mode,
                                    .exclude_pad = o->exclude_pad});
}

mica_value mica_net_avg_pool1d(mica_net *net, mica_value x, const mica_net_pool_opts *opts)
{
    return add_average(net, &mica_op_avg_pool1d, x, opts, true);
}

mica_value mica_net_avg_pool2d(mica_net *net, mica_value x, const mica_net_pool_opts *opts)
{
    return add_average(net, &mica_op_avg_pool2d, x, opts, false);
}

/* ---- Adaptive average: to a given size ---- */

static mica_value add_adaptive(mica_net *net, const mica_op *op, mica_value x,
                               const mica_net_adaptive_pool_opts *opts, bool flat)
{
    static const mica_net_adaptive_pool_opts defaults = {0};
    const mica_net_adaptive_pool_opts *o = opts != NULL ? opts : &defaults;
    if (!begin(net, op->name, o->name, x, flat))
        return 0;
    return end(net, op, x, &(mica_adaptive_pool_opts){.size = {o->size[0], o->size[1]}});
}

mica_value mica_net_adaptive_avg_pool1d(mica_net *net, mica_value x, const mica_net_adaptive_pool_opts *opts)
{
    return add_adaptive(net, &mica_op_adaptive_avg_pool1d, x, opts, true);
}

mica_value mica_net_adaptive_avg_pool2d(mica_net *net, mica_value x, const mica_net_adaptive_pool_opts *opts)
{
    return add_adaptive(net, &mica_op_adaptive_avg_pool2d, x, opts, false);
}

/* ---- Global average ---- */

mica_value mica_net_global_avg_pool(mica_net *net, mica_value x, const mica_net_global_pool_opts *opts)
{
    mica_tensor t;
    mica_net_layer_begin(net, "global_avg_pool", opts != NULL ? opts->name : NULL, x);
    if (mica_net_shape(net, &t, x) != MICA_OK)
        return mica_net_layer_end(net, 0);
    if (t.dtype != MICA_F32 || t.rank < 3)
        return mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected f32 [N, C, ...] of rank 3 or more");
    return end(net, &mica_op_global_avg_pool, x,
               &(mica_global_pool_opts){.keep = opts != NULL && opts->keep});
}
