/* Checkpoints that say what they are. */
#include "cli/model/saved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/model/take.h"

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

/* Numbers with a blank between them; each comes back to the bit. */
static void add_floats(notes *n, const char *key, const float *values, mica_index count)
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
    for (int i = 0; i < m->class_count; i++) {
        char *name = at + (i > 0);
        at += snprintf(at, bytes - (size_t)(at - text), "%s%s", i > 0 ? "\n" : "", m->class_names[i]);
        for (; name < at; name++) /* a line is one name */
            *name = *name == '\n' ? ' ' : *name;
    }
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

void notes_add_meaning(notes *n, const meaning *m)
{
    add_sample(n, &m->sample);
    notes_add(n, "mica.title", m->title);
    notes_add(n, "mica.data", m->data);
    if (m->class_names != NULL)
        add_classes(n, m);
    if (m->vocabulary.count > 0)
        add_vocabulary(n, &m->vocabulary);
    if (m->normalization.channels > 0) {
        add_floats(n, "mica.scale", &m->normalization.scale, 1);
        add_floats(n, "mica.mean", m->normalization.mean, m->normalization.channels);
        add_floats(n, "mica.deviation", m->normalization.deviation, m->normalization.channels);
    }
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

double saved_number(const saved *s, const char *key, double otherwise)
{
    const char *text = saved_text(s, key);
    char *end;
    if (text == NULL || *text == '\0')
        return otherwise;
    double value = strtod(text, &end);
    return *end == '\0' ? value : otherwise;
}

/* Numbers with blanks between them, at most `most`; -1: something else. */
static mica_index count_numbers(const char *text)
{
    mica_index count = 0;
    while (*text != '\0') {
        char *end;
        (void)strtod(text, &end);
        if (end == text || (*end != ' ' && *end != '\0'))
            return -1;
        count++;
        text = *end == ' ' ? end + 1 : end;
    }
    return count;
}

static bool read_normalization(normalization *n, const saved *s)
{
    const char *mean = saved_text(s, "mica.mean"), *deviation = saved_text(s, "mica.deviation");
    *n = (normalization){.scale = (float)saved_number(s, "mica.scale", 1)};
    if (mean == NULL || deviation == NULL)
        return mean == deviation;
    mica_index channels = count_numbers(mean);
    if (channels < 1 || count_numbers(deviation) != channels)
        return false;
    n->channels = channels;
    n->mean = take((size_t)channels, sizeof(float));
    n->deviation = take((size_t)channels, sizeof(float));
    for (mica_index c = 0; c < channels; c++) {
        char *end;
        n->mean[c] = strtof(mean, &end);
        mean = end;
        n->deviation[c] = strtof(deviation, &end);
        deviation = end;
        if (!(n->deviation[c] > 0))
            return false;
    }
    return true;
}

static bool read_vocabulary(meaning *m, const saved *s)
{
    const char *text = saved_text(s, "mica.vocabulary");
    if (text == NULL)
        return true;
    m->vocabulary = (mica_vocabulary){.count = 256};
    if (strcmp(text, "bytes") == 0)
        return true;
    mica_index count = count_numbers(text);
    if (count < 1 || count > 0x110000)
        return false;
    uint32_t *characters = m->owned[0] = take((size_t)count, sizeof *characters);
    for (mica_index i = 0; i < count; i++) {
        char *end;
        unsigned long code = strtoul(text, &end, 10);
        text = end;
        if (code >= 0x110000 || (i > 0 && code <= characters[i - 1]))
            return false;
        characters[i] = (uint32_t)code;
    }
    m->vocabulary = (mica_vocabulary){.count = (int32_t)count, .characters = characters};
    return true;
}

static void read_classes(meaning *m, const saved *s)
{
    const char *text = saved_text(s, "mica.classes");
    if (text == NULL)
        return;
    char *names = m->owned[1] = take_text(text);
    m->class_count = 1;
    for (char *at = names; *at != '\0'; at++) {
        m->class_count += *at == '\n';
        if (((unsigned char)*at < ' ' && *at != '\n') || *at == 0x7f)
            *at = '?'; /* names are printed: no terminal obeys them */
    }
    m->class_names = take((size_t)m->class_count, sizeof *m->class_names);
    for (int i = 0; i < m->class_count; i++) {
        m->class_names[i] = names;
        names += strcspn(names, "\n");
        *names++ = '\0';
    }
}

static bool read_sample(mica_tensor *sample, const saved *s)
{
    const char *text = saved_text(s, "mica.sample");
    mica_index count = text != NULL ? count_numbers(text) : 0;
    if (count < 0 || count > MICA_MAX_RANK)
        return false;
    for (sample->rank = 0; sample->rank < (int)count; sample->rank++) {
        char *end;
        sample->dim[sample->rank] = (mica_index)strtoll(text, &end, 10);
        text = end;
    }
    return true;
}

int saved_open(saved *out, const verb *v, mica_context *ctx, const char *where)
{
    *out = (saved){.file = NULL};
    if (!checkpoint_path(out->path, sizeof out->path, where))
        return usage_error(v, "a path of more than %zu bytes", sizeof out->path - 1);
    if (mica_safetensors_open(ctx, &out->file, out->path) != MICA_OK)
        return verb_failed(v, ctx);
    if (saved_text(out, MICA_NETFILE_KEY) == NULL)
        return verb_error(
            v, EXIT_FILE,
            "%s: a safetensors file, but not one that mica train wrote: it does not say what net it is of",
            out->path);
    meaning *m = &out->meaning;
    m->title = saved_text(out, "mica.title");
    m->data = saved_text(out, "mica.data");
    read_classes(m, out);
    if (!read_normalization(&m->normalization, out) || !read_vocabulary(m, out) ||
        !read_sample(&m->sample, out))
        return verb_error(v, EXIT_FILE, "%s: its metadata are damaged", out->path);
    return EXIT_OK;
}

void saved_close(mica_context *ctx, saved *s)
{
    mica_safetensors_close(ctx, s->file);
    normalization_free(&s->meaning.normalization);
    free(s->meaning.owned[0]);
    free(s->meaning.owned[1]);
    free(s->meaning.class_names);
    *s = (saved){.file = NULL};
}

int saved_build(mica_net **net, mica_netfile_info *info, const verb *v, mica_context *ctx, const saved *s,
                mica_index batch, bool with_loss)
{
    mica_netfile_opts opts = {.file = s->path, .batch = batch, .inference = !with_loss};
    mica_status status = mica_net_create(ctx, net);
    if (status == MICA_OK)
        status = mica_netfile_build(*net, info, saved_text(s, MICA_NETFILE_KEY), &opts);
    if (status == MICA_OK)
        status = mica_net_compile(*net, NULL);
    if (status == MICA_OK)
        status = mica_net_bind(*net, NULL, 0);
    if (status == MICA_OK)
        status = mica_weights_load(*net, s->path);
    if (status == MICA_OK)
        return EXIT_OK;
    int code = verb_error(v, EXIT_FILE, "%s", mica_error(ctx));
    mica_net_destroy(*net);
    *net = NULL;
    return code;
}
