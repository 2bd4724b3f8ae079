/* Watching: what each piece of a step is, and how much it computes and moves. */
#include "net/net.h"

void mica_net_watch(mica_net *net, mica_watch_fn *fn, void *user)
{
    net->watch = fn;
    net->watch_user = user;
}

/* ---- Arithmetic ---- */

/* The entry is run once more without data, as a plan does: so this holds for any layer, at the batch of now. */
static double entry_flops(mica_net *net, const mica_entry *entry, const mica_mode *mode)
{
    mica_running r;
    size_t scratch;
    mica_measure_begin(net->ctx);
    mica_net_prepare(net, entry, mode, &r, &scratch);
    (void)mica_net_call(net, entry, &r); /* what is wrong is said when it runs */
    (void)mica_measure_end(net->ctx);
    return mica_measure_flops(net->ctx);
}

/* ---- Bytes ---- */

typedef struct moved {
    const mica_net *net;
    double bytes;
} moved;

static double bytes_of(const mica_net *net, int slot)
{
    return (double)mica_tensor_bytes(&net->slots[slot].tensor[0]);
}

static void add_use(void *user, int slot, int life)
{
    (void)life;
    moved *m = user;
    m->bytes += bytes_of(m->net, slot);
}

/* Of a parameter that is read. Of a table that indices pick rows from, no more than comes out. */
static double read_bytes(const mica_net *net, const mica_node *node, int param)
{
    double all = bytes_of(net, param), out = bytes_of(net, node->out);
    return (node->layer->flags & MICA_LAYER_NO_INPUT_GRADIENT) && out < all ? out : all;
}

/* What is added to is read as well as written. */
static double gradient_bytes(const mica_net *net, const mica_entry *entry, const mica_mode *mode)
{
    const mica_node *node = &net->nodes[entry->node];
    double bytes = 0.0;
    for (int i = 0; i < node->inputs; i++)
        if (mica_has_input_gradient(net, node, i) && (entry->add_din >> i & 1u))
            bytes += bytes_of(net, node->in[i]);
    for (int i = 0; i < node->params; i++) {
        bool added = mode->add || (entry->add_dparam >> i & 1u);
        if (net->slots[node->param[i]].gradient != NONE)
            bytes += (added ? 2.0 : 1.0) * bytes_of(net, node->param[i]);
    }
    return bytes;
}

static double entry_bytes(const mica_net *net, const mica_entry *entry, const mica_mode *mode)
{
    const mica_node *node = &net->nodes[entry->node];
    bool back = entry->phase == MICA_PHASE_BACKWARD, has_din = false;
    moved m = {.net = net};
    mica_each_use(net, entry, add_use, &m);
    for (int i = 0; i < node->inputs; i++)
        has_din = has_din || mica_has_input_gradient(net, node, i);
    for (int i = 0; i < node->params && (!back || has_din); i++)
        m.bytes += read_bytes(net, node, node->param[i]);
    for (int i = 0; i < node->states; i++)
        m.bytes += bytes_of(net, node->state[i]);
    return m.bytes + (back ? gradient_bytes(net, entry, mode) : 0.0);
}

/* ---- The whole ---- */

mica_work mica_net_work(mica_net *net, const mica_entry *entry, const mica_mode *mode)
{
    const mica_node *node = &net->nodes[entry->node];
    bool ahead = entry->phase != MICA_PHASE_BACKWARD;
    return (mica_work){.layer = entry->node,
                       .name = node->name,
                       .kind = node->layer->name,
                       .pool = ahead && node->pool != NONE ? net->nodes[node->pool].layer->name : NULL,
                       .fused = ahead && node->activation != NONE ? net->nodes[node->activation].layer->name
                                                                  : NULL,
                       .mean = ahead && node->mean != NONE ? net->nodes[node->mean].layer->name : NULL,
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
    double tensors = 3.0 + 2.0 * mica_optimizer_slots(&net->optimizer);
    tensors += net->optimizer.clip_norm != 0.0f ? 1.0 : 0.0;
    return (mica_work){.layer = NONE,
                       .name = "optimizer",
                       .kind = kinds[net->optimizer.kind],
                       .phase = MICA_PHASE_UPDATE,
                       .bytes = tensors * (double)net->learned_count * sizeof(float)};
}
