/* Preparing: weights that no step changes are brought into the layout that a call reads once, when the net is bound.
 *
 * The entry of an operation knows such a layout and the operation that makes it (mica_op_passes.prepare, in src/node).
 * What is made is a derived value behind the built ones, with a derivation behind the built ones; the call becomes one
 * of another operation, which has it as one more input. Calls that want the same of the same weights share it. */
#include <string.h>

#include "net/net.h"

#if !defined(MICA_SMALL)

/* What a sequence leaves behind does change, and an operation's own. */
bool mica_net_is_constant(const mica_net *net, int value)
{
    const mica_value_info *root = &net->values[net->values[value].root];
    if (root->home == MICA_HOME_PLANNED)
        return false;
    for (int i = 0; root->home == MICA_HOME_KEPT && i < root->tensor.rank; i++)
        if (root->source[i] != 0)
            return false;
    return root->home != MICA_HOME_KEPT || (root->kept == MICA_KEPT_STATISTICS &&
                                            !mica_net_changes_later(net, net->values[value].root, NONE));
}

static bool same_options(const mica_op *op, const void *a, const void *b)
{
    return op->opts_bytes == 0 || memcmp(a, b, op->opts_bytes) == 0;
}

/* The value that was made of this one before, in the same way; NONE: none was. */
static int find_made(const mica_net *net, const mica_preparation *how, int from)
{
    for (int d = net->built_derivations; d < net->derivation_count; d++) {
        const mica_node *made = &net->derivations[d];
        if (made->op == how->maker && made->in[0] == from &&
            mica_tensor_same_shape(&net->values[made->out[0]].tensor, &how->shape) &&
            same_options(how->maker, made->opts, &how->maker_opts))
            return made->out[0];
    }
    return NONE;
}

/* Options that live as long as the plan. NULL, with an error recorded, when refused. */
static void *keep_options(mica_net *net, const mica_op *op, const mica_fused_options *opts)
{
    void *kept = mica_net_memory(net, op->opts_bytes + 1);
    if (kept != NULL)
        memcpy(kept, opts, op->opts_bytes);
    return kept;
}

int mica_net_prepared_value(mica_net *net, const mica_node *maker, const mica_tensor *shape, int from,
                            const char *how)
{
    if (mica_net_grow(net, &net->derivations, net->derivation_count, &net->derivation_room,
                      sizeof *net->derivations) != MICA_OK)
        return NONE;
    int value = mica_net_new_value(net, NULL, MICA_HOME_DERIVED, MICA_BUFFER_PREPARED, shape);
    if (value == NONE)
        return NONE;
    mica_value_info *v = &net->values[value];
    v->layer = maker->layer;
    v->name = mica_net_text(net, "%s, %s", mica_net_value_name(net, from), how);
    if (v->name == NULL)
        return NONE;
    net->derivations[net->derivation_count] = *maker;
    net->derivations[net->derivation_count++].out[0] = value;
    return value;
}

/* A derived value, and the call that makes it. NONE, with an error recorded, when refused. */
static int make(mica_net *net, const mica_preparation *how, int from, int layer)
{
    mica_node maker = {.op = how->maker, .layer = layer, .ins = 1, .outs = 1, .in = {from}};
    maker.opts = keep_options(net, how->maker, &how->maker_opts);
    return maker.opts != NULL ? mica_net_prepared_value(net, &maker, &how->shape, from, "prepared") : NONE;
}

static mica_status prepare_entry(mica_net *net, mica_entry *entry)
{
    mica_node *node = &entry->node;
    mica_preparation how = {.input = 1, .place = node->ins};
    if (!node->op->passes->prepare(net, node, &how) || node->in[how.input] == NONE ||
        !mica_net_is_constant(net, node->in[how.input]))
        return MICA_OK;
    int from = node->in[how.input], made = find_made(net, &how, from);
    if (made == NONE)
        made = make(net, &how, from, node->layer);
    void *opts = made != NONE ? keep_options(net, how.op, &how.opts) : NULL;
    if (opts == NULL)
        return net->ctx->status;
    for (; node->ins <= how.place; node->ins++)
        node->in[node->ins] = NONE;
    node->in[how.place] = made;
    node->op = how.op;
    node->opts = opts;
    return MICA_OK;
}

mica_status mica_net_pair(mica_net *net)
{
    for (int e = 0; e < net->forward_count; e++) {
        const mica_op *op = net->entries[e].node.op;
        if (op != NULL && op->passes != NULL && op->passes->pair != NULL)
            MICA_TRY(op->passes->pair(net, e));
    }
    return net->status;
}

mica_status mica_net_prepare(mica_net *net)
{
    for (int e = 0; e < net->entry_count; e++) {
        const mica_op_passes *passes = net->entries[e].node.op->passes;
        if (passes != NULL && passes->prepare != NULL)
            MICA_TRY(prepare_entry(net, &net->entries[e]));
    }
    return net->status;
}

#endif
