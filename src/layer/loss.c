/* Losses as layers: the operations themselves. */
#include <mica/layers.h>

#include "node/entry.h"

static mica_value add_loss(mica_net *net, const char *kind, const mica_op *op, mica_value x,
                           mica_value target, const mica_net_loss_opts *opts)
{
    static const mica_net_loss_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_weighted_loss_opts how = {.loss = {.delta = opts->delta,
                                            .smoothing = opts->smoothing,
                                            .ignore = opts->ignore,
                                            .ignore_index = opts->ignore_index},
                                   .weight = opts->weight};
    mica_net_layer_begin(net, kind, opts->name, x);
    return mica_net_layer_end(net, mica_net_call(net, NULL, op, (mica_value[]){x, target}, 2, &how));
}

#define LOSS(layer, op)                                                         \
    mica_value mica_net_##layer(mica_net *net, mica_value x, mica_value target, \
                                const mica_net_loss_opts *opts)                 \
    {                                                                           \
        return add_loss(net, #layer, &mica_op_##op, x, target, opts);           \
    }

LOSS(mse, mse_loss)
LOSS(l1, l1_loss)
LOSS(huber, huber_loss)
LOSS(bce, bce_loss)
LOSS(bce_logits, bce_logits_loss)
LOSS(cross_entropy, cross_entropy)
LOSS(cross_entropy_probs, cross_entropy_probs)
