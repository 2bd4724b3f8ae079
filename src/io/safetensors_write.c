/* Writing safetensors: the same code produces the header twice, first to learn its length. */
#include "base/format.h"
#include "io/safetensors.h"

#include <string.h>

#include "io/file.h"
#include "io/quote.h"
#include "base/sort.h"
#include "io/utf8.h"
#include "ops/check.h"
#include "ops/move.h"
#include "kernel/kernels.h"

static const char op[] = "safetensors_write";

/* NULL for a dtype that the format does not have. */
static const char *name_in_file(mica_dtype dtype)
{
    switch (dtype) {
#define NAME_CASE(name, code) \
    case code:                \
        return name;
        MICA_SAFETENSORS_DTYPES(NAME_CASE)
#undef NAME_CASE
    default:
        return NULL;
    }
}

/* ---- Arguments ---- */

/* `of`: whose text it is; NULL: its own. */
static mica_status check_text(mica_context *ctx, const char *what, const char *of, const char *text)
{
    if (text == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: a %s is NULL", op, what);
    uint32_t code;
    size_t length = strlen(text);
    for (size_t at = 0, size; at < length; at += size) {
        size = mica_utf8_decode(&code, text + at, length - at);
        if (size == 0)
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the %s %s is not valid UTF-8 at byte %zu", op, what,
                             MICA_QUOTE(of != NULL ? of : text), at);
    }
    return MICA_OK;
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* sorted[count] is filled already. */
static mica_status check_unique(mica_context *ctx, const char *what, const char **sorted, size_t count)
{
    mica_sort(sorted, count, sizeof *sorted, compare_strings);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: two %ss are called %s", op, what,
                             MICA_QUOTE(sorted[i]));
    return MICA_OK;
}

static mica_status check_tensor(mica_context *ctx, const mica_named_tensor *named)
{
    MICA_TRY(check_text(ctx, "name", NULL, named->name));
    if (strcmp(named->name, MICA_SAFETENSORS_METADATA) == 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the name %s is reserved by the format", op,
                         MICA_QUOTE(named->name));
    MICA_TRY(mica_tensor_check(ctx, op, MICA_QUOTE(named->name), &named->tensor));
    if (name_in_file(named->tensor.dtype) == NULL)
        return mica_fail(ctx, MICA_ERR_DTYPE, "%s: %s %s is %s, which the format does not support", op,
                         MICA_QUOTE(named->name), MICA_SHAPE(&named->tensor),
                         mica_dtype_name(named->tensor.dtype));
    if (named->tensor.data == NULL && !ctx->measuring && mica_tensor_count(&named->tensor) > 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s %s has no data (NULL)", op, MICA_QUOTE(named->name),
                         MICA_SHAPE(&named->tensor));
    return MICA_OK;
}

static mica_status check_arguments(mica_context *ctx, const char *path, const mica_named_tensor *tensors,
                                   size_t count, const mica_safetensors_write_opts *opts)
{
    if (path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: path is NULL", op);
    if (tensors == NULL && count > 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: tensors is NULL, count is %zu", op, count);
    if (opts->metadata == NULL && opts->metadata_count > 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: metadata is NULL, metadata_count is %zu", op,
                         opts->metadata_count);
    for (size_t i = 0; i < count; i++)
        MICA_TRY(check_tensor(ctx, &tensors[i]));
    for (size_t i = 0; i < opts->metadata_count; i++) {
        MICA_TRY(check_text(ctx, "metadata key", NULL, opts->metadata[i].key));
        MICA_TRY(check_text(ctx, "metadata value of", opts->metadata[i].key, opts->metadata[i].value));
    }
    return MICA_OK;
}

static mica_status check_names(mica_context *ctx, const mica_named_tensor *tensors, size_t count,
                               const mica_safetensors_write_opts *opts, const char **sorted)
{
    for (size_t i = 0; i < count; i++)
        sorted[i] = tensors[i].name;
    MICA_TRY(check_unique(ctx, "tensor", sorted, count));
    for (size_t i = 0; i < opts->metadata_count; i++)
        sorted[i] = opts->metadata[i].key;
    return check_unique(ctx, "metadata key", sorted, opts->metadata_count);
}

/* ---- Header ---- */

/* Where the header goes. The first failure stays. */
typedef struct sink {
    mica_context *ctx;
    mica_new_file *file; /* NULL: it is only counted */
    uint64_t bytes;
    mica_status status;
} sink;

static void put(sink *out, const char *text, size_t length)
{
    out->bytes += length;
    if (out->file != NULL && out->status == MICA_OK)
        out->status = mica_new_file_write(out->ctx, out->file, text, length);
}

static void put_text(sink *out, const char *text) { put(out, text, strlen(text)); }

static void put_number(sink *out, uint64_t number)
{
    char text[24];
    int length = mica_format(text, sizeof text, "%llu", (unsigned long long)number);
    put(out, text, (size_t)length);
}

static void put_string(sink *out, const char *text)
{
    put_text(out, "\"");
    for (const char *start = text;;) {
        const char *at = start;
        while ((unsigned char)*at >= 0x20 && *at != '"' && *at != '\\')
            at++;
        put(out, start, (size_t)(at - start));
        if (*at == '\0')
            break;
        char escaped[8];
        int length = mica_format(escaped, sizeof escaped, "\\u%04x", (unsigned char)*at);
        put(out, escaped, (size_t)length);
        start = at + 1;
    }
    put_text(out, "\"");
}

static void put_entry(sink *out, const mica_named_tensor *named, uint64_t *offset)
{
    const mica_tensor *t = &named->tensor;
    put_string(out, named->name);
    put_text(out, ":{\"dtype\":\"");
    put_text(out, name_in_file(t->dtype));
    put_text(out, "\",\"shape\":[");
    for (int k = 0; k < t->rank; k++) {
        put_text(out, k > 0 ? "," : "");
        put_number(out, (uint64_t)t->dim[k]);
    }
    put_text(out, "],\"data_offsets\":[");
    put_number(out, *offset);
    *offset += mica_tensor_bytes(t);
    put_text(out, ",");
    put_number(out, *offset);
    put_text(out, "]}");
}

/* Larger elements come first: then every tensor begins at a multiple of its elements' size. */
static const size_t sizes[] = {8, 4, 2, 1};
#define SIZES (sizeof sizes / sizeof sizes[0])

static void put_header(sink *out, const mica_named_tensor *tensors, size_t count,
                       const mica_safetensors_write_opts *opts)
{
    const char *separator = "";
    put_text(out, "{");
    if (opts->metadata_count > 0) {
        put_text(out, "\"" MICA_SAFETENSORS_METADATA "\":{");
        for (size_t i = 0; i < opts->metadata_count; i++) {
            put_text(out, i > 0 ? "," : "");
            put_string(out, opts->metadata[i].key);
            put_text(out, ":");
            put_string(out, opts->metadata[i].value);
        }
        put_text(out, "}");
        separator = ",";
    }
    uint64_t offset = 0;
    for (size_t s = 0; s < SIZES; s++) {
        for (size_t i = 0; i < count; i++) {
            if (mica_dtype_bytes(tensors[i].tensor.dtype) != sizes[s])
                continue;
            put_text(out, separator);
            put_entry(out, &tensors[i], &offset);
            separator = ",";
        }
    }
    put_text(out, "}");
}

/* ---- File ---- */

static mica_status write_header(mica_context *ctx, mica_new_file *file, const mica_named_tensor *tensors,
                                size_t count, const mica_safetensors_write_opts *opts)
{
    sink out = {.ctx = ctx};
    put_header(&out, tensors, count, opts);
    unsigned padding = (unsigned)(-out.bytes % MICA_SAFETENSORS_PREFIX);
    uint64_t length = out.bytes + padding;
    unsigned char prefix[MICA_SAFETENSORS_PREFIX];
    for (int i = 0; i < MICA_SAFETENSORS_PREFIX; i++)
        prefix[i] = (unsigned char)(length >> (8 * i));
    MICA_TRY(mica_new_file_write(ctx, file, prefix, sizeof prefix));
    out = (sink){.ctx = ctx, .file = file};
    put_header(&out, tensors, count, opts);
    put(&out, "        ", padding);
    return out.status;
}

static mica_status write_tensor(mica_context *ctx, mica_new_file *file, const mica_tensor *t, void *chunk)
{
    if (MICA_LITTLE_ENDIAN && mica_tensor_contiguous(t))
        return mica_new_file_write(ctx, file, t->data, mica_tensor_bytes(t));
    size_t size = mica_dtype_bytes(t->dtype);
    mica_index left = (mica_index)mica_tensor_count(t), position = 0;
    mica_tensor joined = mica_join_axes(t);
    for (mica_index run; left > 0; left -= run, position += run) {
        run = (mica_index)(MICA_SAFETENSORS_CHUNK / size);
        run = run < left ? run : left;
        mica_fetch_run(ctx->kernels->convert, (mica_line){chunk, t->dtype, 1}, &joined, position, run);
        if (!MICA_LITTLE_ENDIAN)
            mica_reverse_bytes(chunk, (size_t)run, size);
        MICA_TRY(mica_new_file_write(ctx, file, chunk, (size_t)run * size));
    }
    return MICA_OK;
}

static mica_status write_content(mica_context *ctx, mica_new_file *file, const mica_named_tensor *tensors,
                                 size_t count, const mica_safetensors_write_opts *opts)
{
    void *chunk = ctx->workspace;
    MICA_TRY(write_header(ctx, file, tensors, count, opts));
    for (size_t s = 0; s < SIZES; s++)
        for (size_t i = 0; i < count; i++)
            if (mica_dtype_bytes(tensors[i].tensor.dtype) == sizes[s])
                MICA_TRY(write_tensor(ctx, file, &tensors[i].tensor, chunk));
    return MICA_OK;
}

static const mica_safetensors_write_opts defaults = {0};

mica_status mica_safetensors_check(mica_context *ctx, const char *path, const mica_named_tensor *tensors,
                                   size_t count, const mica_safetensors_write_opts *opts)
{
    if (opts == NULL)
        opts = &defaults;
    MICA_TRY(check_arguments(ctx, path, tensors, count, opts));
    sink out = {.ctx = ctx};
    put_header(&out, tensors, count, opts);
    if (out.bytes + MICA_SAFETENSORS_PREFIX > MICA_SAFETENSORS_MOST)
        return mica_fail(ctx, MICA_ERR_ARGUMENT,
                         "%s: names, shapes and metadata take %llu bytes, the format allows %u", op,
                         (unsigned long long)out.bytes, MICA_SAFETENSORS_MOST);
    /* Scratch: the names, to find two that are the same, and later the elements of one chunk. */
    size_t names = count > opts->metadata_count ? count : opts->metadata_count;
    size_t scratch_bytes = names * sizeof(char *);
    if (scratch_bytes < MICA_SAFETENSORS_CHUNK)
        scratch_bytes = MICA_SAFETENSORS_CHUNK;
    void *scratch;
    MICA_START(ctx, op, scratch_bytes, &scratch);
    return check_names(ctx, tensors, count, opts, scratch);
}

mica_status mica_safetensors_write(mica_context *ctx, const char *path, const mica_named_tensor *tensors,
                                   size_t count, const mica_safetensors_write_opts *opts)
{
    if (opts == NULL)
        opts = &defaults;
    MICA_TRY(mica_safetensors_check(ctx, path, tensors, count, opts));
    if (ctx->measuring)
        return MICA_OK;
    mica_new_file file;
    MICA_TRY(mica_new_file_begin(ctx, &file, path));
    mica_status status = write_content(ctx, &file, tensors, count, opts);
    if (status == MICA_OK)
        return mica_new_file_commit(ctx, &file);
    mica_new_file_abandon(&file);
    return status;
}
