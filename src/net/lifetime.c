/* Lifetimes, sharing and places: from the schedule to offsets in the block. */
#include "net/net.h"

/* ---- What lives from step to step ---- */

bool mica_borrows_state(const mica_net *net, const mica_slot *slot)
{
    return net->weights != NULL && slot->kind == MICA_BUFFER_STATE &&
           (net->nodes[slot->node].layer->flags & MICA_LAYER_STATES_LEARNED);
}

/* Gives each parameter that is learned (or each that is not) its place, from element *from on. */
static mica_status place_parameters(mica_net *net, size_t *from, bool learned)
{
    for (int i = 0; i < net->built_slots; i++) {
        mica_slot *slot = &net->slots[i];
        bool is_learned = slot->gradient != NONE || (!net->train && !slot->frozen);
        if (slot->kind != MICA_BUFFER_PARAMETER || learned != is_learned)
            continue;
        slot->flat = *from;
        *from += mica_align_up(slot->bytes) / sizeof(float);
        if (!learned)
            continue;
        MICA_TRY(
            mica_net_grow(net, &net->learned, net->learned_slots, &net->learned_room, sizeof *net->learned));
        net->learned[net->learned_slots++] = i;
    }
    return MICA_OK;
}

/* Parameters that are learned come first, so that gradients and optimizer state run beside them. */
static mica_status place_persistent(mica_net *net)
{
    net->flat_count = 0;
    net->learned_slots = 0;
    MICA_TRY(place_parameters(net, &net->flat_count, true));
    net->learned_count = net->flat_count;
    MICA_TRY(place_parameters(net, &net->flat_count, false));
    size_t bytes = net->weights == NULL ? net->flat_count * sizeof(float) : 0;
    if (net->train) {
        int copies = 1 + (net->has_optimizer ? mica_optimizer_slots(&net->optimizer) : 0);
        bytes += (size_t)copies * net->learned_count * sizeof(float);
    }
    for (int i = 0; i < net->built_slots; i++) {
        mica_slot *slot = &net->slots[i];
        if (slot->kind != MICA_BUFFER_STATE || mica_borrows_state(net, slot))
            continue;
        slot->flat = bytes;
        bytes += mica_align_up(slot->bytes);
    }
    net->persistent = bytes;
    return MICA_OK;
}

/* ---- Lifetimes ---- */

typedef struct living {
    mica_net *net;
    int time;
    mica_status status;
} living;

static int new_group(mica_net *net, size_t bytes, int slot, int entry, int time)
{
    if (mica_net_grow(net, &net->groups, net->group_count, &net->group_room, sizeof *net->groups) != MICA_OK)
        return NONE;
    size_t guard = net->debug ? MICA_ALIGN : 0;
    net->groups[net->group_count] = (mica_group){
        .span = {.bytes = mica_align_up(bytes) + guard, .first = time, .last = time},
        .slot = slot,
        .entry = entry};
    return net->group_count++;
}

static void live_at(void *user, int slot, int life)
{
    living *l = user;
    mica_slot *root = &l->net->slots[l->net->slots[slot].root];
    if (root->group[life] == NONE) {
        root->group[life] = new_group(l->net, root->bytes, l->net->slots[slot].root, NONE, l->time);
        if (root->group[life] == NONE) {
            l->status = l->net->ctx->status;
            return;
        }
    }
    mica_span *span = &l->net->groups[root->group[life]].span;
    if (root->kind == MICA_BUFFER_INPUT)
        span->first = 0; /* written before the step */
    span->last = l->time;
}

static void keep_until(mica_net *net, int slot, int time)
{
    int group = net->slots[net->slots[slot].root].group[0];
    if (group != NONE && net->groups[group].span.last < time)
        net->groups[group].span.last = time;
}

/* What is looked at from outside: inputs that nobody reads still need a place; outputs and losses are read
 * after the step, and so, after a forward, are the targets of a loss, to score the output against. What holds
 * the whole batch of a step in parts lives through all of them, as do its inputs. */
static void keep_longer(mica_net *net, living *l)
{
    l->time = 0;
    for (int i = 0; i < net->built_slots; i++) {
        if (net->slots[i].kind == MICA_BUFFER_INPUT && net->slots[i].group[0] == NONE)
            live_at(l, i, 0);
        if (net->slots[i].output)
            keep_until(net, i, net->entry_count - 1);
    }
    for (int i = 0; i < net->built_slots; i++) {
        int group = net->slots[i].group[0];
        bool again = net->part_rows < net->built_rows && net->slots[i].kind == MICA_BUFFER_INPUT;
        if ((net->slots[i].whole || again) && group != NONE)
            net->groups[group].span = (mica_span){net->groups[group].span.bytes, 0, net->entry_count - 1, 0};
    }
    for (int n = 0; n < net->node_count; n++) {
        const mica_node *node = &net->nodes[n];
        if (!(node->layer->flags & MICA_LAYER_LOSS))
            continue;
        keep_until(net, node->out, net->entry_count - 1);
        for (int i = 1; i < node->inputs; i++)
            keep_until(net, node->in[i], net->forward_count - 1);
    }
}

static mica_status find_lifetimes(mica_net *net)
{
    net->group_count = 0;
    for (int i = 0; i < net->slot_count; i++)
        net->slots[i].group[0] = net->slots[i].group[1] = NONE;
    living l = {.net = net};
    for (l.time = 0; l.time < net->entry_count && l.status == MICA_OK; l.time++)
        mica_each_use(net, &net->entries[l.time], live_at, &l);
    MICA_TRY(l.status);
    keep_longer(net, &l);
    return l.status;
}

/* ---- Sharing in place ---- */

/* Lets `to` (first used at this time) take over the memory of `from` (last used at this time), of the same shape. */
static void take_over(mica_net *net, int from, int from_life, int to, int to_life, int time)
{
    mica_slot *giver = &net->slots[net->slots[from].root], *taker = &net->slots[net->slots[to].root];
    int a = giver->group[from_life], b = taker->group[to_life];
    if (a == b || net->groups[a].span.last != time || net->groups[b].span.first != time ||
        !mica_tensor_same_shape(&net->slots[from].tensor[0], &net->slots[to].tensor[0]))
        return;
    net->groups[a].span.last = net->groups[b].span.last;
    net->groups[b].gone = true;
    taker->group[to_life] = a;
}

/* Whether an input other than number 0 shows the same memory. */
static bool is_alone(const mica_net *net, const mica_node *node)
{
    for (int i = 1; i < node->inputs; i++)
        if (net->slots[node->in[i]].root == net->slots[node->in[0]].root)
            return false;
    return true;
}

static void share_in_place(mica_net *net)
{
    for (int time = 0; time < net->entry_count; time++) {
        const mica_entry *entry = &net->entries[time];
        const mica_node *node = &net->nodes[entry->node];
        if (node->inputs == 0 || !is_alone(net, node))
            continue;
        if (entry->phase != MICA_PHASE_BACKWARD && (node->layer->flags & MICA_LAYER_IN_PLACE)) {
            int out = mica_forward_out(net, node);
            take_over(net, node->in[0], mica_life(&net->slots[node->in[0]], entry->phase), out,
                      mica_life(&net->slots[out], entry->phase), time);
        } else if (entry->phase == MICA_PHASE_BACKWARD &&
                   (node->layer->flags & MICA_LAYER_BACKWARD_IN_PLACE) && !(entry->add_din & 1u) &&
                   mica_has_input_gradient(net, node, 0)) {
            take_over(net, net->slots[node->out].gradient, 0, net->slots[node->in[0]].gradient, 0, time);
        }
    }
}

/* ---- The whole ---- */

static mica_status add_scratch(mica_net *net)
{
    for (int time = 0; time < net->entry_count; time++) {
        mica_entry *entry = &net->entries[time];
        if (entry->scratch_bytes == 0)
            continue;
        entry->group = new_group(net, entry->scratch_bytes, NONE, time, time);
        if (entry->group == NONE)
            return net->ctx->status;
    }
    return MICA_OK;
}

/* Packs the groups that are left. */
static mica_status pack_groups(mica_net *net)
{
    size_t count = 0, bytes = (size_t)net->group_count * sizeof(mica_span);
    mica_span *spans = mica_allocate(net->ctx, bytes + 1);
    if (spans == NULL)
        return net->ctx->status;
    for (int g = 0; g < net->group_count; g++)
        if (!net->groups[g].gone)
            spans[count++] = net->groups[g].span;
    size_t packed = 0, bound = 0;
    mica_status status = mica_pack(net->ctx, spans, count, &packed);
    if (status == MICA_OK)
        status = mica_pack_lower_bound(net->ctx, spans, count, net->entry_count, &bound);
    for (int g = net->group_count - 1; g >= 0; g--)
        if (!net->groups[g].gone)
            net->groups[g].span.offset = net->persistent + spans[--count].offset;
    mica_release(net->ctx, spans, bytes + 1);
    net->plan.total = net->persistent + packed;
    net->plan.lower_bound = net->persistent + bound;
    return status;
}

mica_status mica_net_lay_out(mica_net *net)
{
    MICA_TRY(place_persistent(net));
    MICA_TRY(find_lifetimes(net));
    if (!net->unshared)
        share_in_place(net);
    MICA_TRY(add_scratch(net));
    for (int g = 0; net->unshared && g < net->group_count; g++) {
        net->groups[g].span.first = 0;
        net->groups[g].span.last = net->entry_count - 1;
    }
    return pack_groups(net);
}
