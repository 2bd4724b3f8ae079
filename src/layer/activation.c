/* Activations as layers. */
#include <mica/layers.h>

#include "node/entry.h"

static const mica_op *const activations[MICA_ACTIVATION_COUNT] = {
    [MICA_RELU] = &mica_op_relu,
    [MICA_RELU6] = &mica_op_relu6,
    [MICA_LEAKY_RELU] = &mica_op_leaky_relu,
    [MICA_ELU] = &mica_op_elu,
    [MICA_SIGMOID] = &mica_op_sigmoid,
    [MICA_TANH] = &mica_op_tanh,
    [MICA_SOFTPLUS] = &mica_op_softplus,
    [MICA_SILU] = &mica_op_silu,
    [MICA_GELU] = &mica_op_gelu,
    [MICA_GELU_TANH] = &mica_op_gelu_tanh,
    [MICA_HARD_SWISH] = &mica_op_hard_swish,
};

mica_value mica_net_activation(mica_net *net, mica_value x, const mica_net_activation_opts *opts)
{
    int kind = opts != NULL ? (int)opts->kind : 0;
    if (kind <= MICA_NO_ACTIVATION || kind >= MICA_ACTIVATION_COUNT)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "unknown activation %d", kind);
    const mica_op *op = activations[kind];
    mica_scalar_opts slope = {opts->slope != 0.0f ? opts->slope : kind == MICA_LEAKY_RELU ? 0.01f : 1.0f};
    mica_net_layer_begin(net, op->name, opts->name, x);
    return mica_net_layer_end(net, mica_net_call(net, NULL, op, &x, 1, op->opts_bytes > 0 ? &slope : NULL));
}
