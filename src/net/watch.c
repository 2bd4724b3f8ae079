/* Watching: what each piece of a step is, and how much it computes and moves. */
#include "net/net.h"

void mica_net_watch(mica_net *net, mica_watch_fn *fn, void *user)
{
    net->watch = fn;
    net->watch_user = user;
}

/* The entry is run once more without data, as a plan does: so this holds for any operation, at the sizes of now. */
static double entry_flops(mica_net *net, mica_entry *entry, const mica_mode *mode)
{
    mica_measure_begin(net->ctx);
    (void)mica_net_run_entry(net, entry, mode); /* what is wrong is said when it runs */
    (void)mica_measure_end(net->ctx);
    return mica_measure_flops(net->ctx);
}

/* What must be moved: all that is read, and all that is written; what is added to is both. Of a table that indices
 * pick rows from, no more than comes out. */
static double entry_bytes(const mica_net *net, const mica_entry *entry, const mica_mode *mode)
{
    double bytes = 0.0, out = 0.0;
    unsigned add = entry->add | (mode->add ? entry->learned : 0u);
    for (int k = 0; k < entry->node.outs; k++)
        if (entry->node.out[k] != NONE)
            out += ((add >> k & 1u) ? 2.0 : 1.0) *
                   (double)mica_tensor_bytes(&net->values[entry->node.out[k]].tensor);
    for (int i = 0; i < entry->node.ins; i++) {
        if (entry->node.in[i] == NONE)
            continue;
        double in = (double)mica_tensor_bytes(&net->values[entry->node.in[i]].tensor);
        bytes += (entry->node.op->flags & MICA_OP_PICKS) && in > out ? out : in;
    }
    return bytes + out;
}

mica_work mica_net_work(mica_net *net, mica_entry *entry, const mica_mode *mode)
{
    const mica_layer_info *layer = &net->layers[entry->node.layer];
    return (mica_work){.layer = entry->node.layer,
                       .name = layer->name,
                       .kind = layer->kind,
                       .op = entry->node.op->name,
                       .fused = entry->fused,
                       .phase = entry->phase,
                       .flops = entry_flops(net, entry, mode),
                       .bytes = entry_bytes(net, entry, mode)};
}

mica_work mica_net_update_work(const mica_net *net)
{
    static const char *const kinds[MICA_OPTIMIZER_COUNT] = {[MICA_SGD] = "sgd",
                                                            [MICA_ADAM] = "adam",
                                                            [MICA_ADAMW] = "adamw",
                                                            [MICA_RMSPROP] = "rmsprop",
                                                            [MICA_ADAGRAD] = "adagrad"};
    /* Parameters and state are read and written, gradients read: once more for their norm. */
    double tensors = 3.0 + 2.0 * mica_optimizer_states(&net->optimizer);
    tensors += net->optimizer.clip_norm != 0.0f ? 1.0 : 0.0;
    return (mica_work){.layer = NONE,
                       .name = "optimizer",
                       .kind = kinds[net->optimizer.kind],
                       .op = "update",
                       .phase = MICA_PHASE_UPDATE,
                       .bytes = tensors * (double)net->learned_count * sizeof(float)};
}
