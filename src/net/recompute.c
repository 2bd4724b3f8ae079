/* Recomputing: forward calls that run a second time, so that what they make need not be kept for the backward.
 *
 *   segments  the forward calls are cut into segments of equal length. What is used only within its segment is
 *             dropped after the forward, and made again just before the segment's backward calls: much less
 *             memory, for up to one forward more. For a budget.
 *   single    calls that cost little for what they make (activations, norms, joins), where that lowers the most bytes
 *             alive at once. Which ones: cheap.c. Always, unless switched off.
 *
 * What is made again are new values, which take the place of the old ones in the backward calls. The bits are the same:
 * random operations draw from a counter. */
#include <string.h>

#include "net/net.h"

/* ---- Rewriting the program ---- */

typedef struct rewriting {
    mica_net *net;
    int *again;          /* by value: what takes its place in the backward; NONE: it stays */
    int values;          /* that there were: `again` has so many */
    mica_entry *entries; /* the new program */
    int count, room;
} rewriting;

/* A value of another's shape, for a second run. */
static int second(rewriting *w, int of, mica_buffer_kind kind)
{
    mica_net *net = w->net;
    mica_tensor shape = net->values[of].tensor;
    const char *name = mica_net_value_name(net, of);
    int value = mica_net_new_value(net, NULL, MICA_HOME_PLANNED, kind, &shape);
    if (value == NONE)
        return NONE;
    mica_value_info *v = &net->values[value];
    v->name = name;
    v->like = of;
    v->layer = net->values[of].layer;
    return value;
}

/* What a reader in the backward reads instead of `value`. */
static int replacement(rewriting *w, int value)
{
    int root = w->net->values[value].root;
    if (value >= w->values || root >= w->values || w->again[root] == NONE)
        return value;
    if (w->again[value] == NONE) { /* a view of what is made again */
        int view = second(w, value, w->net->values[value].kind);
        if (view == NONE)
            return value;
        w->net->values[view].root = w->again[root];
        w->again[value] = view;
    }
    return w->again[value];
}

static void add_entry(rewriting *w, const mica_entry *entry) { w->entries[w->count++] = *entry; }

/* Runs forward call `from` again: `wanted` says by root which values it must make, the others go nowhere. */
static void add_again(rewriting *w, const mica_entry *from, const bool *wanted)
{
    mica_net *net = w->net;
    mica_entry entry = *from;
    entry.phase = MICA_PHASE_RECOMPUTE;
    for (int i = 0; i < entry.node.ins; i++)
        if (entry.node.in[i] != NONE)
            entry.node.in[i] = replacement(w, entry.node.in[i]);
    for (int k = 0; k < entry.node.outs; k++) {
        int out = entry.node.out[k];
        if (out == NONE)
            continue;
        bool needed = wanted[out], may_miss = (entry.node.op->optional_outs >> k & 1u) != 0;
        entry.node.out[k] = needed || !may_miss ? second(w, out, net->values[out].kind) : NONE;
        if (needed)
            w->again[out] = entry.node.out[k];
    }
    add_entry(w, &entry);
    net->plan.recomputed++;
}

static void add_backward(rewriting *w, const mica_entry *from)
{
    mica_entry entry = *from;
    for (int i = 0; i < entry.node.ins; i++)
        if (entry.node.in[i] != NONE)
            entry.node.in[i] = replacement(w, entry.node.in[i]);
    add_entry(w, &entry);
}

/* Begins a new program with the forward calls of the old one; at most `more` calls are added to it. */
static mica_status begin(rewriting *w, mica_net *net, int more)
{
    *w = (rewriting){.net = net, .values = net->value_count, .room = net->entry_count + more};
    w->again = mica_allocate(net->ctx, (size_t)w->values * sizeof *w->again + 1);
    w->entries = w->again != NULL ? mica_allocate(net->ctx, (size_t)w->room * sizeof *w->entries) : NULL;
    if (w->entries == NULL) {
        if (w->again != NULL)
            mica_release(net->ctx, w->again, (size_t)w->values * sizeof *w->again + 1);
        return net->ctx->status;
    }
    for (int i = 0; i < w->values; i++)
        w->again[i] = NONE;
    for (int e = 0; e < net->forward_count; e++)
        add_entry(w, &net->entries[e]);
    return MICA_OK;
}

/* Lets the new program be the net's. */
static mica_status finish(rewriting *w)
{
    mica_net *net = w->net;
    mica_release(net->ctx, w->again, (size_t)w->values * sizeof *w->again + 1);
    mica_release(net->ctx, net->entries, (size_t)net->entry_room * sizeof *net->entries);
    net->entries = w->entries;
    net->entry_room = w->room;
    net->entry_count = w->count;
    return net->status;
}

/* ---- Segments ---- */

typedef struct segments {
    int length, last;
    int *of_maker;  /* by root: the segment of the forward call that makes it; NONE: none does */
    bool *dropped;  /* by root */
    bool *needed;   /* by root: dropped, and made again */
    int *of_origin; /* by node */
} segments;

static int segment_of(const mica_net *net, const segments *s, int entry)
{
    return entry < net->forward_count ? entry / s->length : s->of_origin[net->entries[entry].origin];
}

static void find_makers(const mica_net *net, segments *s)
{
    for (int i = 0; i < net->value_count; i++)
        s->of_maker[i] = NONE;
    for (int e = 0, n = 0; e < net->forward_count; e++) {
        const mica_node *node = &net->entries[e].node;
        for (int k = 0; k < node->outs; k++)
            if (node->out[k] != NONE)
                s->of_maker[node->out[k]] = e / s->length;
        /* A node that was fused into another belongs with it. */
        int next = e + 1 < net->forward_count ? net->entries[e + 1].origin : net->node_count;
        for (; n < next; n++)
            s->of_origin[n] = e / s->length;
    }
}

bool mica_net_reads_what_changes(const mica_net *net, int e)
{
    const mica_node *node = &net->entries[e].node;
    for (int i = 0; i < node->ins; i++)
        if (node->in[i] != NONE && mica_net_changes_later(net, node->in[i], net->entries[e].origin))
            return true;
    return false;
}

/* Dropped is what is made before the last segment, read only by calls of its own one, and not seen from outside. */
static void mark_dropped(const mica_net *net, segments *s)
{
    for (int i = 0; i < net->value_count; i++)
        s->dropped[i] = s->of_maker[i] != NONE && s->of_maker[i] != s->last;
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].output)
            s->dropped[net->values[i].root] = false;
    for (int e = 0; e < net->forward_count; e++)
        if (mica_net_reads_what_changes(net, e))
            for (int k = 0; k < net->entries[e].node.outs; k++)
                if (net->entries[e].node.out[k] != NONE)
                    s->dropped[net->entries[e].node.out[k]] = false;
    for (int e = 0; e < net->entry_count; e++)
        for (int i = 0; i < net->entries[e].node.ins; i++) {
            int in = net->entries[e].node.in[i];
            int root = in != NONE ? net->values[in].root : NONE;
            if (root != NONE && s->of_maker[root] != segment_of(net, s, e))
                s->dropped[root] = false;
        }
}

/* What a call reads is needed, if it was dropped. */
static void mark_needed(const mica_net *net, segments *s, const mica_node *node)
{
    for (int i = 0; i < node->ins; i++)
        if (node->in[i] != NONE) {
            int root = net->values[node->in[i]].root;
            s->needed[root] = s->dropped[root];
        }
}

/* Whether forward call e must run again, for what comes behind it. Then what it reads is needed, too. */
static bool runs_again(const mica_net *net, segments *s, int e)
{
    const mica_node *node = &net->entries[e].node;
    bool again = false;
    for (int k = 0; k < node->outs; k++)
        again = again || (node->out[k] != NONE && s->needed[node->out[k]]);
    if (again)
        mark_needed(net, s, node);
    return again;
}

static void add_segment(rewriting *w, segments *s, int first_backward, int end_backward, int segment,
                        bool *again)
{
    const mica_net *net = w->net;
    int first = segment * s->length, end = first + s->length;
    end = end < net->forward_count ? end : net->forward_count;
    for (int e = first_backward; e < end_backward; e++)
        mark_needed(net, s, &net->entries[e].node);
    for (int e = end - 1; e >= first; e--)
        again[e] = runs_again(net, s, e);
    for (int e = first; e < end; e++)
        if (again[e])
            add_again(w, &net->entries[e], s->needed);
    for (int e = first_backward; e < end_backward; e++)
        add_backward(w, &net->entries[e]);
}

static mica_status rewrite_segments(mica_net *net, segments *s, bool *again)
{
    rewriting w;
    MICA_TRY(begin(&w, net, net->forward_count));
    find_makers(net, s);
    mark_dropped(net, s);
    for (int e = net->forward_count; e < net->entry_count;) {
        int segment = segment_of(net, s, e), end = e;
        while (end < net->entry_count && segment_of(net, s, end) == segment)
            end++;
        add_segment(&w, s, e, end, segment, again);
        e = end;
    }
    return finish(&w);
}

mica_status mica_net_recompute_segments(mica_net *net, int segment_calls)
{
    if (segment_calls <= 0 || segment_calls >= net->forward_count)
        return MICA_OK;
    size_t values = (size_t)net->value_count, nodes = (size_t)net->node_count;
    size_t bytes = (values + nodes) * sizeof(int) + 2 * values + (size_t)net->forward_count;
    char *memory = mica_allocate(net->ctx, bytes + 1);
    if (memory == NULL)
        return net->ctx->status;
    memset(memory, 0, bytes);
    segments s = {.length = segment_calls, .last = (net->forward_count - 1) / segment_calls};
    s.of_maker = (int *)(void *)memory;
    s.of_origin = s.of_maker + values;
    s.dropped = (bool *)(s.of_origin + nodes);
    s.needed = s.dropped + values;
    mica_status status = rewrite_segments(net, &s, s.needed + values);
    mica_release(net->ctx, memory, bytes + 1);
    return status;
}

/* ---- Single calls ---- */

mica_status mica_net_run_again(mica_net *net, const int *when, int count, const bool *dropped)
{
    rewriting w;
    MICA_TRY(begin(&w, net, count));
    for (int e = net->forward_count; e < net->entry_count; e++) {
        for (int f = 0; f < net->forward_count && count > 0; f++)
            if (when[f] == e)
                add_again(&w, &net->entries[f], dropped);
        add_backward(&w, &net->entries[e]);
    }
    return finish(&w);
}
