/* Fusion: what nodes can do together, or in another order, without changing a value that anybody sees. */
#include <string.h>

#include "net/net.h"

/* Fills in slot->reader. */
static void find_readers(mica_net *net)
{
    enum { NOT_ONE = -2 };
    for (int i = 0; i < net->built_slots; i++)
        net->slots[i].reader = net->slots[i].output ? NOT_ONE : NONE;
    for (int n = 0; n < net->node_count; n++)
        for (int i = 0; i < net->nodes[n].inputs; i++) {
            mica_slot *slot = &net->slots[net->nodes[n].in[i]];
            slot->reader = slot->reader == NONE ? n : NOT_ONE;
        }
    for (int i = 0; i < net->built_slots; i++)
        if (net->slots[i].reader == NOT_ONE)
            net->slots[i].reader = NONE;
}

/* ---- Pooling, activations and means into what makes their input ---- */

/* The node behind `node` that can become part of its forward: the only reader of what that writes, of this
 * kind, and not to be recomputed apart from it. NONE if there is none. */
static int follower(const mica_net *net, const mica_node *node, unsigned kind)
{
    int reader = net->slots[mica_forward_out(net, node)].reader;
    bool fits = reader != NONE && (net->nodes[reader].layer->flags & kind) &&
                net->nodes[reader].segment == node->segment;
    return fits ? reader : NONE;
}

/* Lets a node go on with the max pooling behind it, whose backward reads no more than where the largest lay. */
static void fuse_pool(mica_net *net, mica_node *node)
{
    int reader = follower(net, node, MICA_LAYER_MAX_POOL);
    if (reader == NONE || !(node->layer->flags & MICA_LAYER_ENDS_WITH_POOL))
        return;
    node->pool = reader;
    net->nodes[reader].fused = true;
}

/* Lets a node end with the activation behind it, where nothing else wants its own result: not another node,
 * and not the activation's backward. */
static void fuse_activation(mica_net *net, mica_node *node)
{
    int reader = follower(net, node, MICA_LAYER_ACTIVATION);
    if (reader == NONE || !(node->layer->flags & MICA_LAYER_ENDS_WITH_ACTIVATION))
        return;
    if ((net->nodes[reader].layer->flags & MICA_LAYER_READS_INPUTS) &&
        net->slots[mica_forward_out(net, node)].gradient != NONE)
        return;
    node->activation = reader;
    net->nodes[reader].fused = true;
}

/* And with the mean behind that. The mean's backward reads nothing, but the activation's may read what it gave. */
static void fuse_mean(mica_net *net, mica_node *node)
{
    int reader = follower(net, node, MICA_LAYER_MEAN);
    if (reader == NONE || !(node->layer->flags & MICA_LAYER_ENDS_WITH_MEAN) || node->pool != NONE)
        return;
    const mica_node *last = node->activation != NONE ? &net->nodes[node->activation] : node;
    if ((last->layer->flags & MICA_LAYER_READS_OUTPUT) && net->slots[last->out].gradient != NONE)
        return;
    node->mean = reader;
    net->nodes[reader].fused = true;
}

void mica_net_fuse(mica_net *net)
{
    find_readers(net);
    for (int n = 0; n < net->node_count; n++) {
        net->nodes[n].pool = net->nodes[n].activation = net->nodes[n].mean = NONE;
        net->nodes[n].fused = false;
    }
    for (int n = 0; n < net->node_count; n++) {
        fuse_pool(net, &net->nodes[n]);
        fuse_activation(net, &net->nodes[n]);
        fuse_mean(net, &net->nodes[n]);
    }
}

/* ---- Activations behind max pooling ---- */

/* Lets what lies in two nodes change places. Their inputs and outputs stay. */
static void swap_nodes(mica_net *net, int a, int b)
{
    mica_node old = net->nodes[a];
    mica_node *nodes[2] = {&net->nodes[a], &net->nodes[b]};
    const mica_node from[2] = {*nodes[1], old};
    for (int k = 0; k < 2; k++) {
        mica_node *to = nodes[k];
        int out = to->out, in[MICA_LAYER_INPUTS];
        memcpy(in, to->in, sizeof in);
        *to = from[k];
        to->out = out;
        memcpy(to->in, in, sizeof in);
        for (int i = 0; i < to->saved; i++)
            net->slots[to->save[i]].node = k == 0 ? a : b;
        for (int i = 0; i < to->temps; i++)
            net->slots[to->temp[i]].node = k == 0 ? a : b;
    }
}

/* The largest of some values is the largest after relu, too, or both are 0; and so are gradients. So relu follows max
 * pooling, where it has a quarter of the work, and what it was given need not be kept. */
void mica_net_reorder(mica_net *net)
{
    find_readers(net);
    for (int n = 0; n < net->node_count; n++) {
        const mica_node *node = &net->nodes[n];
        mica_slot *between = &net->slots[node->out];
        if (!(node->layer->flags & MICA_LAYER_RISING) || between->reader == NONE)
            continue;
        const mica_node *reader = &net->nodes[between->reader];
        const mica_slot *out = &net->slots[reader->out];
        if (!(reader->layer->flags & MICA_LAYER_PICKS) || out->built_bytes >= between->built_bytes)
            continue;
        between->built_bytes = out->built_bytes;
        memcpy(between->built, out->built, sizeof between->built);
        swap_nodes(net, n, between->reader);
        net->reordered = true;
    }
}
