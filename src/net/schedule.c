/* The schedule of a step: forwards in order, then backwards in reverse, with recomputation in between where
 * memory is short.
 *
 * With recomputation, nodes are cut into segments. What is used only within its segment is dropped after the
 * forward, and made again, by running the segment's forwards once more, just before the segment's backwards. */
#include <string.h>

#include "net/net.h"

/* ---- Gradients: where they flow ---- */

static bool has_input_gradient(const mica_node *node, int input)
{
    if (node->layer->flags & MICA_LAYER_NO_INPUT_GRADIENT)
        return false;
    return input == 0 || !(node->layer->flags & (MICA_LAYER_FIRST_INPUT_ONLY | MICA_LAYER_LOSS));
}

/* A value's gradient is wanted if something that is learned lies behind it. */
static void mark_wanted(mica_net *net)
{
    for (int i = 0; i < net->built_slots; i++)
        net->slots[i].wanted = net->slots[i].kind == MICA_BUFFER_PARAMETER && !net->slots[i].frozen;
    for (int n = 0; n < net->node_count; n++) {
        const mica_node *node = &net->nodes[n];
        bool wanted = false;
        for (int i = 0; i < node->params; i++)
            wanted = wanted || net->slots[node->param[i]].wanted;
        for (int i = 0; i < node->inputs; i++)
            wanted = wanted || (has_input_gradient(node, i) && net->slots[node->in[i]].wanted);
        net->slots[node->out].wanted = wanted;
    }
}

static mica_status new_gradient(mica_net *net, int of, mica_buffer_kind kind)
{
    const char *name = mica_net_text(net, "d %s", net->slots[of].name);
    mica_tensor shape = net->slots[of].tensor[0];
    int gradient = name != NULL ? mica_net_new_slot(net, name, kind, &shape, net->slots[of].node) : NONE;
    if (gradient == NONE)
        return net->status;
    net->slots[of].gradient = gradient;
    return MICA_OK;
}

/* Every value that a loss depends on through something learned gets a gradient; so does every parameter
 * behind it. */
static mica_status make_gradients(mica_net *net)
{
    for (int n = net->node_count - 1; n >= 0; n--) {
        const mica_node *node = &net->nodes[n];
        bool loss = (node->layer->flags & MICA_LAYER_LOSS) != 0;
        if (!net->slots[node->out].wanted || (!loss && net->slots[node->out].gradient == NONE))
            continue;
        for (int i = 0; i < node->inputs; i++) {
            const mica_slot *in = &net->slots[node->in[i]];
            if (has_input_gradient(node, i) && in->wanted && in->gradient == NONE)
                MICA_TRY(new_gradient(net, node->in[i], MICA_BUFFER_BACK));
        }
        for (int i = 0; i < node->params; i++) {
            const mica_slot *param = &net->slots[node->param[i]];
            if (param->wanted && param->gradient == NONE)
                MICA_TRY(new_gradient(net, node->param[i], MICA_BUFFER_GRADIENT));
        }
    }
    /* A view's gradient is a view of its input's. */
    for (int i = 0; i < net->built_slots; i++) {
        const mica_slot *slot = &net->slots[i];
        if (slot->gradient != NONE && net->slots[slot->root].gradient != NONE)
            net->slots[slot->gradient].root = net->slots[slot->root].gradient;
    }
    return MICA_OK;
}

/* ---- Recomputation: what is dropped ---- */

static void mark_dropped(mica_net *net, int segment_nodes)
{
    for (int n = 0; n < net->node_count; n++)
        net->nodes[n].segment = segment_nodes > 0 ? n / segment_nodes : 0;
    int last = net->node_count > 0 ? net->nodes[net->node_count - 1].segment : 0;
    for (int i = 0; i < net->built_slots; i++) {
        mica_slot *slot = &net->slots[i];
        bool made = slot->kind == MICA_BUFFER_ACTIVATION || slot->kind == MICA_BUFFER_SAVED;
        /* The last segment's backward follows its forward at once. */
        slot->dropped = made && segment_nodes > 0 && net->nodes[slot->node].segment != last;
    }
    for (int i = 0; i < net->built_slots; i++)
        if (net->slots[i].output)
            net->slots[net->slots[i].root].dropped = false;
    for (int n = 0; n < net->node_count; n++) {
        const mica_node *node = &net->nodes[n];
        for (int i = 0; i < node->inputs; i++) {
            mica_slot *root = &net->slots[net->slots[node->in[i]].root];
            if (root->node != NONE && net->nodes[root->node].segment != node->segment)
                root->dropped = false;
        }
    }
    for (int i = 0; i < net->built_slots; i++)
        net->slots[i].dropped = net->slots[net->slots[i].root].dropped;
}

/* ---- Entries ---- */

/* Whether a node's forward is something that runs. */
static bool runs(const mica_node *node) { return !node->fused && !(node->layer->flags & MICA_LAYER_VIEW); }

/* Whether the backward of a node is part of the step. */
static bool goes_back(const mica_net *net, const mica_node *node)
{
    return net->slots[node->out].gradient != NONE &&
           !(node->layer->flags & (MICA_LAYER_VIEW | MICA_LAYER_LOSS));
}

/* Marks in again[] the nodes of a segment whose forward must run a second time: walking backwards, those that
 * make something dropped which a backward, or a node that runs again, reads. `needed` is by slot. */
static void mark_again(const mica_net *net, int first, int last, bool *again, bool *needed)
{
    for (int n = first; n <= last; n++) {
        const mica_node *node = &net->nodes[n];
        if (!goes_back(net, node))
            continue;
        if (node->layer->flags & MICA_LAYER_READS_OUTPUT)
            needed[net->slots[node->out].root] = true;
        for (int i = 0; i < node->inputs && (node->layer->flags & MICA_LAYER_READS_INPUTS); i++)
            needed[net->slots[node->in[i]].root] = true;
    }
    for (int n = last; n >= first; n--) {
        const mica_node *node = &net->nodes[n];
        const mica_slot *out = &net->slots[node->out];
        again[n] = (out->dropped && needed[out->root]) ||
                   (node->saved > 0 && net->slots[node->save[0]].dropped && goes_back(net, node));
        if (node->layer->flags & MICA_LAYER_VIEW)
            again[n] = false;
        for (int i = 0; again[n] && i < node->inputs; i++)
            needed[net->slots[node->in[i]].root] = true;
    }
}

static mica_status add_entry(mica_net *net, int node, mica_phase phase)
{
    MICA_TRY(mica_net_grow(net, &net->entries, net->entry_count, &net->entry_room, sizeof *net->entries));
    net->entries[net->entry_count++] = (mica_entry){.node = node, .phase = phase, .group = NONE};
    return MICA_OK;
}

/* The forwards of a segment that run again, then its backwards. */
static mica_status add_segment(mica_net *net, int first, int last, const bool *again)
{
    for (int n = first; n <= last; n++)
        if (again[n] && runs(&net->nodes[n])) {
            MICA_TRY(add_entry(net, n, MICA_PHASE_RECOMPUTE));
            net->plan.recomputed++;
        }
    for (int n = last; n >= first; n--)
        if (goes_back(net, &net->nodes[n]))
            MICA_TRY(add_entry(net, n, MICA_PHASE_BACKWARD));
    return MICA_OK;
}

static mica_status add_backwards(mica_net *net, bool *again, bool *needed)
{
    for (int last = net->node_count - 1; last >= 0;) {
        int first = last;
        while (first > 0 && net->nodes[first - 1].segment == net->nodes[last].segment)
            first--;
        mark_again(net, first, last, again, needed);
        MICA_TRY(add_segment(net, first, last, again));
        last = first - 1;
    }
    return MICA_OK;
}

/* The first to write a gradient writes; whoever comes later adds. `written` is by slot. */
static void mark_sums(mica_net *net, bool *written)
{
    for (int e = 0; e < net->entry_count; e++) {
        mica_entry *entry = &net->entries[e];
        const mica_node *node = &net->nodes[entry->node];
        bool loss = entry->phase == MICA_PHASE_FORWARD && (node->layer->flags & MICA_LAYER_LOSS);
        if (entry->phase != MICA_PHASE_BACKWARD && !loss)
            continue;
        for (int i = 0; i < node->inputs; i++) {
            int gradient = net->slots[node->in[i]].gradient;
            if (gradient == NONE || !has_input_gradient(node, i))
                continue;
            int root = net->slots[gradient].root;
            entry->add_din |= written[root] ? 1u << i : 0u;
            written[root] = true;
        }
        for (int i = 0; !loss && i < node->params; i++) {
            int gradient = net->slots[node->param[i]].gradient;
            if (gradient == NONE)
                continue;
            entry->add_dparam |= written[gradient] ? 1u << i : 0u;
            written[gradient] = true;
        }
    }
}

mica_status mica_net_schedule(mica_net *net, int segment_nodes)
{
    net->slot_count = net->built_slots;
    net->entry_count = 0;
    net->plan.recomputed = 0;
    for (int i = 0; i < net->built_slots; i++)
        net->slots[i].gradient = NONE;
    if (net->train) {
        mark_wanted(net);
        MICA_TRY(make_gradients(net));
    }
    mark_dropped(net, net->train ? segment_nodes : 0);
    mica_net_fuse(net);
    for (int n = 0; n < net->node_count; n++)
        if (runs(&net->nodes[n]))
            MICA_TRY(add_entry(net, n, MICA_PHASE_FORWARD));
    net->forward_count = net->entry_count;
    if (!net->train)
        return MICA_OK;

    size_t bytes = (size_t)net->node_count + 2 * (size_t)net->slot_count;
    bool *flags = mica_allocate(net->ctx, bytes + 1);
    if (flags == NULL)
        return net->ctx->status;
    memset(flags, 0, bytes);
    mica_status status = add_backwards(net, flags, flags + net->node_count);
    if (status == MICA_OK)
        mark_sums(net, flags + net->node_count + net->slot_count);
    mica_release(net->ctx, flags, bytes + 1);
    return status;
}

/* ---- What an entry touches ---- */

static void use_slot(const mica_net *net, int slot, mica_phase phase, mica_use_fn *use, void *user)
{
    use(user, slot, mica_life(&net->slots[slot], phase));
}

static void use_gradients(const mica_net *net, const mica_node *node, mica_use_fn *use, void *user)
{
    for (int i = 0; i < node->inputs; i++) {
        int gradient = net->slots[node->in[i]].gradient;
        if (gradient != NONE && has_input_gradient(node, i))
            use(user, gradient, 0);
    }
}

void mica_each_use(const mica_net *net, const mica_entry *entry, mica_use_fn *use, void *user)
{
    const mica_node *node = &net->nodes[entry->node];
    unsigned flags = node->layer->flags;
    bool back = entry->phase == MICA_PHASE_BACKWARD;
    if (!back || (flags & MICA_LAYER_READS_INPUTS))
        for (int i = 0; i < node->inputs; i++)
            use_slot(net, node->in[i], entry->phase, use, user);
    for (int i = 0; i < node->saved && mica_keeps_saved(net, node); i++)
        use_slot(net, node->save[i], entry->phase, use, user);
    int picks = back ? NONE : mica_forward_picks(net, node);
    if (picks != NONE)
        use_slot(net, picks, entry->phase, use, user);
    if (back)
        use(user, net->slots[node->out].gradient, 0);
    if (!back || (flags & MICA_LAYER_READS_OUTPUT))
        use_slot(net, back ? node->out : mica_forward_out(net, node), entry->phase, use, user);
    if (back || ((flags & MICA_LAYER_LOSS) && entry->phase == MICA_PHASE_FORWARD))
        use_gradients(net, node, use, user);
}

bool mica_keeps_saved(const mica_net *net, const mica_node *node)
{
    return goes_back(net, node) || !(node->layer->flags & MICA_LAYER_BACKWARD_SAVED);
}

int mica_forward_picks(const mica_net *net, const mica_node *node)
{
    const mica_node *pool = node->pool != NONE ? &net->nodes[node->pool] : NULL;
    return pool != NULL && mica_keeps_saved(net, pool) ? pool->save[0] : NONE;
}

bool mica_has_input_gradient(const mica_net *net, const mica_node *node, int input)
{
    return net->slots[node->in[input]].gradient != NONE && has_input_gradient(node, input);
}
