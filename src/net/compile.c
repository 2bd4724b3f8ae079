/* Compiling: schedule, measure, lay out; again with recomputation, then in parts, until a budget holds. */
#include <math.h>
#include <string.h>

#include "net/net.h"

/* Runs an entry without data. *workspace and *rest are what scratch it takes, if that is more. */
static mica_status measure_mode(mica_net *net, const mica_entry *entry, bool training, size_t *workspace,
                                size_t *rest)
{
    mica_running r;
    size_t temporaries;
    mica_measure_begin(net->ctx);
    mica_net_prepare(net, entry, &(mica_mode){.training = training, .scale = 1.0f}, &r, &temporaries);
    mica_status status = mica_net_call(net, entry, &r);
    size_t measured = mica_align_up(mica_measure_end(net->ctx));
    *workspace = measured > *workspace ? measured : *workspace;
    *rest = temporaries > *rest ? temporaries : *rest;
    return status;
}

/* A net that trains also runs its forwards in inference mode; one that does not may be of a shape that cannot
 * train. */
static mica_status measure_entry(mica_net *net, mica_entry *entry)
{
    size_t workspace = entry->workspace_bytes, rest = entry->scratch_bytes - workspace;
    mica_status status = MICA_OK;
    entry->workspace_bytes = 0;
    if (net->train)
        status = measure_mode(net, entry, true, &workspace, &rest);
    if (status == MICA_OK && entry->phase == MICA_PHASE_FORWARD)
        status = measure_mode(net, entry, false, &workspace, &rest);
    entry->workspace_bytes = workspace;
    entry->scratch_bytes = workspace + rest;
    return status;
}

/* An operation may take another path for a smaller batch, and that may take more scratch: so every entry is
 * measured for the batch halved again and again, too. A batch that a layer refuses
 * (batch norm, a single sample) would be refused in a step as well. */
static mica_status measure(mica_net *net)
{
    for (mica_index rows = net->part_rows;; rows /= 2) {
        bool planned = rows == net->part_rows;
        mica_status status = mica_net_set_rows(net, rows);
        for (int e = 0; e < net->entry_count && (status == MICA_OK || !planned); e++)
            status = measure_entry(net, &net->entries[e]);
        if (planned)
            MICA_TRY(status);
        if (rows <= 1)
            break;
    }
    return mica_net_set_rows(net, net->part_rows);
}

static mica_status plan_once(mica_net *net, int segment_nodes, mica_index part_rows)
{
    MICA_TRY(mica_net_plan_parts(net, part_rows));
    MICA_TRY(mica_net_schedule(net, segment_nodes));
    MICA_TRY(measure(net));
    return mica_net_lay_out(net);
}

/* The work of a node's forward, roughly: elements that it writes times the parameters' share of each. Used
 * only to compare plans and to state the price of recomputation. */
static double node_work(const mica_net *net, const mica_node *node)
{
    double out = (double)mica_tensor_count(&net->slots[node->out].tensor[0]), work = out;
    for (int i = 0; i < node->params; i++) {
        const mica_tensor *param = &net->slots[node->param[i]].tensor[0];
        if (param->rank >= 2 && param->dim[0] > 0)
            work += 2.0 * out * (double)mica_tensor_count(param) / (double)param->dim[0];
    }
    return work;
}

static double extra_work(const mica_net *net)
{
    double all = 0.0, again = 0.0;
    for (int e = 0; e < net->entry_count; e++) {
        double work = node_work(net, &net->nodes[net->entries[e].node]);
        if (net->entries[e].phase == MICA_PHASE_FORWARD)
            all += work;
        else if (net->entries[e].phase == MICA_PHASE_RECOMPUTE)
            again += work;
    }
    return all > 0.0 ? again / all : 0.0;
}

/* A plan that was tried: the cheapest that fits so far, or the smallest. */
typedef struct trial {
    int segment_nodes;
    mica_index part_rows;
    double work;
    size_t total;
} trial;

/* Tries recomputation by segments of every useful length, for parts of so many rows. */
static mica_status try_segments(mica_net *net, size_t budget, mica_index part_rows, trial *best,
                                trial *smallest)
{
    for (int length = 0; length == 0 || length < net->node_count;
         length += length == 0 ? 2 : 1 + length / 8) {
        MICA_TRY(plan_once(net, length, part_rows));
        trial this = {length, part_rows, extra_work(net), net->plan.total};
        if (this.total <= budget && (best->total == SIZE_MAX || this.work < best->work))
            *best = this;
        if (this.total < smallest->total)
            *smallest = this;
        if (length == 0 && this.total <= budget)
            break; /* nothing to recompute */
    }
    return MICA_OK;
}

/* Recomputes as little as fits; where nothing fits, also runs the batch in parts, as few as fit. */
static mica_status fit_budget(mica_net *net, size_t budget)
{
    trial best = {.total = SIZE_MAX}, smallest = {.total = SIZE_MAX};
    for (mica_index rows = net->built_rows; best.total == SIZE_MAX; rows = (rows + 1) / 2) {
        MICA_TRY(try_segments(net, budget, rows, &best, &smallest));
        if (rows <= 1 || !net->train)
            break;
    }
    if (best.total == SIZE_MAX)
        return mica_fail(net->ctx, MICA_ERR_MEMORY,
                         "net: needs at least %zu bytes, the budget is %zu (%zu short)", smallest.total,
                         budget, smallest.total - budget);
    return plan_once(net, best.segment_nodes, best.part_rows);
}

/* ---- The plan as data ---- */

static mica_plan_buffer *add_buffer(mica_net *net, const char *name, mica_buffer_kind kind, size_t bytes,
                                    size_t offset)
{
    mica_plan_buffer *buffer = &net->plan_buffers[net->plan.count++];
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
        size_t copies = net->has_optimizer ? (size_t)mica_optimizer_slots(&net->optimizer) : 0;
        if (copies > 0)
            add_flat(net, "optimizer state", MICA_BUFFER_OPTIMIZER, copies * learned,
                     offset + learned * sizeof(float));
    }
    for (int i = 0; i < net->built_slots; i++) {
        const mica_slot *slot = &net->slots[i];
        if (slot->kind == MICA_BUFFER_STATE && !mica_borrows_state(net, slot))
            set_shape(add_buffer(net, slot->name, slot->kind, mica_align_up(slot->bytes), slot->flat),
                      &slot->tensor[0]);
    }
}

static void add_group(mica_net *net, const mica_group *group)
{
    const mica_span *span = &group->span;
    mica_plan_buffer *buffer;
    if (group->slot == NONE) {
        const mica_entry *entry = &net->entries[group->entry];
        buffer = add_buffer(net, net->nodes[entry->node].name, MICA_BUFFER_SCRATCH, span->bytes,
                            span->offset);
        buffer->dtype = MICA_U8;
        buffer->rank = 1;
        buffer->dim[0] = (mica_index)entry->scratch_bytes;
    } else {
        const mica_slot *slot = &net->slots[group->slot];
        buffer = add_buffer(net, slot->name, slot->kind, span->bytes, span->offset);
        set_shape(buffer, &slot->tensor[0]);
    }
    buffer->first = span->first;
    buffer->last = span->last;
}

/* Room for all of the plan, which is kept from one compile to the next. */
static mica_status make_plan_room(mica_net *net)
{
    size_t room = (size_t)(net->group_count + net->built_slots) + 3, times = (size_t)net->entry_count;
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

static mica_status fill_plan(mica_net *net)
{
    MICA_TRY(make_plan_room(net));
    net->plan.buffers = net->plan_buffers;
    net->plan.count = 0;
    net->plan.times = net->entry_count;
    net->plan.time = net->plan_times;
    for (int t = 0; t < net->entry_count; t++)
        net->plan_times[t] = (mica_plan_time){net->nodes[net->entries[t].node].name, net->entries[t].phase};
    net->plan.parts = net->part_rows > 0 ? (int)((net->built_rows + net->part_rows - 1) / net->part_rows) : 1;
    net->plan.extra_work = extra_work(net);
    memset(net->plan.kind_bytes, 0, sizeof net->plan.kind_bytes);
    add_persistent(net);
    for (int g = 0; g < net->group_count; g++)
        if (!net->groups[g].gone)
            add_group(net, &net->groups[g]);
    return MICA_OK;
}

/* ---- The whole ---- */

/* Sizes are added up below: no sum of them, with gradients and optimizer state, may overflow. */
static mica_status check_sizes(mica_net *net)
{
    double bytes = 0.0;
    for (int i = 0; i < net->built_slots; i++)
        bytes += (double)net->slots[i].built_bytes;
    if (bytes > (double)(SIZE_MAX / 16))
        return mica_fail(net->ctx, MICA_ERR_MEMORY,
                         "net_compile: tensors of %.3g bytes in all: no memory holds that", bytes);
    return MICA_OK;
}

/* The first number of an optimizer that makes no sense; NULL: none. */
static const char *optimizer_flaw(const mica_optimizer *o, double *value)
{
    const struct {
        const char *name;
        float value, below;
    } numbers[] = {{"lr", o->lr, INFINITY},
                   {"momentum", o->momentum, INFINITY},
                   {"weight_decay", o->weight_decay, INFINITY},
                   {"beta1", o->beta1, 1.0f},
                   {"beta2", o->beta2, 1.0f},
                   {"alpha", o->alpha, INFINITY},
                   {"eps", o->eps, INFINITY},
                   {"clip_norm", o->clip_norm, INFINITY},
                   {"clip_value", o->clip_value, INFINITY}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        *value = (double)numbers[i].value;
        if (!(numbers[i].value >= 0.0f && numbers[i].value < numbers[i].below))
            return numbers[i].name;
    }
    return NULL;
}

static mica_status check_optimizer(mica_net *net, const mica_optimizer *o)
{
    if ((unsigned)o->kind >= MICA_OPTIMIZER_COUNT)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_compile: optimizer number %d, which is none",
                         (int)o->kind);
    double value;
    const char *flaw = optimizer_flaw(o, &value);
    if (flaw != NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_compile: the optimizer's %s is %g", flaw, value);
    return MICA_OK;
}

/* Training starts from a loss. */
static mica_status check_loss(mica_net *net)
{
    for (int n = 0; n < net->node_count; n++)
        if (net->nodes[n].layer->flags & MICA_LAYER_LOSS)
            return MICA_OK;
    return mica_fail(net->ctx, MICA_ERR_STATE, "net_compile: the net has no loss to train by");
}

mica_status mica_net_compile(mica_net *net, const mica_compile_opts *opts)
{
    static const mica_compile_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    if (net->status != MICA_OK) {
        memcpy(net->ctx->error, net->error, sizeof net->error);
        return net->ctx->status = net->status;
    }
    if (net->block != NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_compile: the net is bound already");
    if (opts->weights != NULL && opts->train)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_compile: shared weights cannot be trained");
    if (opts->train)
        MICA_TRY(check_loss(net));
    if (opts->train && opts->optimizer != NULL)
        MICA_TRY(check_optimizer(net, opts->optimizer));
    MICA_TRY(check_sizes(net));
    mica_net_reorder(net);
    MICA_TRY(mica_net_unplan(net));
    net->train = opts->train;
    net->debug = opts->debug;
    net->weights = opts->weights;
    net->has_optimizer = opts->train && opts->optimizer != NULL;
    if (net->has_optimizer)
        net->optimizer = *opts->optimizer;
    MICA_TRY(plan_once(net, 0, net->built_rows));
    if (opts->budget > 0 && net->plan.total > opts->budget)
        MICA_TRY(fit_budget(net, opts->budget));
    MICA_TRY(fill_plan(net));
    net->compiled = true;
    return MICA_OK;
}

const mica_plan *mica_net_plan(const mica_net *net) { return net->compiled ? &net->plan : NULL; }
