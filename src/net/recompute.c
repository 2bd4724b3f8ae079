/* Recomputing: forward calls that run a second time, so that what they make need not be kept for the backward.
 *
 *   segments  the forward calls are cut into segments of equal length. What is used only within its segment is
 *             dropped after the forward, and made again just before the segment's backward calls: much less
 *             memory, for up to one forward more. For a budget.
 *   cheap     single calls whose outputs cost about as much to make as to move (activations, norms), if what they are
 *             made from is there anyway. Up to 3 % of the step: always, unless switched off.
 *
 * What is made again are new values, which take the place of the old ones in the backward calls. The bits are the same:
 * random operations draw from a counter. */
#include <string.h>

#include "base/sort.h"
#include "net/net.h"

/* The share of a step's work that cheap recomputing may add. */
#define CHEAP_SHARE 0.03

/* Arithmetic that a processor does in the time it moves a byte: only to compare calls of both kinds. */
#define FLOPS_PER_BYTE 8.0

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
    int *of_maker; /* by root: the segment of the forward call that makes it; NONE: none does */
    bool *dropped; /* by root */
    bool *needed;  /* by root: dropped, and made again */
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

/* Whether forward call e would make something else the second time. */
static bool reads_what_changes(const mica_net *net, int e)
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
        if (reads_what_changes(net, e))
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

static void add_segment(rewriting *w, segments *s, int first_backward, int end_backward, int segment, bool *again)
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

/* ---- Cheap calls ---- */

/* When a root is read, by number of the entry. */
typedef struct reads {
    int first_backward, last;
} reads;

typedef struct candidate {
    int entry;
    int reader; /* the first in the backward */
    double cost, saved;
} candidate;

static void find_reads(const mica_net *net, reads *r)
{
    for (int i = 0; i < net->value_count; i++)
        r[i] = (reads){NONE, NONE};
    for (int e = 0; e < net->entry_count; e++)
        for (int i = 0; i < net->entries[e].node.ins; i++) {
            int in = net->entries[e].node.in[i];
            if (in == NONE)
                continue;
            reads *root = &r[net->values[in].root];
            root->last = e;
            if (e >= net->forward_count && root->first_backward == NONE)
                root->first_backward = e;
        }
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].output)
            r[net->values[i].root].last = net->entry_count;
}

static double bytes_of(const mica_net *net, const mica_entry *entry)
{
    double bytes = 0.0;
    for (int i = 0; i < entry->node.ins; i++)
        if (entry->node.in[i] != NONE)
            bytes += (double)mica_tensor_bytes(&net->values[entry->node.in[i]].tensor);
    for (int k = 0; k < entry->node.outs; k++)
        if (entry->node.out[k] != NONE)
            bytes += (double)mica_tensor_bytes(&net->values[entry->node.out[k]].tensor);
    return bytes;
}

static double cost_of(const mica_net *net, const mica_entry *entry)
{
    return bytes_of(net, entry) + entry->flops / FLOPS_PER_BYTE;
}

/* Whether call e can be run again just before its output is read in the backward, at no more than its own cost. */
static bool is_cheap(const mica_net *net, const reads *r, const bool *again, int e)
{
    const mica_node *node = &net->entries[e].node;
    int y = node->out[0];
    if (!(node->op->flags & MICA_OP_CHEAP) || y == NONE || r[y].first_backward == NONE ||
        r[y].last == net->entry_count || net->entries[e].fused != NULL || reads_what_changes(net, e))
        return false;
    for (int i = 0; i < node->ins; i++) {
        if (node->in[i] == NONE || net->values[node->in[i]].home != MICA_HOME_PLANNED)
            continue;
        int root = net->values[node->in[i]].root;
        if (again[root] || r[root].last < r[y].first_backward)
            return false;
    }
    return true;
}

static int by_gain(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    double difference = x->saved * y->cost - y->saved * x->cost;
    return difference > 0.0 ? -1 : difference < 0.0 ? 1 : x->entry - y->entry;
}

static int by_reader(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return x->reader != y->reader ? x->reader - y->reader : x->entry - y->entry;
}

/* Marks in again[], by the value they make, the calls that save most for what they cost, within the share. They come
 * first in list[]; returns how many. */
static int choose(const mica_net *net, const reads *r, bool *again, candidate *list)
{
    int count = 0, chosen = 0;
    double all = 0.0, spent = 0.0;
    for (int e = 0; e < net->entry_count; e++)
        all += cost_of(net, &net->entries[e]);
    for (int e = 0; e < net->forward_count; e++)
        if (is_cheap(net, r, again, e))
            list[count++] = (candidate){.entry = e,
                                        .reader = r[net->entries[e].node.out[0]].first_backward,
                                        .cost = cost_of(net, &net->entries[e]),
                                        .saved = (double)net->values[net->entries[e].node.out[0]].bytes};
    mica_sort(list, (size_t)count, sizeof *list, by_gain);
    for (int i = 0; i < count; i++) {
        int e = list[i].entry;
        if (spent + list[i].cost > CHEAP_SHARE * all || !is_cheap(net, r, again, e))
            continue;
        spent += list[i].cost;
        again[net->entries[e].node.out[0]] = true;
        list[chosen++] = list[i];
    }
    return chosen;
}

static mica_status rewrite_cheap(mica_net *net, const bool *again, candidate *list, int chosen)
{
    rewriting w;
    MICA_TRY(begin(&w, net, chosen));
    mica_sort(list, (size_t)chosen, sizeof *list, by_reader);
    for (int e = net->forward_count, next = 0; e < net->entry_count; e++) {
        for (; next < chosen && list[next].reader == e; next++)
            add_again(&w, &net->entries[list[next].entry], again);
        add_backward(&w, &net->entries[e]);
    }
    return finish(&w);
}

mica_status mica_net_recompute_cheap(mica_net *net)
{
    if (net->keep_cheap || net->unshared)
        return MICA_OK;
    size_t values = (size_t)net->value_count;
    size_t bytes = values * sizeof(reads) + (size_t)net->forward_count * sizeof(candidate) + values;
    char *memory = mica_allocate(net->ctx, bytes + 1);
    if (memory == NULL)
        return net->ctx->status;
    memset(memory, 0, bytes);
    candidate *list = (candidate *)(void *)memory;
    reads *r = (reads *)(void *)(list + net->forward_count);
    bool *again = (bool *)(r + values);
    find_reads(net, r);
    int chosen = choose(net, r, again, list);
    mica_status status = chosen > 0 ? rewrite_cheap(net, again, list, chosen) : MICA_OK;
    mica_release(net->ctx, memory, bytes + 1);
    return status;
}
