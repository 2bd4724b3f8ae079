/* mica quantize --int8: what is read, and what is written. */
#include "cli/model/quantizing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/checkpoint.h>
#include <mica/onnx.h>

#include "cli/model/int8.h"
#include "cli/model/match.h"
#include "cli/model/take.h"
#include "cli/model/training.h"
#include "cli/onnx/net.h"
#include "cli/onnx/onnx.h"
#include "cli/onnx/text.h"

enum { BATCH = 32 }; /* samples of a batch, unless one is written into the model */

/* ---- The net of floats ---- */

/* That of a checkpoint, with its loss. */
static int build_saved(quantizing *z)
{
    const saved *s = &z->saved;
    const char *text = saved_text(s, MICA_NETFILE_KEY);
    mica_netfile_opts opts = {.file = s->path, .batch = z->batch};
    if (is_onnx_text(text))
        return onnx_text_build(&z->net, &z->info, z->v, z->ctx, text, s->path, &opts);
    mica_status status = mica_net_create(z->ctx, &z->net);
    if (status == MICA_OK)
        status = mica_netfile_build(z->net, &z->info, text, &opts);
    return status == MICA_OK ? EXIT_OK : quantizing_failed(z, status);
}

/* Layers that learn stay float: they are told by what is frozen. */
static int freeze(quantizing *z)
{
    const option_list *prefixes = z->set->freeze;
    if (!z->set->learns)
        return EXIT_OK;
    for (size_t i = 0; i < prefixes->count; i++) {
        mica_status status = mica_net_freeze(z->net, prefixes->item[i], true); /* an error if there is none */
        if (status != MICA_OK)
            return quantizing_failed(z, status);
    }
    const char *first = int8_first_layer_learns(z->net, prefixes);
    if (first == NULL)
        return EXIT_OK;
    return usage_error(
        z->v, "--int8 --train: layer %s, the first, is not frozen, so none can become int8: --freeze %s",
        first, first);
}

static int bind(quantizing *z)
{
    mica_status status = mica_int8_create(z->net, &z->q);
    if (status == MICA_OK)
        status = mica_net_compile(z->net, NULL);
    if (status == MICA_OK)
        status = mica_net_bind(z->net, NULL, 0);
    if (status == MICA_OK)
        status = z->opened != NULL ? mica_onnx_load(onnx_of(z->net), z->net)
                                   : mica_weights_load(z->net, z->saved.path);
    if (status != MICA_OK)
        return quantizing_failed(z, status);
    if (z->info.target == NULL || z->info.task == MICA_TASK_NONE)
        return verb_error(z->v, EXIT_FILE, "%s: the net has no loss to evaluate", z->from);
    return EXIT_OK;
}

/* ---- Opening ---- */

static data_opts data_settings(const quantizing *z)
{
    return (data_opts){.table = z->set->table, .tell = !z->set->shared->quiet && !z->set->shared->json};
}

static int open_checkpoint(quantizing *z, const char *in)
{
    int code = saved_open(&z->saved, z->v, z->ctx, in);
    if (code != EXIT_OK)
        return code;
    const saved *s = &z->saved;
    z->from = s->path;
    z->meaning = &s->meaning;
    z->data = z->set->ranges.data != NULL ? z->set->ranges.data : s->meaning.data;
    z->validation = s->settings.validation >= 0 ? s->settings.validation : SHARE_VALIDATION;
    z->batch = is_onnx_text(saved_text(s, MICA_NETFILE_KEY)) && s->settings.batch > 0
                   ? (mica_index)s->settings.batch /* it may be written into the model */
                   : BATCH;
    if (saved_text(s, INT8_KEY) != NULL)
        return verb_error(z->v, EXIT_FILE, "%s is an int8 net already", s->path);
    if (z->set->set != NULL && z->set->set->count > 0)
        return usage_error(z->v, "--set is for ONNX models: what %s was trained with stays as it is",
                           s->path);
    if (z->data == NULL)
        return usage_error(z->v, "--data is required: the checkpoint does not record its training data");
    code = build_saved(z);
    if (code == EXIT_OK)
        code = freeze(z);
    data_opts opts = data_settings(z);
    if (code == EXIT_OK)
        code = saved_load_data(&z->samples, z->v, z->ctx, s, z->data, &opts);
    net_ends ends;
    if (code == EXIT_OK)
        code = net_ends_find(&ends, z->v, z->net, &z->info, s->path);
    if (code == EXIT_OK)
        code = data_match(&z->samples, z->data, z->v, &ends, &z->info, "the net");
    bool own = s->meaning.data != NULL && strcmp(z->data, s->meaning.data) == 0;
    z->part = own || z->samples.has_test ? MICA_PART_TEST : MICA_PART_ALL;
    return code;
}

/* What is known of data and net before the first step of a training is what is to be known here. */
static int open_model(quantizing *z, const char *in)
{
    mica_index batch = onnx_batch_of(z->ctx, in);
    z->batch = batch > 0 ? batch : BATCH;
    z->data = z->set->ranges.data;
    if (z->data == NULL)
        return usage_error(z->v, "--data is required: an ONNX model does not say what it was trained on");
    training *t = z->opened = take(1, sizeof *t);
    t->v = z->v;
    t->ctx = z->ctx;
    t->settings = (train_settings)TRAIN_DEFAULTS;
    t->settings.shared = *z->set->shared;
    t->settings.net = in;
    t->settings.data = z->data;
    t->settings.table = z->set->table;
    t->settings.batch = z->batch;
    if (z->set->set != NULL)
        t->settings.set = *z->set->set;
    int code = training_open_model(t);
    z->meaning = &t->meaning;
    z->validation = t->settings.validation;
    z->samples = t->data;
    z->net = t->net;
    z->info = t->info;
    z->part = MICA_PART_TEST;
    return code;
}

int quantizing_open(quantizing *z, const char *in)
{
    int code = is_onnx(in) ? open_model(z, in) : open_checkpoint(z, in);
    return code == EXIT_OK ? bind(z) : code;
}

void quantizing_close(quantizing *z)
{
    if (z->opened != NULL) {
        training_close(z->opened);
        free(z->opened);
        return;
    }
    mica_net_destroy(z->net);
    data_release(z->ctx, &z->samples);
    saved_close(z->ctx, &z->saved);
}

/* ---- Writing ---- */

/* What the new checkpoint says: all that the old one does of its net, or what is known of the model. */
static int make_notes(const quantizing *z, notes *n, const char *text)
{
    notes_add(n, MICA_NETFILE_KEY, text);
    if (z->opened != NULL) {
        notes_add_whole(n, "mica.train.batch", z->batch);
        return notes_add_meaning(n, z->meaning, z->v, z->ctx);
    }
    for (size_t i = 0; i < mica_safetensors_metadata_count(z->saved.file); i++) {
        const mica_metadata *from = mica_safetensors_metadata_at(z->saved.file, i);
        if (strncmp(from->key, "mica.", 5) == 0 && strcmp(from->key, MICA_NETFILE_KEY) != 0)
            notes_add(n, from->key, from->value);
    }
    return EXIT_OK;
}

/* The text of the net, for a checkpoint of this path; to be given to free(). */
static int text_for(const quantizing *z, char **out, const char *path)
{
    const char *text = z->opened != NULL ? z->info.text : saved_text(&z->saved, MICA_NETFILE_KEY);
    onnx_text model;
    if (!is_onnx_text(text)) {
        *out = take_text(text);
        return EXIT_OK;
    }
    int code = onnx_text_read(&model, z->v, text);
    *out = code == EXIT_OK ? onnx_text_for(&model, path) : NULL;
    free(model.lines);
    return code;
}

int quantizing_write(quantizing *z, const char *out)
{
    notes n = {.count = 0};
    char path[4096], *text = NULL;
    if (!checkpoint_path(path, sizeof path, out))
        return usage_error(z->v, "the path is longer than %zu bytes", sizeof path - 1);
    int code = text_for(z, &text, path);
    if (code == EXIT_OK)
        code = make_notes(z, &n, text);
    if (code == EXIT_OK) {
        char *scales = int8_text(z->q, z->set->ranges.per_tensor);
        notes_add(&n, INT8_KEY, scales);
        free(scales);
        code = notes_check(&n, z->v);
    }
    if (code == EXIT_OK)
        code = onnx_keep_source(z->net, z->v, text, path);
    mica_training_state state = {.notes = n.list, .note_count = n.count};
    if (code == EXIT_OK && mica_checkpoint_save(z->bytes, path, &state) != MICA_OK)
        code = verb_error(z->v, EXIT_FAILED, "%s", mica_error(z->ctx));
    notes_free(&n);
    free(text);
    return code;
}

void quantize_int8_remove(const char *out)
{
    onnx_text model = {.file = ONNX_SOURCE};
    onnx_text copy;
    char path[8192], *text = onnx_text_for(&model, out);
    if (onnx_text_read(&copy, NULL, text) == EXIT_OK && onnx_text_path(path, sizeof path, &copy, out))
        (void)remove(path);
    free(copy.lines);
    free(text);
    (void)remove(out);
}
