/* Binding: every value gets its memory. Then parameters get their first values, and tensors are found by name. */
#include <string.h>

#include <mica/ops/make.h>

#include "net/net.h"

/* ---- Memory ---- */

void mica_net_link(mica_net *net)
{
    for (int e = 0; e < net->entry_count; e++) {
        mica_entry *entry = &net->entries[e];
        mica_call *call = &entry->call;
        *call = (mica_call){.ctx = net->ctx,
                            .op = entry->node.op,
                            .opts = entry->node.opts,
                            .ins = entry->node.ins,
                            .outs = entry->node.outs,
                            .again = entry->phase == MICA_PHASE_RECOMPUTE,
                            .size = net->size_now,
                            .sizes = net->size_count};
        for (int i = 0; i < call->ins; i++)
            call->in[i] = entry->node.in[i] != NONE ? &net->values[entry->node.in[i]].tensor : NULL;
        for (int k = 0; k < call->outs; k++)
            call->out[k] = entry->node.out[k] != NONE ? &net->values[entry->node.out[k]].tensor : NULL;
    }
}

static void bind_lasting(mica_net *net)
{
    for (int i = 0; i < net->value_count; i++) {
        mica_value_info *v = &net->values[i];
        if (mica_borrows(net, v))
            continue;
        if (v->home == MICA_HOME_KEPT || v->home == MICA_HOME_DERIVED)
            v->tensor.data = net->block + v->flat;
        if (v->kind != MICA_BUFFER_PARAMETER)
            continue;
        v->tensor.data = net->flat_parameters + v->flat;
        if (v->gradient != NONE)
            net->values[v->gradient].tensor.data = net->flat_gradients + v->flat;
    }
}

/* What is packed; and views, also of what lasts. */
static void bind_planned(mica_net *net)
{
    for (int i = 0; i < net->value_count; i++) {
        mica_value_info *v = &net->values[i];
        const mica_value_info *root = &net->values[v->root];
        if (v->home != MICA_HOME_PLANNED)
            continue;
        if (root->home != MICA_HOME_PLANNED)
            v->tensor.data = root->tensor.data;
        else if (root->group != NONE)
            v->tensor.data = net->block + net->groups[root->group].span.offset;
    }
}

/* The other net's parameters must be ours by name and shape. */
static mica_status borrow_weights(mica_net *net)
{
    const mica_net *from = net->weights;
    if (from->block == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_bind: the net that lends its weights is not bound");
    for (int i = 0; i < net->built_values; i++) {
        mica_value_info *v = &net->values[i];
        if (!mica_borrows(net, v))
            continue;
        int other = mica_net_find(from, v->name);
        if (other == NONE || from->values[other].kind != v->kind ||
            from->values[other].tensor.dtype != v->tensor.dtype ||
            !mica_tensor_same_shape(&from->values[other].tensor, &v->tensor))
            return mica_fail(net->ctx, MICA_ERR_SHAPE,
                             "net_bind: the net that lends its weights has no \"%s\" of this shape", v->name);
        v->tensor.data = from->values[other].tensor.data;
    }
    return MICA_OK;
}

/* ---- Derived values ---- */

static mica_status run_derivation(mica_net *net, const mica_node *node)
{
    mica_call call = {.ctx = net->ctx,
                      .op = node->op,
                      .opts = node->opts,
                      .ins = node->ins,
                      .outs = 1,
                      .size = net->size_now,
                      .sizes = net->size_count};
    for (int i = 0; i < node->ins; i++)
        call.in[i] = node->in[i] != NONE ? &net->values[node->in[i]].tensor : NULL;
    call.out[0] = &net->values[node->out[0]].tensor;
    return node->op->run(&call);
}

mica_status mica_net_measure_derivations(mica_net *net, size_t *bytes)
{
    mica_status status = MICA_OK;
    mica_measure_begin(net->ctx);
    for (int d = 0; d < net->derivation_count && status == MICA_OK; d++)
        status = run_derivation(net, &net->derivations[d]);
    *bytes = mica_align_up(mica_measure_end(net->ctx));
    return status;
}

mica_status mica_net_derive(mica_net *net)
{
    mica_context *ctx = net->ctx;
    if (net->block == NULL)
        return mica_fail(ctx, MICA_ERR_STATE, "net_derive: the net is not bound");
    void *workspace = ctx->workspace;
    size_t workspace_bytes = ctx->workspace_bytes;
    ctx->workspace = net->block + net->persistent;
    ctx->workspace_bytes = net->plan.total - net->persistent;
    mica_status status = MICA_OK;
    for (int d = 0; d < net->derivation_count && status == MICA_OK; d++)
        status = run_derivation(net, &net->derivations[d]);
    ctx->workspace = workspace;
    ctx->workspace_bytes = workspace_bytes;
    net->ready = false;
    return status;
}

mica_status mica_net_bind(mica_net *net, void *block, size_t bytes)
{
    if (!net->compiled)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_bind: the net is not compiled");
    if (net->block != NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_bind: the net is already bound");
    size_t needed = net->plan.total;
    if (block != NULL && bytes < needed)
        return mica_fail(net->ctx, MICA_ERR_MEMORY, "%s needs %zu bytes, the block has %zu (%zu short)",
                         net->train ? "training" : "the net", needed, bytes, needed - bytes);
    if ((uintptr_t)block % MICA_ALIGN != 0)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_bind: the block must be aligned to %d bytes",
                         MICA_ALIGN);
    if (net->weights != NULL)
        MICA_TRY(borrow_weights(net));
    net->owns_block = block == NULL;
    net->block_bytes = needed > 0 ? needed : MICA_ALIGN;
    net->block = block != NULL ? block : mica_allocate(net->ctx, net->block_bytes);
    if (net->block == NULL)
        return net->ctx->status;

    float *next = (float *)(void *)net->block;
    if (net->weights == NULL) {
        net->flat_parameters = next;
        next += net->flat_count;
    }
    net->flat_gradients = net->train ? next : NULL;
    next += net->train ? net->learned_count : 0;
    int copies = net->has_optimizer ? mica_optimizer_states(&net->optimizer) : 0;
    for (int i = 0; i < copies; i++, next += net->state_count)
        net->flat_optimizer[i] = next;
    memset(net->block, 0, net->persistent);
    bind_lasting(net);
    bind_planned(net);
#if !defined(MICA_SMALL)
    mica_net_bind_lanes(net);
#endif
    return mica_net_derive(net);
}

/* ---- First values ---- */

/* A parameter has a stream of random numbers of its own: what comes behind it in the net, and what things are called,
 * does not matter. */
static mica_status draw_parameter(mica_net *net, const mica_value_info *v)
{
    mica_context *ctx = net->ctx;
    const mica_tensor *t = &v->tensor;
    const mica_random from = mica_random_stream(net->seed, v->stream);
    float value = v->init.value;
    float gain = value != 0.0f ? value : 1.0f;
    switch (v->init.kind) {
    case MICA_INIT_UNIFORM:
        return mica_uniform(ctx, t, &from, -value, value);
    case MICA_INIT_NORMAL:
        return mica_normal(ctx, t, &from, 0.0f, value);
    case MICA_INIT_XAVIER_UNIFORM:
        return mica_xavier_uniform(ctx, t, &from, gain);
    case MICA_INIT_XAVIER_NORMAL:
        return mica_xavier_normal(ctx, t, &from, gain);
    case MICA_INIT_HE_UNIFORM:
        return mica_he_uniform(ctx, t, &from, gain);
    case MICA_INIT_HE_NORMAL:
        return mica_he_normal(ctx, t, &from, gain);
    default:
        return mica_fill(ctx, t, value);
    }
}

mica_tensor mica_net_built_tensor(const mica_net *net, const mica_value_info *v)
{
    bool own = v->home == MICA_HOME_KEPT && !mica_borrows(net, v);
    mica_tensor all = v->tensor;
    memcpy(all.dim, v->built, sizeof all.dim);
    return mica_tensor_like(&all, own ? net->block + v->flat : v->tensor.data);
}

static mica_status start_kept(mica_net *net, const mica_value_info *v)
{
    mica_tensor all = mica_net_built_tensor(net, v);
    if (mica_in_blocks(all.dtype)) {
        memset(all.data, 0, mica_tensor_bytes(&all));
        return MICA_OK;
    }
    return mica_fill(net->ctx, &all, v->start);
}

mica_status mica_net_initialize(mica_net *net, uint64_t seed)
{
    if (net->block == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_initialize: the net is not bound");
    net->seed = seed;
    net->steps_taken = 0;
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        if (mica_borrows(net, v))
            continue;
        if (v->kind == MICA_BUFFER_PARAMETER)
            MICA_TRY(draw_parameter(net, v));
        if (v->home == MICA_HOME_KEPT)
            MICA_TRY(start_kept(net, v));
    }
    for (int i = 0; i < 2; i++)
        if (net->flat_optimizer[i] != NULL)
            memset(net->flat_optimizer[i], 0, net->state_count * sizeof(float));
    return mica_net_derive(net);
}

mica_status mica_net_reset_states(mica_net *net)
{
    if (net->block == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_reset_states: the net is not bound");
    net->ready = false; /* a backward reads what its forward started from */
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        if (v->home == MICA_HOME_KEPT && v->kept == MICA_KEPT_STATE)
            MICA_TRY(start_kept(net, v));
    }
    return MICA_OK;
}

bool mica_net_keeps_states(const mica_net *net)
{
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].home == MICA_HOME_KEPT && net->values[i].kept == MICA_KEPT_STATE)
            return true;
    return false;
}

/* Sums over several machines, say, are written into them: then an embedding's marks of rows that are zero are wrong. */
mica_status mica_net_distrust_gradients(mica_net *net)
{
    for (int i = 0; net->gradients_lent && i < net->built_values; i++)
        if (net->values[i].home == MICA_HOME_KEPT && net->values[i].kept == MICA_KEPT_PRIVATE)
            MICA_TRY(start_kept(net, &net->values[i]));
    return MICA_OK;
}

/* ---- Tensors by name and number ---- */

static mica_status find_bound(mica_net *net, const char *name, int *value)
{
    if (name == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net: the name of the requested tensor is NULL");
    if (net->block == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net: \"%s\" requested before mica_net_bind", name);
    *value = mica_net_find(net, name);
    if (*value == NONE)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net: there is no \"%s\"", name);
    return MICA_OK;
}

/* What can be looked at between steps: everything else is there for a part of a step only, or not at all. */
static bool is_seen(const mica_value_info *v)
{
    return v->kind == MICA_BUFFER_INPUT || v->output || v->home != MICA_HOME_PLANNED;
}

static mica_status see(mica_net *net, mica_tensor *out, int value)
{
    if (out == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net: a tensor asked for, but out is NULL");
    if (!is_seen(&net->values[value]))
        return mica_fail(net->ctx, MICA_ERR_STATE,
                         "net: \"%s\" is only live during part of a step; mica_net_output keeps it",
                         mica_net_value_text(net, value).text);
    *out = mica_net_whole(net, value);
    return MICA_OK;
}

mica_status mica_net_tensor(mica_net *net, mica_tensor *out, const char *name)
{
    int value;
    MICA_TRY(find_bound(net, name, &value));
    return see(net, out, value);
}

mica_status mica_net_value_tensor(mica_net *net, mica_tensor *out, mica_value value)
{
    if (net->block == NULL || value < 1 || value > net->built_values)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT,
                         "net: value %d does not belong to this net, or the net is not bound", value);
    return see(net, out, value - 1);
}

mica_status mica_net_gradient(mica_net *net, mica_tensor *out, const char *name)
{
    int value;
    MICA_TRY(find_bound(net, name, &value));
    const mica_value_info *v = &net->values[value];
    if (out == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_gradient: out is NULL");
    if (v->home != MICA_HOME_LEARNED || v->gradient == NONE)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net: \"%s\" has no gradient", name);
    net->gradients_lent = true;
    *out = net->values[v->gradient].tensor;
    return MICA_OK;
}

static int count_kind(const mica_net *net, mica_buffer_kind kind)
{
    int count = 0;
    for (int i = 0; i < net->built_values; i++)
        count += net->values[i].kind == kind && net->values[i].home != MICA_HOME_LENT;
    return count;
}

static mica_status nth_of_kind(mica_net *net, mica_buffer_kind kind, int number, const char **name,
                               mica_tensor *out)
{
    for (int i = 0, left = number; i < net->built_values; i++) {
        if (net->values[i].kind != kind || net->values[i].home == MICA_HOME_LENT || left-- != 0)
            continue;
        if (name != NULL)
            *name = net->values[i].name;
        if (out != NULL)
            *out = mica_net_whole(net, i);
        return MICA_OK;
    }
    return mica_fail(net->ctx, MICA_ERR_INDEX, "net: %s %d of %d", mica_buffer_kind_text(kind), number,
                     count_kind(net, kind));
}

int mica_net_parameters(const mica_net *net) { return count_kind(net, MICA_BUFFER_PARAMETER); }

mica_status mica_net_parameter(mica_net *net, const char **name, mica_tensor *out, int number)
{
    return nth_of_kind(net, MICA_BUFFER_PARAMETER, number, name, out);
}

int mica_net_inputs(const mica_net *net) { return count_kind(net, MICA_BUFFER_INPUT); }

mica_status mica_net_input_tensor(mica_net *net, const char **name, mica_tensor *out, int number)
{
    return nth_of_kind(net, MICA_BUFFER_INPUT, number, name, out);
}

mica_status mica_net_flat(mica_net *net, mica_tensor *parameters, mica_tensor *gradients)
{
    if (net->block == NULL || net->weights != NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE,
                         "net_flat: the net is not bound, or it borrows its weights from another net");
    if (parameters != NULL)
        *parameters = mica_1d(net->flat_parameters, (mica_index)net->flat_count);
    net->gradients_lent = net->gradients_lent || gradients != NULL;
    if (gradients != NULL)
        *gradients = mica_1d(net->flat_gradients, net->train ? (mica_index)net->learned_count : 0);
    return MICA_OK;
}
