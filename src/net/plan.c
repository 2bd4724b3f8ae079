/* The plan as data: every buffer of the block, and what runs at every time of a step. */
#include <string.h>

#include "base/format.h"
#include "net/net.h"

/* The name of a value where it has one as it is; else NULL. */
static const char *plain_name(const mica_net *net, int value)
{
    const mica_value_info *v = &net->values[value];
    if (v->name != NULL)
        return v->name;
    if (v->layer == NONE)
        return "a value";
    bool is_layers = net->layers[v->layer].output == value + 1 || v->maker == NONE ||
                     value >= net->built_values;
    return is_layers ? net->layers[v->layer].name : NULL;
}

mica_value_text mica_net_value_text(const mica_net *net, int value)
{
    mica_value_text out;
    const mica_value_info *v = &net->values[value];
    const char *plain = plain_name(net, value), *layer = plain == NULL ? net->layers[v->layer].name : NULL;
    const mica_op *op = plain == NULL ? net->nodes[v->maker].op : NULL;
    if (op == NULL)
        (void)mica_format(out.text, sizeof out.text, "%s", plain);
    else if (op->names != NULL)
        (void)mica_format(out.text, sizeof out.text, "%s (%s)", layer,
                          op->names[op->ins + op->optional_ins + v->number]);
    else if (v->number == 0)
        (void)mica_format(out.text, sizeof out.text, "%s (%s)", layer, op->name);
    else
        (void)mica_format(out.text, sizeof out.text, "%s (%s %d)", layer, op->name, v->number);
    return out;
}

const char *mica_net_value_name(mica_net *net, int value)
{
    const char *plain = plain_name(net, value);
    const char *text = plain != NULL ? plain : mica_net_text(net, "%s", mica_net_value_text(net, value).text);
    return text != NULL ? text : net->layers[net->values[value].layer].name;
}

/* The work of an entry, roughly: only to compare plans and to state the price of recomputing. */
static double work_of(const mica_net *net, const mica_entry *entry)
{
    double work = entry->flops;
    for (int k = 0; k < entry->node.outs; k++)
        if (entry->node.out[k] != NONE)
            work += (double)mica_tensor_count(&net->values[entry->node.out[k]].tensor);
    return work;
}

double mica_net_extra_work(const mica_net *net)
{
    double all = 0.0, again = 0.0;
    for (int e = 0; e < net->entry_count; e++) {
        double work = work_of(net, &net->entries[e]);
        if (net->entries[e].phase == MICA_PHASE_FORWARD)
            all += work;
        else if (net->entries[e].phase == MICA_PHASE_RECOMPUTE)
            again += work;
    }
    return all > 0.0 ? again / all : 0.0;
}

/* Built small, a plan has sums only: a list of buffers would take as much memory as some of them. */
static mica_plan_buffer *add_buffer(mica_net *net, const char *name, mica_buffer_kind kind, size_t bytes,
                                    size_t offset)
{
#if defined(MICA_SMALL)
    mica_plan_buffer *buffer = net->plan_buffers;
#else
    mica_plan_buffer *buffer = &net->plan_buffers[net->plan.count++];
#endif
    int end = net->entry_count > 0 ? net->entry_count - 1 : 0;
    *buffer = (mica_plan_buffer){.name = name, .kind = kind, .bytes = bytes, .offset = offset, .last = end};
    net->plan.kind_bytes[kind] += bytes;
    return buffer;
}

static void set_shape(mica_plan_buffer *buffer, const mica_tensor *shape)
{
    buffer->dtype = shape->dtype;
    buffer->rank = shape->rank;
    memcpy(buffer->dim, shape->dim, sizeof buffer->dim);
}

static void add_flat(mica_net *net, const char *name, mica_buffer_kind kind, size_t count, size_t offset)
{
    mica_tensor shape = mica_1d(NULL, (mica_index)count);
    set_shape(add_buffer(net, name, kind, count * sizeof(float), offset), &shape);
}

static void add_persistent(mica_net *net)
{
    size_t offset = 0, learned = net->learned_count;
    if (net->weights == NULL) {
        add_flat(net, "parameters", MICA_BUFFER_PARAMETER, net->flat_count, 0);
        offset += net->flat_count * sizeof(float);
    }
    if (net->train) {
        add_flat(net, "gradients", MICA_BUFFER_GRADIENT, learned, offset);
        size_t copies = net->has_optimizer ? (size_t)mica_optimizer_states(&net->optimizer) : 0;
        if (copies > 0)
            add_flat(net, "optimizer state", MICA_BUFFER_OPTIMIZER, copies * net->state_count,
                     offset + learned * sizeof(float));
    }
    for (int i = 0; i < net->value_count; i++) {
        const mica_value_info *v = &net->values[i];
        if ((v->home == MICA_HOME_KEPT || v->home == MICA_HOME_DERIVED) && !mica_borrows(net, v))
            set_shape(add_buffer(net, v->name, v->kind, mica_align_up(v->bytes), v->flat), &v->tensor);
    }
}

static mica_plan_buffer *add_group(mica_net *net, const mica_group *group, const mica_span *span,
                                   size_t workspace_bytes)
{
    mica_plan_buffer *buffer;
    if (group->value == NONE) {
        const mica_entry *entry = &net->entries[group->entry];
        buffer = add_buffer(net, net->layers[entry->node.layer].name, MICA_BUFFER_SCRATCH, span->bytes,
                            span->offset);
        buffer->dtype = MICA_U8;
        buffer->rank = 1;
        buffer->dim[0] = (mica_index)workspace_bytes;
    } else {
        const mica_value_info *v = &net->values[group->value];
        const char *name = net->plan_time_room > 0 ? mica_net_value_name(net, group->value) : NULL;
        buffer = add_buffer(net, name, v->kind, span->bytes, span->offset);
        set_shape(buffer, &v->tensor);
    }
    buffer->first = span->first;
    buffer->last = span->last;
    return buffer;
}

static void add_groups(mica_net *net)
{
    for (int g = 0; g < net->group_count; g++) {
        const mica_group *group = &net->groups[g];
        if (!group->gone)
            (void)add_group(net, group, &group->span,
                            group->value == NONE ? net->entries[group->entry].workspace_bytes : 0);
    }
}

#if !defined(MICA_SMALL)
/* What lanes but the first have for themselves. */
static void add_lanes(mica_net *net)
{
    for (int k = 1; k < net->lanes; k++)
        for (int g = 0; g < net->group_count; g++) {
            const mica_group *group = &net->groups[g];
            mica_span span;
            if (!mica_net_lane_span(net, group, &span))
                continue;
            span.offset += mica_net_lane_start(net, k);
            add_group(net, group, &span, group->value == NONE ? net->entries[group->entry].lane_bytes : 0)
                ->lane = k;
        }
}
#endif

#if defined(MICA_SMALL)
#define LANES(net) 1
#else
#define LANES(net) ((net)->lanes)
#endif

/* Room for all of the plan, which is kept from one compile to the next. */
static mica_status make_room(mica_net *net)
{
#if defined(MICA_SMALL)
    size_t room = 1, times = 0;
#else
    size_t groups = (size_t)net->group_count * (size_t)LANES(net);
    size_t room = groups + (size_t)net->value_count + 3, times = (size_t)net->entry_count;
#endif
    if (room > net->plan_room) {
        mica_plan_buffer *buffers = mica_allocate(net->ctx, room * sizeof *buffers);
        if (buffers == NULL)
            return net->ctx->status;
        mica_release(net->ctx, net->plan_buffers, net->plan_room * sizeof *buffers);
        net->plan_buffers = buffers;
        net->plan_room = room;
    }
    if (times > net->plan_time_room) {
        mica_plan_time *time = mica_allocate(net->ctx, times * sizeof *time);
        if (time == NULL)
            return net->ctx->status;
        mica_release(net->ctx, net->plan_times, net->plan_time_room * sizeof *time);
        net->plan_times = time;
        net->plan_time_room = times;
    }
    return MICA_OK;
}

mica_status mica_net_fill_plan(mica_net *net)
{
    MICA_TRY(make_room(net));
    mica_plan *plan = &net->plan;
    plan->buffers = net->plan_buffers;
    plan->count = 0;
    plan->times = net->entry_count;
    plan->time = net->plan_times;
    for (int t = 0; t < net->entry_count && net->plan_time_room > 0; t++)
        net->plan_times[t] = (mica_plan_time){net->layers[net->entries[t].node.layer].name,
                                              net->entries[t].phase};
    plan->parts = net->part_rows > 0 ? (int)((net->size[0].most + net->part_rows - 1) / net->part_rows) : 1;
    plan->lanes = LANES(net);
    plan->extra_work = mica_net_extra_work(net);
    memset(plan->kind_bytes, 0, sizeof plan->kind_bytes);
    add_persistent(net);
    add_groups(net);
#if defined(MICA_SMALL)
    mica_release(net->ctx, net->plan_buffers, net->plan_room * sizeof *net->plan_buffers);
    plan->buffers = net->plan_buffers = NULL;
    net->plan_room = 0;
#else
    add_lanes(net);
#endif
    return net->status;
}
