/* The forward calls of the program, in an order that is less work.
 *
 * The largest of some values is the largest after relu, too, or both are 0; and so are gradients. So relu follows max
 * pooling, where it has a quarter of the work, and what it was given need not be kept. */
#include "net/net.h"

/* Who reads a value, where it is not one node alone. */
enum { NOBODY = -1, SEVERAL = -2 };

/* By value: the only node that reads it, NOBODY or SEVERAL. What is seen from outside is read there, too. */
static void find_readers(const mica_net *net, int *reader)
{
    for (int i = 0; i < net->built_values; i++)
        reader[i] = net->values[i].output ? SEVERAL : NOBODY;
    for (int n = 0; n < net->node_count; n++)
        for (int i = 0; i < net->nodes[n].ins; i++) {
            int in = net->nodes[n].in[i];
            if (in != NONE)
                reader[in] = reader[in] == NOBODY ? n : SEVERAL;
        }
}

/* The pooling that alone reads what node n, an activation, makes, and is less work ahead of it; NONE if there is none.
 * Where each of its values lay is not the same then: nobody may read that. */
static int pool_behind(const mica_net *net, const int *reader, int n)
{
    const mica_node *node = &net->nodes[n];
    int next = (node->op->flags & MICA_OP_RISES) ? reader[node->out[0]] : NONE;
    if (next < 0 || !(net->nodes[next].op->flags & MICA_OP_LARGEST))
        return NONE;
    const mica_node *pool = &net->nodes[next];
    bool smaller = net->values[pool->out[0]].built_bytes < net->values[node->out[0]].built_bytes;
    return smaller && reader[pool->out[1]] == NOBODY ? next : NONE;
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

static mica_status move_pools(mica_net *net, const int *reader)
{
    for (int n = 0; n < net->node_count; n++) {
        int pool = pool_behind(net, reader, n);
        if (pool != NONE)
            MICA_TRY(swap(net, &net->entries[n].node, &net->entries[pool].node));
    }
    return MICA_OK;
}

mica_status mica_net_forward_calls(mica_net *net)
{
    for (int n = 0; n < net->node_count; n++)
        if (mica_net_new_entry(net, &net->nodes[n], MICA_PHASE_FORWARD, n) == NULL)
            return net->status;
    net->forward_count = net->entry_count;
    size_t bytes = (size_t)net->built_values * sizeof(int) + 1;
    int *reader = mica_allocate(net->ctx, bytes);
    if (reader == NULL)
        return net->ctx->status;
    find_readers(net, reader);
    mica_status status = move_pools(net, reader);
    mica_release(net->ctx, reader, bytes);
    return status;
}
