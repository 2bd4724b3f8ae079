/* Building a net: its memory and errors, new values and their names, scopes, layers. */
#include <stdarg.h>
#include <string.h>

#include "base/format.h"
#include "base/allocate.h"
#include "net/net.h"

/* The first chunk of names and options, and the most: each is twice the one before. The first room of arrays. */
#if defined(MICA_SMALL)
#define CHUNK_FIRST ((size_t)256)
#define CHUNK_MOST  ((size_t)256)
#define ROOM_FIRST  4
#define PIECE       ((size_t)8) /* what all memory is a multiple of */
#else
#define CHUNK_FIRST ((size_t)16384)
#define CHUNK_MOST  ((size_t)16384)
#define ROOM_FIRST  16
#define PIECE       ((size_t)16)
#endif

/* The longest name of a node: what belongs to it (".running_mean") still fits into mica_net_text's. */
#define NAME_MOST (MICA_NAME_BYTES * 25 / 32)

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
        if (net->error == NULL)
            net->error = mica_heap_take(&net->ctx->allocator, &net->ctx->heap, MICA_ERROR_TEXT);
        if (net->error != NULL)
            memcpy(net->error, net->ctx->error, MICA_ERROR_TEXT);
        forget_open_layers(net);
    }
    return status;
}

void *mica_net_memory(mica_net *net, size_t bytes)
{
    size_t header = mica_align_up(sizeof(mica_chunk));
    bytes = (bytes + (PIECE - 1)) & ~(PIECE - 1);
    if (net->chunks == NULL || net->chunks->bytes - net->chunks->used < bytes) {
        size_t chunk_bytes = net->chunks != NULL ? 2 * net->chunks->bytes : CHUNK_FIRST;
        chunk_bytes = chunk_bytes > CHUNK_MOST ? CHUNK_MOST : chunk_bytes;
        size_t room = bytes > chunk_bytes - header ? bytes + header : chunk_bytes;
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

void mica_net_mark_memory(mica_net *net)
{
    if (net->marked)
        return;
    net->marked = true;
    net->built_chunks = net->chunks;
    net->built_used = net->chunks != NULL ? net->chunks->used : 0;
}

void mica_net_rewind_memory(mica_net *net)
{
    while (net->marked && net->chunks != net->built_chunks) {
        mica_chunk *chunk = net->chunks;
        net->chunks = chunk->next;
        mica_release(net->ctx, chunk, chunk->bytes);
    }
    if (net->marked && net->chunks != NULL)
        net->chunks->used = net->built_used;
}

const char *mica_net_text(mica_net *net, const char *format, ...)
{
    char text[MICA_NAME_BYTES];
    va_list args;
    va_start(args, format);
    int length = mica_vformat(text, sizeof text, format, args);
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
        /* Where memory is scarce arrays grow by half: twice as many bytes lie idle after the last doubling. */
#if defined(MICA_SMALL)
    int more = *room > 0 ? *room + (*room + 1) / 2 : ROOM_FIRST;
#else
    int more = *room > 0 ? *room * 2 : ROOM_FIRST;
#endif
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

#if defined(MICA_SMALL)
static void trim(mica_net *net, void *array, int count, int *room, size_t bytes)
{
    void *old, *trimmed;
    memcpy(&old, array, sizeof old);
    if (count == 0 || count == *room)
        return;
    trimmed = mica_heap_take(&net->ctx->allocator, &net->ctx->heap, (size_t)count * bytes);
    if (trimmed == NULL)
        return; /* then it stays as it is */
    memcpy(trimmed, old, (size_t)count * bytes);
    mica_release(net->ctx, old, (size_t)*room * bytes);
    memcpy(array, &trimmed, sizeof trimmed);
    *room = count;
}

void mica_net_trim(mica_net *net)
{
    trim(net, &net->values, net->value_count, &net->value_room, sizeof *net->values);
    trim(net, &net->nodes, net->node_count, &net->node_room, sizeof *net->nodes);
    trim(net, &net->layers, net->layer_count, &net->layer_room, sizeof *net->layers);
    trim(net, &net->entries, net->entry_count, &net->entry_room, sizeof *net->entries);
    trim(net, &net->groups, net->group_count, &net->group_room, sizeof *net->groups);
    trim(net, &net->makers, net->maker_count, &net->maker_room, sizeof *net->makers);
    trim(net, &net->learned, net->learned_values, &net->learned_room, sizeof *net->learned);
    mica_net_link(net); /* values have moved */
}
#else
void mica_net_trim(mica_net *net) { (void)net; }
#endif

mica_status mica_net_create(mica_context *ctx, mica_net **out)
{
    if (out == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "net_create: out is NULL");
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
    mica_release(ctx, net->error, MICA_ERROR_TEXT);
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
    void (*at_end)(void *user) = net->at_end;
    void *user = net->at_end_user;
    mica_release(ctx, net, sizeof *net);
    if (at_end != NULL)
        at_end(user);
}

void mica_net_at_end(mica_net *net, void (*at_end)(void *user), void *user)
{
    net->at_end = at_end;
    net->at_end_user = user;
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
    (void)mica_vformat(message, sizeof message, format, args);
    va_end(args);
    (void)mica_net_failed(net, mica_fail(net->ctx, status, "net: %s", message));
    return 0;
}

/* ---- Values ---- */

static const mica_index no_source[MICA_VALUE_RANK];

mica_status mica_net_set_source(mica_net *net, int value, int rank, const mica_index *source)
{
    mica_index any = 0, *copy;
    for (int i = 0; i < rank; i++)
        any |= source[i];
    if (any == 0)
        return MICA_OK;
    copy = mica_net_memory(net, sizeof no_source);
    if (copy == NULL)
        return net->status;
    memset(copy, 0, sizeof no_source);
    memcpy(copy, source, (size_t)rank * sizeof *source);
    net->values[value].source = copy;
    return MICA_OK;
}

int mica_net_new_value(mica_net *net, const char *name, mica_home home, mica_buffer_kind kind,
                       const mica_tensor *shape)
{
#if defined(MICA_SMALL)
    if (shape->rank > MICA_VALUE_RANK) {
        (void)mica_net_refuse(net, MICA_ERR_SHAPE, "a value of %d axes: a small build has at most %d",
                              shape->rank, MICA_VALUE_RANK);
        return NONE;
    }
#endif
    if (mica_net_grow(net, &net->values, net->value_count, &net->value_room, sizeof *net->values) != MICA_OK)
        return NONE;
    int number = net->value_count++;
    mica_value_info *v = &net->values[number];
    *v = (mica_value_info){.name = name,
                           .home = home,
                           .kind = kind,
                           .layer = net->open_layer,
                           .maker = NONE,
                           .source = no_source,
                           .root = number,
                           .like = NONE,
                           .gradient = NONE,
                           .group = NONE};
    v->stream = net->streams++;
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
    if (net->scopes < MICA_LAYER_DEPTH && mica_format(net->prefix + used, room, "%s.", name) < (int)room) {
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

/* A copy of a kind, of which nets have few. */
static const char *kind_text(mica_net *net, const char *kind)
{
    for (int i = net->layer_count - 1; i >= 0 && i >= net->layer_count - 16; i--)
        if (strcmp(net->layers[i].kind, kind) == 0)
            return net->layers[i].kind;
    return mica_net_text(net, "%s", kind);
}

void mica_net_layer_begin(mica_net *net, const char *kind, const char *name, mica_value input)
{
    if (!mica_net_building(net))
        return;
    if (kind == NULL || *kind == '\0') {
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "mica_net_layer_begin needs a kind");
        return;
    }
    if (input != 0 && mica_net_check_value(net, input, kind) != MICA_OK)
        return;
    const char *full = mica_net_full_name(net, name, kind);
    if (full == NULL ||
        mica_net_grow(net, &net->layers, net->layer_count, &net->layer_room, sizeof *net->layers) != MICA_OK)
        return;
    kind = kind_text(net, kind);
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
    if (!mica_net_building(net))
        return 0; /* a failed build has nothing to tidy up */
    if (net->open_layer == NONE)
        return mica_net_refuse(net, MICA_ERR_STATE, "mica_net_layer_end without mica_net_layer_begin");
    int layer = net->open_layer;
    if (net->scope_layer[net->scopes - 1] == NONE)
        return mica_net_refuse(net, MICA_ERR_STATE,
                               "layer \"%s\" ends before mica_net_leave of what it entered",
                               net->layers[layer].name);
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
    (void)mica_vformat(message, sizeof message, format, args);
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
            (void)mica_format(origin, sizeof origin, "produced by layer %d \"%s\"", in->layer,
                              net->layers[in->layer].name);
        else
            (void)mica_format(origin, sizeof origin, "the net's input \"%s\"", in->name);
        status = mica_fail(net->ctx, status, "layer %d \"%s\" (%s)\n  input is %s, %s\n  %s", net->open_layer,
                           layer->name, layer->kind, MICA_SHAPE(&in->tensor), origin, message);
    }
    (void)mica_net_failed(net, status);
    return 0;
}
