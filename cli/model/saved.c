/* Checkpoints that say what they are. */
#include "cli/model/saved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/model/images.h"
#include "cli/model/int8.h"
#include "cli/model/sounds.h"
#include "cli/model/tables.h"
#include "cli/model/take.h"
#include "cli/net/argument.h"
#include "cli/onnx/net.h"
#include "cli/onnx/onnx.h"
#include "cli/onnx/text.h"
#include "cli/picture/text.h"
#include "io/quote.h"
#include "io/utf8.h"

/* ---- Writing ---- */

void notes_add(notes *n, const char *key, const char *value)
{
    mica_metadata *list = take(n->count + 1, sizeof *list);
    if (n->count > 0)
        memcpy(list, n->list, n->count * sizeof *list);
    list[n->count] = (mica_metadata){take_text(key), take_text(value)};
    free(n->list);
    n->list = list;
    n->count++;
}

void notes_add_number(notes *n, const char *key, double value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.17g", value);
    notes_add(n, key, text);
}

void notes_add_whole(notes *n, const char *key, int64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    notes_add(n, key, text);
}

/* Numbers with a blank between them; each comes back to the bit. */
void notes_add_floats(notes *n, const char *key, const float *values, mica_index count)
{
    char *text = take((size_t)count, 20), *at = text;
    for (mica_index i = 0; i < count; i++)
        at += snprintf(at, 20, "%s%.9g", i > 0 ? " " : "", (double)values[i]);
    notes_add(n, key, text);
    free(text);
}

static void add_vocabulary(notes *n, const mica_vocabulary *v)
{
    if (v->characters == NULL) {
        notes_add(n, "mica.vocabulary", "bytes");
        return;
    }
    char *text = take((size_t)v->count, 12), *at = text;
    for (int32_t i = 0; i < v->count; i++)
        at += snprintf(at, 12, "%s%u", i > 0 ? " " : "", (unsigned)v->characters[i]);
    notes_add(n, "mica.vocabulary", text);
    free(text);
}

static void add_classes(notes *n, const meaning *m)
{
    size_t bytes = 1;
    for (int i = 0; i < m->class_count; i++)
        bytes += strlen(m->class_names[i]) + 1;
    char *text = take(bytes, 1), *at = text;
    for (int i = 0; i < m->class_count; i++)
        at += snprintf(at, bytes - (size_t)(at - text), "%s%s", i > 0 ? "\n" : "", m->class_names[i]);
    notes_add(n, "mica.classes", text);
    free(text);
}

static void add_sample(notes *n, const mica_tensor *sample)
{
    char text[MICA_MAX_RANK * 24] = "";
    for (int i = 0; i < sample->rank; i++)
        (void)snprintf(text + strlen(text), 24, "%s%td", i > 0 ? " " : "", sample->dim[i]);
    if (sample->rank > 0)
        notes_add(n, "mica.sample", text);
}

static int add_table(notes *n, const meaning *m, const verb *v, mica_context *ctx)
{
    char *text = take_table_text(ctx, m->table);
    if (text == NULL)
        return verb_error(v, EXIT_FILE, "%s: %s: it could not be saved%s", m->data, mica_error(ctx),
                          strstr(mica_error(ctx), "UTF-8") != NULL ? ". Save the file as UTF-8" : "");
    notes_add(n, "mica.table", text);
    free(text);
    return EXIT_OK;
}

int notes_add_meaning(notes *n, const meaning *m, const verb *v, mica_context *ctx)
{
    add_sample(n, &m->sample);
    notes_add(n, "mica.title", m->title);
    notes_add(n, "mica.data", m->data);
    if (m->class_names != NULL)
        add_classes(n, m);
    if (m->vocabulary.count > 0)
        add_vocabulary(n, &m->vocabulary);
    if (m->is_sound) {
        char text[SOUND_TEXT];
        sounds_describe(text, &m->sound);
        notes_add(n, "mica.sound", text);
    }
    if (m->normalization.channels > 0) {
        notes_add_floats(n, "mica.scale", &m->normalization.scale, 1);
        notes_add_floats(n, "mica.mean", m->normalization.mean, m->normalization.channels);
        notes_add_floats(n, "mica.deviation", m->normalization.deviation, m->normalization.channels);
    }
    return m->table != NULL ? add_table(n, m, v, ctx) : EXIT_OK;
}

/* What a key's value comes from, for people. */
static const char *source_of(const char *key)
{
    static const char *const sources[][2] = {{MICA_NETFILE_KEY, "the source of the net"},
                                             {"mica.title", "the net's name"},
                                             {"mica.data", "what --data names"},
                                             {"mica.classes", "a class name of the data"},
                                             {"mica.train.label", "what --label names"}};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (strcmp(sources[i][0], key) == 0)
            return sources[i][1];
    return key;
}

int notes_check(const notes *n, const verb *v)
{
    for (size_t i = 0; i < n->count; i++) {
        const char *text = n->list[i].value;
        size_t length = strlen(text), line = 1, line_at = 0;
        for (size_t at = 0, size; at < length; at += size) {
            uint32_t code;
            size = mica_utf8_decode(&code, text + at, length - at);
            if (size == 0)
                return verb_error(
                    v, EXIT_FILE, "%s is not UTF-8 and could not be saved: %s (line %zu, byte %zu)",
                    source_of(n->list[i].key), MICA_QUOTE_N(text + line_at, strcspn(text + line_at, "\n")),
                    line, at - line_at + 1);
            line += code == '\n';
            line_at = code == '\n' ? at + 1 : line_at;
        }
    }
    return EXIT_OK;
}

void notes_free(notes *n)
{
    for (size_t i = 0; i < n->count; i++) {
        free((void *)n->list[i].key);
        free((void *)n->list[i].value);
    }
    free(n->list);
    *n = (notes){0};
}

/* ---- Reading ---- */

bool checkpoint_path(char *path, size_t size, const char *where)
{
    struct stat about;
    bool folder = stat(where, &about) == 0 && S_ISDIR(about.st_mode);
    int n = folder ? snprintf(path, size, "%s/%s", where, CHECKPOINT_NAME)
                   : snprintf(path, size, "%s", where);
    return n >= 0 && (size_t)n < size;
}

const char *saved_text(const saved *s, const char *key)
{
    return mica_safetensors_metadata_find(s->file, key);
}

/* What it knows of the table that it was trained on. */
static int read_table(saved *s, const verb *v, mica_context *ctx)
{
    const char *text = saved_text(s, "mica.table");
    const saved_settings *from = &s->settings;
    mica_index window = from->window > 0 ? (mica_index)from->window : 0,
               horizon = window > 0 && from->horizon > 0 ? (mica_index)from->horizon : 0;
    if (text == NULL)
        return EXIT_OK;
    if (mica_table_from_text(ctx, &s->table, text) != MICA_OK)
        return verb_error(v, EXIT_FILE, "%s: its \"mica.table\": %s", s->path, mica_error(ctx));
    mica_index inputs = mica_table_inputs(s->table), targets = mica_table_targets(s->table);
    if (inputs == 0 || targets == 0 || (window > 0 && horizon == 0) || from->season > window)
        return verb_error(v, EXIT_FILE, "%s: its \"mica.table\" has no inputs or targets, or no horizon",
                          s->path);
    if (window > INT32_MAX / inputs || horizon > MOST_WINDOW / targets)
        return verb_error(
            v, EXIT_FILE,
            "%s: %td inputs over a window of %td rows, %td targets over a horizon of %td: too many", s->path,
            inputs, window, targets, horizon);
    table_meaning(&s->meaning, s->table, window, horizon, from->season > 0 ? (mica_index)from->season : 0);
    return EXIT_OK;
}

/* What others take for a checkpoint: a net that is yet to be trained, or data. */
static int other_than_checkpoint(const verb *v, mica_context *ctx, const saved *s, const char *where)
{
    struct stat about;
    bool there = stat(s->path, &about) == 0;
    if (!there && mica_netfile_builtin(where) != NULL)
        return verb_error(v, EXIT_FILE,
                          "%s is a net without weights: mica %s takes a checkpoint, which mica train writes",
                          where, v->name);
    if (there && !is_safetensors(s->path) && foreign_model(where) != NULL)
        return verb_error(v, EXIT_FILE, "%s: %s", where, foreign_model(where));
    if (there && is_onnx(where))
        return verb_error(
            v, EXIT_FILE,
            "%s is an ONNX model: mica %s takes a checkpoint, from mica train %s --data DATA, or from "
            "mica quantize %s OUT --int8 --data DATA, which scores both nets",
            where, v->name, where, where);
    if (there && !is_safetensors(s->path) && file_kind_of(where) != FILE_UNKNOWN)
        return verb_error(v, EXIT_FILE,
                          "%s is not a checkpoint: the first argument is one, which mica train writes",
                          where);
    return verb_failed(v, ctx);
}

int saved_open(saved *out, const verb *v, mica_context *ctx, const char *where)
{
    *out = (saved){.file = NULL};
    if (!checkpoint_path(out->path, sizeof out->path, where))
        return usage_error(v, "the path is longer than %zu bytes", sizeof out->path - 1);
    if (mica_safetensors_open(ctx, &out->file, out->path) != MICA_OK)
        return other_than_checkpoint(v, ctx, out, where);
    if (saved_text(out, MICA_NETFILE_KEY) == NULL)
        return verb_error(
            v, EXIT_FILE,
            "%s: a safetensors file that was not written by mica train: it does not contain a net",
            out->path);
    int code = saved_read(out, v);
    if (code == EXIT_OK)
        code = read_table(out, v, ctx);
    return code == EXIT_OK ? saved_check(out, v, ctx) : code;
}

int saved_open_floats(saved *out, const verb *v, mica_context *ctx, const char *where)
{
    int code = saved_open(out, v, ctx, where);
    if (code == EXIT_OK && saved_text(out, INT8_KEY) != NULL)
        code = verb_error(v, EXIT_FILE,
                          "%s is an int8 net, which cannot be trained: train the net that it was made of",
                          out->path);
    return code;
}

void saved_close(mica_context *ctx, saved *s)
{
    mica_safetensors_close(ctx, s->file);
    normalization_free(&s->meaning.normalization);
    table_meaning_free(&s->meaning);
    mica_table_destroy(ctx, s->table);
    free(s->settings.class_weights);
    free(s->meaning.owned[0]);
    free(s->meaning.owned[1]);
    free(s->meaning.class_names);
    *s = (saved){.file = NULL};
}

/* With `windows`, steps continue one another if they can. */
static int build(mica_net **net, mica_netfile_info *info, const verb *v, mica_context *ctx, const saved *s,
                 const mica_netfile_opts *opts, bool prepare, const char **windows)
{
    const char *text = saved_text(s, MICA_NETFILE_KEY);
    mica_status status = MICA_OK;
    if (is_onnx_text(text)) {
        int code = onnx_text_build(net, info, v, ctx, text, s->path, opts);
        if (code != EXIT_OK)
            return code;
    } else {
        status = mica_net_create(ctx, net);
        if (status == MICA_OK)
            status = mica_netfile_build(*net, info, text, opts);
    }
    if (status == MICA_OK && saved_text(s, INT8_KEY) != NULL)
        status = int8_convert(net, info, saved_text(s, INT8_KEY), v != &verb_export);
    if (status == MICA_OK && saved_text(s, INT8_KEY) != NULL)
        status = int8_check_file(*net, s->file);
    if (status == MICA_OK && windows != NULL)
        status = mica_net_continue(*net, windows);
    if (status == MICA_OK)
        status = mica_net_compile(*net, &(mica_compile_opts){.prepare = prepare});
    if (status == MICA_OK)
        status = mica_net_bind(*net, NULL, 0);
    if (status == MICA_OK)
        status = mica_weights_load(*net, s->path);
    if (status == MICA_OK)
        return EXIT_OK;
    int code = verb_error(v, status == MICA_ERR_MEMORY ? EXIT_FAILED : EXIT_FILE, "%s", mica_error(ctx));
    mica_net_destroy(*net);
    *net = NULL;
    return code;
}

int saved_build(mica_net **net, mica_netfile_info *info, const verb *v, mica_context *ctx, const saved *s,
                const saved_build_opts *opts)
{
    return build(net, info, v, ctx, s,
                 &(mica_netfile_opts){.file = s->path, .batch = opts->batch, .inference = !opts->with_loss},
                 opts->prepare, NULL);
}

int saved_build_writer(mica_net **net, mica_netfile_info *info, const verb *v, mica_context *ctx,
                       const saved *s, const char **windows)
{
    return build(net, info, v, ctx, s, &(mica_netfile_opts){.file = s->path, .batch = 1, .inference = true},
                 false, windows);
}

int saved_load_data(data *out, const verb *v, mica_context *ctx, const saved *s, const char *spec,
                    const data_opts *asked)
{
    const meaning *m = &s->meaning;
    bool own = m->data != NULL && strcmp(spec, m->data) == 0;
    if (file_kind_of(spec) == FILE_CSV && m->table == NULL)
        return verb_error(v, EXIT_FILE, "%s is a table, which %s was not trained on", spec, s->path);
    data_opts opts = {.table = asked->table,
                      .known = m->table,
                      .window = m->forecast.window,
                      .horizon = m->forecast.horizon,
                      .test = own ? s->settings.test : NULL,
                      .tell = asked->tell,
                      .classes = (const char *const *)m->class_names,
                      .class_count = m->class_count,
                      .sound = m->is_sound ? &m->sound : NULL,
                      .sound_asked = m->is_sound,
                      .images = images_size_of_sample(&m->sample),
                      .vocabulary = m->vocabulary.count > 0 ? &m->vocabulary : NULL};
    return data_load(out, v, ctx, spec, &opts);
}
