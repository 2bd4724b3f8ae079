/* Which calls run again for the backward, so that what they make need not be kept meanwhile.
 *
 * The bytes alive at every time of a step follow from who reads what. At their peak lies what the forward has made for
 * the backward; of the calls that made it, the one that saves most there for what it costs is to run again, just
 * before the first backward call that reads what it makes. What it reads is kept until then, or made again as well, if
 * it is gone by then anyway: an activation together with the norm before it. This is repeated at the peak that is left,
 * until nothing lowers it, a share of the step's work is spent, or one percent of that saves less than WORTH percent of
 * the block. For a budget, it is repeated until the peak is low enough, whatever that costs. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "net/net.h"

/* The share of a step's work that may be added; the last part of it only by calls that do little arithmetic, whose cost
 * is known best. */
#define SHARE    0.06f
#define OF_CHEAP 0.02f

/* How many percent of the block one percent of the work must save. */
#define WORTH 2.0f

/* Arithmetic that a processor does in the time it moves a byte: only to compare calls of both kinds. Some products take
 * several times as long as others of as much arithmetic: what runs again is taken for one of those. */
#define FLOPS_PER_BYTE 8.0f
#define SLOW_PRODUCT   3.0f

enum {
    DEPTH = 3,  /* the most calls one behind the other that are added for one value */
    SMALL = 16, /* an output is kept, if it is so much smaller than the first */
    NEVER = INT_MAX
};

/* Times count twice: entry e runs at 2 e + 1, calls that run again for it just before, at 2 e. */
#define TIME(entry) (2 * (entry) + 1)

/* The use of a value's memory, by root. */
typedef struct use {
    int maker;   /* the forward call that makes it; NONE: none does */
    int born;    /* NEVER: it has no memory here */
    int forward; /* the last time in the forward */
    int first;   /* the first entry of the backward that reads it; NEVER: none */
    int last;    /* the last time; NEVER: it is read after the step */
    int need;    /* as `first` and `last`, with those that run again */
    int until;
} use;

typedef struct search {
    mica_net *net;
    use *uses;
    int *when;        /* by forward call: the entry that it runs again for; NONE: it does not, or need not */
    ptrdiff_t *alive; /* by time: bytes */
    bool *may;        /* by forward call, as the next two: whether it can run again at all */
    bool *again, *best;
    ptrdiff_t most; /* bytes alive at once */
    int peak;       /* when */
    float reserved; /* of the work that may be added: for cheap calls */
} search;

/* ---- Who reads what ---- */

static use *use_of(const search *s, int value) { return &s->uses[s->net->values[value].root]; }

static ptrdiff_t bytes_of(const search *s, int value)
{
    return (ptrdiff_t)mica_align_up(s->net->values[s->net->values[value].root].bytes);
}

static void note(const search *s, int value, int e, bool reads)
{
    if (value == NONE || s->net->values[s->net->values[value].root].home != MICA_HOME_PLANNED)
        return;
    use *u = use_of(s, value);
    bool forward = e < s->net->forward_count;
    if (u->born == NEVER) {
        u->born = reads ? 0 : TIME(e);
        u->maker = forward && !reads ? e : NONE;
    }
    u->forward = forward ? TIME(e) : u->forward;
    u->last = TIME(e);
    if (reads && !forward && u->first == NEVER)
        u->first = e;
}

static void find_uses(const search *s)
{
    const mica_net *net = s->net;
    for (int i = 0; i < net->value_count; i++)
        s->uses[i] = (use){.maker = NONE, .born = NEVER, .first = NEVER};
    for (int e = 0; e < net->entry_count; e++) {
        const mica_entry *entry = &net->entries[e];
        for (int i = 0; i < entry->node.ins; i++)
            note(s, entry->node.in[i], e, true);
        for (int k = 0; k < entry->node.outs; k++) {
            note(s, entry->node.out[k], e, false);
            note(s, entry->addend[k], e, false);
        }
    }
    for (int i = 0; i < net->built_values; i++) /* what is looked at from outside stays */
        if (net->values[i].output || net->values[i].whole)
            *use_of(s, i) = (use){.maker = NONE, .born = use_of(s, i)->born, .first = NEVER, .last = NEVER};
}

/* Whether a value is dropped after the forward and made again: not statistics that a norm makes besides. */
static bool is_dropped(const search *s, int value)
{
    const use *u = use_of(s, value);
    if (u->maker == NONE || !s->again[u->maker])
        return false;
    int first = s->net->entries[u->maker].node.out[0];
    return first == NONE || bytes_of(s, value) >= bytes_of(s, first) / SMALL;
}

/* Whether forward call e can run again, and what it costs is known. */
static bool can_run_again(const search *s, int e)
{
    const mica_entry *entry = &s->net->entries[e];
    const mica_op *op = entry->node.op;
    if (!((op->flags & MICA_OP_CHEAP) || (entry->flops > 0.0 && op->writes == 0)) ||
        mica_net_reads_what_changes(s->net, e))
        return false;
    for (int k = 0; k < entry->node.outs; k++)
        if (entry->node.out[k] != NONE && use_of(s, entry->node.out[k])->maker != e)
            return false;
    return true;
}

#if !defined(MICA_SMALL)

static bool may_run_again(const search *s, int e) { return s->may[e] && !s->again[e]; }

/* ---- What a call costs ---- */

/* What a call costs, in the time to move a byte. */
static float cost_of(const search *s, int e, float of_flops)
{
    const mica_node *node = &s->net->entries[e].node;
    float moved = 0.0f, made = 0.0f;
    for (int i = 0; i < node->ins; i++)
        if (node->in[i] != NONE)
            moved += (float)mica_tensor_bytes(&s->net->values[node->in[i]].tensor);
    for (int k = 0; k < node->outs; k++)
        if (node->out[k] != NONE)
            made += (float)mica_tensor_bytes(&s->net->values[node->out[k]].tensor);
    if ((node->op->flags & MICA_OP_PICKS) && moved > made)
        moved = made;
    return moved + made + (float)s->net->entries[e].flops * of_flops / FLOPS_PER_BYTE;
}

/* What a step costs, the update of the parameters included. *block: the bytes of parameters, their gradients and the
 * optimizer's state. */
static float cost_of_all(const search *s, float *block)
{
    const mica_net *net = s->net;
    float all = 0.0f, learned = 0.0f;
    for (int e = 0; e < net->entry_count; e++)
        all += cost_of(s, e, 1.0f);
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].home == MICA_HOME_LEARNED)
            learned += (float)net->values[i].bytes;
    int states = net->has_optimizer ? mica_optimizer_states(&net->optimizer) : 0;
    *block = (float)(2 + states) * learned;
    return all + (net->has_optimizer ? (float)(3 + 2 * states) * learned : 0.0f);
}

/* ---- How many bytes are alive ---- */

/* The last time that a value's memory is in use, or that of its first life. */
static int end_of(const search *s, int value)
{
    const use *u = use_of(s, value);
    return is_dropped(s, value) || u->until < u->forward ? u->forward : u->until;
}

static void add_life(const search *s, int first, int last, ptrdiff_t bytes)
{
    int end = TIME(s->net->entry_count);
    s->alive[first] += bytes;
    s->alive[last < end ? last + 1 : end] -= bytes;
}

/* When forward call e must run again: before the first reader of what it makes. */
static int time_again(const search *s, int e)
{
    const mica_node *node = &s->net->entries[e].node;
    int when = NEVER;
    for (int k = 0; k < node->outs; k++)
        if (node->out[k] != NONE && is_dropped(s, node->out[k]) && use_of(s, node->out[k])->need < when)
            when = use_of(s, node->out[k])->need;
    return when;
}

/* From what runs again, when. What it reads must be there then. */
static void find_needs(const search *s)
{
    const mica_net *net = s->net;
    for (int i = 0; i < net->value_count; i++) {
        s->uses[i].need = s->uses[i].first;
        s->uses[i].until = s->uses[i].last;
    }
    for (int e = net->forward_count - 1; e >= 0; e--) {
        int when = s->again[e] ? time_again(s, e) : NEVER;
        s->when[e] = when == NEVER ? NONE : when;
        const mica_node *node = &net->entries[e].node;
        for (int i = 0; i < node->ins && when != NEVER; i++) {
            use *u = node->in[i] != NONE ? use_of(s, node->in[i]) : NULL;
            if (u == NULL)
                continue;
            u->need = when < u->need ? when : u->need;
            u->until = 2 * when > u->until ? 2 * when : u->until;
        }
    }
}

/* Where a call may write over what it reads for the last time, this counts once. */
static void count_in_place(const search *s, const mica_node *node, int time)
{
    unsigned given = 0;
    for (int k = 0; k < node->outs; k++)
        for (int i = 0; i < node->ins; i++) {
            int in = node->in[i], out = node->out[k];
            if (!((node->op->in_place[k] & ~given) >> i & 1u) || in == NONE || out == NONE ||
                use_of(s, in)->born == NEVER || use_of(s, out)->born == NEVER ||
                bytes_of(s, in) != bytes_of(s, out) ||
                (time % 2 == 0 && is_dropped(s, in) ? use_of(s, in)->until : end_of(s, in)) != time)
                continue;
            given |= 1u << i;
            add_life(s, time, time, -bytes_of(s, in));
            break;
        }
}

/* Counts all, and finds the peak. */
static void count(search *s)
{
    const mica_net *net = s->net;
    int end = TIME(net->entry_count);
    find_needs(s);
    memset(s->alive, 0, (size_t)(end + 1) * sizeof *s->alive);
    for (int i = 0; i < net->value_count; i++) {
        const use *u = &s->uses[i];
        if (u->born == NEVER)
            continue;
        add_life(s, u->born, end_of(s, i), bytes_of(s, i));
        if (is_dropped(s, i) && s->when[u->maker] != NONE)
            add_life(s, 2 * s->when[u->maker], u->until, bytes_of(s, i));
    }
    for (int e = 0; e < net->entry_count; e++) {
        ptrdiff_t scratch = (ptrdiff_t)net->entries[e].workspace_bytes;
        int again = e < net->forward_count ? s->when[e] : NONE;
        add_life(s, TIME(e), TIME(e), scratch);
        count_in_place(s, &net->entries[e].node, TIME(e));
        if (again == NONE)
            continue;
        add_life(s, 2 * again, 2 * again, scratch);
        count_in_place(s, &net->entries[e].node, 2 * again);
    }
    s->most = 0;
    ptrdiff_t sum = 0;
    for (int time = 0; time < end; time++) {
        sum += s->alive[time];
        if (sum > s->most) {
            s->most = sum;
            s->peak = time;
        }
    }
}

/* ---- What a call saves ---- */

/* What running call e again costs, so that what it makes is there at entry `when`; *saved loses what is kept longer
 * for it, over the peak. Calls that made what is gone by then run again with it, up to `depth`. With `mark`, all are
 * marked. */
static float cost_again(const search *s, int e, int when, int depth, ptrdiff_t *saved, bool mark)
{
    const mica_node *node = &s->net->entries[e].node;
    float cost = cost_of(s, e, SLOW_PRODUCT);
    for (int i = 0; i < node->ins; i++) {
        const use *u = node->in[i] != NONE ? use_of(s, node->in[i]) : NULL;
        if (u == NULL || u->born == NEVER)
            continue;
        ptrdiff_t bytes = bytes_of(s, node->in[i]);
        if (is_dropped(s, node->in[i])) {
            *saved -= bytes / 4; /* its second life gets longer: better every other call */
        } else if (end_of(s, node->in[i]) >= s->peak) {
            continue;
        } else if (depth > 0 && u->maker != NONE && may_run_again(s, u->maker)) {
            float more = cost_again(s, u->maker, when, depth - 1, saved, mark) - (float)bytes;
            cost += more > 0.0f ? more : 0.0f; /* what was just made is still in the cache */
        } else {
            *saved -= bytes;
        }
    }
    if (mark)
        s->again[e] = true;
    return cost;
}

/* The bytes that are not alive at the peak if call e runs again; *when: before which entry. */
static ptrdiff_t saves(const search *s, int e, int *when)
{
    const mica_node *node = &s->net->entries[e].node;
    ptrdiff_t saved = 0;
    s->again[e] = true; /* to see what is dropped */
    *when = time_again(s, e);
    for (int k = 0; k < node->outs && *when != NEVER && s->peak < 2 * *when; k++)
        if (node->out[k] != NONE && is_dropped(s, node->out[k]) && use_of(s, node->out[k])->need != NEVER &&
            use_of(s, node->out[k])->forward < s->peak)
            saved += bytes_of(s, node->out[k]);
    s->again[e] = false;
    return saved;
}

/* ---- The search ---- */

/* Marks the call that saves most for what it costs, of those that cost no more than *left and save `least` bytes or
 * more for a cost of 1. */
static bool mark_one(const search *s, float *left, float least)
{
    int found = NONE, found_when = NEVER, found_depth = 0;
    float best = least, spent = 0.0f;
    for (int e = 0; e < s->net->forward_count; e++) {
        int when;
        if (!may_run_again(s, e) || saves(s, e, &when) <= 0)
            continue;
        bool cheap = (s->net->entries[e].node.op->flags & MICA_OP_CHEAP) != 0;
        float most = cheap ? *left : *left - s->reserved;
        for (int depth = 0; depth <= DEPTH; depth++) {
            ptrdiff_t saved = saves(s, e, &when);
            float cost = cost_again(s, e, when, depth, &saved, false);
            if (cost > most || (float)saved <= best * cost)
                continue;
            best = (float)saved / cost;
            found = e;
            found_when = when;
            found_depth = depth;
            spent = cost;
        }
    }
    if (found == NONE)
        return false;
    ptrdiff_t saved = 0;
    (void)cost_again(s, found, found_when, found_depth, &saved, true);
    *left -= spent;
    return true;
}

/* Chooses, then leaves out what lowered the peak only while others were not chosen. */
static int choose(search *s, ptrdiff_t target)
{
    int calls = s->net->forward_count, chosen = 0;
    float lasting, all = cost_of_all(s, &lasting), left = target > 0 ? INFINITY : SHARE * all, worth = 0.0f;
    ptrdiff_t least = PTRDIFF_MAX;
    s->reserved = target > 0 ? 0.0f : OF_CHEAP * all;
    for (int e = 0; e < calls; e++)
        s->may[e] = can_run_again(s, e);
    do {
        count(s);
        if (s->most < least) {
            least = s->most;
            memcpy(s->best, s->again, (size_t)calls);
        }
        if (target == 0)
            worth = WORTH * ((float)s->most + lasting) / all;
    } while (least > target && mark_one(s, &left, worth));
    least = least > target ? least : target;
    memcpy(s->again, s->best, (size_t)calls);
    for (int e = 0; e < calls; e++) {
        if (!s->again[e])
            continue;
        s->again[e] = false;
        count(s);
        s->again[e] = s->most > least;
    }
    count(s);
    for (int e = 0; e < calls; e++)
        chosen += s->when[e] != NONE;
    return chosen;
}

#else

/* ---- Built small: no search ---- */

/* Every single call that is cheap, where what it reads is there anyway: memory is what is short. */
static int choose(const search *s, ptrdiff_t target)
{
    const mica_net *net = s->net;
    int chosen = 0;
    (void)target;
    for (int e = 0; e < net->forward_count; e++) {
        const mica_node *node = &net->entries[e].node;
        s->when[e] = NONE;
        bool may = (node->op->flags & MICA_OP_CHEAP) && can_run_again(s, e) && node->out[0] != NONE;
        int when = may ? use_of(s, node->out[0])->first : NEVER;
        for (int i = 0; i < node->ins && when != NEVER; i++)
            if (node->in[i] != NONE && use_of(s, node->in[i])->born != NEVER &&
                (is_dropped(s, node->in[i]) || use_of(s, node->in[i])->last < TIME(when)))
                when = NEVER;
        if (when == NEVER)
            continue;
        s->again[e] = true;
        s->when[e] = when;
        chosen++;
    }
    return chosen;
}

#endif

/* ---- The pass ---- */

static mica_status run_chosen(search *s, ptrdiff_t target)
{
    int chosen = choose(s, target);
    bool *dropped = (bool *)(void *)s->alive; /* it has served: there are more times than values, or enough */
    if (chosen == 0)
        return MICA_OK;
    for (int i = 0; i < s->net->value_count; i++)
        dropped[i] = s->net->values[i].root == i && is_dropped(s, i);
    return mica_net_run_again(s->net, s->when, chosen, dropped);
}

mica_status mica_net_recompute_cheap(mica_net *net, size_t target)
{
    if (net->keep_cheap || net->unshared)
        return MICA_OK;
    size_t values = (size_t)net->value_count, times = (size_t)TIME(net->entry_count) + 1;
    size_t calls = (size_t)net->forward_count;
    times = times > values ? times : values;
    size_t bytes = times * sizeof(ptrdiff_t) + values * sizeof(use) + calls * (sizeof(int) + 3);
    char *memory = mica_allocate(net->ctx, bytes + 1);
    if (memory == NULL)
        return net->ctx->status;
    memset(memory, 0, bytes);
    search s = {.net = net, .alive = (ptrdiff_t *)(void *)memory};
    s.uses = (use *)(void *)(s.alive + times);
    s.when = (int *)(void *)(s.uses + values);
    s.again = (bool *)(s.when + calls);
    s.best = s.again + calls;
    s.may = s.best + calls;
    find_uses(&s);
    mica_status status = run_chosen(&s, (ptrdiff_t)target);
    mica_release(net->ctx, memory, bytes + 1);
    return status;
}
