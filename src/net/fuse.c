/* Fusion: two calls that one operation can do become one, where nobody else reads what lies between.
 *
 * The first operation's entry knows how it rewrites its call so that it does both (mica_op_passes.fuse, in src/node: a
 * net that has no convolution links none). It is tried again on what it made: a convolution takes in max pooling, then
 * the activation behind that. */
#include <string.h>

#include "net/net.h"
#include "ops/activation.h"

/* ---- Who reads what ---- */

typedef struct readers {
    int *count; /* by value: calls that read it, or a view of it; the caller counts, too */
    int *last;  /* the last of them */
} readers;

static void count_reader(const mica_net *net, readers *r, int value, int entry)
{
    int root = net->values[value].root;
    r->count[root]++;
    r->last[root] = entry;
}

static void find_readers(const mica_net *net, readers *r)
{
    memset(r->count, 0, (size_t)net->value_count * sizeof *r->count);
    for (int e = 0; e < net->entry_count; e++)
        for (int i = 0; i < net->entries[e].node.ins; i++)
            if (net->entries[e].node.in[i] != NONE)
                count_reader(net, r, net->entries[e].node.in[i], e);
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].output)
            r->count[net->values[i].root] += 2;
}

/* The forward call that alone reads what `entry` makes, and nothing else that is planned; NONE if there is none. */
static int follower(const mica_net *net, const readers *r, const mica_entry *entry)
{
    int out = entry->node.out[0];
    if (out == NONE || r->count[out] != 1 || r->last[out] >= net->forward_count)
        return NONE;
    const mica_node *then = &net->entries[r->last[out]].node;
    bool alone = then->in[0] == out;
    for (int i = 1; i < then->ins; i++)
        alone = alone && then->in[i] == NONE;
    return alone ? r->last[out] : NONE;
}

/* ---- Activations ---- */

bool mica_net_fuse_activation(const mica_node *then, mica_activation *activation, float *slope)
{
    mica_activation kind = then->op->activation;
    if (!mica_activation_fuses(kind) || *activation != MICA_NO_ACTIVATION)
        return false;
    *activation = kind;
    *slope = then->opts != NULL ? ((const mica_scalar_opts *)then->opts)->s : 0.0f;
    return true;
}

/* ---- The pass ---- */

/* Options of a node are those of the net as built: a call that is changed gets a copy, once. */
static bool keep_options(mica_net *net, mica_entry *entry, mica_node *node)
{
    bool own = entry->fused != NULL && entry->node.op == node->op;
    void *kept = own ? entry->node.opts : mica_net_memory(net, node->op->opts_bytes);
    if (kept == NULL)
        return false;
    memcpy(kept, node->opts, node->op->opts_bytes);
    node->opts = kept;
    return true;
}

/* Fuses the call behind entry number e into it, if its operation knows how. */
static bool fuse_one(mica_net *net, readers *r, int e)
{
    mica_entry *entry = &net->entries[e];
    const mica_op_passes *passes = entry->node.op->passes;
    int behind = passes != NULL && passes->fuse != NULL ? follower(net, r, entry) : NONE;
    if (behind == NONE)
        return false;
    const mica_node *then = &net->entries[behind].node;
    mica_fused_options options = {{0}};
    mica_node node = entry->node;
    memcpy(&options, node.opts, node.op->opts_bytes);
    node.opts = &options;
    if (!passes->fuse(net, &node, then) || !keep_options(net, entry, &node))
        return false;
    node.out[0] = then->out[0];
    entry->node = node;
    entry->fused = entry->fused == NULL ? then->op->name
                                        : mica_net_text(net, "%s, %s", entry->fused, then->op->name);
    net->entries[behind].node.op = NULL; /* done here now */
    return true;
}

/* Entries without an operation go, and so do views, which run nothing. */
static void compact(mica_net *net)
{
    int kept = 0, forward = 0;
    for (int e = 0; e < net->entry_count; e++) {
        const mica_op *op = net->entries[e].node.op;
        if (op == NULL || (op->flags & MICA_OP_VIEW))
            continue;
        forward += e < net->forward_count;
        net->entries[kept++] = net->entries[e];
    }
    net->entry_count = kept;
    net->forward_count = forward;
}

mica_status mica_net_fuse(mica_net *net)
{
    size_t bytes = 2 * (size_t)net->value_count * sizeof(int);
    int *numbers = mica_allocate(net->ctx, bytes + 1);
    if (numbers == NULL)
        return net->ctx->status;
    readers r = {numbers, numbers + net->value_count};
    find_readers(net, &r);
    for (int e = 0; e < net->forward_count; e++)
        while (net->entries[e].node.op != NULL && fuse_one(net, &r, e))
            ;
    mica_release(net->ctx, numbers, bytes + 1);
    compact(net);
    return net->status;
}
