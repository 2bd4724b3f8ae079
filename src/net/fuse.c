/* Fusion: two calls that one operation can do become one, where nobody else reads what lies between.
 *
 * A rule names the first operation and the one behind it, and rewrites the first call so that it does both. Rules are
 * tried again on what they made: a convolution takes in max pooling, then the activation behind that. */
#include <string.h>

#include "net/net.h"
#include "node/entry.h"

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

/* ---- Rules ---- */

static mica_activation activation_of(const mica_op *op)
{
    for (int kind = MICA_NO_ACTIVATION + 1; kind < MICA_ACTIVATION_COUNT; kind++)
        if (mica_activation_ops[kind] == op)
            return (mica_activation)kind;
    return MICA_NO_ACTIVATION;
}

/* Ends a call with an activation, in the options where its kind and slope stand; false if it has one already. */
static bool set_activation(const mica_node *then, mica_activation *activation, float *slope)
{
    mica_activation kind = activation_of(then->op);
    if (kind == MICA_NO_ACTIVATION || *activation != MICA_NO_ACTIVATION)
        return false;
    *activation = kind;
    *slope = then->opts != NULL ? ((const mica_scalar_opts *)then->opts)->s : 0.0f;
    return true;
}

/* Each rule changes *node, whose options are a copy, to do what `then` does, too; false: it does not apply. */

static bool linear_activation(mica_net *net, mica_node *node, const mica_node *then)
{
    (void)net;
    mica_matmul_opts *opts = node->opts;
    return set_activation(then, &opts->activation, &opts->slope);
}

static bool conv_activation(mica_net *net, mica_node *node, const mica_node *then)
{
    (void)net;
    mica_conv2d_opts *opts = node->opts;
    return set_activation(then, &opts->activation, &opts->slope);
}

static bool conv_pool(mica_net *net, mica_node *node, const mica_node *then)
{
    const mica_conv2d_opts *conv = node->opts;
    if (then->op != &mica_op_max_pool2d || conv->activation != MICA_NO_ACTIVATION)
        return false;
    mica_conv_max_pool_opts *both = mica_net_memory(net, sizeof *both);
    if (both == NULL)
        return false;
    both->conv = *conv;
    both->pool = *(const mica_pooling_opts *)then->opts;
    node->op = &mica_op_conv2d_max_pool;
    node->opts = both;
    node->outs = 2;
    node->out[1] = then->out[1];
    return true;
}

static bool conv_pool_activation(mica_net *net, mica_node *node, const mica_node *then)
{
    (void)net;
    mica_conv_max_pool_opts *opts = node->opts;
    return set_activation(then, &opts->conv.activation, &opts->conv.slope);
}

static bool conv_mean(mica_net *net, mica_node *node, const mica_node *then)
{
    (void)net;
    if (then->op != &mica_op_global_avg_pool)
        return false;
    node->op = &mica_op_conv2d_mean;
    return true;
}

static const struct rule {
    const mica_op *first;
    bool (*rewrite)(mica_net *net, mica_node *node, const mica_node *then);
} rules[] = {
    {&mica_op_linear, linear_activation},         {&mica_op_conv2d, conv_pool},
    {&mica_op_conv2d, conv_activation},           {&mica_op_conv2d, conv_mean},
    {&mica_op_conv_transpose2d, conv_activation}, {&mica_op_conv2d_max_pool, conv_pool_activation},
};

/* ---- The pass ---- */

/* Options of a node are those of the net as built: a call that is changed gets a copy. */
static bool copy_options(mica_net *net, mica_node *node)
{
    if (node->op->opts_bytes == 0)
        return true;
    void *copy = mica_net_memory(net, node->op->opts_bytes);
    if (copy == NULL)
        return false;
    memcpy(copy, node->opts, node->op->opts_bytes);
    node->opts = copy;
    return true;
}

/* Fuses the call behind entry number e into it, if a rule says how. */
static bool fuse_one(mica_net *net, readers *r, int e)
{
    mica_entry *entry = &net->entries[e];
    int behind = follower(net, r, entry);
    for (size_t i = 0; behind != NONE && i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].first != entry->node.op)
            continue;
        const mica_node *then = &net->entries[behind].node;
        mica_node node = entry->node;
        if (!copy_options(net, &node) || !rules[i].rewrite(net, &node, then))
            continue;
        node.out[0] = then->out[0];
        entry->node = node;
        entry->fused = entry->fused == NULL ? then->op->name
                                            : mica_net_text(net, "%s, %s", entry->fused, then->op->name);
        net->entries[behind].node.op = NULL; /* done here now */
        return true;
    }
    return false;
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
