/* Text models: opened from a GGUF file or a folder, with what they say about themselves. */
#include <string.h>

#include "base/format.h"
#include "io/file.h"
#include "tensor/tensor.h"
#include "text/huggingface.h"
#include "text/model.h"

/* ---- Sources ---- */

bool mica_source_number(const mica_model_source *source, double *out, const char *key, size_t element)
{
    mica_gguf_value value;
    if (source->folder != NULL)
        return element == 0 && mica_huggingface_number(source->folder, out, key);
    return mica_gguf_find(source->gguf, &value, key) && mica_gguf_number_at(&value, out, element);
}

bool mica_source_text(const mica_model_source *source, char *text, size_t size, const char *key)
{
    mica_gguf_value value;
    const char *found;
    if (source->folder != NULL && !mica_huggingface_text(source->folder, &found, key))
        return false;
    if (source->folder != NULL) {
        mica_format(text, size, "%s", found);
        return true;
    }
    if (!mica_gguf_find(source->gguf, &value, key) || value.kind != MICA_GGUF_STRING)
        return false;
    mica_format(text, size, "%.*s", (int)(value.text.length < size ? value.text.length : size),
                value.text.bytes);
    return true;
}

bool mica_source_windowed(const mica_model_source *source, bool *out, const char *key, mica_index layer)
{
    mica_gguf_value value;
    double number;
    if (source->folder != NULL)
        return mica_huggingface_windowed(source->folder, out, layer);
    if (!mica_gguf_find(source->gguf, &value, key) || value.kind != MICA_GGUF_ARRAY ||
        !mica_gguf_number_at(&value, &number, (size_t)layer))
        return false;
    *out = number != 0.0;
    return true;
}

bool mica_source_tensor(const mica_model_source *source, mica_tensor *out, const char *name)
{
    return source->folder != NULL ? mica_huggingface_tensor(source->folder, out, name, NULL)
                                  : mica_gguf_find_tensor(source->gguf, out, name);
}

/* ---- Opening ---- */

/* Sizes that the tensors say. */
static mica_status read_tensors(mica_model *model)
{
    mica_model_info *info = &model->info;
    mica_tensor t;
    if (!mica_source_tensor(&model->source, &t, "token_embd.weight"))
        return mica_fail(model->ctx, MICA_ERR_FORMAT,
                         "%s: there is no tensor \"token_embd.weight\": a vocabulary without a model?",
                         model->source.path);
    if (t.rank != 2 || t.dim[0] < 1 || t.dim[0] > INT32_MAX / 2)
        return mica_fail(model->ctx, MICA_ERR_FORMAT,
                         "%s: tensor \"token_embd.weight\" is %s: expected [vocabulary, %td]",
                         model->source.path, MICA_SHAPE(&t), info->width);
    info->vocabulary = t.dim[0];
    bool learned = mica_source_tensor(&model->source, &t, "position_embd.weight");
    if (learned ? t.rank != 2 : model->rope_kind == MICA_ROPE_NONE)
        return mica_fail(model->ctx, MICA_ERR_FORMAT, "%s: tensor \"position_embd.weight\" %s%s",
                         model->source.path, learned ? "is no matrix: " : "is missing",
                         learned ? MICA_SHAPE(&t) : "");
    model->positions = learned ? t.dim[0] : 0;
    if (model->positions > 0 && info->context > model->positions)
        info->context = model->positions;
    for (size_t i = 0; i < mica_model_weights(model); i++) {
        MICA_TRY(mica_model_weight(model, NULL, &t, i));
        info->parameters += mica_tensor_count(&t);
        info->weight_bytes += mica_tensor_bytes(&t);
    }
    return MICA_OK;
}

static mica_status open_source(mica_model *model, const char *path)
{
    mica_context *ctx = model->ctx;
    mica_file_type type = mica_file_type_of(path);
    if (type != MICA_FILE_FOLDER && type != MICA_FILE_FOLDER_LINK)
        return mica_gguf_open(ctx, &model->source.gguf, path);
    return mica_huggingface_open(ctx, &model->source.folder, path);
}

static mica_status read_model(mica_model *model)
{
    mica_context *ctx = model->ctx;
    mica_model_info *info = &model->info;
    if (!mica_source_text(&model->source, info->architecture, sizeof info->architecture,
                          "general.architecture"))
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: setting \"general.architecture\" is missing",
                         model->source.path);
    model->architecture = mica_architecture_find(info->architecture);
    if (model->architecture == NULL)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: architecture \"%s\" is not supported: expected one of %s",
                         model->source.path, info->architecture, mica_architecture_names());
    (void)mica_source_text(&model->source, model->name, sizeof model->name, "general.name");
    info->name = model->name;
    MICA_TRY(mica_model_read_settings(model));
    if (model->source.folder != NULL && mica_huggingface_rope_halves(model->source.folder) &&
        model->rope_kind == MICA_ROPE_PAIRS)
        model->rope_kind = MICA_ROPE_HALVES;
    MICA_TRY(read_tensors(model));
    if (model->source.gguf != NULL)
        return mica_tokenizer_of_gguf(ctx, &model->tokenizer, model->source.gguf);
    char path[4096];
    mica_format(path, sizeof path, "%s/tokenizer.json", model->source.path);
    return mica_tokenizer_of_json(ctx, &model->tokenizer, path);
}

mica_status mica_model_open(mica_context *ctx, mica_model **out, const char *path)
{
    if (out == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "model_open: %s is NULL", out == NULL ? "out" : "path");
    *out = NULL;
    size_t length = strlen(path) + 1;
    mica_model *model = mica_allocate(ctx, sizeof *model + length);
    if (model == NULL)
        return ctx->status;
    memset(model, 0, sizeof *model);
    model->bytes = sizeof *model + length;
    model->ctx = ctx;
    model->source.path = memcpy(model + 1, path, length);
    mica_status status = open_source(model, model->source.path);
    if (status == MICA_OK)
        status = read_model(model);
    if (status != MICA_OK) {
        mica_model_close(model);
        return status;
    }
    *out = model;
    return MICA_OK;
}

void mica_model_close(mica_model *model)
{
    if (model == NULL)
        return;
    mica_tokenizer_close(model->tokenizer);
    mica_gguf_close(model->source.gguf);
    mica_huggingface_close(model->source.folder);
    mica_release(model->ctx, model, model->bytes);
}

/* ---- About it ---- */

const mica_model_info *mica_model_about(const mica_model *model) { return &model->info; }
const mica_tokenizer *mica_model_tokenizer(const mica_model *model) { return model->tokenizer; }

size_t mica_model_weights(const mica_model *model)
{
    return model->source.folder != NULL ? mica_huggingface_tensors(model->source.folder)
                                        : mica_gguf_tensors(model->source.gguf);
}

mica_status mica_model_weight(const mica_model *model, mica_gguf_text *name, mica_tensor *out, size_t number)
{
    const char *found;
    mica_gguf_text unused;
    if (model->source.folder == NULL)
        return mica_gguf_tensor(model->source.gguf, name != NULL ? name : &unused, out, number);
    if (!mica_huggingface_tensor_at(model->source.folder, &found, out, number))
        return mica_fail(model->ctx, MICA_ERR_INDEX, "model_weight: number %zu of %zu", number,
                         mica_model_weights(model));
    if (name != NULL)
        *name = (mica_gguf_text){found, strlen(found)};
    return MICA_OK;
}
