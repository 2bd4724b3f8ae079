/* Reading tensors from an open safetensors file: all are checked before the first is modified. */
#include "io/safetensors.h"

#include <string.h>

#include "io/quote.h"
#include "io/safetensors_file.h"
#include "ops/check.h"
#include "ops/move.h"
#include "kernel/kernels.h"

static const char op[] = "safetensors_read";

size_t mica_safetensors_count(const mica_safetensors *file) { return file->count; }

const mica_safetensors_entry *mica_safetensors_at(const mica_safetensors *file, size_t number)
{
    return number < file->count ? &file->entries[number] : NULL;
}

const mica_safetensors_entry *mica_safetensors_find(const mica_safetensors *file, const char *name)
{
    for (size_t low = 0, high = file->count; low < high;) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, file->entries[middle].name);
        if (order == 0)
            return &file->entries[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

size_t mica_safetensors_metadata_count(const mica_safetensors *file) { return file->metadata_count; }

const mica_metadata *mica_safetensors_metadata_at(const mica_safetensors *file, size_t number)
{
    return number < file->metadata_count ? &file->metadata[number] : NULL;
}

const char *mica_safetensors_metadata_find(const mica_safetensors *file, const char *key)
{
    for (size_t i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0)
            return file->metadata[i].value;
    return NULL;
}

mica_status mica_safetensors_lend(mica_context *ctx, mica_tensor *out, const mica_safetensors *file,
                                  const char *name)
{
    static const char lend[] = "safetensors_lend";
    if (out == NULL || file == NULL || name == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", lend,
                         out == NULL    ? "out"
                         : file == NULL ? "file"
                                        : "name");
    const mica_safetensors_entry *entry = mica_safetensors_find(file, name);
    const char *path = file->file.path;
    if (entry == NULL)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: has no tensor %s", MICA_QUOTE(path), MICA_QUOTE(name));
    if (file->file.memory == NULL || !MICA_LITTLE_ENDIAN)
        return mica_fail(ctx, MICA_ERR_ARGUMENT,
                         "%s: %s: the file is not mapped, or the machine not little-endian", lend,
                         MICA_QUOTE(path));
    if (!entry->readable)
        return mica_fail(ctx, MICA_ERR_DTYPE, "%s: tensor %s is %s, which Mica does not have",
                         MICA_QUOTE(path), MICA_QUOTE(name), entry->dtype_name);
    const unsigned char *data = file->file.memory + entry->offset;
    if ((uintptr_t)data % mica_dtype_bytes(entry->dtype) != 0)
        return mica_fail(ctx, MICA_ERR_FORMAT,
                         "%s: byte %llu: tensor %s of %s begins here, which is not a multiple of %zu",
                         MICA_QUOTE(path), (unsigned long long)entry->offset, MICA_QUOTE(name),
                         entry->dtype_name, mica_dtype_bytes(entry->dtype));
    return mica_tensor_init(ctx, out, (void *)data, entry->dtype, entry->rank, entry->dim);
}

/* Whether the file's bytes are the tensor's, one for one. */
static bool direct(const mica_tensor *t, const mica_safetensors_entry *entry)
{
    return MICA_LITTLE_ENDIAN && t->dtype == entry->dtype && mica_tensor_contiguous(t);
}

static mica_status check_entry(mica_context *ctx, const mica_safetensors *file,
                               const mica_named_tensor *named, const mica_safetensors_entry *entry)
{
    const mica_tensor *t = &named->tensor;
    if (entry == NULL)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: has no tensor %s %s", MICA_QUOTE(file->file.path),
                         MICA_QUOTE(named->name), MICA_SHAPE(t));
    bool same = t->rank == entry->rank;
    for (int k = 0; same && k < t->rank; k++)
        same = t->dim[k] == entry->dim[k];
    if (!same)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: tensor %s is %s, expected %s", MICA_QUOTE(file->file.path),
                         MICA_QUOTE(named->name), mica_shape_text_of(entry->rank, entry->dim).text,
                         MICA_SHAPE(t));
    if (!entry->readable)
        return mica_fail(ctx, MICA_ERR_DTYPE, "%s: tensor %s %s is %s, which cannot be read as %s",
                         MICA_QUOTE(file->file.path), MICA_QUOTE(named->name), MICA_SHAPE(t),
                         entry->dtype_name, mica_dtype_name(t->dtype));
    return MICA_OK;
}

static mica_status check_tensor(mica_context *ctx, const mica_safetensors *file,
                                const mica_named_tensor *named, size_t *scratch)
{
    const mica_tensor *t = &named->tensor;
    if (named->name == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: a name is NULL", op);
    mica_quote name = mica_quote_string(named->name);
    mica_arg arg = {name.text, t, MICA_ARG_OUT, MICA_DTYPES_ANY};
    MICA_TRY(mica_check_args(ctx, op, &arg, 1));
    const mica_safetensors_entry *entry = mica_safetensors_find(file, named->name);
    MICA_TRY(check_entry(ctx, file, named, entry));
    if (!direct(t, entry))
        *scratch = MICA_SAFETENSORS_CHUNK;
    return MICA_OK;
}

static mica_status read_tensor(mica_context *ctx, const mica_tensor *t, const mica_file *file,
                               const mica_safetensors_entry *entry, void *chunk)
{
    if (direct(t, entry))
        return mica_file_read(ctx, t->data, file, (size_t)entry->bytes, entry->offset);
    size_t size = mica_dtype_bytes(entry->dtype);
    mica_index left = (mica_index)mica_tensor_count(t), position = 0;
    mica_tensor joined = mica_join_axes(t);
    for (mica_index run; left > 0; left -= run, position += run) {
        run = (mica_index)(MICA_SAFETENSORS_CHUNK / size);
        run = run < left ? run : left;
        MICA_TRY(
            mica_file_read(ctx, chunk, file, (size_t)run * size, entry->offset + (uint64_t)position * size));
        if (!MICA_LITTLE_ENDIAN)
            mica_reverse_bytes(chunk, (size_t)run, size);
        mica_move_run(ctx->kernels->convert, &joined, position, (mica_line){chunk, entry->dtype, 1}, run);
    }
    return MICA_OK;
}

mica_status mica_safetensors_read(mica_context *ctx, const mica_named_tensor *tensors, size_t count,
                                  const mica_safetensors *file)
{
    if (file == NULL || (tensors == NULL && count > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", op, file == NULL ? "file" : "tensors");
    size_t scratch_bytes = 0;
    for (size_t i = 0; i < count; i++)
        MICA_TRY(check_tensor(ctx, file, &tensors[i], &scratch_bytes));
    void *scratch;
    MICA_START(ctx, op, scratch_bytes, &scratch);
    for (size_t i = 0; i < count; i++)
        MICA_TRY(read_tensor(ctx, &tensors[i].tensor, &file->file,
                             mica_safetensors_find(file, tensors[i].name), scratch));
    return MICA_OK;
}
