/* Opening a folder of Hugging Face's: its configuration, and its weights in one file or in shards. */
#include "text/huggingface.h"

#include <string.h>

#include "base/format.h"
#include "text/huggingface_parts.h"

#define WHOLE "model.safetensors"
#define INDEX "model.safetensors.index.json"

/* ---- Paths ---- */

typedef struct path {
    char text[MICA_HUGGINGFACE_PATH + 256];
} path;

static path path_of(const mica_huggingface *folder, const char *file, size_t length)
{
    path p;
    size_t before = strlen(folder->path);
    bool slash = before > 0 && folder->path[before - 1] == '/';
    (void)mica_format(p.text, sizeof p.text, "%s%s%.*s", folder->path, slash ? "" : "/", (int)length, file);
    return p;
}

mica_quote mica_huggingface_quote(const mica_huggingface *folder, const char *file)
{
    return mica_quote_string(path_of(folder, file, strlen(file)).text);
}

/* The last part of the folder's path, as the model's name. */
static void name_folder(mica_huggingface *folder)
{
    size_t end = strlen(folder->path);
    while (end > 0 && folder->path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && folder->path[start - 1] != '/')
        start--;
    (void)mica_format(folder->name, sizeof folder->name, "%.*s", (int)(end - start), folder->path + start);
}

/* ---- Shards ---- */

static mica_status open_shard(mica_huggingface *folder, const char *file, size_t length)
{
    path p = path_of(folder, file, length);
    MICA_TRY(mica_safetensors_map(folder->ctx, &folder->shards[folder->shard_count], p.text));
    folder->shard_count++;
    return MICA_OK;
}

/* The shard of this name, among those open; NULL: none. */
static const mica_safetensors *opened(const mica_huggingface *folder, const char *file, size_t length)
{
    for (size_t i = folder->shard_count; i-- > 0;) { /* the last first: they come in order mostly */
        const char *base = strrchr(folder->shards[i]->file.path, '/');
        base = base != NULL ? base + 1 : folder->shards[i]->file.path;
        if (strlen(base) == length && memcmp(base, file, length) == 0)
            return folder->shards[i];
    }
    return NULL;
}

/* One line of the index: which tensor is in which shard. */
static mica_status read_place(mica_huggingface *folder, const mica_json_token *key,
                              const mica_json_token *value)
{
    char file[256], name[256];
    if (value->kind != MICA_JSON_STRING || value->length >= sizeof file || key->length >= sizeof name)
        return MICA_HUGGINGFACE_BAD(folder, INDEX, "byte %zu: expected the name of a file", value->offset);
    size_t length = mica_json_decode(file, value);
    if (length == 0 || file[0] == '.' || memchr(file, '/', length) != NULL || memchr(file, 0, length) != NULL)
        return MICA_HUGGINGFACE_BAD(folder, INDEX, "byte %zu: %s is no name of a file in this folder",
                                    value->offset, MICA_QUOTE_N(file, length));
    const mica_safetensors *shard = opened(folder, file, length);
    if (shard == NULL) {
        if (folder->shard_count == MICA_HUGGINGFACE_MOST_SHARDS)
            return MICA_HUGGINGFACE_BAD(folder, INDEX, "more than %u files", MICA_HUGGINGFACE_MOST_SHARDS);
        MICA_TRY(open_shard(folder, file, length));
        shard = folder->shards[folder->shard_count - 1];
    }
    name[mica_json_decode(name, key)] = '\0';
    if (mica_safetensors_find(shard, name) == NULL)
        return MICA_HUGGINGFACE_BAD(folder, INDEX, "byte %zu: tensor %s is not in %s", key->offset,
                                    MICA_QUOTE(name), MICA_QUOTE_N(file, length));
    return MICA_OK;
}

static mica_status next(const mica_huggingface *folder, mica_json *json, mica_json_token *token)
{
    if (mica_json_next(json, token))
        return MICA_OK;
    return MICA_HUGGINGFACE_BAD(folder, INDEX, "byte %zu: %s", json->at, json->error);
}

static mica_status read_index(mica_huggingface *folder, const mica_map *index)
{
    mica_json json = mica_json_over((const char *)index->bytes, index->size);
    mica_json_token token, key;
    bool inside = false;
    if (index->size > MICA_HUGGINGFACE_MOST_INDEX)
        return MICA_HUGGINGFACE_BAD(folder, INDEX, "has %zu bytes, expected at most %zu", index->size,
                                    MICA_HUGGINGFACE_MOST_INDEX);
    for (;;) {
        MICA_TRY(next(folder, &json, &token));
        if (token.kind == MICA_JSON_DONE)
            break;
        if (token.kind != MICA_JSON_KEY)
            continue;
        if (json.depth == 1)
            inside = mica_json_says(&token, "weight_map");
        if (!inside || json.depth != 2)
            continue;
        key = token;
        MICA_TRY(next(folder, &json, &token));
        MICA_TRY(read_place(folder, &key, &token));
    }
    if (folder->shard_count == 0)
        return MICA_HUGGINGFACE_BAD(folder, INDEX, "names no files (%s)", "weight_map");
    return MICA_OK;
}

static mica_status open_shards(mica_huggingface *folder)
{
    path index_path = path_of(folder, INDEX, strlen(INDEX));
    if (mica_file_exists(path_of(folder, WHOLE, strlen(WHOLE)).text) || !mica_file_exists(index_path.text))
        return open_shard(folder, WHOLE, strlen(WHOLE));
    mica_map index;
    MICA_TRY(mica_map_open(folder->ctx, &index, index_path.text));
    mica_status status = read_index(folder, &index);
    mica_map_close(&index);
    return status;
}

/* ---- Folder ---- */

static mica_status open_all(mica_huggingface *folder)
{
    static const char config[] = "config.json", pooling[] = "1_Pooling/config.json";
    MICA_TRY(mica_map_open(folder->ctx, &folder->config, path_of(folder, config, strlen(config)).text));
    MICA_TRY(mica_huggingface_read_config(folder));
    path pooling_path = path_of(folder, pooling, strlen(pooling));
    if (mica_file_exists(pooling_path.text))
        MICA_TRY(mica_map_open(folder->ctx, &folder->pooling, pooling_path.text));
    MICA_TRY(open_shards(folder));
    return mica_huggingface_read_tensors(folder);
}

mica_status mica_huggingface_open(mica_context *ctx, mica_huggingface **out, const char *folder_path)
{
    if (out == NULL || folder_path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "huggingface_open: %s is NULL",
                         out == NULL ? "out" : "folder");
    *out = NULL;
    size_t length = strlen(folder_path);
    if (length >= MICA_HUGGINGFACE_PATH)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "the path %s is too long: %zu bytes",
                         MICA_QUOTE(folder_path), length);
    mica_huggingface *folder = mica_allocate(ctx, sizeof *folder);
    if (folder == NULL)
        return ctx->status;
    memset(folder, 0, sizeof *folder);
    folder->ctx = ctx;
    memcpy(folder->path, folder_path, length + 1);
    name_folder(folder);
    mica_status status = open_all(folder);
    if (status == MICA_OK)
        *out = folder;
    else
        mica_huggingface_close(folder);
    return status;
}

void mica_huggingface_close(mica_huggingface *folder)
{
    if (folder == NULL)
        return;
    mica_context *ctx = folder->ctx;
    mica_release(ctx, folder->made, folder->made_count * sizeof *folder->made);
    mica_release(ctx, (void *)folder->sorted, folder->entry_room * sizeof *folder->sorted);
    mica_release(ctx, folder->entries, folder->entry_room * sizeof *folder->entries);
    for (size_t i = 0; i < folder->shard_count; i++)
        mica_safetensors_close(ctx, folder->shards[i]);
    mica_map_close(&folder->pooling);
    mica_map_close(&folder->config);
    mica_release(ctx, folder, sizeof *folder);
}
