/* Layers that reshape, and layers that move elements. */
#include <string.h>

#include <mica/layers.h>

#include "node/entry.h"

/* A layer that is one call. */
static mica_value add(mica_net *net, const mica_op *op, const char *name, mica_value x, const void *opts)
{
    mica_net_layer_begin(net, op->name, name, x);
    return mica_net_layer_end(net, mica_net_call(net, NULL, op, &x, 1, opts));
}

/* ---- Views: nothing runs ---- */

mica_value mica_net_flatten(mica_net *net, mica_value x, const mica_net_flatten_opts *opts)
{
    mica_flatten_opts axes = {0};
    if (opts != NULL)
        axes = (mica_flatten_opts){opts->first, opts->last};
    return add(net, &mica_op_flatten, opts != NULL ? opts->name : NULL, x, &axes);
}

mica_value mica_net_reshape(mica_net *net, mica_value x, const mica_net_reshape_opts *opts)
{
    mica_shape_opts shape = {.rank = opts != NULL ? opts->rank : 0};
    if (opts != NULL)
        memcpy(shape.dims, opts->dims, sizeof shape.dims);
    return add(net, &mica_op_reshape, opts != NULL ? opts->name : NULL, x, &shape);
}

mica_value mica_net_squeeze(mica_net *net, mica_value x, const mica_net_axis_opts *opts)
{
    return add(net, &mica_op_squeeze, opts != NULL ? opts->name : NULL, x,
               &(mica_axis_opts){opts != NULL ? opts->axis : 0});
}

mica_value mica_net_unsqueeze(mica_net *net, mica_value x, const mica_net_axis_opts *opts)
{
    return add(net, &mica_op_unsqueeze, opts != NULL ? opts->name : NULL, x,
               &(mica_axis_opts){opts != NULL ? opts->axis : 0});
}

/* ---- Copies ---- */

mica_value mica_net_permute(mica_net *net, mica_value x, const mica_net_permute_opts *opts)
{
    mica_permute_opts axes = {{0}};
    if (opts != NULL)
        memcpy(axes.axes, opts->axes, sizeof axes.axes);
    return add(net, &mica_op_permute, opts != NULL ? opts->name : NULL, x, &axes);
}

mica_value mica_net_transpose(mica_net *net, mica_value x, const mica_net_transpose_opts *opts)
{
    mica_transpose_opts axes = {0};
    if (opts != NULL)
        axes = (mica_transpose_opts){opts->a, opts->b};
    return add(net, &mica_op_transpose, opts != NULL ? opts->name : NULL, x, &axes);
}

mica_value mica_net_slice(mica_net *net, mica_value x, const mica_net_slice_opts *opts)
{
    mica_slice_range_opts range = {0};
    if (opts != NULL)
        range = (mica_slice_range_opts){opts->axis, opts->start, opts->stop, opts->step};
    return add(net, &mica_op_slice, opts != NULL ? opts->name : NULL, x, &range);
}

mica_value mica_net_pad(mica_net *net, mica_value x, const mica_net_pad_opts *opts)
{
    static const mica_net_pad_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_tensor t;
    mica_net_layer_begin(net, "pad", opts->name, x);
    if (mica_net_shape(net, &t, x) != MICA_OK)
        return mica_net_layer_end(net, 0);
    if (t.dtype != MICA_F32)
        return mica_net_layer_fail(net, MICA_ERR_DTYPE, "expected f32, got %s", mica_dtype_name(t.dtype));
    return mica_net_layer_end(net, mica_net_call(net, NULL, &mica_op_pad, &x, 1, &opts->pad));
}

mica_value mica_net_concat(mica_net *net, const mica_value *values, int count, const mica_net_axis_opts *opts)
{
    if (count < 1)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "concat of %d values", count);
    int most = mica_op_concat.ins + mica_op_concat.optional_ins;
    if (count > most)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "concat of %d inputs: expected at most %d", count,
                               most);
    if (values == NULL)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "concat: the list of values is NULL");
    mica_net_layer_begin(net, "concat", opts != NULL ? opts->name : NULL, values[0]);
    return mica_net_layer_end(net, mica_net_call(net, NULL, &mica_op_concat, values, count,
                                                 &(mica_axis_opts){opts != NULL ? opts->axis : 0}));
}
