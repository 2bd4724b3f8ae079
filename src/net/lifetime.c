/* Lifetimes, sharing and places: from the program to offsets in the block. */
#include "net/net.h"

/* ---- What lives from step to step ---- */

bool mica_borrows(const mica_net *net, const mica_value_info *v)
{
    return net->weights != NULL && (v->kind == MICA_BUFFER_PARAMETER ||
                                    (v->home == MICA_HOME_KEPT && v->kept == MICA_KEPT_STATISTICS));
}

/* Gives each parameter that is learned (or each that is not) its place, from element *from on. */
static mica_status place_parameters(mica_net *net, size_t *from, bool learned)
{
    for (int i = 0; i < net->built_values; i++) {
        mica_value_info *v = &net->values[i];
        bool is_learned = v->gradient != NONE || (!net->train && !v->frozen);
        if (v->kind != MICA_BUFFER_PARAMETER || learned != is_learned)
            continue;
        v->flat = *from;
        *from += mica_align_up(v->bytes) / sizeof(float);
        if (!learned)
            continue;
        MICA_TRY(
            mica_net_grow(net, &net->learned, net->learned_values, &net->learned_room, sizeof *net->learned));
        net->learned[net->learned_values++] = i;
    }
    return MICA_OK;
}

/* Parameters that are learned come first, so that gradients and optimizer state run beside them. */
static mica_status place_persistent(mica_net *net)
{
    net->flat_count = 0;
    net->learned_values = 0;
    MICA_TRY(place_parameters(net, &net->flat_count, true));
    net->learned_count = net->flat_count;
    MICA_TRY(place_parameters(net, &net->flat_count, false));
    size_t bytes = net->weights == NULL ? net->flat_count * sizeof(float) : 0;
    net->state_count = mica_net_rank_part(net->learned_count, net->ranks);
    if (net->train) {
        size_t copies = net->has_optimizer ? (size_t)mica_optimizer_states(&net->optimizer) : 0;
        bytes += (net->learned_count + copies * net->state_count) * sizeof(float);
    }
    for (int derived = 0; derived < 2; derived++)
        for (int i = 0; i < net->value_count; i++) { /* what is prepared was made by compile */
            mica_value_info *v = &net->values[i];
            if (v->home != (derived ? MICA_HOME_DERIVED : MICA_HOME_KEPT) || mica_borrows(net, v))
                continue;
            v->flat = bytes;
            bytes += mica_align_up(v->bytes);
        }
    net->persistent = bytes;
    return MICA_OK;
}

/* ---- Lifetimes ---- */

static int new_group(mica_net *net, size_t bytes, int value, int entry, int time)
{
    if (mica_net_grow(net, &net->groups, net->group_count, &net->group_room, sizeof *net->groups) != MICA_OK)
        return NONE;
    size_t guard = net->debug ? MICA_ALIGN : 0;
    net->groups[net->group_count] = (mica_group){
        .span = {.bytes = mica_align_up(bytes) + guard, .first = time, .last = time},
        .value = value,
        .entry = entry,
        .seen = NONE};
    return net->group_count++;
}

static mica_status live_at(mica_net *net, int value, int time)
{
    if (value == NONE || net->values[net->values[value].root].home != MICA_HOME_PLANNED)
        return MICA_OK;
    int number = net->values[value].root;
    mica_value_info *root = &net->values[number];
    if (root->group == NONE) {
        root->group = new_group(net, root->bytes, number, NONE, time);
        if (root->group == NONE)
            return net->ctx->status;
    }
    mica_span *span = &net->groups[root->group].span;
    if (root->kind == MICA_BUFFER_INPUT)
        span->first = 0; /* written before the step */
    span->last = time > span->last ? time : span->last;
    return MICA_OK;
}

/* Keeps a value through a time, and beyond it if no time follows: nothing may lie over it then. */
static void keep_through(mica_net *net, int value, int time)
{
    int number = net->values[net->values[value].root].group;
    if (number == NONE)
        return;
    mica_group *group = &net->groups[number];
    group->span.last = group->span.last > time ? group->span.last : time;
    group->seen = group->seen > time ? group->seen : time;
}

/* What is looked at from outside: inputs that nobody reads still need a place; outputs are read after the step, and
 * so, after a forward, are the targets of a loss, to score the output against. What holds the whole batch of a step in
 * parts lives through all of them, as do its inputs. */
static mica_status keep_longer(mica_net *net)
{
    int end = net->entry_count > 0 ? net->entry_count - 1 : 0;
    for (int i = 0; i < net->built_values; i++) {
        if (net->values[i].kind == MICA_BUFFER_INPUT && net->values[i].group == NONE)
            MICA_TRY(live_at(net, i, 0));
        if (net->values[i].output)
            keep_through(net, i, end);
    }
    for (int i = 0; i < net->built_values; i++) {
        bool again = net->part_rows < net->size[0].most && net->values[i].kind == MICA_BUFFER_INPUT;
        if (net->values[i].group == NONE || !(net->values[i].whole || again))
            continue;
        net->groups[net->values[i].group].span.first = 0;
        keep_through(net, i, end);
    }
    for (int n = 0; n < net->node_count; n++) {
        const mica_node *node = &net->nodes[n];
        for (int i = 1; (node->op->flags & MICA_OP_LOSS) && i < node->ins; i++)
            if (node->in[i] != NONE && net->forward_count > 0)
                keep_through(net, node->in[i], net->forward_count - 1);
    }
    return MICA_OK;
}

static mica_status find_lifetimes(mica_net *net)
{
    net->group_count = 0;
    for (int i = 0; i < net->value_count; i++)
        net->values[i].group = NONE;
    for (int time = 0; time < net->entry_count; time++) {
        const mica_entry *entry = &net->entries[time];
        for (int i = 0; i < entry->node.ins; i++)
            MICA_TRY(live_at(net, entry->node.in[i], time));
        for (int k = 0; k < entry->node.outs; k++) {
            MICA_TRY(live_at(net, entry->node.out[k], time));
            MICA_TRY(live_at(net, entry->addend[k], time));
        }
    }
    return keep_longer(net);
}

/* ---- Sharing in place ---- */

/* Whether input i alone shows its memory to the call. */
static bool is_alone(const mica_net *net, const mica_node *node, int input)
{
    for (int i = 0; i < node->ins; i++)
        if (i != input && node->in[i] != NONE &&
            net->values[node->in[i]].root == net->values[node->in[input]].root)
            return false;
    return true;
}

/* Lets `to` (first used at this time) take over the memory of `from` (last used at this time), of the same shape. */
static bool take_over(mica_net *net, int from, int to, int time)
{
    const mica_value_info *giver = &net->values[net->values[from].root];
    mica_value_info *taker = &net->values[net->values[to].root];
    int a = giver->group, b = taker->group;
    if (a == NONE || b == NONE || a == b || net->groups[a].span.last != time ||
        net->groups[b].span.first != time || net->groups[a].seen >= time || giver->bytes != taker->bytes ||
        net->values[from].tensor.dtype != net->values[to].tensor.dtype ||
        net->values[from].channels_last != net->values[to].channels_last ||
        !mica_tensor_same_shape(&net->values[from].tensor, &net->values[to].tensor))
        return false;
    net->groups[a].span.last = net->groups[b].span.last;
    net->groups[a].seen = net->groups[b].seen;
    net->groups[b].gone = true;
    taker->group = a;
    return true;
}

static void share_in_place(mica_net *net)
{
    for (int time = 0; time < net->entry_count; time++) {
        const mica_node *node = &net->entries[time].node;
        unsigned given = 0; /* inputs whose memory an output has */
        for (int k = 0; k < node->outs; k++) {
            bool taken = node->out[k] == NONE || net->values[node->out[k]].home != MICA_HOME_PLANNED;
            for (int i = 0; i < node->ins && !taken; i++)
                if ((node->op->in_place[k] & ~given) >> i & 1u && node->in[i] != NONE &&
                    is_alone(net, node, i)) {
                    taken = take_over(net, node->in[i], node->out[k], time);
                    given |= taken ? 1u << i : 0u;
                }
        }
    }
}

/* ---- Packing ----
 *
 * The memory of lanes but the first (lanes.c) has what they do not share, and less scratch. */

/* What is to be packed for a group, in the first lane or in another one; false: nothing. */
static bool find_span(const mica_net *net, const mica_group *group, bool lane, mica_span *span)
{
#if !defined(MICA_SMALL)
    if (lane)
        return mica_net_lane_span(net, group, span);
#endif
    (void)net, (void)lane;
    *span = group->span;
    return !group->gone;
}

static void place_group(const mica_net *net, mica_group *group, bool lane, size_t offset)
{
#if !defined(MICA_SMALL)
    if (lane) {
        group->lane_offset = offset;
        return;
    }
#endif
    (void)lane;
    group->span.offset = net->persistent + offset;
}

/* What is packed takes so many bytes, and at least so many. */
typedef struct packing {
    size_t bytes, bound;
} packing;

/* Packs the groups that are left; of a lane, those that it does not share. spans[] has room for all groups. */
static mica_status pack(mica_net *net, mica_span *spans, bool lane, packing *out)
{
    size_t count = 0;
    mica_span span;
    for (int g = 0; g < net->group_count; g++)
        if (find_span(net, &net->groups[g], lane, &span))
            spans[count++] = span;
    MICA_TRY(mica_pack(net->ctx, spans, count, &out->bytes));
    MICA_TRY(mica_pack_lower_bound(net->ctx, spans, count, net->entry_count, &out->bound));
    for (int g = net->group_count - 1; g >= 0; g--) {
        mica_group *group = &net->groups[g];
        if (find_span(net, group, lane, &span))
            place_group(net, group, lane, spans[--count].offset);
    }
    return MICA_OK;
}

static mica_status pack_with(mica_net *net, mica_span *spans)
{
    packing first = {0, 0}, lane = {0, 0};
    size_t derivations = 0, lanes = 0;
    MICA_TRY(pack(net, spans, false, &first));
    MICA_TRY(mica_net_measure_derivations(net, &derivations)); /* before anything else is there */
#if !defined(MICA_SMALL)
    net->lanes = mica_net_lanes_for(net);
    if (net->lanes > 1)
        MICA_TRY(pack(net, spans, true, &lane));
    net->lanes_offset = net->persistent + first.bytes;
    net->lane_bytes = lane.bytes;
    lanes = (size_t)net->lanes - 1;
    if (net->lanes_offset + lanes * lane.bytes > mica_net_most_with_lanes(net)) {
        net->lanes = 1;
        lanes = 0;
    }
#endif
    size_t bytes = first.bytes + lanes * lane.bytes, bound = first.bound + lanes * lane.bound;
    net->plan.total = net->persistent + (bytes > derivations ? bytes : derivations);
    net->plan.lower_bound = net->persistent + (bound > derivations ? bound : derivations);
    return MICA_OK;
}

static mica_status pack_groups(mica_net *net)
{
    size_t bytes = (size_t)net->group_count * sizeof(mica_span) + 1;
    mica_span *spans = mica_allocate(net->ctx, bytes);
    if (spans == NULL)
        return net->ctx->status;
    mica_status status = pack_with(net, spans);
    mica_release(net->ctx, spans, bytes);
    return status;
}

/* ---- The whole ---- */

static mica_status add_workspaces(mica_net *net)
{
    for (int time = 0; time < net->entry_count; time++) {
        mica_entry *entry = &net->entries[time];
        entry->group = NONE;
        if (entry->workspace_bytes == 0)
            continue;
        entry->group = new_group(net, entry->workspace_bytes, NONE, time, time);
        if (entry->group == NONE)
            return net->ctx->status;
    }
    return MICA_OK;
}

mica_status mica_net_lay_out(mica_net *net)
{
    MICA_TRY(place_persistent(net));
    MICA_TRY(find_lifetimes(net));
    if (!net->unshared)
        share_in_place(net);
    MICA_TRY(add_workspaces(net));
    for (int g = 0; net->unshared && g < net->group_count; g++) {
        net->groups[g].span.first = 0;
        net->groups[g].span.last = net->entry_count - 1;
    }
    return pack_groups(net);
}
