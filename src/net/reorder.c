/* The forward calls of the program, in an order that is less work.
 *
 * The largest of some values is the largest after relu, too, or both are 0; and so are gradients. So relu follows max
 * pooling, where it has a quarter of the work, and what it was given need not be kept. */
#include "net/net.h"
#include "node/entry.h"

/* Activations that never fall, and have no gradient where they do not rise. */
static bool rises(const mica_op *op) { return op == &mica_op_relu || op == &mica_op_relu6; }

static bool picks(const mica_op *op) { return op == &mica_op_max_pool2d || op == &mica_op_max_pool1d; }

/* The only node that reads a value which nobody sees from outside; NONE if there is none or several. */
static int only_reader(const mica_net *net, int value)
{
    if (net->values[value].output)
        return NONE;
    int found = NONE;
    for (int n = net->values[value].maker + 1; n < net->node_count; n++)
        for (int i = 0; i < net->nodes[n].ins; i++)
            if (net->nodes[n].in[i] == value) {
                if (found != NONE)
                    return NONE;
                found = n;
            }
    return found;
}

/* x -> relu -> pool becomes x -> pool -> relu. The value between gets the pool's shape. */
static mica_status swap(mica_net *net, mica_node *relu, mica_node *pool)
{
    mica_tensor shape = net->values[pool->out[0]].tensor;
    int between = mica_net_new_value(net, NULL, MICA_HOME_PLANNED, MICA_BUFFER_ACTIVATION, &shape);
    if (between == NONE)
        return net->status;
    net->values[between].like = pool->out[0];
    net->values[between].layer = pool->layer;
    mica_node first = *pool, second = *relu;
    first.in[0] = relu->in[0];
    first.out[0] = between;
    second.in[0] = between;
    second.out[0] = pool->out[0];
    *relu = first;
    *pool = second;
    return MICA_OK;
}

mica_status mica_net_forward_calls(mica_net *net)
{
    for (int n = 0; n < net->node_count; n++)
        if (mica_net_new_entry(net, &net->nodes[n], MICA_PHASE_FORWARD, n) == NULL)
            return net->status;
    for (int n = 0; n < net->node_count; n++) {
        const mica_node *node = &net->nodes[n];
        if (!rises(node->op))
            continue;
        int reader = only_reader(net, node->out[0]);
        if (reader == NONE || !picks(net->nodes[reader].op) ||
            net->values[net->nodes[reader].out[0]].built_bytes >= net->values[node->out[0]].built_bytes)
            continue;
        MICA_TRY(swap(net, &net->entries[n].node, &net->entries[reader].node));
    }
    net->forward_count = net->entry_count;
    return MICA_OK;
}
