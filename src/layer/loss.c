/* Losses as layers: the operations themselves. */
#include <math.h>
#include <string.h>

#include <mica/layers.h>

#include "net/net.h"
#include "node/entry.h"

/* The weights as a value of the net, which has a copy of them; 0: none, or a failure. */
static mica_value add_class_weights(mica_net *net, const mica_net_loss_opts *opts)
{
    mica_index count = opts->class_weight_count;
    if (opts->class_weights == NULL || mica_net_status(net) != MICA_OK)
        return 0;
    for (mica_index i = 0; i < count; i++)
        if (!(opts->class_weights[i] > 0.0f && isfinite(opts->class_weights[i])))
            return mica_net_layer_fail(net, MICA_ERR_ARGUMENT,
                                       "the weight of class %td is %g: expected one above 0", i,
                                       (double)opts->class_weights[i]);
    float *copy = count > 0 ? mica_net_memory(net, (size_t)count * sizeof(float)) : NULL;
    if (copy == NULL)
        return mica_net_layer_fail(net, count > 0 ? MICA_ERR_MEMORY : MICA_ERR_ARGUMENT, "%td class weights",
                                   count);
    memcpy(copy, opts->class_weights, (size_t)count * sizeof(float));
    mica_tensor weights = mica_1d(copy, count);
    return mica_net_lent(net, "class_weights", &weights);
}

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
                                   .weight = opts->weight,
                                   .plain_scores = opts->class_weights != NULL};
    mica_net_layer_begin(net, kind, opts->name, x);
    mica_value ins[] = {x, target, op->optional_ins > 0 ? add_class_weights(net, opts) : 0};
    if (mica_net_status(net) != MICA_OK)
        return 0;
    return mica_net_layer_end(net, mica_net_call(net, NULL, op, ins, ins[2] != 0 ? 3 : 2, &how));
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
