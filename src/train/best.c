/* The copy of the best weights: all of them one behind the other, in the order of the net's values. */
#include "train/best.h"

#include <string.h>

#include <mica/checkpoint.h>

bool mica_is_weight(const mica_value_info *v)
{
    return v->home == MICA_HOME_KEPT ? v->kept == MICA_KEPT_STATISTICS : v->kind == MICA_BUFFER_PARAMETER;
}

size_t mica_weights_bytes(const mica_net *net)
{
    size_t bytes = 0;
    for (int i = 0; net->block != NULL && i < net->built_values; i++) {
        if (!mica_is_weight(&net->values[i]))
            continue;
        mica_tensor all = mica_net_built_tensor(net, &net->values[i]);
        bytes += mica_align_up(mica_tensor_bytes(&all));
    }
    return bytes;
}

mica_status mica_best_create(mica_net *net)
{
    size_t bytes = mica_weights_bytes(net) + 1; /* a net may have none */
    net->best = mica_allocate(net->ctx, bytes);
    if (net->best == NULL)
        return net->ctx->status;
    memset(net->best, 0, bytes);
    return MICA_OK;
}

void mica_best_destroy(mica_net *net)
{
    if (net->best != NULL)
        mica_release(net->ctx, net->best, mica_weights_bytes(net) + 1);
    net->best = NULL;
}

mica_tensor mica_best_tensor(const mica_net *net, const mica_value_info *v, size_t *at)
{
    mica_tensor all = mica_net_built_tensor(net, v), kept = mica_tensor_like(&all, net->best + *at);
    *at += mica_align_up(mica_tensor_bytes(&all));
    return kept;
}

static void copy_weights(mica_net *net, bool restore)
{
    size_t at = 0;
    for (int i = 0; i < net->built_values; i++) {
        if (!mica_is_weight(&net->values[i]))
            continue;
        mica_tensor own = mica_net_built_tensor(net, &net->values[i]);
        mica_tensor kept = mica_best_tensor(net, &net->values[i], &at);
        memcpy(restore ? own.data : kept.data, restore ? kept.data : own.data, mica_tensor_bytes(&own));
    }
}

void mica_best_keep(mica_net *net) { copy_weights(net, false); }

mica_status mica_best_restore(mica_net *net)
{
    copy_weights(net, true);
    mica_forget_gradients(net);
    return mica_net_derive(net);
}

void mica_forget_gradients(mica_net *net)
{
    if (net->flat_gradients != NULL)
        memset(net->flat_gradients, 0, net->learned_count * sizeof(float));
}
