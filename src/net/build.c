/* Building a net: values from outside and values that last, scopes, layers. */
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

/* A layer that failed leaves nothing behind that a report would trip over. */
static void forget_open_layers(mica_net *net)
{
    for (int i = 0; i < net->scopes; i++)
        if (net->scope_layer[i] != NONE) {
            const mica_layer_info *layer = &net->layers[net->scope_layer[i]];
            net->value_count = net->built_values = layer->first_value;
            net->node_count = layer->first_node;
            net->layer_count = net->scope_layer[i];
            return;
        }
}

mica_status mica_net_failed(mica_net *net, mica_status status)
{
    if (net->status == MICA_OK) {
        net->status = status;
        memcpy(net->error, net->ctx->error, sizeof net->error);
        forget_open_layers(net);
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
    net->open_layer = NONE;
    net->size[0].name = "batch";
    net->size_count = 1;
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
    mica_release(ctx, net->rules, (size_t)net->rule_room * sizeof *net->rules);
    mica_release(ctx, net->makers, (size_t)net->maker_room * sizeof *net->makers);
    mica_release(ctx, net->values, (size_t)net->value_room * sizeof *net->values);
    mica_release(ctx, net->layers, (size_t)net->layer_room * sizeof *net->layers);
    mica_release(ctx, net->derivations, (size_t)net->derivation_room * sizeof *net->derivations);
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

/* ---- Values ---- */

int mica_net_new_value(mica_net *net, const char *name, mica_home home, mica_buffer_kind kind,
                       const mica_tensor *shape)
{
    if (mica_net_grow(net, &net->values, net->value_count, &net->value_room, sizeof *net->values) != MICA_OK)
        return NONE;
    int number = net->value_count++;
    mica_value_info *v = &net->values[number];
    *v = (mica_value_info){.name = name,
                           .home = home,
                           .kind = kind,
                           .layer = net->open_layer,
                           .maker = NONE,
                           .root = number,
                           .like = NONE,
                           .gradient = NONE,
                           .group = NONE};
    v->tensor = mica_tensor_like(shape, NULL);
    v->bytes = v->built_bytes = mica_tensor_bytes(shape);
    memcpy(v->built, shape->dim, sizeof v->built);
    if (name != NULL && mica_net_name_value(net, number) != MICA_OK)
        return NONE;
    return number;
}

const char *mica_net_full_name(mica_net *net, const char *name, const char *kind)
{
    const char *full = name != NULL && *name != '\0'
                           ? mica_net_text(net, "%s%s", net->prefix, name)
                           : mica_net_text(net, "%s%s_%d", net->prefix, kind, net->layer_count);
    if (full == NULL)
        return NULL;
    if (strlen(full) > NAME_MOST) {
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT,
                              "the name \"%.32s...\" is too long (at most %d bytes, with its scopes)", full,
                              NAME_MOST);
        return NULL;
    }
    bool taken = mica_net_name_taken(net, full);
    if (taken)
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "the name \"%s\" is already in use", full);
    return taken ? NULL : full;
}

bool mica_net_building(mica_net *net)
{
    if (net->compiled || net->entry_count > 0)
        (void)mica_net_refuse(net, MICA_ERR_STATE, "nothing can be added after mica_net_compile");
    return net->status == MICA_OK;
}

mica_status mica_net_check_value(mica_net *net, mica_value value, const char *what)
{
    if (value >= 1 && value <= net->value_count)
        return MICA_OK;
    (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "%s: value %d does not belong to this net", what, value);
    return net->status;
}

/* ---- Scopes and layers ---- */

/* Enters a scope, which may be a layer. False, with an error recorded, if it is too deep. */
static bool push_scope(mica_net *net, const char *name, int layer)
{
    size_t used = strlen(net->prefix), room = sizeof net->prefix - used;
    if (net->scopes < MICA_LAYER_DEPTH && snprintf(net->prefix + used, room, "%s.", name) < (int)room) {
        net->scope_start[net->scopes] = (unsigned short)used;
        net->scope_layer[net->scopes++] = layer;
        return true;
    }
    net->prefix[used] = '\0';
    (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "scopes are nested too deeply at \"%.32s\"", name);
    return false;
}

static void pop_scope(mica_net *net)
{
    net->prefix[net->scope_start[--net->scopes]] = '\0';
    net->open_layer = NONE;
    for (int i = 0; i < net->scopes; i++)
        if (net->scope_layer[i] != NONE)
            net->open_layer = net->scope_layer[i];
}

void mica_net_enter(mica_net *net, const char *name)
{
    if (name == NULL || *name == '\0')
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "mica_net_enter needs a name");
    else
        (void)push_scope(net, name, NONE);
}

void mica_net_leave(mica_net *net)
{
    if (net->scopes > 0 && net->scope_layer[net->scopes - 1] == NONE)
        pop_scope(net);
}

void mica_net_layer_begin(mica_net *net, const char *kind, const char *name, mica_value input)
{
    if (!mica_net_building(net) || (input != 0 && mica_net_check_value(net, input, kind) != MICA_OK))
        return;
    const char *full = mica_net_full_name(net, name, kind);
    if (full == NULL ||
        mica_net_grow(net, &net->layers, net->layer_count, &net->layer_room, sizeof *net->layers) != MICA_OK)
        return;
    kind = mica_net_text(net, "%s", kind);
    net->layers[net->layer_count] = (mica_layer_info){.name = full,
                                                      .kind = kind,
                                                      .input = input,
                                                      .first_value = net->value_count,
                                                      .first_node = net->node_count};
    int layer = net->layer_count++;
    if (kind == NULL || mica_net_name_layer(net, layer) != MICA_OK ||
        !push_scope(net, full + strlen(net->prefix), layer))
        return;
    net->open_layer = layer;
}

mica_value mica_net_layer_end(mica_net *net, mica_value output)
{
    if (net->status != MICA_OK || net->open_layer == NONE)
        return 0; /* a failed build has nothing to tidy up */
    int layer = net->open_layer;
    pop_scope(net);
    if (mica_net_check_value(net, output, net->layers[layer].kind) != MICA_OK)
        return 0;
    net->layers[layer].output = output;
    return output;
}

mica_value mica_net_layer_fail(mica_net *net, mica_status status, const char *format, ...)
{
    if (net->status != MICA_OK)
        return 0;
    char message[MICA_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (net->open_layer == NONE)
        return mica_net_refuse(net, status, "%s", message);
    const mica_layer_info *layer = &net->layers[net->open_layer];
    if (layer->input == 0) {
        status = mica_fail(net->ctx, status, "layer %d \"%s\" (%s)\n  %s", net->open_layer, layer->name,
                           layer->kind, message);
    } else {
        const mica_value_info *in = &net->values[layer->input - 1];
        char origin[160];
        if (in->layer != NONE)
            (void)snprintf(origin, sizeof origin, "produced by layer %d \"%s\"", in->layer,
                           net->layers[in->layer].name);
        else
            (void)snprintf(origin, sizeof origin, "the net's input \"%s\"", in->name);
        status = mica_fail(net->ctx, status, "layer %d \"%s\" (%s)\n  input is %s, %s\n  %s", net->open_layer,
                           layer->name, layer->kind, MICA_SHAPE(&in->tensor), origin, message);
    }
    (void)mica_net_failed(net, status);
    return 0;
}

/* ---- Values from outside, and values that last ---- */

mica_value mica_net_input(mica_net *net, const char *name, mica_dtype dtype, int rank, const mica_index *dims)
{
    if (!mica_net_building(net))
        return 0;
    mica_tensor shape;
    mica_index most[MICA_MAX_RANK], source[MICA_MAX_RANK];
    if (name == NULL || *name == '\0')
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "an input needs a name");
    if (mica_net_resolve_dims(net, rank, dims, most, source) != MICA_OK)
        return 0;
    mica_status status = mica_tensor_init(net->ctx, &shape, NULL, dtype, rank, most);
    if (status != MICA_OK) {
        (void)mica_net_failed(net, status);
        return 0;
    }
    const char *full = mica_net_full_name(net, name, "input");
    int value = full != NULL ? mica_net_new_value(net, full, MICA_HOME_PLANNED, MICA_BUFFER_INPUT, &shape)
                             : NONE;
    if (value == NONE)
        return 0;
    mica_size *batch = &net->size[0];
    if (rank > 0 && source[0] == 0 && batch->most == 0)
        batch->most = batch->now = net->rows = net->part_rows = most[0];
    if (rank > 0 && source[0] == 0 && batch->most == most[0])
        source[0] = MICA_SIZE_CODE(0);
    memcpy(net->values[value].source, source, (size_t)(rank > 0 ? rank : 0) * sizeof *source);
    net->values[value].layer = NONE;
    net->built_values = net->value_count;
    return value + 1;
}

/* A value that lasts, named after the scope. */
static mica_value add_lasting(mica_net *net, const char *name, mica_home home, mica_buffer_kind kind,
                              const mica_tensor *shape, const char *what)
{
    if (name == NULL || *name == '\0')
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "a %s needs a name", what);
    const char *full = mica_net_text(net, "%s%s", net->prefix, name);
    if (full == NULL)
        return 0;
    if (mica_net_name_taken(net, full))
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "the name of its %s \"%s\" is already in use",
                                   what, full);
    int value = mica_net_new_value(net, full, home, kind, shape);
    net->built_values = net->value_count;
    return value + 1;
}

/* The shape of something that lasts; false, with the layer's failure recorded, if it is none. */
static bool lasting_shape(mica_net *net, mica_tensor *shape, mica_dtype dtype, int rank,
                          const mica_index *dims)
{
    if (!mica_net_building(net))
        return false;
    mica_status status = mica_tensor_init(net->ctx, shape, NULL, dtype, rank, dims);
    if (status != MICA_OK)
        (void)mica_net_failed(net, status);
    return status == MICA_OK;
}

mica_value mica_net_learned(mica_net *net, const char *name, int rank, const mica_index *dims, mica_init init)
{
    mica_tensor shape;
    if (!lasting_shape(net, &shape, MICA_F32, rank, dims))
        return 0;
    if ((unsigned)init.kind > MICA_INIT_HE_NORMAL)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "unknown init %d for \"%s\"", (int)init.kind,
                                   name != NULL ? name : "");
    mica_value value = add_lasting(net, name, MICA_HOME_LEARNED, MICA_BUFFER_PARAMETER, &shape, "parameter");
    if (value != 0)
        net->values[value - 1].init = init;
    return value;
}

mica_value mica_net_shared(mica_net *net, const char *full_name, int rank, const mica_index *dims)
{
    if (!mica_net_building(net))
        return 0;
    int value = full_name != NULL ? mica_net_find(net, full_name) : NONE;
    if (value == NONE || net->values[value].home != MICA_HOME_LEARNED)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT,
                                   "shares \"%s\", which is not a parameter of this net",
                                   full_name != NULL ? full_name : "");
    if (rank > 0 && dims == NULL)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "shares \"%s\" of rank %d, whose dims are NULL",
                                   full_name, rank);
    const mica_tensor *have = &net->values[value].tensor;
    bool fits = have->rank == rank;
    for (int i = 0; fits && i < rank; i++)
        fits = have->dim[i] == dims[i];
    if (!fits)
        return mica_net_layer_fail(net, MICA_ERR_SHAPE, "shares \"%s\", which is %s: expected %s", full_name,
                                   MICA_SHAPE(have), mica_shape_text_of(rank, dims).text);
    return value + 1;
}

mica_value mica_net_kept(mica_net *net, const char *name, mica_kept_kind kind, mica_dtype dtype, int rank,
                         const mica_index *dims, float start)
{
    mica_tensor shape;
    mica_index most[MICA_MAX_RANK], source[MICA_MAX_RANK];
    if (!mica_net_building(net) || mica_net_resolve_dims(net, rank, dims, most, source) != MICA_OK ||
        !lasting_shape(net, &shape, dtype, rank, most))
        return 0;
    mica_value value = add_lasting(net, name, MICA_HOME_KEPT, MICA_BUFFER_STATE, &shape, "state");
    if (value != 0) {
        mica_value_info *v = &net->values[value - 1];
        v->kept = kind;
        v->start = start;
        memcpy(v->source, source, (size_t)rank * sizeof *source);
    }
    return value;
}

mica_value mica_net_lent(mica_net *net, const char *name, const mica_tensor *tensor)
{
    if (!mica_net_building(net))
        return 0;
    if (tensor == NULL || tensor->data == NULL)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "lent \"%s\" is NULL", name != NULL ? name : "");
    mica_status status = mica_tensor_check(net->ctx, "net_lent", "tensor", tensor);
    if (status != MICA_OK) {
        (void)mica_net_failed(net, status);
        return 0;
    }
    mica_value value = add_lasting(net, name, MICA_HOME_LENT, MICA_BUFFER_INPUT, tensor, "value");
    if (value != 0)
        net->values[value - 1].tensor = *tensor;
    return value;
}

mica_value mica_net_derived(mica_net *net, const char *name, mica_dtype dtype, int rank,
                            const mica_index *dims, const mica_op *op, const mica_value *ins, int count,
                            const void *opts)
{
    mica_tensor shape;
    if (!lasting_shape(net, &shape, dtype, rank, dims))
        return 0;
    if (op == NULL)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "derived by an operation that is NULL");
    if (mica_net_grow(net, &net->derivations, net->derivation_count, &net->derivation_room,
                      sizeof *net->derivations) != MICA_OK)
        return 0;
    mica_node node;
    if (mica_net_make_node(net, &node, op, ins, count, opts) != MICA_OK)
        return 0;
    for (int i = 0; i < node.ins; i++)
        if (node.in[i] != NONE && net->values[node.in[i]].home == MICA_HOME_PLANNED)
            return mica_net_layer_fail(net, MICA_ERR_ARGUMENT,
                                       "derives \"%s\" from a value that changes with every step",
                                       name != NULL ? name : "");
    mica_value value = add_lasting(net, name, MICA_HOME_DERIVED, MICA_BUFFER_DERIVED, &shape, "table");
    if (value == 0)
        return 0;
    node.outs = 1;
    node.out[0] = value - 1;
    net->derivations[net->derivation_count++] = node;
    return value;
}

/* ---- Outputs, freezing, shapes ---- */

mica_status mica_net_output(mica_net *net, const char *name, mica_value value)
{
    if (!mica_net_building(net))
        return net->status;
    MICA_TRY(mica_net_check_value(net, value, "output"));
    mica_value_info *v = &net->values[value - 1];
    v->output = true;
    const char *known = v->name != NULL ? v->name : v->layer != NONE ? net->layers[v->layer].name : "";
    if (name == NULL || strcmp(known, name) == 0)
        return MICA_OK;
    const char *full = NULL;
    if (v->kind == MICA_BUFFER_INPUT)
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "output \"%s\" is the input \"%s\"", name, v->name);
    else if (v->name != NULL)
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "output \"%s\" is already named \"%s\"", name, v->name);
    else
        full = mica_net_full_name(net, name, "output");
    if (full != NULL) {
        net->values[value - 1].name = full;
        (void)mica_net_name_value(net, value - 1); /* its layer keeps its own */
    }
    return net->status;
}

mica_status mica_net_freeze(mica_net *net, const char *prefix, bool frozen)
{
    if (prefix == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_freeze: prefix is NULL");
    if (net->status != MICA_OK)
        return net->status;
    if (net->block != NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_freeze: the net is already bound");
    int found = 0;
    for (int i = 0; i < net->built_values; i++) {
        mica_value_info *v = &net->values[i];
        if (v->home == MICA_HOME_LEARNED && strncmp(v->name, prefix, strlen(prefix)) == 0) {
            v->frozen = frozen;
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
    if (value < 1 || value > net->built_values)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net: value %d does not belong to this net", value);
    const mica_value_info *v = &net->values[value - 1];
    mica_tensor shape = v->tensor;
    memcpy(shape.dim, v->built, sizeof shape.dim);
    *out = mica_tensor_like(&shape, NULL);
    return MICA_OK;
}
