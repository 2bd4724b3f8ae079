/* Softmax and log-softmax along an axis. */
#include <mica/layers.h>

#include "node/entry.h"

static mica_value build(mica_net *net, mica_value x, const mica_op *op, const mica_net_softmax_opts *opts)
{
    static const mica_net_softmax_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_axis_opts along = {opts->axis != 0 ? opts->axis : -1};
    mica_tensor t;
    mica_net_layer_begin(net, op->name, opts->name, x);
    if (mica_net_shape(net, &t, x) != MICA_OK)
        return mica_net_layer_end(net, 0);
    if (t.dtype != MICA_F32)
        return mica_net_layer_fail(net, MICA_ERR_DTYPE, "expected f32, got %s", mica_dtype_name(t.dtype));
    if (along.axis < -t.rank || along.axis >= t.rank)
        return mica_net_layer_fail(net, MICA_ERR_AXIS, "axis %d of a tensor of rank %d", along.axis, t.rank);
    return mica_net_layer_end(net, mica_net_call(net, NULL, op, &x, 1, &along));
}

mica_value mica_net_softmax(mica_net *net, mica_value x, const mica_net_softmax_opts *opts)
{
    return build(net, x, &mica_op_softmax, opts);
}

mica_value mica_net_log_softmax(mica_net *net, mica_value x, const mica_net_softmax_opts *opts)
{
    return build(net, x, &mica_op_log_softmax, opts);
}
