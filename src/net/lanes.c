/* Parts side by side: each thread runs whole parts of the batch, in memory of its own.
 *
 * Threads that share a call pass data between cores at every call. If each runs its own part, what one call writes
 * stays in the caches of the core that reads it next, and threads do not synchronize until the step ends. The bits are
 * those of parts in sequence, with any number of threads.
 *
 *   block    [ persistent | packed, as for parts in sequence | lane 1 | lane 2 ... ]
 *                            lane 0, and the inputs and outputs of the whole batch, which all lanes share
 *
 * A lane has a context with one thread, a tensor for each value, and the calls of the program on these. */
#include <string.h>

#include "base/parallel.h"
#include "net/net.h"

#if !defined(MICA_SMALL)

/* Whether an operation may run for several parts at once. A caller's function runs on the calling thread alone. */
static bool is_serial(const mica_op *op)
{
    bool keeps = op->writes != 0 && mica_op_find(op->name) != op; /* batch norm writes in training only */
    return (op->flags & (MICA_OP_CALLBACK | MICA_OP_SERIAL)) != 0 || keeps;
}

int mica_net_lanes_for(const mica_net *net)
{
    mica_index rows = net->part_rows, most = net->size[0].most;
    bool in_parts = !net->train && !net->in_sequence && rows > 0 && rows < most;
    if (!in_parts || (most + rows - 1) / rows < net->ctx->threads)
        return 1;
    for (int n = 0; n < net->node_count; n++)
        if (is_serial(net->nodes[n].op))
            return 1;
    return net->ctx->threads;
}

size_t mica_net_most_with_lanes(const mica_net *net)
{
    return net->budget > 0 && net->budget < net->whole_total ? net->budget : net->whole_total;
}

/* Whether lanes share the memory of a group: inputs, and what holds the whole batch. */
static bool is_shared(const mica_net *net, const mica_group *group)
{
    const mica_value_info *v = group->value != NONE ? &net->values[group->value] : NULL;
    return v != NULL && (v->whole || v->kind == MICA_BUFFER_INPUT);
}

bool mica_net_lane_span(const mica_net *net, const mica_group *group, mica_span *span)
{
    *span = group->span;
    span->offset = group->lane_offset;
    if (group->value == NONE)
        span->bytes = mica_align_up(net->entries[group->entry].lane_bytes);
    return !group->gone && !is_shared(net, group) && span->bytes > 0;
}

size_t mica_net_lane_start(const mica_net *net, int lane)
{
    return net->lanes_offset + (size_t)(lane - 1) * net->lane_bytes;
}

/* Where lane number `lane` has what lies at `offset` of a lane. */
static char *lane_data(const mica_net *net, int lane, size_t offset)
{
    return net->block + mica_net_lane_start(net, lane) + offset;
}

/* ---- Compile ---- */

mica_status mica_net_make_lanes(mica_net *net)
{
    net->lane = NULL;
    if (net->lanes < 2)
        return MICA_OK;
    net->lane = mica_net_memory(net, (size_t)net->lanes * sizeof *net->lane);
    for (int k = 0; k < net->lanes && net->lane != NULL; k++) {
        mica_lane *lane = &net->lane[k];
        *lane = (mica_lane){.values = mica_net_memory(net, (size_t)net->value_count * sizeof *lane->values),
                            .calls = mica_net_memory(net, (size_t)net->entry_count * sizeof *lane->calls)};
        if (lane->values == NULL || lane->calls == NULL)
            break;
    }
    return net->status;
}

/* ---- Bind ---- */

static void link_lane(const mica_net *net, mica_lane *lane)
{
    for (int e = 0; e < net->entry_count; e++) {
        const mica_node *node = &net->entries[e].node;
        mica_call *call = &lane->calls[e];
        *call = net->entries[e].call;
        call->ctx = &lane->ctx;
        for (int i = 0; i < node->ins; i++)
            call->in[i] = node->in[i] != NONE ? &lane->values[node->in[i]] : NULL;
        for (int k = 0; k < node->outs; k++)
            call->out[k] = node->out[k] != NONE ? &lane->values[node->out[k]] : NULL;
    }
}

void mica_net_bind_lanes(mica_net *net)
{
    for (int k = 0; net->lane != NULL && k < net->lanes; k++) {
        link_lane(net, &net->lane[k]);
        net->lane[k].shapes = net->shapes - 1; /* none yet */
    }
}

/* ---- Step ---- */

/* Gives a lane's tensors the present shapes. What lasts is where the net has it, and so is what all lanes share:
 * mica_net_select_rows points tensors of the whole batch at a part's rows. */
static void take_shapes(const mica_net *net, mica_lane *lane, int number)
{
    for (int i = 0; i < net->value_count; i++) {
        const mica_value_info *v = &net->values[i], *root = &net->values[v->root];
        lane->values[i] = v->tensor;
        bool packed = root->home == MICA_HOME_PLANNED && root->group != NONE;
        if (number > 0 && packed && !is_shared(net, &net->groups[root->group]))
            lane->values[i].data = lane_data(net, number, net->groups[root->group].lane_offset);
    }
    lane->shapes = net->shapes;
}

/* A step's parts of one size. */
typedef struct alike {
    mica_net *net;
    int end;           /* of the entries */
    mica_index parts;  /* of the whole step */
    mica_index larger; /* of those, how many have one row more than the others */
    bool large;        /* these, or the others */
} alike;

/* The index among all parts of the i-th part of this size. Part p begins at row floor(rows p / parts); with `larger` =
 * rows mod parts, it is one of the larger ones if floor(larger (p + 1) / parts) is above floor(larger p / parts). */
static mica_index part_number(const alike *t, mica_index i)
{
    mica_index smaller = t->parts - t->larger;
    return t->large ? ((i + 1) * t->parts + t->larger - 1) / t->larger - 1 : i * t->parts / smaller;
}

static mica_status run_calls(const alike *t, mica_lane *lane, int number)
{
    const mica_net *net = t->net;
    for (int e = 0; e < t->end; e++) {
        const mica_entry *entry = &net->entries[e];
        const mica_group *group = entry->group != NONE ? &net->groups[entry->group] : NULL;
        lane->ctx.workspace = group == NULL ? NULL
                              : number == 0 ? net->block + group->span.offset
                                            : lane_data(net, number, group->lane_offset);
        lane->ctx.workspace_bytes = number == 0 ? entry->workspace_bytes : entry->lane_bytes;
        lane->calls[e].seed = net->seed;
        MICA_TRY(lane->calls[e].op->run(&lane->calls[e]));
    }
    return MICA_OK;
}

static void run_part(void *work, size_t block, int thread)
{
    const alike *t = work;
    mica_net *net = t->net;
    mica_lane *lane = &net->lane[thread];
    mica_index part = part_number(t, (mica_index)block);
    if (lane->status != MICA_OK && part > lane->part)
        return; /* parts before the one that failed may fail, too, and then theirs is the failure */
    if (lane->shapes != net->shapes)
        take_shapes(net, lane, thread);
    mica_net_select_rows(net, lane->values, net->rows * part / t->parts);
    mica_status status = run_calls(t, lane, thread);
    if (status == MICA_OK)
        return;
    lane->status = status;
    lane->part = part;
}

static void begin_lanes(mica_net *net)
{
    for (int k = 0; k < net->lanes; k++) {
        mica_lane *lane = &net->lane[k];
        lane->status = MICA_OK;
        lane->ctx = *net->ctx;
        lane->ctx.crew = NULL;
        lane->ctx.threads = 1;
    }
}

/* Of parts of one size, the first that failed tells why, whichever thread ran it. */
static mica_status end_lanes(mica_net *net)
{
    const mica_lane *first = NULL;
    for (int k = 0; k < net->lanes; k++)
        if (net->lane[k].status != MICA_OK && (first == NULL || net->lane[k].part < first->part))
            first = &net->lane[k];
    if (first == NULL)
        return MICA_OK;
    memcpy(net->ctx->error, first->ctx.error, MICA_ERROR_TEXT);
    net->ctx->status = first->ctx.status;
    return first->status;
}

/* `count` parts of so many rows: a lane for each as long as all threads have one, then one after the other by all. */
static mica_status run_alike(const alike *t, mica_index count, mica_index rows, const mica_mode *mode)
{
    mica_net *net = t->net;
    mica_index beside = count - count % net->lanes;
    if (count == 0)
        return MICA_OK;
    MICA_TRY(mica_net_select_part(net, 0, rows));
    if (beside > 0) {
        begin_lanes(net);
        mica_parallel(net->ctx, (size_t)beside, run_part, (void *)t);
        MICA_TRY(end_lanes(net));
    }
    for (mica_index i = beside; i < count; i++) {
        MICA_TRY(mica_net_select_part(net, net->rows * part_number(t, i) / t->parts, rows));
        MICA_TRY(mica_net_run_entries(net, 0, t->end, mode));
    }
    return MICA_OK;
}

mica_status mica_net_run_lanes(mica_net *net, int end, const mica_mode *mode)
{
    mica_index parts = (net->rows + net->part_rows - 1) / net->part_rows, rows = net->rows / parts;
    alike t = {.net = net, .end = end, .parts = parts, .larger = net->rows % parts};
    MICA_TRY(run_alike(&t, parts - t.larger, rows, mode));
    t.large = true;
    return run_alike(&t, t.larger, rows + 1, mode);
}

#endif
