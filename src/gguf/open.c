/* Opening GGUF files: the header is read twice. The first time checks it, and tells how much memory the second one
 * needs: no count in a file is believed before what it counts was seen. The tensors' bytes are not touched. */
#include <string.h>

#include "base/size.h"
#include "base/sort.h"
#include "gguf/cursor.h"
#include "io/quote.h"
#include "tensor/tensor.h"

/* The work of opening. */
typedef struct opening {
    mica_gguf_cursor c;
    uint64_t settings, tensors; /* as the header has them; once it was read, there are as many */
    uint32_t alignment;
    size_t data;     /* where the tensors' bytes begin */
    mica_gguf *file; /* NULL while the header is read for the first time */
} opening;

#define BAD(o, where, format, ...) MICA_GGUF_BAD(&(o)->c, where, format, __VA_ARGS__)

static mica_status read_start(opening *o)
{
    mica_gguf_cursor *c = &o->c;
    uint64_t version;
    MICA_TRY(mica_gguf_need(c, MICA_GGUF_START, "the start of a GGUF file"));
    if (memcmp(c->bytes, "FUGG", 4) == 0)
        return BAD(o, 0, "a big-endian file (%s): only little-endian ones can be read", "\"FUGG\"");
    if (memcmp(c->bytes, MICA_GGUF_MAGIC, 4) != 0)
        return BAD(o, 0, "no GGUF file: it begins with %s, expected \"" MICA_GGUF_MAGIC "\"",
                   MICA_QUOTE_N((const char *)c->bytes, 4));
    c->at = 4;
    MICA_TRY(mica_gguf_take(c, &version, 4, "the version"));
    if ((version & 0xffff) == 0 && version != 0)
        return BAD(
            o, 4,
            "a big-endian file (version %llu with its bytes reversed): only little-endian ones can be read",
            (unsigned long long)(version >> 24 | (version >> 8 & 0xff00)));
    if (version != 2 && version != MICA_GGUF_VERSION)
        return BAD(o, 4, "version %llu, expected 2 or 3", (unsigned long long)version);
    MICA_TRY(mica_gguf_take(c, &o->tensors, 8, "the number of tensors"));
    return mica_gguf_take(c, &o->settings, 8, "the number of settings");
}

/* A key or a name: neither empty nor too long, and a C string can be equal to it. */
static mica_status read_name(opening *o, mica_gguf_text *out, const char *what, size_t longest)
{
    size_t at = o->c.at;
    MICA_TRY(mica_gguf_take_text(&o->c, out, what));
    if (out->length == 0)
        return BAD(o, at, "%s is empty", what);
    if (out->length > longest)
        return BAD(o, at, "%s %s has %zu bytes, expected at most %zu", what,
                   MICA_QUOTE_N(out->bytes, out->length), out->length, longest);
    if (memchr(out->bytes, 0, out->length) != NULL)
        return BAD(o, at, "%s %s holds a NUL", what, MICA_QUOTE_N(out->bytes, out->length));
    return MICA_OK;
}

static bool text_is(mica_gguf_text text, const char *string)
{
    return text.length == strlen(string) && memcmp(text.bytes, string, text.length) == 0;
}

/* ---- Settings ---- */

static mica_status read_alignment(opening *o, const mica_gguf_value *value, size_t at)
{
    if (value->kind != MICA_GGUF_U32)
        return BAD(o, at, MICA_GGUF_ALIGNMENT_KEY " is of kind %s, expected u32",
                   mica_gguf_kind_name(value->kind));
    uint64_t alignment = value->u;
    if (alignment < MICA_GGUF_LEAST_ALIGNMENT || alignment > MICA_GGUF_MOST_ALIGNMENT ||
        (alignment & (alignment - 1)) != 0)
        return BAD(o, at, MICA_GGUF_ALIGNMENT_KEY " is %llu, expected a power of two from %u to %u",
                   (unsigned long long)alignment, (unsigned)MICA_GGUF_LEAST_ALIGNMENT,
                   (unsigned)MICA_GGUF_MOST_ALIGNMENT);
    o->alignment = (uint32_t)alignment;
    return MICA_OK;
}

static mica_status read_settings(opening *o)
{
    for (uint64_t i = 0; i < o->settings; i++) {
        mica_gguf_pair pair;
        MICA_TRY(read_name(o, &pair.key, "the key of a setting", MICA_GGUF_LONGEST_KEY));
        size_t at = o->c.at;
        MICA_TRY(mica_gguf_take_value(&o->c, &pair.value, &pair.key));
        if (text_is(pair.key, MICA_GGUF_ALIGNMENT_KEY))
            MICA_TRY(read_alignment(o, &pair.value, at));
        if (o->file != NULL)
            o->file->settings[i] = pair;
    }
    return MICA_OK;
}

/* ---- Tensors ---- */

static mica_status read_sizes(opening *o, mica_gguf_entry *entry, const char *name)
{
    uint64_t rank, sizes[MICA_GGUF_MOST_RANK], count = 1;
    size_t at = o->c.at;
    MICA_TRY(mica_gguf_take(&o->c, &rank, 4, "the number of a tensor's dimensions"));
    if (rank == 0 || rank > MICA_GGUF_MOST_RANK)
        return BAD(o, at, "tensor %s has %llu dimensions, expected 1 to %d", name, (unsigned long long)rank,
                   MICA_GGUF_MOST_RANK);
    for (uint64_t k = 0; k < rank; k++) {
        at = o->c.at;
        MICA_TRY(mica_gguf_take(&o->c, &sizes[k], 8, "the size of a dimension"));
        if (sizes[k] == 0)
            return BAD(o, at, "tensor %s: dimension %llu is 0", name, (unsigned long long)k);
        if (sizes[k] > PTRDIFF_MAX / count)
            return BAD(o, at, "tensor %s has too many elements for memory", name);
        count *= sizes[k];
    }
    entry->tensor.rank = (int)rank;
    for (uint64_t k = 0; k < rank; k++) /* the file's first is our last */
        entry->tensor.dim[rank - 1 - k] = (mica_index)sizes[k];
    return MICA_OK;
}

static mica_status read_type(opening *o, mica_gguf_entry *entry, const char *name)
{
    uint64_t type;
    size_t at = o->c.at;
    mica_tensor *t = &entry->tensor;
    MICA_TRY(mica_gguf_take(&o->c, &type, 4, "the type of a tensor"));
    const char *known = mica_gguf_type_name((uint32_t)type);
    t->dtype = mica_gguf_dtype((uint32_t)type);
    if (t->dtype == MICA_DTYPE_COUNT)
        return BAD(o, at, "tensor %s has type %llu (%s), which is not supported", name,
                   (unsigned long long)type, known != NULL ? known : "unknown");
    mica_index row = t->dim[t->rank - 1], block = (mica_index)mica_dtype_block(t->dtype);
    if (row % block != 0)
        return BAD(o, at, "tensor %s: its rows have %lld values, expected a multiple of %lld (%s)", name,
                   (long long)row, (long long)block, known);
    size_t blocks = mica_tensor_count(t) / (size_t)block;
    if (blocks > PTRDIFF_MAX / mica_dtype_bytes(t->dtype))
        return BAD(o, at, "tensor %s has too many elements for memory", name);
    mica_tensor_set_strides(t);
    return MICA_OK;
}

/* Where it lies: checked the second time, when it is known where the tensors' bytes begin. */
static mica_status read_offset(opening *o, mica_gguf_entry *entry, const char *name)
{
    uint64_t offset;
    size_t at = o->c.at, bytes = mica_tensor_bytes(&entry->tensor);
    MICA_TRY(mica_gguf_take(&o->c, &offset, 8, "the offset of a tensor"));
    if (o->file == NULL)
        return MICA_OK;
    if (offset % o->alignment != 0)
        return BAD(o, at, "tensor %s: its offset %llu is not a multiple of the alignment %u", name,
                   (unsigned long long)offset, (unsigned)o->alignment);
    size_t room = o->data < o->c.size ? o->c.size - o->data : 0;
    if (offset > room || bytes > room - offset)
        return BAD(o, at, "tensor %s takes %zu bytes from byte %llu of the data on, but the data have %zu",
                   name, bytes, (unsigned long long)offset, room);
    entry->tensor.data = (void *)(o->c.bytes + o->data + offset); /* read-only all the same */
    return MICA_OK;
}

static mica_status read_tensors(opening *o)
{
    for (uint64_t i = 0; i < o->tensors; i++) {
        mica_gguf_entry entry = {0};
        MICA_TRY(read_name(o, &entry.name, "the name of a tensor", MICA_GGUF_LONGEST_NAME));
        mica_quote name = mica_quote_of(entry.name.bytes, entry.name.length);
        MICA_TRY(read_sizes(o, &entry, name.text));
        MICA_TRY(read_type(o, &entry, name.text));
        MICA_TRY(read_offset(o, &entry, name.text));
        if (o->file != NULL)
            o->file->tensors[i] = entry;
    }
    return MICA_OK;
}

/* ---- All of them together ---- */

int mica_gguf_compare(mica_gguf_text a, mica_gguf_text b)
{
    int order = memcmp(a.bytes, b.bytes, mica_least(a.length, b.length));
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare_keys(const void *a, const void *b)
{
    const mica_gguf_pair *x = *(const void *const *)a, *y = *(const void *const *)b;
    return mica_gguf_compare(x->key, y->key);
}

static int compare_names(const void *a, const void *b)
{
    const mica_gguf_entry *x = *(const void *const *)a, *y = *(const void *const *)b;
    return mica_gguf_compare(x->name, y->name);
}

static int compare_places(const void *a, const void *b)
{
    const mica_gguf_entry *x = *(const void *const *)a, *y = *(const void *const *)b;
    const char *p = x->tensor.data, *q = y->tensor.data;
    return (p > q) - (p < q);
}

/* Sorts by name. Two of the same name are an error. */
static mica_status sort_names(opening *o, const void **sorted, size_t count, mica_compare_fn *compare,
                              const char *what)
{
    mica_sort(sorted, count, sizeof *sorted, compare);
    for (size_t i = 1; i < count; i++) {
        if (compare(&sorted[i - 1], &sorted[i]) != 0)
            continue;
        const mica_gguf_text *a = sorted[i - 1], *b = sorted[i]; /* what both kinds begin with */
        const char *later = a->bytes > b->bytes ? a->bytes : b->bytes;
        return BAD(o, (const unsigned char *)later - o->c.bytes, "duplicate %s %s", what,
                   MICA_QUOTE_N(b->bytes, b->length));
    }
    return MICA_OK;
}

/* Leaves them sorted by place. */
static mica_status check_overlap(opening *o)
{
    mica_gguf *file = o->file;
    mica_sort(file->sorted_tensors, file->tensor_count, sizeof *file->sorted_tensors, compare_places);
    for (size_t i = 1; i < file->tensor_count; i++) {
        const mica_gguf_entry *before = file->sorted_tensors[i - 1], *entry = file->sorted_tensors[i];
        const char *end = (const char *)before->tensor.data + mica_tensor_bytes(&before->tensor);
        if (end > (const char *)entry->tensor.data)
            return BAD(o, (const unsigned char *)entry->tensor.data - o->c.bytes,
                       "tensor %s begins here, within tensor %s",
                       MICA_QUOTE_N(entry->name.bytes, entry->name.length),
                       MICA_QUOTE_N(before->name.bytes, before->name.length));
    }
    return MICA_OK;
}

static mica_status sort_all(opening *o)
{
    mica_gguf *file = o->file;
    for (size_t i = 0; i < file->setting_count; i++)
        file->sorted_settings[i] = &file->settings[i];
    for (size_t i = 0; i < file->tensor_count; i++)
        file->sorted_tensors[i] = &file->tensors[i];
    MICA_TRY(sort_names(o, file->sorted_settings, file->setting_count, compare_keys, "setting"));
    MICA_TRY(sort_names(o, file->sorted_tensors, file->tensor_count, compare_names, "tensor"));
    MICA_TRY(check_overlap(o));
    mica_sort(file->sorted_tensors, file->tensor_count, sizeof *file->sorted_tensors, compare_names);
    return MICA_OK;
}

/* ---- Memory ---- */

/* One block: [ the handle | settings | tensors | both sorted | name ]. The header was read once, so the counts are
 * far from any overflow. */
static mica_status make_handle(opening *o)
{
    size_t settings = (size_t)o->settings, tensors = (size_t)o->tensors, name_bytes = strlen(o->c.name) + 1;
    size_t each = sizeof(mica_gguf_pair) + sizeof(mica_gguf_entry) + sizeof(void *);
    if (settings + tensors > (SIZE_MAX / 2 - name_bytes) / each) /* where addresses have 32 bits */
        return mica_fail(o->c.ctx, MICA_ERR_MEMORY,
                         "%s: %zu settings and %zu tensors are more than memory holds", MICA_QUOTE(o->c.name),
                         settings, tensors);
    size_t settings_at = mica_align_up(sizeof(mica_gguf));
    size_t tensors_at = settings_at + settings * sizeof(mica_gguf_pair);
    size_t sorted_at = tensors_at + tensors * sizeof(mica_gguf_entry);
    size_t name_at = sorted_at + (settings + tensors) * sizeof(void *);
    char *block = mica_allocate(o->c.ctx, name_at + name_bytes);
    if (block == NULL)
        return o->c.ctx->status;
    o->file = (mica_gguf *)(void *)block;
    *o->file = (mica_gguf){
        .ctx = o->c.ctx,
        .name = memcpy(block + name_at, o->c.name, name_bytes),
        .settings = (mica_gguf_pair *)(void *)(block + settings_at),
        .sorted_settings = (const void **)(void *)(block + sorted_at),
        .setting_count = settings,
        .tensors = (mica_gguf_entry *)(void *)(block + tensors_at),
        .sorted_tensors = (const void **)(void *)(block + sorted_at) + settings,
        .tensor_count = tensors,
        .alignment = o->alignment,
        .own_bytes = name_at + name_bytes,
    };
    return MICA_OK;
}

static mica_status read_header(opening *o)
{
    o->c.at = 0;
    o->alignment = MICA_GGUF_ALIGNMENT;
    MICA_TRY(read_start(o));
    MICA_TRY(read_settings(o));
    return read_tensors(o);
}

static mica_status read_all(opening *o)
{
    MICA_TRY(read_header(o));
    if (!MICA_LITTLE_ENDIAN && o->tensors > 0)
        return mica_fail(
            o->c.ctx, MICA_ERR_FORMAT,
            "%s: its tensors are little-endian, this machine is not, and they are read where they lie",
            MICA_QUOTE(o->c.name));
    o->data = mica_round_up(o->c.at, o->alignment);
    MICA_TRY(make_handle(o));
    MICA_TRY(read_header(o));
    return sort_all(o);
}

mica_status mica_gguf_over(mica_context *ctx, mica_gguf **out, const void *bytes, size_t size,
                           const char *name)
{
    if (out == NULL || name == NULL || (bytes == NULL && size > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "gguf_over: %s is NULL",
                         out == NULL    ? "out"
                         : name == NULL ? "name"
                                        : "bytes");
    *out = NULL;
    if ((uintptr_t)bytes % MICA_GGUF_LEAST_ALIGNMENT != 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "gguf_over: the bytes of %s are not aligned to %u",
                         MICA_QUOTE(name), MICA_GGUF_LEAST_ALIGNMENT);
    opening o = {.c = {ctx, name, bytes, size, 0}};
    mica_status status = read_all(&o);
    if (status == MICA_OK)
        *out = o.file;
    else
        mica_gguf_close(o.file);
    return status;
}

mica_status mica_gguf_open(mica_context *ctx, mica_gguf **out, const char *path)
{
    if (out == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "gguf_open: %s is NULL", out == NULL ? "out" : "path");
    *out = NULL;
    mica_map map;
    MICA_TRY(mica_map_open(ctx, &map, path));
    mica_status status = mica_gguf_over(ctx, out, map.bytes, map.size, path);
    if (status == MICA_OK)
        (*out)->map = map;
    else
        mica_map_close(&map);
    return status;
}

void mica_gguf_close(mica_gguf *file)
{
    if (file == NULL)
        return;
    mica_map_close(&file->map);
    mica_release(file->ctx, file, file->own_bytes);
}
