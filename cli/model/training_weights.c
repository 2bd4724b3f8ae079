/* --weights and --freeze. */
#include "cli/model/training_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/take.h"
#include "cli/net/argument.h"
#include "cli/onnx/net.h"
#include "cli/picture/text.h"

/* ---- Lists of options in a checkpoint ---- */

char *list_lines(const option_list *list)
{
    size_t bytes = 1;
    if (list->count == 0)
        return NULL;
    for (size_t i = 0; i < list->count; i++)
        bytes += strlen(list->item[i]) + 1;
    char *lines = take(bytes, 1), *at = lines;
    for (size_t i = 0; i < list->count; i++)
        at += snprintf(at, bytes - (size_t)(at - lines), "%s%s", i > 0 ? "\n" : "", list->item[i]);
    return lines;
}

void list_of_lines(option_list *out, char *lines)
{
    *out = (option_list){.count = 0};
    while (lines != NULL && *lines != '\0' && out->count < OPTION_LIST_MOST) {
        out->item[out->count++] = lines;
        lines += strcspn(lines, "\n");
        if (*lines != '\0')
            *lines++ = '\0';
    }
}

int same_as_saved(const training *t, const char *option, const char *given, const char *before)
{
    if (given == NULL || (before != NULL && strcmp(given, before) == 0))
        return EXIT_OK;
    return usage_error(t->v, "%s is for a new training: %s was trained %s%s%s", option, t->path,
                       before != NULL ? "with " : "without it", before != NULL ? option : "",
                       before != NULL ? " of its own" : "");
}

/* ---- Where they come from ---- */

static bool is_checkpoint(const char *what, char *path, size_t size)
{
    return what != NULL && mica_netfile_builtin(what) == NULL && strcmp(what, "-") != 0 &&
           checkpoint_path(path, size, what) && is_safetensors(path);
}

/* Whether a safetensors file is a checkpoint that says what its net is. */
static int open_source(training *t, const char *path)
{
    mica_safetensors *file;
    if (mica_safetensors_open(t->ctx, &file, path) != MICA_OK)
        return verb_failed(t->v, t->ctx);
    bool ours = mica_safetensors_metadata_find(file, MICA_NETFILE_KEY) != NULL;
    mica_safetensors_close(t->ctx, file);
    return ours ? saved_open_floats(&t->source, t->v, t->ctx, path) : EXIT_OK;
}

int weights_open(training *t)
{
    train_settings *s = &t->settings;
    char path[4096];
    if (t->resumes)
        return EXIT_OK;
    if (s->weights == NULL && is_checkpoint(s->net, path, sizeof path))
        return usage_error(t->v,
                           "%s is a checkpoint. What is to become of its weights?\n"
                           "  --weights %s trains on from them, on this data (fine-tuning)\n"
                           "  --weights " NO_WEIGHTS
                           " trains its net from fresh weights\n"
                           "  mica train --checkpoint DIR --resume continues the training that wrote DIR",
                           s->net, s->net);
    if (s->weights == NULL || strcmp(s->weights, NO_WEIGHTS) == 0)
        return EXIT_OK;
    if (!checkpoint_path(path, sizeof path, s->weights))
        return usage_error(t->v, "the path is longer than %zu bytes", sizeof path - 1);
    return open_source(t, path);
}

static bool has_name(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool has_character(const mica_vocabulary *v, uint32_t character)
{
    int32_t from = 0, to = v->count;
    while (from < to) {
        int32_t middle = from + (to - from) / 2;
        if (v->characters[middle] == character)
            return true;
        if (v->characters[middle] < character)
            from = middle + 1;
        else
            to = middle;
    }
    return false;
}

/* Whether all characters of one are in the other; both ascend. */
static bool covers(const mica_vocabulary *all, const mica_vocabulary *some)
{
    if (all->characters == NULL || some->characters == NULL) /* bytes */
        return all->characters == some->characters;
    for (int32_t i = 0; i < some->count; i++)
        if (!has_character(all, some->characters[i]))
            return false;
    return true;
}

/* Whether a table has the columns that are used of a known one, and no others; and no other classes. */
static bool same_columns(const mica_table *known, const mica_table *table)
{
    int used = 0;
    for (int i = 0; i < mica_table_columns(known); i++) {
        const mica_column *old = mica_table_column(known, i);
        int number = old->role != MICA_ROLE_NONE ? mica_table_find(table, old->name) : -1;
        const mica_column *now = number >= 0 ? mica_table_column(table, number) : NULL;
        if (old->role == MICA_ROLE_NONE)
            continue;
        if (now == NULL || now->kind != old->kind || now->role != old->role)
            return false;
        bool classes = now->kind == MICA_COLUMN_CATEGORY && (now->role & MICA_ROLE_TARGET) != 0;
        for (int k = 0; classes && k < now->value_count; k++)
            if (!has_name(old->values, old->value_count, now->values[k]))
                return false;
        used++;
    }
    for (int i = 0; i < mica_table_columns(table); i++)
        used -= mica_table_column(table, i)->role != MICA_ROLE_NONE;
    return used == 0;
}

/* For a table: the encoding that the weights were trained with, which is by the names of columns. */
static bool table_of_weights(const training *t, data_opts *opts)
{
    const meaning *m = &t->source.meaning;
    const data *d = &t->data;
    bool same = d->window == m->forecast.window && (d->window == 0 || d->horizon == m->forecast.horizon) &&
                same_columns(m->table, d->table);
    if (!same && !t->settings.shared.quiet)
        (void)verb_error(t->v, EXIT_OK,
                         "%s was trained on other columns or classes than those of %s: "
                         "what it learned of single ones does not apply",
                         t->source.path, t->settings.data);
    opts->known = m->table;
    opts->window = m->forecast.window;
    opts->horizon = m->forecast.horizon;
    opts->table.season = m->season;
    return same;
}

bool weights_meaning(const training *t, data_opts *opts)
{
    const meaning *m = &t->source.meaning;
    const data *d = &t->data;
    if (t->source.file == NULL)
        return false;
    if (d->is_text && m->vocabulary.count > 0) {
        bool known = covers(&m->vocabulary, &d->text.vocabulary);
        if (!known && !t->settings.shared.quiet)
            (void)verb_error(t->v, EXIT_OK,
                             "%s was trained on a text without some characters of %s: "
                             "what it learned of single characters does not apply",
                             t->source.path, t->settings.data);
        opts->vocabulary = &m->vocabulary;
        return known && m->vocabulary.count != d->text.vocabulary.count;
    }
    if (d->table != NULL && m->table != NULL)
        return table_of_weights(t, opts);
    if (d->samples.classes == NULL || m->class_names == NULL)
        return false;
    bool same = m->class_count == d->class_count;
    for (int i = 0; i < (int)d->class_count; i++) {
        if (!has_name(m->class_names, m->class_count, d->class_names[i]))
            return false;
        same = same && strcmp(m->class_names[i], d->class_names[i]) == 0;
    }
    opts->classes = (const char *const *)m->class_names;
    opts->class_count = m->class_count;
    return !same;
}

/* ---- What stays as it is ---- */

static int no_such_prefix(const training *t, const char *prefix)
{
    enum { MOST = 256 };
    const char *names[MOST], *name;
    size_t count = 0;
    char some[400] = "";
    for (int i = 0; i < mica_net_layers(t->net) && count < MOST; i++)
        if (mica_net_layer_parameters(t->net, i) > 0 &&
            mica_net_layer(t->net, &name, NULL, NULL, i) == MICA_OK)
            names[count++] = name;
    const char *meant = nearest(prefix, names, count, sizeof names[0]);
    if (meant != NULL)
        return usage_error(t->v, "--freeze %s: no parameter's name starts with it; did you mean \"%s\"?",
                           prefix, meant);
    for (size_t i = 0; i < count && strlen(some) + strlen(names[i]) + 8 < sizeof some; i++)
        (void)snprintf(some + strlen(some), sizeof some - strlen(some), "%s%s", i > 0 ? ", " : "", names[i]);
    return usage_error(t->v,
                       "--freeze %s: no parameter's name starts with it; the layers with parameters are %s",
                       prefix, some);
}

int weights_freeze(training *t)
{
    const option_list *list = &t->settings.freeze;
    for (size_t i = 0; i < list->count; i++)
        if (mica_net_freeze(t->net, list->item[i], true) != MICA_OK)
            return no_such_prefix(t, list->item[i]);
    return EXIT_OK;
}

/* ---- Loading ---- */

typedef struct left_out {
    char text[1500];
} left_out;

static void add_left_out(void *user, mica_weights_found found, const mica_named_tensor *wanted,
                         const mica_safetensors_entry *in_file)
{
    left_out *l = user;
    size_t used = strlen(l->text), room = sizeof l->text - used;
    if (found == MICA_WEIGHTS_LOADED)
        return;
    if (strlen(wanted->name) + 160 > room) {
        if (room > 8 && (used < 5 || strcmp(l->text + used - 5, ", ...") != 0))
            (void)snprintf(l->text + used, room, ", ...");
        return;
    }
    used += (size_t)snprintf(l->text + used, room, "%s%s", used > 0 ? ", " : "", wanted->name);
    if (in_file == NULL)
        return;
    used += (size_t)snprintf(l->text + used, sizeof l->text - used, " (there [");
    for (int i = 0; i < in_file->rank; i++)
        used += (size_t)snprintf(l->text + used, sizeof l->text - used, "%s%td", i > 0 ? ", " : "",
                                 in_file->dim[i]);
    (void)snprintf(l->text + used, sizeof l->text - used, "])");
}

int weights_load(training *t)
{
    const train_settings *s = &t->settings;
    char path[4096];
    left_out left = {.text = ""};
    mica_weights_match match = {.tell = add_left_out, .user = &left};
    if (!t->resumes && s->weights == NULL && onnx_of(t->net) != NULL) /* those of the model itself */
        return mica_onnx_load(onnx_of(t->net), t->net) == MICA_OK ? EXIT_OK : verb_failed(t->v, t->ctx);
    if (t->resumes || s->weights == NULL || strcmp(s->weights, NO_WEIGHTS) == 0)
        return EXIT_OK;
    (void)checkpoint_path(path, sizeof path, s->weights);
    if (mica_weights_load_matching(t->net, &match, path) != MICA_OK)
        return verb_failed(t->v, t->ctx);
    if (s->shared.quiet || ranks_rank() > 0)
        return EXIT_OK;
    char line[sizeof left.text + sizeof path + 100];
    (void)snprintf(line, sizeof line, "%s: %zu of %zu tensors fit%s%s", path, match.loaded,
                   match.loaded + match.missing + match.different,
                   left.text[0] != '\0' ? "; initialized: " : "", left.text);
    fprintf(stderr, "weights ");
    put_plain(stderr, line);
    fprintf(stderr, "\n");
    return EXIT_OK;
}
