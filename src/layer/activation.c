/* Activations as layers. */
#include <mica/layers.h>

#include "node/entry.h"
#include "ops/activation.h"

mica_value mica_net_activation(mica_net *net, mica_value x, const mica_net_activation_opts *opts)
{
    int kind = opts != NULL ? (int)opts->kind : 0;
    if (kind <= MICA_NO_ACTIVATION || kind >= MICA_ACTIVATION_COUNT)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "unknown activation %d", kind);
    const mica_op *op = mica_activation_ops[kind];
    if (op == NULL)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT,
                               "activation %s is not part of this build (MICA_ACTIVATIONS)",
                               mica_activation_name((mica_activation)kind));
    mica_scalar_opts slope = {opts->slope != 0.0f ? opts->slope : kind == MICA_LEAKY_RELU ? 0.01f : 1.0f};
    mica_net_layer_begin(net, op->name, opts->name, x);
    return mica_net_layer_end(net, mica_net_call(net, NULL, op, &x, 1, op->opts_bytes > 0 ? &slope : NULL));
}
