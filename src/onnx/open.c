/* Opening and closing models, and what they say of themselves. */
#include <string.h>

#include "onnx/model.h"
#include "onnx/pool.h"

static mica_status create(mica_context *ctx, mica_onnx **out, const char *path)
{
    *out = NULL;
    mica_onnx *model = mica_allocate(ctx, sizeof *model);
    if (model == NULL)
        return ctx->status;
    *model = (mica_onnx){.ctx = ctx};
    model->path = mica_onnx_intern(model, path, strlen(path));
    if (model->path == NULL) {
        mica_onnx_close(model);
        return ctx->status;
    }
    *out = model;
    return MICA_OK;
}

/* What was made is kept only if all went well. */
static mica_status finish(mica_onnx **out, mica_status status)
{
    if (status != MICA_OK) {
        mica_onnx_close(*out);
        *out = NULL;
    }
    return status;
}

static mica_status map_file(mica_onnx *model)
{
    MICA_TRY(mica_map_open(model->ctx, &model->map, model->path));
    model->bytes = model->map.bytes;
    model->size = model->map.size;
    model->has_folder = true;
    return MICA_OK;
}

mica_status mica_onnx_open(mica_context *ctx, mica_onnx **out, const char *path)
{
    if (out == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "onnx_open: %s is NULL", out == NULL ? "out" : "path");
    MICA_TRY(create(ctx, out, path));
    mica_status status = map_file(*out);
    return finish(out, status == MICA_OK ? mica_onnx_parse(*out) : status);
}

mica_status mica_onnx_over(mica_context *ctx, mica_onnx **out, const void *bytes, size_t size,
                           const char *name)
{
    if (out == NULL || (bytes == NULL && size > 0) || name == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "onnx_over: %s is NULL",
                         out == NULL    ? "out"
                         : name == NULL ? "name"
                                        : "bytes");
    MICA_TRY(create(ctx, out, name));
    (*out)->bytes = bytes != NULL ? bytes : (const unsigned char *)"";
    (*out)->size = size;
    return finish(out, mica_onnx_parse(*out));
}

mica_status mica_onnx_open_tensor(mica_context *ctx, mica_onnx **model, mica_tensor *out, const char **name,
                                  const char *path)
{
    if (model == NULL || out == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "onnx_open_tensor: %s is NULL",
                         model == NULL ? "model"
                         : out == NULL ? "out"
                                       : "path");
    mica_onnx_tensor tensor = {0};
    MICA_TRY(create(ctx, model, path));
    mica_status status = map_file(*model);
    if (status == MICA_OK)
        status = mica_onnx_parse_tensor(*model, &tensor, (*model)->bytes, (*model)->size);
    if (status == MICA_OK)
        status = mica_onnx_tensor_data(*model, &tensor);
    if (status == MICA_OK) {
        *out = tensor.tensor;
        if (name != NULL)
            *name = tensor.name;
    }
    return finish(model, status);
}

void mica_onnx_close(mica_onnx *model)
{
    if (model == NULL)
        return;
    for (mica_onnx_mapped *m = model->mapped; m != NULL; m = m->next)
        mica_map_close(&m->map);
    mica_map_close(&model->map);
    mica_release(model->ctx, model->problems, (size_t)model->problem_room * sizeof *model->problems);
    mica_onnx_release_all(model);
    mica_release(model->ctx, model, sizeof *model);
}

/* ---- What a model takes and gives ---- */

/* Input `number` of those without an initializer; NULL behind the last. */
static const mica_onnx_info *input_at(const mica_onnx *model, int number)
{
    for (int i = 0; i < model->graph.input_count; i++)
        if (!model->graph.inputs[i].initialized && number-- == 0)
            return &model->graph.inputs[i];
    return NULL;
}

int mica_onnx_inputs(const mica_onnx *model)
{
    int count = 0;
    for (int i = 0; i < model->graph.input_count; i++)
        count += !model->graph.inputs[i].initialized;
    return count;
}

mica_status mica_onnx_input(const mica_onnx *model, mica_onnx_value *out, int number)
{
    const mica_onnx_info *info = number >= 0 ? input_at(model, number) : NULL;
    if (info == NULL)
        return mica_fail(model->ctx, MICA_ERR_ARGUMENT, "onnx_input: there is no input %d", number);
    *out = info->is;
    return MICA_OK;
}

int mica_onnx_outputs(const mica_onnx *model) { return model->graph.output_count; }

mica_status mica_onnx_output(const mica_onnx *model, mica_onnx_value *out, int number)
{
    if (number < 0 || number >= model->graph.output_count)
        return mica_fail(model->ctx, MICA_ERR_ARGUMENT, "onnx_output: there is no output %d", number);
    *out = model->graph.outputs[number].is;
    return MICA_OK;
}

mica_onnx_about mica_onnx_describe(const mica_onnx *model)
{
    mica_onnx_about about = {.ir_version = model->ir_version,
                             .producer = model->producer,
                             .nodes = model->graph.node_count,
                             .initializers = model->graph.initializer_count};
    for (int i = 0; i < model->opset_count; i++)
        if (model->opsets[i].domain[0] == '\0')
            about.opset = model->opsets[i].version < INT32_MAX ? (int)model->opsets[i].version : INT32_MAX;
    for (int i = 0; i < model->graph.initializer_count; i++) {
        const mica_onnx_tensor *t = &model->graph.initializers[i];
        size_t bytes = mica_dtype_bytes(mica_onnx_dtype(t->type));
        for (int k = 0; k < t->rank; k++)
            bytes *= (size_t)t->dim[k];
        about.weight_bytes += bytes;
    }
    return about;
}

int mica_onnx_problems(const mica_onnx *model) { return model->problem_count; }

mica_status mica_onnx_problem_at(const mica_onnx *model, mica_onnx_problem *out, int number)
{
    if (number < 0 || number >= model->problem_count)
        return mica_fail(model->ctx, MICA_ERR_ARGUMENT, "onnx_problem_at: there is no problem %d", number);
    *out = model->problems[number];
    return MICA_OK;
}
