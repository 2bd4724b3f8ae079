/* Building a net: nodes, slots, names. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "net/net.h"

#define CHUNK_BYTES ((size_t)16384)

/* The longest name of a node: what belongs to it (".running_mean") still fits into mica_net_text's. */
#define NAME_MOST 400

struct mica_chunk {
    mica_chunk *next;
    size_t bytes, used;
};

/* ---- Memory and errors ---- */

mica_status mica_net_failed(mica_net *net, mica_status status)
{
    if (net->status == MICA_OK) {
        net->status = status;
        memcpy(net->error, net->ctx->error, sizeof net->error);
    }
    return status;
}

void *mica_net_memory(mica_net *net, size_t bytes)
{
    size_t header = mica_align_up(sizeof(mica_chunk));
    bytes = (bytes + 15) & ~(size_t)15;
    if (net->chunks == NULL || net->chunks->bytes - net->chunks->used < bytes) {
        size_t room = bytes > CHUNK_BYTES - header ? bytes + header : CHUNK_BYTES;
        mica_chunk *chunk = mica_allocate(net->ctx, room);
        if (chunk == NULL) {
            (void)mica_net_failed(net, net->ctx->status);
            return NULL;
        }
        *chunk = (mica_chunk){net->chunks, room, header};
        net->chunks = chunk;
    }
    void *block = (char *)net->chunks + net->chunks->used;
    net->chunks->used += bytes;
    return block;
}

const char *mica_net_text(mica_net *net, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t bytes = length < (int)sizeof text ? (size_t)length + 1 : sizeof text;
    char *copy = mica_net_memory(net, bytes);
    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

mica_status mica_net_grow(mica_net *net, void *array, int count, int *room, size_t bytes)
{
    if (count < *room)
        return MICA_OK;
    int more = *room > 0 ? *room * 2 : 16;
    void *old, *grown = mica_allocate(net->ctx, (size_t)more * bytes);
    if (grown == NULL)
        return mica_net_failed(net, net->ctx->status);
    memcpy(&old, array, sizeof old);
    if (count > 0)
        memcpy(grown, old, (size_t)count * bytes);
    mica_release(net->ctx, old, (size_t)*room * bytes);
    memcpy(array, &grown, sizeof grown);
    *room = more;
    return MICA_OK;
}

mica_status mica_net_create(mica_context *ctx, mica_net **out)
{
    *out = NULL;
    mica_net *net = mica_allocate(ctx, sizeof *net);
    if (net == NULL)
        return ctx->status;
    memset(net, 0, sizeof *net);
    net->ctx = ctx;
    *out = net;
    return MICA_OK;
}

void mica_net_destroy(mica_net *net)
{
    if (net == NULL)
        return;
    mica_context *ctx = net->ctx;
    if (net->owns_block)
        mica_release(ctx, net->block, net->block_bytes);
    mica_release(ctx, net->learned, (size_t)net->learned_room * sizeof *net->learned);
    mica_release(ctx, net->plan_buffers, net->plan_room * sizeof *net->plan_buffers);
    mica_release(ctx, net->plan_times, net->plan_time_room * sizeof *net->plan_times);
    mica_release(ctx, net->groups, (size_t)net->group_room * sizeof *net->groups);
    mica_release(ctx, net->entries, (size_t)net->entry_room * sizeof *net->entries);
    mica_release(ctx, net->slots, (size_t)net->slot_room * sizeof *net->slots);
    mica_release(ctx, net->nodes, (size_t)net->node_room * sizeof *net->nodes);
    mica_release(ctx, net->names, (size_t)net->name_room * sizeof *net->names);
    while (net->chunks != NULL) {
        mica_chunk *chunk = net->chunks;
        net->chunks = chunk->next;
        mica_release(ctx, chunk, chunk->bytes);
    }
    mica_release(ctx, net, sizeof *net);
}

mica_status mica_net_status(const mica_net *net) { return net->status; }
mica_context *mica_net_context(const mica_net *net) { return net->ctx; }

mica_value mica_net_refuse(mica_net *net, mica_status status, const char *format, ...)
{
    if (net->status != MICA_OK)
        return 0;
    char message[MICA_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    (void)mica_net_failed(net, mica_fail(net->ctx, status, "net: %s", message));
    return 0;
}

/* ---- Slots ---- */

int mica_net_new_slot(mica_net *net, const char *name, mica_buffer_kind kind, const mica_tensor *shape,
                      int node)
{
    if (mica_net_grow(net, &net->slots, net->slot_count, &net->slot_room, sizeof *net->slots) != MICA_OK)
        return NONE;
    int number = net->slot_count++;
    mica_slot *slot = &net->slots[number];
    *slot = (mica_slot){.name = name, .kind = kind, .node = node, .gradient = NONE, .root = number};
    slot->tensor[0] = mica_tensor_like(shape, NULL);
    slot->tensor[1] = slot->tensor[0];
    slot->group[0] = slot->group[1] = NONE;
    slot->bytes = slot->built_bytes = mica_tensor_bytes(shape);
    memcpy(slot->built, shape->dim, sizeof slot->built);
    bool found_by_name = name != NULL && kind != MICA_BUFFER_GRADIENT && kind != MICA_BUFFER_BACK;
    if (found_by_name && mica_net_name_slot(net, number) != MICA_OK)
        return NONE;
    return number;
}

/* prefix + name, or prefix + kind + "_" + number for a node without one. Fails if it is taken. */
static const char *full_name(mica_net *net, const char *name, const char *kind)
{
    const char *full = name != NULL && *name != '\0'
                           ? mica_net_text(net, "%s%s", net->prefix, name)
                           : mica_net_text(net, "%s%s_%d", net->prefix, kind, net->node_count);
    if (full == NULL)
        return NULL;
    if (strlen(full) > NAME_MOST) {
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT,
                              "the name \"%.32s...\" is too long (%d bytes can be, with those around it)",
                              full, NAME_MOST);
        return NULL;
    }
    bool taken = mica_net_name_taken(net, full);
    if (taken)
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "the name \"%s\" is taken", full);
    return taken ? NULL : full;
}

void mica_net_enter(mica_net *net, const char *name)
{
    if (name == NULL || *name == '\0') {
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "mica_net_enter needs a name");
        return;
    }
    size_t used = strlen(net->prefix), room = sizeof net->prefix - used;
    if (snprintf(net->prefix + used, room, "%s.", name) < (int)room) {
        net->scope_start[net->scopes++] = (unsigned char)used;
    } else {
        net->prefix[used] = '\0';
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "names nest too deep at \"%.32s\"", name);
    }
}

void mica_net_leave(mica_net *net)
{
    if (net->scopes > 0)
        net->prefix[net->scope_start[--net->scopes]] = '\0';
}

/* ---- Inputs, outputs, nodes ---- */

/* Whether building goes on: not after a failure, nor once the net has a schedule, whose gradients are slots. */
static bool is_building(mica_net *net)
{
    if (net->compiled || net->reordered || net->entry_count > 0)
        (void)mica_net_refuse(net, MICA_ERR_STATE, "nothing can be added after mica_net_compile");
    return net->status == MICA_OK;
}

mica_value mica_net_input(mica_net *net, const char *name, mica_dtype dtype, int rank, const mica_index *dims)
{
    if (!is_building(net))
        return 0;
    mica_tensor shape;
    if (name == NULL || *name == '\0')
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "an input needs a name");
    mica_status status = mica_tensor_init(net->ctx, &shape, NULL, dtype, rank, dims);
    if (status != MICA_OK) {
        (void)mica_net_failed(net, status);
        return 0;
    }
    const char *full = full_name(net, name, "input");
    if (full == NULL)
        return 0;
    int slot = mica_net_new_slot(net, full, MICA_BUFFER_INPUT, &shape, NONE);
    if (slot != NONE && rank > 0 && net->built_rows == 0)
        net->built_rows = net->rows = net->part_rows = net->shaped = dims[0];
    net->built_slots = net->slot_count;
    return slot + 1;
}

static mica_status check_value(mica_net *net, mica_value value, const char *what)
{
    if (value >= 1 && value <= net->built_slots && net->slots[value - 1].kind <= MICA_BUFFER_ACTIVATION &&
        net->slots[value - 1].kind >= MICA_BUFFER_INPUT)
        return MICA_OK;
    (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "%s of value %d, which is none of this net's", what, value);
    return net->status;
}

mica_status mica_net_output(mica_net *net, const char *name, mica_value value)
{
    if (!is_building(net))
        return net->status;
    MICA_TRY(check_value(net, value, "output"));
    mica_slot *slot = &net->slots[value - 1];
    slot->output = true;
    if (name == NULL || strcmp(slot->name, name) == 0)
        return MICA_OK;
    const char *full = NULL;
    if (slot->kind == MICA_BUFFER_INPUT)
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "output \"%s\" is the input \"%s\"", name, slot->name);
    else if (strcmp(slot->name, net->nodes[slot->node].name) != 0)
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "output \"%s\" is called \"%s\" already", name,
                              slot->name);
    else
        full = full_name(net, name, "output");
    if (full != NULL) {
        slot->name = full;
        (void)mica_net_name_slot(net, value - 1); /* its node keeps the old name */
    }
    return net->status;
}

static mica_node *new_node(mica_net *net, const mica_layer *layer, const void *opts, const mica_value *inputs,
                           int count)
{
    if (mica_net_grow(net, &net->nodes, net->node_count, &net->node_room, sizeof *net->nodes) != MICA_OK)
        return NULL;
    mica_node *node = &net->nodes[net->node_count];
    *node = (mica_node){
        .layer = layer, .inputs = count, .out = NONE, .pool = NONE, .activation = NONE, .mean = NONE};
    for (int i = 0; i < count; i++)
        node->in[i] = inputs[i] - 1;
    const char *name = NULL;
    if (layer->opts_bytes > 0) {
        node->opts = mica_net_memory(net, layer->opts_bytes);
        if (node->opts == NULL)
            return NULL;
        if (opts != NULL) {
            memcpy(node->opts, opts, layer->opts_bytes);
            memcpy(&name, opts, sizeof name);
        } else {
            memset(node->opts, 0, layer->opts_bytes);
        }
    }
    node->name = full_name(net, name, layer->name);
    if (node->name == NULL || mica_net_name_node(net, net->node_count) != MICA_OK)
        return NULL;
    return node;
}

mica_value mica_net_add(mica_net *net, const mica_layer *layer, const void *opts, const mica_value *inputs,
                        int count)
{
    if (!is_building(net))
        return 0;
    if (count < 0 || count > MICA_LAYER_INPUTS)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "%s with %d inputs (at most %d can be)", layer->name,
                               count, MICA_LAYER_INPUTS);
    if (count > 0 && inputs == NULL)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "%s of values that are NULL", layer->name);
    for (int i = 0; i < count; i++)
        if (check_value(net, inputs[i], layer->name) != MICA_OK)
            return 0;
    mica_node *node = new_node(net, layer, opts, inputs, count);
    if (node == NULL)
        return 0;
    net->node_count++;
    mica_status status = mica_net_infer(net, net->node_count - 1, true);
    if (status != MICA_OK) {
        net->node_count--; /* half a node is none */
        net->slot_count = net->built_slots;
        (void)mica_net_failed(net, status);
        return 0;
    }
    net->built_slots = net->slot_count;
    return net->nodes[net->node_count - 1].out + 1;
}

mica_status mica_net_freeze(mica_net *net, const char *prefix, bool frozen)
{
    if (prefix == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_freeze: prefix is NULL");
    if (net->status != MICA_OK)
        return net->status;
    if (net->block != NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_freeze: the net is bound already");
    int found = 0;
    for (int i = 0; i < net->built_slots; i++) {
        mica_slot *slot = &net->slots[i];
        if (slot->kind == MICA_BUFFER_PARAMETER && strncmp(slot->name, prefix, strlen(prefix)) == 0) {
            slot->frozen = frozen;
            found++;
        }
    }
    if (found == 0)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net: no parameter's name starts with \"%s\"", prefix);
    net->compiled = false;
    return MICA_OK;
}

mica_status mica_net_shape(const mica_net *net, mica_tensor *out, mica_value value)
{
    if (value < 1 || value > net->built_slots)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net: value %d is none of this net's", value);
    const mica_slot *slot = &net->slots[value - 1];
    mica_tensor shape = slot->tensor[0];
    memcpy(shape.dim, slot->built, sizeof shape.dim);
    *out = mica_tensor_like(&shape, NULL);
    return MICA_OK;
}
