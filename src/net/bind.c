/* Binding: every slot gets its memory. Then parameters get their first values, and tensors are found by name. */
#include <string.h>

#include "net/net.h"

/* ---- Memory ---- */

static void bind_parameters(mica_net *net)
{
    for (int i = 0; i < net->built_slots; i++) {
        mica_slot *slot = &net->slots[i];
        if (slot->kind == MICA_BUFFER_STATE && !mica_borrows_state(net, slot))
            slot->tensor[0].data = net->block + slot->flat;
        if (slot->kind != MICA_BUFFER_PARAMETER || net->weights != NULL)
            continue;
        slot->tensor[0].data = net->flat_parameters + slot->flat;
        if (slot->gradient != NONE)
            net->slots[slot->gradient].tensor[0].data = net->flat_gradients + slot->flat;
    }
}

static void bind_groups(mica_net *net)
{
    for (int i = 0; i < net->slot_count; i++) {
        mica_slot *slot = &net->slots[i];
        const mica_slot *root = &net->slots[slot->root];
        for (int life = 0; life < 2; life++)
            if (root->group[life] != NONE)
                slot->tensor[life].data = net->block + net->groups[root->group[life]].span.offset;
    }
}

/* The other net's parameters must be ours by name and shape. */
static mica_status borrow_weights(mica_net *net)
{
    const mica_net *from = net->weights;
    if (from->block == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_bind: the net that lends its weights is not bound");
    for (int i = 0; i < net->built_slots; i++) {
        mica_slot *slot = &net->slots[i];
        if (slot->kind != MICA_BUFFER_PARAMETER && !mica_borrows_state(net, slot))
            continue;
        int other = mica_net_find(from, slot->name);
        if (other == NONE || from->slots[other].kind != slot->kind ||
            !mica_tensor_same_shape(&from->slots[other].tensor[0], &slot->tensor[0]))
            return mica_fail(net->ctx, MICA_ERR_SHAPE,
                             "net_bind: the net that lends its weights has no \"%s\" of that shape",
                             slot->name);
        slot->tensor[0].data = from->slots[other].tensor[0].data;
    }
    return MICA_OK;
}

mica_status mica_net_bind(mica_net *net, void *block, size_t bytes)
{
    if (!net->compiled)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_bind: the net is not compiled");
    if (net->block != NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_bind: the net is bound already");
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
    int copies = net->has_optimizer ? mica_optimizer_slots(&net->optimizer) : 0;
    for (int i = 0; i < copies; i++, next += net->learned_count)
        net->flat_optimizer[i] = next;
    memset(net->block, 0, net->persistent);
    bind_groups(net);
    bind_parameters(net);
    return MICA_OK;
}

/* ---- First values ---- */

static mica_status draw_parameter(mica_net *net, const mica_slot *slot, uint64_t stream)
{
    mica_context *ctx = net->ctx;
    const mica_tensor *t = &slot->tensor[0];
    const mica_random from = mica_random_stream(net->seed, stream);
    float v = slot->init.value;
    float gain = v != 0.0f ? v : 1.0f;
    switch (slot->init.kind) {
    case MICA_INIT_UNIFORM:
        return mica_uniform(ctx, t, &from, -v, v);
    case MICA_INIT_NORMAL:
        return mica_normal(ctx, t, &from, 0.0f, v);
    case MICA_INIT_XAVIER_UNIFORM:
        return mica_xavier_uniform(ctx, t, &from, gain);
    case MICA_INIT_XAVIER_NORMAL:
        return mica_xavier_normal(ctx, t, &from, gain);
    case MICA_INIT_HE_UNIFORM:
        return mica_he_uniform(ctx, t, &from, gain);
    case MICA_INIT_HE_NORMAL:
        return mica_he_normal(ctx, t, &from, gain);
    default:
        return mica_fill(ctx, t, v);
    }
}

/* A state as built: it may be larger than what the present batch sees of it. */
static mica_status start_state(mica_net *net, const mica_slot *slot)
{
    mica_tensor all;
    mica_index count = (mica_index)(slot->built_bytes / mica_dtype_bytes(slot->tensor[0].dtype));
    MICA_TRY(mica_tensor_init(net->ctx, &all, net->block + slot->flat, slot->tensor[0].dtype, 1, &count));
    return mica_fill(net->ctx, &all, slot->start);
}

mica_status mica_net_initialize(mica_net *net, uint64_t seed)
{
    if (net->block == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_initialize: the net is not bound");
    net->seed = seed;
    net->steps_taken = 0;
    for (int i = 0; i < net->built_slots; i++) {
        const mica_slot *slot = &net->slots[i];
        if (slot->kind == MICA_BUFFER_PARAMETER && net->weights == NULL)
            MICA_TRY(draw_parameter(net, slot, (uint64_t)i));
        if (slot->kind == MICA_BUFFER_STATE && !mica_borrows_state(net, slot))
            MICA_TRY(start_state(net, slot));
    }
    for (int i = 0; i < 2; i++)
        if (net->flat_optimizer[i] != NULL)
            memset(net->flat_optimizer[i], 0, net->learned_count * sizeof(float));
    return MICA_OK;
}

mica_status mica_net_reset_states(mica_net *net)
{
    if (net->block == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_reset_states: the net is not bound");
    for (int i = 0; i < net->built_slots; i++) {
        const mica_slot *slot = &net->slots[i];
        if (slot->kind == MICA_BUFFER_STATE &&
            !(net->nodes[slot->node].layer->flags & MICA_LAYER_STATES_LEARNED))
            MICA_TRY(start_state(net, slot));
    }
    return MICA_OK;
}

/* ---- Tensors by name and number ---- */

static mica_status find_bound(mica_net *net, const char *name, int *slot)
{
    if (name == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net: a tensor asked for by a name that is NULL");
    if (net->block == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net: \"%s\" asked for before mica_net_bind", name);
    *slot = mica_net_find(net, name);
    if (*slot == NONE)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net: nothing is called \"%s\"", name);
    return MICA_OK;
}

mica_status mica_net_tensor(mica_net *net, mica_tensor *out, const char *name)
{
    int slot;
    MICA_TRY(find_bound(net, name, &slot));
    *out = mica_net_whole(net, slot);
    return MICA_OK;
}

mica_status mica_net_value_tensor(mica_net *net, mica_tensor *out, mica_value value)
{
    if (net->block == NULL || value < 1 || value > net->built_slots)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT,
                         "net: value %d is none of this net's, or it is not bound", value);
    *out = mica_net_whole(net, value - 1);
    return MICA_OK;
}

mica_status mica_net_gradient(mica_net *net, mica_tensor *out, const char *name)
{
    int slot;
    MICA_TRY(find_bound(net, name, &slot));
    if (net->slots[slot].gradient == NONE)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net: \"%s\" has no gradient", name);
    *out = net->slots[net->slots[slot].gradient].tensor[0];
    return MICA_OK;
}

static int count_kind(const mica_net *net, mica_buffer_kind kind)
{
    int count = 0;
    for (int i = 0; i < net->built_slots; i++)
        count += net->slots[i].kind == kind;
    return count;
}

static mica_status nth_of_kind(mica_net *net, mica_buffer_kind kind, int number, const char **name,
                               mica_tensor *out)
{
    for (int i = 0, left = number; i < net->built_slots; i++) {
        if (net->slots[i].kind != kind || left-- != 0)
            continue;
        if (name != NULL)
            *name = net->slots[i].name;
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
                         "net_flat: the net is not bound, or its weights are another's");
    if (parameters != NULL)
        *parameters = mica_1d(net->flat_parameters, (mica_index)net->flat_count);
    if (gradients != NULL)
        *gradients = mica_1d(net->flat_gradients, net->train ? (mica_index)net->learned_count : 0);
    return MICA_OK;
}
