/* Dense: y = x WT + b over the last axis. */
#include <math.h>

#include <mica/layers.h>

#include "net/net.h"
#include "node/entry.h"

mica_value mica_net_dense(mica_net *net, mica_value x, const mica_net_dense_opts *opts)
{
    static const mica_net_dense_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_tensor t;
    mica_net_layer_begin(net, "dense", opts->name, x);
    if (mica_net_shape(net, &t, x) != MICA_OK)
        return mica_net_layer_end(net, 0);
    if (t.dtype != MICA_F32 || t.rank < 1)
        return mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected f32 of rank 1 or more");
    if (opts->units < 1)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "units is %td: expected 1 or more", opts->units);
    mica_index dims[] = {opts->units, t.dim[t.rank - 1]};
    mica_init uniform = {MICA_INIT_UNIFORM, dims[1] > 0 ? 1.0f / sqrtf((float)dims[1]) : 0.0f};
    mica_init start = opts->weight_init.kind != MICA_INIT_DEFAULT ? opts->weight_init : uniform;
    mica_value in[3] = {x};
    in[1] = opts->share_weight != NULL ? mica_net_shared(net, opts->share_weight, 2, dims)
                                       : mica_net_learned(net, "weight", 2, dims, start);
    if (!opts->no_bias)
        in[2] = mica_net_learned(net, "bias", 1, dims,
                                 opts->bias_init.kind != MICA_INIT_DEFAULT ? opts->bias_init : uniform);
    if (!opts->no_bias)
        net->streams++; /* of a temporary that there once was: seeds go on meaning the same weights */
    mica_value y = mica_net_layer_end(net, mica_net_call(net, NULL, &mica_op_linear, in, 3, NULL));
    if (opts->activation == MICA_NO_ACTIVATION)
        return y;
    return mica_net_activation(net, y, &(mica_net_activation_opts){.kind = opts->activation});
}
