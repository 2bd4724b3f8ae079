/* Stepping: every entry of the schedule in order. Nothing here allocates. */
#include <string.h>

#include <mica/layers/activation.h>

#include "base/parallel.h"
#include "layer/activation.h"
#include "net/net.h"

bool mica_step_measuring(const mica_step *step) { return step->ctx->measuring; }

/* ---- What a layer's function is told ---- */

static const mica_tensor *tensor_of(const mica_net *net, int slot, mica_phase phase)
{
    const mica_slot *s = &net->slots[slot];
    return &s->tensor[mica_life(s, phase)];
}

/* Puts a tensor of this shape next into an entry's scratch. */
static mica_tensor in_scratch(const mica_tensor *shape, char *base, size_t *used)
{
    mica_tensor t = mica_tensor_like(shape, base != NULL ? base + *used : NULL);
    *used += mica_align_up(mica_tensor_bytes(shape));
    return t;
}

/* A gradient that must be added to, by a layer that can only write: it writes a part, which is then added. */
static const mica_tensor *add_part(mica_running *r, const mica_tensor *sum, char *base, size_t *used)
{
    r->part[r->parts] = in_scratch(sum, base, used);
    r->sum[r->parts] = sum;
    return &r->part[r->parts++];
}

static void prepare_gradients(const mica_net *net, const mica_entry *entry, bool add, mica_running *r,
                              char *base, size_t *used)
{
    const mica_node *node = &net->nodes[entry->node];
    unsigned flags = node->layer->flags;
    for (int i = 0; i < node->inputs; i++) {
        if (!mica_has_input_gradient(net, node, i))
            continue;
        const mica_tensor *gradient = &net->slots[net->slots[node->in[i]].gradient].tensor[0];
        bool adds = (entry->add_din >> i & 1u) != 0;
        bool in_part = adds && !(flags & MICA_LAYER_ADDS_INPUTS);
        r->step.din[i] = in_part ? add_part(r, gradient, base, used) : gradient;
        r->step.add_din[i] = adds && !in_part;
    }
    for (int i = 0; i < node->params && entry->phase == MICA_PHASE_BACKWARD; i++) {
        int slot = net->slots[node->param[i]].gradient;
        if (slot == NONE)
            continue;
        bool adds = add || (entry->add_dparam >> i & 1u) != 0;
        /* A plan has room for the parts, since any step may add. */
        bool in_part = (adds || net->ctx->measuring) && !(flags & MICA_LAYER_ADDS_PARAMETERS);
        r->step.dparam[i] = in_part ? add_part(r, &net->slots[slot].tensor[0], base, used)
                                    : &net->slots[slot].tensor[0];
        r->step.add_dparam[i] = adds && !in_part;
    }
}

/* The tensors that have places of their own in the block. */
static void prepare_tensors(const mica_net *net, const mica_entry *entry, mica_step *s)
{
    const mica_node *node = &net->nodes[entry->node];
    bool back = entry->phase == MICA_PHASE_BACKWARD;
    for (int i = 0; i < node->inputs; i++)
        s->in[i] = tensor_of(net, node->in[i], entry->phase);
    s->out = tensor_of(net, back ? node->out : mica_forward_out(net, node), entry->phase);
    for (int i = 0; i < node->params; i++)
        s->param[i] = &net->slots[node->param[i]].tensor[0];
    for (int i = 0; i < node->states; i++)
        s->state[i] = &net->slots[node->state[i]].tensor[0];
    for (int i = 0; i < node->saved && mica_keeps_saved(net, node); i++)
        s->saved[i] = tensor_of(net, node->save[i], entry->phase);
    int picks = back ? NONE : mica_forward_picks(net, node);
    if (picks != NONE)
        s->picks = tensor_of(net, picks, entry->phase);
    if (back)
        s->dout = &net->slots[net->slots[node->out].gradient].tensor[0];
}

void mica_net_prepare(const mica_net *net, const mica_entry *entry, const mica_mode *mode, mica_running *r,
                      size_t *scratch)
{
    const mica_node *node = &net->nodes[entry->node];
    mica_step *s = &r->step;
    memset(s, 0, sizeof *s);
    r->parts = 0;
    s->ctx = net->ctx;
    s->opts = node->opts;
    s->training = mode->training;
    s->again = entry->phase == MICA_PHASE_RECOMPUTE;
    s->inputs = node->inputs;
    s->seed = net->seed;
    s->stream = mode->step * (uint64_t)net->node_count + (uint64_t)entry->node;
    s->loss_scale = mode->scale;
    prepare_tensors(net, entry, s);
    bool back = entry->phase == MICA_PHASE_BACKWARD;
    if (!back && node->activation != NONE) {
        const mica_net_activation_opts *opts = net->nodes[node->activation].opts;
        s->activation = opts->kind;
        s->slope = mica_activation_slope(opts);
    }
    if (!back && node->pool != NONE)
        s->pool = net->nodes[node->pool].opts;
    s->mean = !back && node->mean != NONE;

    char *base = entry->group != NONE && net->block != NULL
                     ? net->block + net->groups[entry->group].span.offset
                     : NULL;
    size_t used = entry->workspace_bytes;
    bool takes_temps = back || !(node->layer->flags & MICA_LAYER_BACKWARD_TEMPORARIES);
    for (int i = 0; i < node->temps && takes_temps; i++) {
        r->temp[i] = in_scratch(&net->slots[node->temp[i]].tensor[0], base, &used);
        s->temp[i] = &r->temp[i];
    }
    if (back || ((node->layer->flags & MICA_LAYER_LOSS) && mode->training && net->train))
        prepare_gradients(net, entry, mode->add, r, base, &used);
    *scratch = used;
}

mica_status mica_net_call(const mica_net *net, const mica_entry *entry, const mica_running *r)
{
    const mica_layer *layer = net->nodes[entry->node].layer;
    MICA_TRY(entry->phase == MICA_PHASE_BACKWARD ? layer->backward(&r->step) : layer->forward(&r->step));
    for (int i = 0; i < r->parts; i++)
        MICA_TRY(mica_add(net->ctx, r->sum[i], r->sum[i], &r->part[i]));
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

static const char *group_name(const mica_net *net, const mica_group *group)
{
    return group->slot != NONE ? net->slots[group->slot].name
                               : net->nodes[net->entries[group->entry].node].name;
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
                return mica_fail(net->ctx, MICA_ERR_STATE, "net: layer \"%s\" wrote beyond the end of \"%s\"",
                                 net->nodes[net->entries[time].node].name, group_name(net, group));
        if (group->span.last == time && time + 1 < net->entry_count)
            memset(net->block + group->span.offset, 0xff, group->span.bytes - MICA_ALIGN); /* NaN as f32 */
    }
    return MICA_OK;
}

/* ---- Steps ---- */

/* Runs one entry with its own part of the block as the context's workspace. */
static mica_status run_entry(mica_net *net, const mica_entry *entry, const mica_mode *mode)
{
    mica_context *ctx = net->ctx;
    mica_running r;
    size_t scratch;
    mica_net_prepare(net, entry, mode, &r, &scratch);
    void *workspace = ctx->workspace;
    size_t workspace_bytes = ctx->workspace_bytes;
    ctx->workspace = entry->group != NONE ? net->block + net->groups[entry->group].span.offset : NULL;
    ctx->workspace_bytes = entry->workspace_bytes;
    mica_status status = mica_net_call(net, entry, &r);
    ctx->workspace = workspace;
    ctx->workspace_bytes = workspace_bytes;
    return status;
}

/* The losses of the rows that just ran. */
static double losses(const mica_net *net)
{
    double sum = 0.0;
    for (int n = 0; n < net->node_count; n++)
        if (net->nodes[n].layer->flags & MICA_LAYER_LOSS)
            sum += (double)*(const float *)net->slots[net->nodes[n].out].tensor[0].data;
    return sum;
}

static mica_status run_watched(mica_net *net, const mica_entry *entry, const mica_mode *mode)
{
    mica_work work = mica_net_work(net, entry, mode);
    mica_net_tell(net, &work, false);
    mica_status status = run_entry(net, entry, mode);
    mica_net_tell(net, &work, true);
    return status;
}

static mica_status run_entries(mica_net *net, int count, const mica_mode *mode)
{
    bool checked = net->debug && count == net->entry_count;
    for (int time = 0; time < count; time++) {
        const mica_entry *entry = &net->entries[time];
        if (checked)
            set_guards(net, time);
        MICA_TRY(net->watch != NULL ? run_watched(net, entry, mode) : run_entry(net, entry, mode));
        if (checked)
            MICA_TRY(check_memory(net, time));
    }
    return MICA_OK;
}

/* The first `count` entries for one part of the rows after the other. */
static mica_status run_parts(mica_net *net, int count, mica_mode mode)
{
    double loss = 0.0;
    float scale = mode.scale;
    uint64_t parts = (uint64_t)((net->built_rows + net->part_rows - 1) / net->part_rows), part = 0,
             step = mode.step;
    /* A batch of none is one part of none: it writes gradients, too. */
    for (mica_index first = 0; first < net->rows || first == 0; first += net->part_rows, part++) {
        mica_index rows = net->rows - first < net->part_rows ? net->rows - first : net->part_rows;
        double share = net->rows > 0 ? (double)rows / (double)net->rows : 1.0;
        MICA_TRY(mica_net_select_part(net, first, rows));
        mode.scale = scale * (float)share;
        mode.step = step * parts + part;
        MICA_TRY(run_entries(net, count, &mode));
        mode.add = true;
        loss += share * losses(net);
    }
    net->loss = (float)loss;
    return MICA_OK;
}

/* A step: the first `count` entries, for all rows at once or in parts. */
static mica_status run_step(mica_net *net, int count, mica_mode mode)
{
    if (net->block == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net: a step before mica_net_bind");
    bool whole = net->part_rows >= net->built_rows;
    mica_parallel_begin(net->ctx);
    mica_status status = whole ? run_entries(net, count, &mode) : run_parts(net, count, mode);
    mica_parallel_end(net->ctx);
    if (whole && status == MICA_OK)
        net->loss = (float)losses(net);
    return status;
}

mica_status mica_net_forward(mica_net *net)
{
    return run_step(net, net->forward_count, (mica_mode){.training = false, .scale = 1.0f});
}

mica_status mica_net_forward_training(mica_net *net, uint64_t step)
{
    return run_step(net, net->forward_count, (mica_mode){.training = true, .scale = 1.0f, .step = step});
}

mica_status mica_net_backward(mica_net *net, const mica_backward_opts *opts)
{
    static const mica_backward_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    if (!net->train)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_backward: the net was not compiled with .train");
    return run_step(net, net->entry_count,
                    (mica_mode){.training = true,
                                .add = opts->add,
                                .scale = opts->scale != 0.0f ? opts->scale : 1.0f,
                                .step = opts->step});
}

float mica_net_loss(const mica_net *net) { return net->loss; }
