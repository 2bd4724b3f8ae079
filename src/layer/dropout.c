/* Dropout. */
#include <mica/layers.h>

#include "node/entry.h"

mica_value mica_net_dropout(mica_net *net, mica_value x, const mica_net_dropout_opts *opts)
{
    static const mica_net_dropout_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_tensor t;
    mica_net_layer_begin(net, "dropout", opts->name, x);
    if (mica_net_shape(net, &t, x) != MICA_OK)
        return mica_net_layer_end(net, 0);
    if (t.dtype != MICA_F32)
        return mica_net_layer_fail(net, MICA_ERR_DTYPE, "expected f32, got %s", mica_dtype_name(t.dtype));
    if (!(opts->rate >= 0.0f && opts->rate <= 1.0f))
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "rate is %g: expected 0 to 1", (double)opts->rate);
    mica_dropout_opts rate = {.rate = opts->rate};
    return mica_net_layer_end(net, mica_net_call(net, NULL, &mica_op_dropout, &x, 1, &rate));
}
