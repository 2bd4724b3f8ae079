/* Opening safetensors: nothing in a header is trusted before it is checked. */
#include "io/safetensors.h"

#include <string.h>

#include "io/file.h"
#include "io/json.h"
#include "io/quote.h"
#include "io/safetensors_file.h"
#include "base/sort.h"
#include "tensor/tensor.h"

/* Every dtype a file may have: those that are not ours can be looked at but not read. */
typedef struct file_dtype {
    const char *name;
    unsigned bytes;
    bool readable;
    mica_dtype dtype;
} file_dtype;

static const file_dtype file_dtypes[] = {
#define FILE_DTYPE(name, code) {name, 0, true, code},
    MICA_SAFETENSORS_DTYPES(FILE_DTYPE)
#undef FILE_DTYPE
        {"C64", 8, false, MICA_U8},
};
#define FILE_DTYPES (sizeof file_dtypes / sizeof file_dtypes[0])

/* The work of opening. */
typedef struct opening {
    mica_context *ctx;
    mica_safetensors *out;
    char *header;
    size_t header_bytes;
    mica_file *file;
    mica_json json;
} opening;

/* "format error: "x.safetensors": byte 123: ..." for a place in the header. */
#define BAD(o, at, format, ...)                                                                \
    mica_fail((o)->ctx, MICA_ERR_FORMAT, "%s: byte %zu: " format, MICA_QUOTE((o)->file->path), \
              (size_t)(at) + MICA_SAFETENSORS_PREFIX, __VA_ARGS__)

static mica_status next(opening *o, mica_json_token *token)
{
    if (mica_json_next(&o->json, token))
        return MICA_OK;
    return BAD(o, o->json.at, "%s", o->json.error);
}

static mica_status next_of_kind(opening *o, mica_json_token *token, mica_json_kind kind, const char *what,
                                const char *name)
{
    MICA_TRY(next(o, token));
    if (token->kind == kind)
        return MICA_OK;
    return BAD(o, token->offset, "%s of %s is %s, expected %s", what, MICA_QUOTE(name),
               mica_json_kind_name(token->kind), mica_json_kind_name(kind));
}

/* ---- First look: is it JSON, and how much is there? ---- */

static mica_status count(opening *o, size_t *tensors, size_t *metadata)
{
    mica_json_token token;
    bool in_metadata = false;
    *tensors = *metadata = 0;
    o->json = mica_json_over(o->header, o->header_bytes);
    if (o->header_bytes == 0 || o->header[0] != '{')
        return BAD(o, 0, "the header does not start with %s", "{");
    for (;;) {
        MICA_TRY(next(o, &token));
        if (token.kind == MICA_JSON_DONE)
            return MICA_OK;
        if (token.kind != MICA_JSON_KEY)
            continue;
        if (o->json.depth == 1) {
            in_metadata = mica_json_says(&token, MICA_SAFETENSORS_METADATA);
            *tensors += !in_metadata;
        } else if (o->json.depth == 2 && in_metadata) {
            ++*metadata;
        }
    }
}

/* ---- Second look: the entries ---- */

/* A key or string becomes a C string where it stands in the header. */
static mica_status own_string(opening *o, const char **out, const mica_json_token *token)
{
    char *text = o->header + (token->text - o->header);
    size_t length = mica_json_decode(text, token);
    if (memchr(text, 0, length) != NULL)
        return BAD(o, token->offset, "%s holds a NUL", MICA_QUOTE_N(text, length));
    text[length] = '\0';
    *out = text;
    return MICA_OK;
}

static mica_status read_metadata(opening *o)
{
    mica_json_token token;
    MICA_TRY(next_of_kind(o, &token, MICA_JSON_OBJECT, "the value", MICA_SAFETENSORS_METADATA));
    for (;;) {
        MICA_TRY(next(o, &token));
        if (token.kind == MICA_JSON_OBJECT_END)
            return MICA_OK;
        mica_metadata *m = &o->out->metadata[o->out->metadata_count++];
        MICA_TRY(own_string(o, &m->key, &token));
        MICA_TRY(next_of_kind(o, &token, MICA_JSON_STRING, "the metadata", m->key));
        MICA_TRY(own_string(o, &m->value, &token));
    }
}

static mica_status read_dtype(opening *o, mica_safetensors_entry *entry)
{
    mica_json_token token;
    MICA_TRY(next_of_kind(o, &token, MICA_JSON_STRING, "dtype", entry->name));
    for (size_t i = 0; i < FILE_DTYPES; i++) {
        if (mica_json_says(&token, file_dtypes[i].name)) {
            entry->dtype_name = file_dtypes[i].name;
            entry->readable = file_dtypes[i].readable;
            entry->dtype = file_dtypes[i].dtype;
            return MICA_OK;
        }
    }
    return BAD(o, token.offset, "tensor %s has unknown dtype %s", MICA_QUOTE(entry->name),
               MICA_QUOTE_N(token.text, token.length));
}

static mica_status read_shape(opening *o, mica_safetensors_entry *entry)
{
    mica_json_token token;
    MICA_TRY(next_of_kind(o, &token, MICA_JSON_ARRAY, "shape", entry->name));
    for (entry->rank = 0;; entry->rank++) {
        uint64_t size;
        MICA_TRY(next(o, &token));
        if (token.kind == MICA_JSON_ARRAY_END)
            return MICA_OK;
        if (!mica_json_unsigned(&size, &token) || size > PTRDIFF_MAX)
            return BAD(o, token.offset, "tensor %s: invalid size in the shape", MICA_QUOTE(entry->name));
        if (entry->rank == MICA_MAX_RANK)
            return BAD(o, token.offset, "tensor %s has more than %d dimensions", MICA_QUOTE(entry->name),
                       MICA_MAX_RANK);
        entry->dim[entry->rank] = (mica_index)size;
    }
}

/* Leaves begin and end, in bytes of the data, as offset in the file and bytes. */
static mica_status read_offsets(opening *o, mica_safetensors_entry *entry)
{
    uint64_t start = MICA_SAFETENSORS_PREFIX + o->header_bytes, ends[2] = {0, 0};
    mica_json_token token;
    MICA_TRY(next_of_kind(o, &token, MICA_JSON_ARRAY, "data_offsets", entry->name));
    size_t at = token.offset;
    for (int i = 0; i < 2; i++) {
        MICA_TRY(next(o, &token));
        if (!mica_json_unsigned(&ends[i], &token))
            return BAD(o, token.offset, "tensor %s: data_offsets must be two integers",
                       MICA_QUOTE(entry->name));
    }
    MICA_TRY(next_of_kind(o, &token, MICA_JSON_ARRAY_END, "what follows the data_offsets", entry->name));
    if (ends[0] > ends[1] || ends[1] > o->file->bytes - start)
        return BAD(o, at, "tensor %s: data_offsets [%llu, %llu] exceed the %llu bytes of data",
                   MICA_QUOTE(entry->name), (unsigned long long)ends[0], (unsigned long long)ends[1],
                   (unsigned long long)(o->file->bytes - start));
    entry->offset = start + ends[0];
    entry->bytes = ends[1] - ends[0];
    return MICA_OK;
}

static unsigned element_bytes(const mica_safetensors_entry *entry)
{
    if (entry->readable)
        return (unsigned)mica_dtype_bytes(entry->dtype);
    for (size_t i = 0; i < FILE_DTYPES; i++)
        if (strcmp(entry->dtype_name, file_dtypes[i].name) == 0)
            return file_dtypes[i].bytes;
    return 0;
}

/* Shape times dtype is as many bytes as the offsets span. */
static mica_status check_bytes(opening *o, const mica_safetensors_entry *entry, size_t at)
{
    uint64_t bytes = element_bytes(entry);
    bool empty = false;
    for (int k = 0; k < entry->rank; k++) {
        uint64_t size = (uint64_t)entry->dim[k];
        empty = empty || size == 0;
        if (size > 0 && bytes > (uint64_t)PTRDIFF_MAX / size)
            return BAD(o, at, "tensor %s %s of %s is too large for memory", MICA_QUOTE(entry->name),
                       mica_shape_text_of(entry->rank, entry->dim).text, entry->dtype_name);
        bytes *= size > 0 ? size : 1;
    }
    bytes = empty ? 0 : bytes;
    if (bytes != entry->bytes)
        return BAD(o, at, "tensor %s %s of %s takes %llu bytes, its data_offsets give %llu",
                   MICA_QUOTE(entry->name), mica_shape_text_of(entry->rank, entry->dim).text,
                   entry->dtype_name, (unsigned long long)bytes, (unsigned long long)entry->bytes);
    return MICA_OK;
}

typedef mica_status field_fn(opening *o, mica_safetensors_entry *entry);
static const struct field {
    const char *name;
    field_fn *read;
} fields[] = {{"dtype", read_dtype}, {"shape", read_shape}, {"data_offsets", read_offsets}};
enum { FIELDS = 3 };

static mica_status read_entry(opening *o, const mica_json_token *key)
{
    mica_safetensors_entry *entry = &o->out->entries[o->out->count++];
    mica_json_token token;
    unsigned seen = 0;
    memset(entry, 0, sizeof *entry);
    MICA_TRY(own_string(o, &entry->name, key));
    MICA_TRY(next_of_kind(o, &token, MICA_JSON_OBJECT, "the value", entry->name));
    for (;;) {
        MICA_TRY(next(o, &token));
        if (token.kind == MICA_JSON_OBJECT_END)
            break;
        int f = 0;
        while (f < FIELDS && !mica_json_says(&token, fields[f].name))
            f++;
        if (f == FIELDS || (seen & 1u << f))
            return BAD(o, token.offset, "tensor %s has %s %s", MICA_QUOTE(entry->name),
                       f == FIELDS ? "an unknown field" : "a duplicate field",
                       MICA_QUOTE_N(token.text, token.length));
        seen |= 1u << f;
        MICA_TRY(fields[f].read(o, entry));
    }
    for (int f = 0; f < FIELDS; f++)
        if (!(seen & 1u << f))
            return BAD(o, token.offset, "tensor %s has no %s", MICA_QUOTE(entry->name), fields[f].name);
    return check_bytes(o, entry, key->offset);
}

static mica_status read_header(opening *o)
{
    mica_json_token token;
    bool seen_metadata = false;
    o->json = mica_json_over(o->header, o->header_bytes);
    MICA_TRY(next(o, &token));
    for (;;) {
        MICA_TRY(next(o, &token));
        if (token.kind == MICA_JSON_OBJECT_END)
            return MICA_OK;
        if (!mica_json_says(&token, MICA_SAFETENSORS_METADATA)) {
            MICA_TRY(read_entry(o, &token));
            continue;
        }
        if (seen_metadata)
            return BAD(o, token.offset, "%s is duplicated", MICA_SAFETENSORS_METADATA);
        seen_metadata = true;
        MICA_TRY(read_metadata(o));
    }
}

/* ---- All of them together ---- */

static int compare_offsets(const void *a, const void *b)
{
    const mica_safetensors_entry *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static int compare_names(const void *a, const void *b)
{
    const mica_safetensors_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int compare_keys(const void *a, const void *b)
{
    const mica_metadata *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* Sorted by offset, each begins where the one before ends, and the last ends with the file. */
static mica_status check_gapless(opening *o)
{
    mica_safetensors *out = o->out;
    uint64_t end = MICA_SAFETENSORS_PREFIX + o->header_bytes;
    mica_sort(out->entries, out->count, sizeof *out->entries, compare_offsets);
    for (size_t i = 0; i < out->count; i++) {
        const mica_safetensors_entry *entry = &out->entries[i];
        if (entry->offset != end)
            return mica_fail(
                o->ctx, MICA_ERR_FORMAT, "%s: byte %llu: tensor %s starts here, %s byte %llu",
                MICA_QUOTE(o->file->path), (unsigned long long)entry->offset, MICA_QUOTE(entry->name),
                entry->offset > end ? "which leaves a hole after" : "but the previous tensor ends at",
                (unsigned long long)end);
        end += entry->bytes;
    }
    if (end != o->file->bytes)
        return mica_fail(
            o->ctx, MICA_ERR_FORMAT, "%s: byte %llu: the tensors end here, but the file has %llu",
            MICA_QUOTE(o->file->path), (unsigned long long)end, (unsigned long long)o->file->bytes);
    return MICA_OK;
}

/* Where the later of two equal names stands in the header, its quote included. */
static size_t later(const opening *o, const char *a, const char *b)
{
    return (size_t)((a > b ? a : b) - o->header) - 1;
}

static mica_status check_names(opening *o)
{
    mica_safetensors *out = o->out;
    mica_sort(out->entries, out->count, sizeof *out->entries, compare_names);
    for (size_t i = 1; i < out->count; i++) {
        const char *before = out->entries[i - 1].name, *name = out->entries[i].name;
        if (strcmp(before, name) == 0)
            return BAD(o, later(o, before, name), "duplicate tensor %s", MICA_QUOTE(name));
    }
    mica_sort(out->metadata, out->metadata_count, sizeof *out->metadata, compare_keys);
    for (size_t i = 1; i < out->metadata_count; i++) {
        const char *before = out->metadata[i - 1].key, *key = out->metadata[i].key;
        if (strcmp(before, key) == 0)
            return BAD(o, later(o, before, key), "duplicate metadata key %s", MICA_QUOTE(key));
    }
    return MICA_OK;
}

/* ---- Memory ---- */

static mica_status load_header(opening *o)
{
    unsigned char prefix[MICA_SAFETENSORS_PREFIX];
    uint64_t length = 0;
    if (o->file->bytes < sizeof prefix)
        return mica_fail(o->ctx, MICA_ERR_FORMAT,
                         "%s: byte 0: the header length takes 8 bytes, the file has %llu",
                         MICA_QUOTE(o->file->path), (unsigned long long)o->file->bytes);
    MICA_TRY(mica_file_read(o->ctx, prefix, o->file, sizeof prefix, 0));
    for (int i = 0; i < MICA_SAFETENSORS_PREFIX; i++)
        length |= (uint64_t)prefix[i] << (8 * i);
    uint64_t most = o->file->bytes - sizeof prefix;
    if (most > MICA_SAFETENSORS_MOST)
        most = MICA_SAFETENSORS_MOST;
    if (length > most)
        return mica_fail(o->ctx, MICA_ERR_FORMAT,
                         "%s: byte 0: the header has %llu bytes, expected at most %llu",
                         MICA_QUOTE(o->file->path), (unsigned long long)length, (unsigned long long)most);
    o->header = mica_allocate(o->ctx, (size_t)length + 1);
    if (o->header == NULL)
        return o->ctx->status;
    o->header_bytes = (size_t)length;
    return mica_file_read(o->ctx, o->header, o->file, o->header_bytes, sizeof prefix);
}

/* One block: [ the handle | entries | metadata | path ] */
static mica_status make_handle(opening *o, size_t tensors, size_t metadata)
{
    size_t path_bytes = strlen(o->file->path) + 1;
    size_t entries_at = mica_align_up(sizeof(mica_safetensors));
    size_t metadata_at = mica_align_up(entries_at + tensors * sizeof(mica_safetensors_entry));
    size_t path_at = metadata_at + metadata * sizeof(mica_metadata);
    char *block = mica_allocate(o->ctx, path_at + path_bytes);
    if (block == NULL)
        return o->ctx->status;
    o->out = (mica_safetensors *)(void *)block;
    *o->out = (mica_safetensors){
        .file = *o->file,
        .entries = (mica_safetensors_entry *)(void *)(block + entries_at),
        .metadata = (mica_metadata *)(void *)(block + metadata_at),
        .header = o->header,
        .header_bytes = o->header_bytes,
        .own_bytes = path_at + path_bytes,
    };
    memcpy(block + path_at, o->file->path, path_bytes);
    o->out->file.path = block + path_at;
    return MICA_OK;
}

/* Closes the file in any case but success. */
static mica_status open_file(mica_context *ctx, mica_safetensors **out, mica_file *file)
{
    opening o = {.ctx = ctx, .file = file};
    size_t tensors = 0, metadata = 0;
    mica_status status = load_header(&o);
    if (status == MICA_OK)
        status = count(&o, &tensors, &metadata);
    if (status == MICA_OK)
        status = make_handle(&o, tensors, metadata);
    if (status == MICA_OK)
        status = read_header(&o);
    if (status == MICA_OK)
        status = check_names(&o);
    if (status == MICA_OK)
        status = check_gapless(&o);
    if (status == MICA_OK) {
        mica_sort(o.out->entries, o.out->count, sizeof *o.out->entries, compare_names);
        *out = o.out;
        return MICA_OK;
    }
    if (o.out != NULL)
        mica_release(ctx, o.out, o.out->own_bytes);
    mica_release(ctx, o.header, o.header_bytes + 1);
    mica_file_close(file);
    return status;
}

mica_status mica_safetensors_open(mica_context *ctx, mica_safetensors **out, const char *path)
{
    if (out == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "safetensors_open: %s is NULL",
                         out == NULL ? "out" : "path");
    *out = NULL;
    mica_file file;
    MICA_TRY(mica_file_open(ctx, &file, path));
    return open_file(ctx, out, &file);
}

mica_status mica_safetensors_open_memory(mica_context *ctx, mica_safetensors **out, const void *bytes,
                                         size_t count_of_bytes)
{
    if (out == NULL || (bytes == NULL && count_of_bytes > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "safetensors_open_memory: %s is NULL",
                         out == NULL ? "out" : "bytes");
    *out = NULL;
    mica_file file = mica_file_over(bytes, count_of_bytes, "memory");
    return open_file(ctx, out, &file);
}

mica_status mica_safetensors_map(mica_context *ctx, mica_safetensors **out, const char *path)
{
    if (out == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "safetensors_map: %s is NULL", out == NULL ? "out" : "path");
    *out = NULL;
    mica_map map;
    MICA_TRY(mica_map_open(ctx, &map, path));
    mica_file file = mica_file_over(map.bytes, map.size, path);
    mica_status status = open_file(ctx, out, &file);
    if (status == MICA_OK)
        (*out)->map = map;
    else
        mica_map_close(&map);
    return status;
}

void mica_safetensors_close(mica_context *ctx, mica_safetensors *file)
{
    if (file == NULL)
        return;
    mica_file_close(&file->file);
    mica_map_close(&file->map);
    mica_release(ctx, file->header, file->header_bytes + 1);
    mica_release(ctx, file, file->own_bytes);
}
