/* Batches smaller than built: whole steps of fewer samples, and steps in parts.
 *
 * A step in parts runs the schedule several times, each time for some rows of the batch, and adds the
 * gradients up. Inputs, outputs and states of each sample hold the whole batch; everything between has room
 * for one part only. */
#include <string.h>

#include "net/net.h"
#include "tensor/tensor.h"

/* Whether a slot is an input whose first axis is the batch. One of another size (a mask for all samples) stays. */
static bool is_batch(const mica_net *net, const mica_slot *slot)
{
    return slot->kind == MICA_BUFFER_INPUT && slot->tensor[0].rank > 0 && slot->built[0] == net->built_rows;
}

mica_status mica_net_set_rows(mica_net *net, mica_index rows)
{
    if (net->shaped == rows)
        return MICA_OK;
    for (int i = 0; i < net->built_slots; i++) {
        mica_slot *slot = &net->slots[i];
        if (!is_batch(net, slot))
            continue;
        mica_tensor shape = slot->tensor[0];
        shape.dim[0] = rows;
        slot->tensor[0] = mica_tensor_like(&shape, slot->tensor[0].data);
    }
    net->shaped = NONE; /* in case inference fails half way */
    for (int i = 0; i < net->node_count; i++)
        MICA_TRY(mica_net_infer(net, i, false));
    /* Gradients follow what they are gradients of. */
    for (int i = 0; i < net->built_slots; i++) {
        int gradient = net->slots[i].gradient;
        if (gradient == NONE || net->slots[i].kind == MICA_BUFFER_PARAMETER)
            continue;
        mica_tensor *g = &net->slots[gradient].tensor[0];
        *g = mica_tensor_like(&net->slots[i].tensor[0], g->data);
    }
    net->shaped = rows;
    return MICA_OK;
}

mica_status mica_net_unplan(mica_net *net)
{
    net->compiled = false;
    net->entry_count = net->forward_count = 0;
    net->slot_count = net->built_slots;
    for (int i = 0; i < net->built_slots; i++) {
        mica_slot *slot = &net->slots[i];
        slot->bytes = slot->built_bytes;
        slot->gradient = NONE;
        mica_tensor shape = slot->tensor[0];
        memcpy(shape.dim, slot->built, sizeof shape.dim);
        if (slot->kind == MICA_BUFFER_INPUT)
            slot->tensor[0] = mica_tensor_like(&shape, NULL);
    }
    net->rows = net->part_rows = net->built_rows;
    net->shaped = NONE;
    return mica_net_set_rows(net, net->built_rows);
}

mica_status mica_net_plan_parts(mica_net *net, mica_index part_rows)
{
    net->part_rows = part_rows;
    for (int i = 0; i < net->built_slots; i++) /* room for any shape, while shapes are inferred */
        net->slots[i].bytes = net->slots[i].built_bytes;
    MICA_TRY(mica_net_set_rows(net, part_rows));
    for (int i = 0; i < net->built_slots; i++) {
        mica_slot *slot = &net->slots[i];
        mica_slot *root = &net->slots[slot->root];
        slot->whole = slot->kind == MICA_BUFFER_STATE &&
                      mica_tensor_bytes(&slot->tensor[0]) < slot->built_bytes;
        if ((slot->kind == MICA_BUFFER_INPUT || slot->output) &&
            mica_tensor_bytes(&root->tensor[0]) < root->built_bytes)
            root->whole = true;
    }
    for (int i = 0; i < net->built_slots; i++)
        if (!net->slots[i].whole)
            net->slots[i].bytes = mica_tensor_bytes(&net->slots[i].tensor[0]);
    return MICA_OK;
}

/* Where the memory of a slot that holds the whole batch begins. */
static char *whole_data(const mica_net *net, const mica_slot *root)
{
    if (root->kind == MICA_BUFFER_STATE)
        return net->block + root->flat;
    return net->block + net->groups[root->group[0]].span.offset;
}

mica_status mica_net_select_part(mica_net *net, mica_index first, mica_index rows)
{
    MICA_TRY(mica_net_set_rows(net, rows));
    for (int i = 0; i < net->built_slots; i++) {
        mica_slot *slot = &net->slots[i];
        const mica_slot *root = &net->slots[slot->root];
        if (root->whole)
            slot->tensor[0].data = whole_data(net, root) +
                                   (size_t)first * (root->bytes / (size_t)net->built_rows);
    }
    return MICA_OK;
}

mica_tensor mica_net_whole(const mica_net *net, int number)
{
    const mica_slot *slot = &net->slots[number], *root = &net->slots[slot->root];
    mica_tensor t = slot->tensor[0];
    if (!root->whole)
        return t;
    /* The first axis holds the batch, alone or with others folded into it: it grows as the batch does. */
    if (net->shaped > 0)
        t.dim[0] = t.dim[0] / net->shaped * net->rows;
    t.data = whole_data(net, root);
    return t;
}

/* Shapes for the batch of a step, or for its first part. */
static mica_status set_batch(mica_net *net)
{
    return mica_net_set_rows(net, net->rows < net->part_rows ? net->rows : net->part_rows);
}

mica_status mica_net_resize(mica_net *net, mica_index batch)
{
    if (!net->compiled)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_resize: the net is not compiled");
    for (int i = 0; i < net->built_slots; i++)
        if (is_batch(net, &net->slots[i]) && (batch < 0 || batch > net->built_rows))
            return mica_fail(net->ctx, MICA_ERR_SHAPE,
                             "net_resize: a batch of %td, but input \"%s\" was built for %td", batch,
                             net->slots[i].name, net->built_rows);
    mica_index before = net->rows;
    net->rows = batch;
    mica_status status = set_batch(net);
    if (status != MICA_OK) { /* a layer that does not take this batch: all stays as it was */
        net->rows = before;
        (void)set_batch(net);
    }
    return status;
}

mica_status mica_net_reshape_input(mica_net *net, const char *name, const mica_index *dims)
{
    if (name == NULL || dims == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_reshape_input: %s is NULL",
                         name == NULL ? "name" : "dims");
    int number = mica_net_find(net, name);
    if (!net->compiled || number == NONE || net->slots[number].kind != MICA_BUFFER_INPUT)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT,
                         "net_reshape_input: \"%s\" is no input of a compiled net", name);
    mica_slot *slot = &net->slots[number];
    mica_tensor shape = slot->tensor[0];
    for (int i = 0; i < shape.rank; i++) {
        if (dims[i] < 0 || dims[i] > slot->built[i])
            return mica_fail(
                net->ctx, MICA_ERR_SHAPE, "net_reshape_input: \"%s\" as %s, but it was built for %s", name,
                mica_shape_text_of(shape.rank, dims).text, mica_shape_text_of(shape.rank, slot->built).text);
        shape.dim[i] = dims[i];
    }
    mica_tensor before = slot->tensor[0];
    slot->tensor[0] = mica_tensor_like(&shape, before.data);
    net->shaped = NONE;
    mica_status status = mica_net_resize(net, is_batch(net, slot) ? dims[0] : net->rows);
    if (status != MICA_OK) {
        slot->tensor[0] = before;
        net->shaped = NONE;
        (void)set_batch(net);
    }
    return status;
}
