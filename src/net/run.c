/* Stepping: every call of the program in order. Nothing here allocates. */
#include <string.h>

#include <mica/ops/elementwise.h>

#include "base/parallel.h"
#include "net/net.h"

bool mica_call_measuring(const mica_call *call) { return call->ctx->measuring; }

/* ---- One call ---- */

/* Outputs that must be added to, by an operation that can only write, go to memory of their own. Returns which do: they
 * are to be added afterwards. A plan is measured with all of them, since any step may add. */
static unsigned place_addends(const mica_net *net, mica_entry *entry, unsigned add)
{
    unsigned addends = 0;
    for (int k = 0; k < entry->node.outs; k++) {
        if (entry->addend[k] == NONE)
            continue;
        bool apart = (add >> k & 1u) != 0 || net->ctx->measuring;
        entry->call.out[k] = &net->values[apart ? entry->addend[k] : entry->node.out[k]].tensor;
        addends |= apart ? 1u << k : 0u;
    }
    return addends;
}

mica_status mica_net_run_entry(mica_net *net, mica_entry *entry, const mica_mode *mode)
{
    mica_context *ctx = net->ctx;
    mica_call *call = &entry->call;
    call->training = mode->training;
    call->scale = mode->scale;
    call->seed = net->seed;
    call->stream = mode->step * (uint64_t)net->node_count + (uint64_t)entry->origin;
    unsigned add = entry->add | (mode->add ? entry->learned : 0u);
    unsigned addends = (entry->add | entry->learned) != 0 ? place_addends(net, entry, add) : 0;
    call->add = add & ~addends;
    MICA_TRY(call->op->run(call));
#if defined(MICA_NO_TRAINING) /* there is no gradient to add to */
    (void)ctx;
    return MICA_OK;
#endif
    for (int k = 0; addends >> k; k++)
        if (addends >> k & 1u) {
            const mica_tensor *sum = &net->values[entry->node.out[k]].tensor;
            MICA_TRY(mica_add(ctx, sum, sum, call->out[k]));
        }
    return MICA_OK;
}

/* ---- Debugging: guards and poison ---- */

#define GUARD_BYTE 0xa5

/* Sets the guards of what comes to life at entry `time`. */
static void set_guards(mica_net *net, int time)
{
    for (int g = 0; g < net->group_count; g++) {
        const mica_span *span = &net->groups[g].span;
        if (!net->groups[g].gone && span->first == time)
            memset(net->block + span->offset + span->bytes - MICA_ALIGN, GUARD_BYTE, MICA_ALIGN);
    }
}

static const char *entry_name(const mica_net *net, int entry)
{
    return net->layers[net->entries[entry].node.layer].name;
}

/* After entry `time`: guards of what lives are whole; what dies is filled with NaN. */
static mica_status check_memory(mica_net *net, int time)
{
    for (int g = 0; g < net->group_count; g++) {
        const mica_group *group = &net->groups[g];
        if (group->gone || time < group->span.first || time > group->span.last)
            continue;
        const unsigned char *guard = (unsigned char *)net->block + group->span.offset + group->span.bytes -
                                     MICA_ALIGN;
        for (int i = 0; i < MICA_ALIGN; i++)
            if (guard[i] != GUARD_BYTE)
                return mica_fail(net->ctx, MICA_ERR_STATE, "net: layer \"%s\" wrote past the end of \"%s\"",
                                 entry_name(net, time),
                                 group->value != NONE ? mica_net_value_text(net, group->value).text
                                                      : entry_name(net, group->entry));
        if (group->span.last == time && time + 1 < net->entry_count)
            memset(net->block + group->span.offset, 0xff, group->span.bytes - MICA_ALIGN); /* NaN as f32 */
    }
    return MICA_OK;
}

/* ---- Steps ---- */

/* Runs one entry with its own part of the block as the context's workspace. */
static mica_status run_placed(mica_net *net, mica_entry *entry, const mica_mode *mode)
{
    net->ctx->workspace = entry->group != NONE ? net->block + net->groups[entry->group].span.offset : NULL;
    net->ctx->workspace_bytes = entry->workspace_bytes;
    return mica_net_run_entry(net, entry, mode);
}

/* The losses of the rows that just ran. */
static double losses(const mica_net *net)
{
    double sum = 0.0;
    for (int n = 0; n < net->node_count; n++)
        if (net->nodes[n].op->flags & MICA_OP_LOSS)
            sum += (double)*(const float *)net->values[net->nodes[n].out[0]].tensor.data;
    return sum;
}

static mica_status run_watched(mica_net *net, mica_entry *entry, const mica_mode *mode)
{
    mica_work work = mica_net_work(net, entry, mode);
    mica_net_tell(net, &work, false);
    mica_status status = run_placed(net, entry, mode);
    mica_net_tell(net, &work, true);
    return status;
}

/* Guards are set and checked where the whole program runs. */
mica_status mica_net_run_entries(mica_net *net, int first, int end, const mica_mode *mode)
{
    bool checked = net->debug && mode->training;
    for (int time = first; time < end; time++) {
        mica_entry *entry = &net->entries[time];
        if (checked)
            set_guards(net, time);
        MICA_TRY(net->watch != NULL ? run_watched(net, entry, mode) : run_placed(net, entry, mode));
        if (checked)
            MICA_TRY(check_memory(net, time));
        if (net->after != NULL && !mode->early)
            net->after(net->after_user, time);
    }
    return MICA_OK;
}

/* The first `end` entries, for one part of the batch after another: as few parts as fit, of about the same size. */
static mica_status run_parts(mica_net *net, int end, mica_mode mode)
{
#if !defined(MICA_SMALL)
    if (net->lane != NULL && net->rows > 0 && net->watch == NULL && net->after == NULL)
        return mica_net_run_lanes(net, end, &mode);
#endif
    double loss = 0.0;
    float scale = mode.scale;
    mica_index most = (net->size[0].most + net->part_rows - 1) / net->part_rows;
    mica_index parts = net->rows > 0 ? (net->rows + net->part_rows - 1) / net->part_rows : 1;
    uint64_t step = mode.step;
    for (mica_index part = 0; part < parts; part++) {
        mica_index first = net->rows * part / parts, rows = net->rows * (part + 1) / parts - first;
        double share = net->rows > 0 ? (double)rows / (double)net->rows : 1.0;
        MICA_TRY(mica_net_select_part(net, first, rows));
        mode.scale = scale * (float)share;
        mode.step = step * (uint64_t)most + (uint64_t)part;
        mode.early = part + 1 < parts;
        MICA_TRY(mica_net_run_entries(net, 0, end, &mode));
        mode.add = true;
        loss += share * losses(net);
    }
    net->loss = (float)loss;
    return MICA_OK;
}

/* Entries from `first` to before `end`, for all rows at once or in parts. The context's own workspace is out of the way
 * meanwhile. */
static mica_status run_step(mica_net *net, int first, int end, mica_mode mode)
{
    mica_context *ctx = net->ctx;
    if (net->block == NULL)
        return mica_fail(ctx, MICA_ERR_STATE, "net: step called before mica_net_bind");
    bool whole = net->part_rows >= net->size[0].most;
    void *workspace = ctx->workspace;
    size_t workspace_bytes = ctx->workspace_bytes;
    net->ready = false;
    ctx->trusted = !net->debug;
    ctx->one_size = mica_net_one_size(net);
    mica_parallel_begin(ctx);
    mica_status status = whole ? mica_net_run_entries(net, first, end, &mode) : run_parts(net, end, mode);
    mica_parallel_end(ctx);
    ctx->trusted = ctx->one_size = false;
    ctx->workspace = workspace;
    ctx->workspace_bytes = workspace_bytes;
    if (whole && status == MICA_OK && first == 0)
        net->loss = (float)losses(net);
    return status;
}

mica_status mica_net_forward(mica_net *net)
{
    return run_step(net, 0, net->forward_count, (mica_mode){.training = false, .scale = 1.0f});
}

mica_status mica_net_forward_training(mica_net *net, uint64_t step)
{
#if !defined(MICA_SMALL)
    if (net->prepare)
        return mica_fail(net->ctx, MICA_ERR_STATE,
                         "net_forward_training: the net was compiled with .prepare, which is for inference");
    if (!net->train && net->part_rows < net->size[0].most)
        return mica_fail(net->ctx, MICA_ERR_STATE,
                         "net_forward_training: this plan runs an inference batch in parts: compile with "
                         ".part_rows = MICA_WHOLE_BATCH");
#endif
    MICA_TRY(
        run_step(net, 0, net->forward_count, (mica_mode){.training = true, .scale = 1.0f, .step = step}));
    net->ready = net->part_rows >= net->size[0].most;
    net->ready_step = step;
    return MICA_OK;
}

static mica_mode backward_mode(const mica_backward_opts *opts)
{
    return (mica_mode){.training = true,
                       .add = opts != NULL && opts->add,
                       .scale = opts != NULL && opts->scale != 0.0f ? opts->scale : 1.0f,
                       .step = opts != NULL ? opts->step : 0};
}

mica_status mica_net_backward(mica_net *net, const mica_backward_opts *opts)
{
    if (!net->train)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_backward: the net was not compiled with .train");
    if (!net->ready)
        return mica_fail(net->ctx, MICA_ERR_STATE,
                         net->part_rows < net->size[0].most
                             ? "net_backward: this plan splits the batch: use mica_net_gradients"
                             : "net_backward: expected a call of mica_net_forward_training right before it");
    mica_mode mode = backward_mode(opts);
    mode.step = net->ready_step;
    MICA_TRY(mica_net_distrust_gradients(net));
    return run_step(net, net->forward_count, net->entry_count, mode);
}

mica_status mica_net_gradients(mica_net *net, const mica_backward_opts *opts)
{
    if (!net->train)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_gradients: the net was not compiled with .train");
    MICA_TRY(mica_net_distrust_gradients(net));
    return run_step(net, 0, net->entry_count, backward_mode(opts));
}

float mica_net_loss(const mica_net *net) { return net->loss; }
