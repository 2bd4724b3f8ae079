/* A model's memory: chunks that are released when it is closed; and its names, each of which is kept once. */
#include <string.h>

#include "onnx/model.h"
#include "onnx/pool.h"

#define CHUNK_BYTES ((size_t)65536)

struct mica_onnx_chunk {
    mica_onnx_chunk *next;
    size_t bytes, used;
};

mica_status mica_onnx_grow(mica_context *ctx, void *array, int count, int *room, size_t bytes)
{
    if (count < *room)
        return MICA_OK;
    int more = *room > 0 ? 2 * *room : 64;
    void *old, *grown = mica_allocate(ctx, (size_t)more * bytes);
    if (grown == NULL)
        return ctx->status;
    memcpy(&old, array, sizeof old);
    if (count > 0)
        memcpy(grown, old, (size_t)count * bytes);
    mica_release(ctx, old, (size_t)*room * bytes);
    memcpy(array, &grown, sizeof grown);
    *room = more;
    return MICA_OK;
}

void *mica_onnx_memory_in(mica_context *ctx, mica_onnx_chunk **chunks, size_t bytes)
{
    size_t header = mica_align_up(sizeof(mica_onnx_chunk)), piece = bytes >= MICA_ALIGN ? MICA_ALIGN : 16;
    if (bytes > SIZE_MAX - CHUNK_BYTES) {
        (void)mica_fail(ctx, MICA_ERR_MEMORY, "onnx: %zu bytes are more than there can be", bytes);
        return NULL;
    }
    mica_onnx_chunk *chunk = *chunks;
    size_t start = chunk != NULL ? (chunk->used + piece - 1) & ~(piece - 1) : 0;
    if (chunk == NULL || start > chunk->bytes || chunk->bytes - start < bytes) {
        size_t room = header + (bytes > CHUNK_BYTES - header ? bytes : CHUNK_BYTES - header);
        chunk = mica_allocate(ctx, room);
        if (chunk == NULL)
            return NULL;
        *chunk = (mica_onnx_chunk){*chunks, room, header};
        /* One that is as good as full stays behind the one that still has room. */
        if (*chunks != NULL && room > CHUNK_BYTES) {
            chunk->next = (*chunks)->next;
            (*chunks)->next = chunk;
        } else {
            *chunks = chunk;
        }
        start = header;
    }
    chunk->used = start + bytes;
    return (char *)chunk + start;
}

void *mica_onnx_memory(mica_onnx *model, size_t bytes)
{
    return mica_onnx_memory_in(model->ctx, &model->chunks, bytes);
}

void mica_onnx_release_chunks(mica_context *ctx, mica_onnx_chunk **chunks)
{
    while (*chunks != NULL) {
        mica_onnx_chunk *chunk = *chunks;
        *chunks = chunk->next;
        mica_release(ctx, chunk, chunk->bytes);
    }
}

void mica_onnx_release_all(mica_onnx *model)
{
    mica_onnx_release_chunks(model->ctx, &model->chunks);
    mica_release(model->ctx, model->interned, model->interned_room * sizeof *model->interned);
    model->interned = NULL;
}

/* ---- Names ---- */

static uint32_t hash_of(const char *bytes, size_t length)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
    return hash;
}

static bool grow(mica_onnx *model)
{
    size_t room = model->interned_room > 0 ? 2 * model->interned_room : 256;
    const char **table = mica_allocate(model->ctx, room * sizeof *table);
    if (table == NULL)
        return false;
    memset(table, 0, room * sizeof *table);
    for (size_t i = 0; i < model->interned_room; i++) {
        const char *name = model->interned[i];
        if (name == NULL)
            continue;
        size_t at = hash_of(name, strlen(name)) & (room - 1);
        while (table[at] != NULL)
            at = (at + 1) & (room - 1);
        table[at] = name;
    }
    mica_release(model->ctx, model->interned, model->interned_room * sizeof *model->interned);
    model->interned = table;
    model->interned_room = room;
    return true;
}

/* Where a name is in the table, or where it would be. */
static size_t slot_of(const mica_onnx *model, const char *bytes, size_t length)
{
    size_t mask = model->interned_room - 1, at = hash_of(bytes, length) & mask;
    while (model->interned[at] != NULL &&
           (strncmp(model->interned[at], bytes, length) != 0 || model->interned[at][length] != '\0'))
        at = (at + 1) & mask;
    return at;
}

const char *mica_onnx_intern(mica_onnx *model, const char *bytes, size_t length)
{
    if (2 * (model->interned_count + 1) > model->interned_room && !grow(model))
        return NULL;
    size_t at = slot_of(model, bytes, length);
    if (model->interned[at] != NULL)
        return model->interned[at];
    char *copy = mica_onnx_memory(model, length + 1);
    if (copy == NULL)
        return NULL;
    if (length > 0)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    model->interned[at] = copy;
    model->interned_count++;
    return copy;
}

mica_status mica_onnx_mark_initialized(mica_onnx *model, mica_onnx_info *infos, int count,
                                       const mica_onnx_tensor *initializers, int initializer_count)
{
    size_t bytes = model->interned_room;
    if (bytes == 0 || count == 0 || initializer_count == 0)
        return MICA_OK;
    bool *marks = mica_allocate(model->ctx, bytes);
    if (marks == NULL)
        return model->ctx->status;
    memset(marks, 0, bytes);
    for (int i = 0; i < initializer_count; i++)
        marks[slot_of(model, initializers[i].name, strlen(initializers[i].name))] = true;
    for (int i = 0; i < count; i++)
        infos[i].initialized = marks[slot_of(model, infos[i].name, strlen(infos[i].name))];
    mica_release(model->ctx, marks, bytes);
    return MICA_OK;
}

mica_status mica_onnx_name_batch(mica_onnx *model, mica_onnx_info *inputs, int count)
{
    mica_onnx_value *open = NULL;
    for (int i = 0; i < count; i++) {
        mica_onnx_value *v = &inputs[i].is;
        if (inputs[i].initialized)
            continue;
        for (int k = 0; k < v->rank; k++)
            if (v->symbol[k] != NULL && strcmp(v->symbol[k], "batch") == 0)
                return MICA_OK;
        if (v->rank < 1 || v->dim[0] >= 0 || v->symbol[0] != NULL)
            continue;
        if (open != NULL)
            return MICA_OK;
        open = v;
    }
    if (open != NULL && (open->symbol[0] = mica_onnx_intern(model, "batch", 5)) == NULL)
        return model->ctx->status;
    return MICA_OK;
}
