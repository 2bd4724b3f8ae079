/* Where the channels of images lie, in nets that are only run: as planes, [N, C, H, W] in this order, or last, in the
 * order N, H, W, C. Strides say so: operations take both, so a layout is a property of planned values alone, and never
 * seen from outside.
 *
 * Operations that are faster in one of them say how long a call takes with its images as they lie: mica_op_passes.time.
 * Values between such calls are free to lie either way. What each value's layout adds to the calls around it is
 * compared, one value at a time, until nothing is gained; once from planes and once from all channels last, and the
 * better of the two is taken. */
#include <string.h>

#include "net/net.h"

#if !defined(MICA_SMALL)

enum { MOST_ROUNDS = 16 }; /* each gains, so there is an end; but not all of it is worth the wait */

typedef struct search {
    mica_net *net;
    bool *free;        /* by value */
    bool *found;       /* by value: the best so far */
    int *first, *last; /* by value: the calls that read or write it are among these */
} search;

static void lie(mica_value_info *v, bool channels_last)
{
    v->channels_last = channels_last;
    mica_net_set_strides(v);
}

static bool touches(const mica_node *node, int value)
{
    for (int i = 0; i < node->ins; i++)
        if (node->in[i] == value)
            return true;
    for (int k = 0; k < node->outs; k++)
        if (node->out[k] == value)
            return true;
    return false;
}

static double time_of(const mica_entry *entry)
{
    const mica_op_passes *passes = entry->node.op->passes;
    return passes != NULL && passes->time != NULL ? passes->time(&entry->call) : 0.0;
}

/* How long the calls around a value take. */
static double time_around(const search *s, int value)
{
    double sum = 0.0;
    for (int e = s->first[value]; e <= s->last[value]; e++)
        if (touches(&s->net->entries[e].node, value))
            sum += time_of(&s->net->entries[e]);
    return sum;
}

static double time_of_all(const search *s)
{
    double sum = 0.0;
    for (int e = 0; e < s->net->entry_count; e++)
        sum += time_of(&s->net->entries[e]);
    return sum;
}

/* ---- What is free ---- */

/* An image of several channels and pixels that only this net sees. */
static bool is_image(const mica_value_info *v)
{
    const mica_tensor *t = &v->tensor;
    if (v->home != MICA_HOME_PLANNED || v->kind == MICA_BUFFER_INPUT || v->output || t->rank < 3 ||
        mica_in_blocks(t->dtype) || t->dim[1] < 2)
        return false;
    mica_index pixels = 1;
    for (int k = 2; k < t->rank; k++)
        pixels *= t->dim[k];
    return pixels > 1;
}

/* What a call cannot take in either layout is not free. */
static void note_call(search *s, int e)
{
    const mica_node *node = &s->net->entries[e].node;
    bool timed = node->op->passes != NULL && node->op->passes->time != NULL;
    for (int n = 0; n < node->ins + node->outs; n++) {
        int value = n < node->ins ? node->in[n] : node->out[n - node->ins];
        if (value == NONE)
            continue;
        s->free[value] = s->free[value] && timed;
        s->first[value] = s->first[value] < e ? s->first[value] : e;
        s->last[value] = e;
    }
}

static bool find_free(search *s)
{
    mica_net *net = s->net;
    bool any = false;
    for (int i = 0; i < net->value_count; i++) {
        s->free[i] = is_image(&net->values[i]);
        s->first[i] = net->entry_count;
        s->last[i] = NONE;
    }
    for (int i = 0; i < net->value_count; i++) /* a view shows memory in the order of planes */
        if (net->values[i].root != i)
            s->free[i] = s->free[net->values[i].root] = false;
    for (int e = 0; e < net->entry_count; e++)
        note_call(s, e);
    for (int i = 0; i < net->value_count; i++) {
        s->free[i] = s->free[i] && s->last[i] != NONE;
        any = any || s->free[i];
    }
    return any;
}

/* ---- The search ---- */

/* Turns single values while that gains something; returns the time of all calls. */
static double improve(const search *s)
{
    mica_net *net = s->net;
    bool turned = true;
    for (int round = 0; turned && round < MOST_ROUNDS; round++) {
        turned = false;
        for (int i = 0; i < net->value_count; i++) {
            if (!s->free[i])
                continue;
            mica_value_info *v = &net->values[i];
            double now = time_around(s, i);
            lie(v, !v->channels_last);
            bool better = time_around(s, i) < now;
            if (!better)
                lie(v, !v->channels_last);
            turned = turned || better;
        }
    }
    return time_of_all(s);
}

static void choose(search *s)
{
    mica_net *net = s->net;
    double least = 0.0;
    for (int i = 0; net->all_last && i < net->value_count; i++)
        if (s->free[i])
            lie(&net->values[i], true);
    for (int start = 0; start < 2 && !net->all_last; start++) {
        for (int i = 0; i < net->value_count; i++)
            if (s->free[i])
                lie(&net->values[i], start == 1);
        double time = improve(s);
        if (start == 1 && !(time < least))
            continue;
        least = time;
        for (int i = 0; i < net->value_count; i++)
            s->found[i] = s->free[i] && net->values[i].channels_last;
    }
    for (int i = 0; i < net->value_count && !net->all_last; i++)
        if (s->free[i])
            lie(&net->values[i], s->found[i]);
}

mica_status mica_net_choose_layouts(mica_net *net)
{
    size_t values = (size_t)net->value_count, bytes = values * 2 * (sizeof(int) + sizeof(bool));
    char *memory = mica_allocate(net->ctx, bytes + 1);
    if (memory == NULL)
        return net->ctx->status;
    int *numbers = (int *)(void *)memory;
    bool *flags = (bool *)(numbers + 2 * values);
    search s = {net, flags, flags + values, numbers, numbers + values};
    mica_net_link(net);
    bool any = find_free(&s);
    mica_measure_begin(net->ctx); /* there is no data yet */
    net->ctx->prepares = net->prepare;
    if (any)
        choose(&s);
    for (int e = 0; e < net->entry_count; e++)
        net->entries[e].time = time_of(&net->entries[e]);
    net->ctx->prepares = false;
    (void)mica_measure_end(net->ctx);
    mica_release(net->ctx, memory, bytes + 1);
    return MICA_OK;
}

#endif
