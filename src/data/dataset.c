/* Data sets: from memory, and from pairs of files. */
#include "data/image_file.h"
#include "io/quote.h"
#include "tensor/tensor.h"

void mica_loaded_release(mica_context *ctx, mica_loaded *loaded)
{
    mica_release(ctx, loaded->tensor.data, loaded->bytes);
    *loaded = (mica_loaded){0};
}

mica_status mica_load_elements(mica_context *ctx, mica_loaded *out, mica_stream *stream,
                               const mica_tensor *shape)
{
    const char *path = stream->file.path;
    unsigned long long at = stream->position;
    char text[MICA_SHAPE_TEXT];
    const char *flaw = mica_tensor_flaw(shape, text);
    if (flaw != NULL)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: byte %llu: the array %s %s", MICA_QUOTE(path), at,
                         MICA_SHAPE(shape), flaw);
    size_t bytes = mica_tensor_bytes(shape);
    if (bytes > stream->most - stream->position)
        return mica_fail(ctx, MICA_ERR_FORMAT,
                         "%s: byte %llu: the array %s of %s takes %zu bytes, more than the file can hold",
                         MICA_QUOTE(path), at, MICA_SHAPE(shape), mica_dtype_name(shape->dtype), bytes);
    mica_loaded loaded = {*shape, bytes > 0 ? bytes : 1};
    loaded.tensor.data = mica_allocate(ctx, loaded.bytes);
    if (loaded.tensor.data == NULL)
        return ctx->status;
    mica_status status = mica_stream_need(ctx, loaded.tensor.data, stream, bytes, "its array");
    if (status == MICA_OK)
        status = mica_stream_at_end(ctx, stream);
    if (status != MICA_OK) {
        mica_loaded_release(ctx, &loaded);
        return status;
    }
    *out = loaded;
    return MICA_OK;
}

/* ---- Sets ---- */

static mica_status check_samples(mica_context *ctx, const char *op, const char *name, const mica_tensor *t)
{
    MICA_TRY(mica_tensor_check(ctx, op, name, t));
    if (t->rank == 0)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is []: expected samples along axis 0", op, name);
    return MICA_OK;
}

mica_status mica_dataset_over(mica_context *ctx, mica_dataset *out, const mica_tensor *inputs,
                              const mica_tensor *targets)
{
    static const char op[] = "dataset";
    if (out == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: out is NULL", op);
    MICA_TRY(check_samples(ctx, op, "inputs", inputs));
    if (targets != NULL) {
        MICA_TRY(check_samples(ctx, op, "targets", targets));
        if (targets->dim[0] != inputs->dim[0])
            return mica_fail(ctx, MICA_ERR_SHAPE,
                             "%s: inputs are %s, targets are %s: expected the same number of samples", op,
                             MICA_SHAPE(inputs), MICA_SHAPE(targets));
    }
    *out = (mica_dataset){.count = inputs->dim[0], .inputs = *inputs, .has_targets = targets != NULL};
    if (targets != NULL)
        out->targets = *targets;
    return MICA_OK;
}

void mica_dataset_destroy(mica_context *ctx, mica_dataset *set)
{
    if (set == NULL)
        return;
    if (set->owned[0] > 0)
        mica_release(ctx, set->inputs.data, set->owned[0]);
    if (set->owned[1] > 0)
        mica_release(ctx, set->targets.data, set->owned[1]);
    if (set->owned[2] > 0)
        mica_release(ctx, (void *)set->classes, set->owned[2]);
    *set = (mica_dataset){0};
}

static mica_status load(mica_context *ctx, mica_loaded *out, const char *path, mica_read_fn *read)
{
    mica_stream stream;
    MICA_TRY(mica_stream_open(ctx, &stream, path));
    mica_status status = read(ctx, out, &stream);
    mica_stream_close(ctx, &stream);
    return status;
}

/* A file of a few bytes may claim any number of samples that have no elements: not with us. */
static mica_status check_elements(mica_context *ctx, const char *path, const mica_tensor *t)
{
    if (t->rank > 0 && t->dim[0] > 0 && mica_tensor_count(t) == 0)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: the array %s has samples with no elements",
                         MICA_QUOTE(path), MICA_SHAPE(t));
    return MICA_OK;
}

mica_status mica_dataset_give(mica_context *ctx, mica_dataset *out, mica_loaded *inputs, mica_loaded *targets,
                              const char *path, mica_status status)
{
    mica_dataset set = {0};
    if (status == MICA_OK)
        status = check_elements(ctx, path, &inputs->tensor);
    if (status == MICA_OK)
        status = mica_dataset_over(ctx, &set, &inputs->tensor, targets != NULL ? &targets->tensor : NULL);
    if (status != MICA_OK) {
        mica_loaded_release(ctx, inputs);
        if (targets != NULL)
            mica_loaded_release(ctx, targets);
        return status;
    }
    set.owned[0] = inputs->bytes;
    set.owned[1] = targets != NULL ? targets->bytes : 0;
    *out = set;
    return MICA_OK;
}

static mica_status load_pair(mica_context *ctx, mica_dataset *out, const char *inputs_path,
                             const char *targets_path, mica_read_fn *read)
{
    if (out == NULL || inputs_path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "dataset: %s is NULL", out == NULL ? "out" : "inputs_path");
    mica_loaded inputs = {0}, targets = {0};
    *out = (mica_dataset){0};
    MICA_TRY(load(ctx, &inputs, inputs_path, read));
    mica_status status = check_elements(ctx, inputs_path, &inputs.tensor);
    if (status == MICA_OK && targets_path != NULL)
        status = load(ctx, &targets, targets_path, read);
    return mica_dataset_give(ctx, out, &inputs, targets_path != NULL ? &targets : NULL, inputs_path, status);
}

mica_status mica_dataset_load_idx(mica_context *ctx, mica_dataset *out, const char *inputs_path,
                                  const char *targets_path)
{
    return load_pair(ctx, out, inputs_path, targets_path, mica_idx_read);
}

mica_status mica_dataset_load_npy(mica_context *ctx, mica_dataset *out, const char *inputs_path,
                                  const char *targets_path)
{
    return load_pair(ctx, out, inputs_path, targets_path, mica_npy_read);
}

mica_status mica_dataset_load_image(mica_context *ctx, mica_dataset *out, const char *path)
{
    return load_pair(ctx, out, path, NULL, mica_image_read);
}
