/* Folders of WAV files. */
#include "cli/model/sounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/take.h"
#include "data/sounds.h"
#include "io/quote.h"

const char *const feature_names[] = {"log-mel", "samples", NULL};

/* ---- Loading ---- */

bool is_sound_folder(mica_context *ctx, const char *path)
{
    mica_folder files;
    if (mica_sounds_list(ctx, &files, path, true, &(mica_sounds_opts){.rate = 0}) != MICA_OK)
        return false;
    mica_folder_release(ctx, &files);
    return true;
}

int sounds_load(data *out, const verb *v, mica_context *ctx, const char *folder, const data_opts *opts)
{
    char part[MICA_FOLDER_PATH];
    mica_tensor shape;
    if (opts->sound != NULL)
        out->sound = *opts->sound;
    out->is_sound = true;
    out->sound.classes = opts->classes;
    out->sound.class_count = opts->class_count;
    if (mica_sounds_settle(ctx, &shape, &out->sound) != MICA_OK)
        return verb_failed(v, ctx);
    bool split = mica_folder_part_of(ctx, part, folder, MICA_FOLDER_TRAIN);
    if (mica_dataset_load_sounds(ctx, &out->samples, split ? part : folder, &out->sound) != MICA_OK)
        return verb_failed(v, ctx);
    if (!split || !mica_folder_part_of(ctx, part, folder, MICA_FOLDER_TEST))
        return EXIT_OK;
    mica_sounds_opts same = out->sound;
    same.classes = out->samples.classes;
    same.class_count = out->samples.class_count;
    out->has_test = true;
    return mica_dataset_load_sounds(ctx, &out->test, part, &same) == MICA_OK ? EXIT_OK : verb_failed(v, ctx);
}

/* The files of one argument, behind those that are there. */
static void add_files(char ***paths, size_t *count, mica_context *ctx, const char *name)
{
    mica_folder found;
    bool folder = mica_sounds_list(ctx, &found, name, true, &(mica_sounds_opts){.rate = 0}) == MICA_OK;
    size_t more = folder ? found.count : 1;
    char **all = take(*count + more + 1, sizeof *all); /* NULL ends them */
    if (*count > 0)
        memcpy(all, *paths, *count * sizeof *all);
    for (size_t i = 0; i < more; i++)
        all[*count + i] = take_text(folder ? found.files[i].path : name);
    free(*paths);
    *paths = all;
    *count += more;
    mica_folder_release(ctx, &found);
}

int sounds_load_files(image_list *out, const verb *v, mica_context *ctx, char *const *names, int count,
                      const mica_sounds_opts *opts)
{
    size_t file_count = 0;
    int code = EXIT_OK;
    for (int i = 0; i < count; i++)
        add_files(&out->paths, &file_count, ctx, names[i]);
    mica_folder_file *files = take(file_count + 1, sizeof *files);
    for (size_t i = 0; i < file_count; i++)
        files[i] = (mica_folder_file){out->paths[i], -1};
    if (mica_sounds_load(ctx, &out->set, files, file_count, names[0], opts) != MICA_OK)
        code = verb_failed(v, ctx);
    free(files);
    return code;
}

/* ---- In a checkpoint ---- */

void sounds_describe(char *text, const mica_sounds_opts *o)
{
    const mica_log_mel_opts *m = &o->log_mel;
    int n = snprintf(text, SOUND_TEXT, "%s rate=%d seconds=%.9g",
                     feature_names[o->samples ? FEATURES_SAMPLES : FEATURES_LOG_MEL], (int)o->rate,
                     o->seconds);
    if (!o->samples)
        (void)snprintf(text + n, SOUND_TEXT - (size_t)n,
                       " window=%d hop=%d mels=%d low=%.9g high=%.9g floor=%.9g", (int)m->window, (int)m->hop,
                       (int)m->mels, (double)m->low, (double)m->high, (double)m->floor);
}

/* " NAME=NUMBER" from *text on; steps behind it. */
static bool read_number(const char **text, const char *name, double most, double *out)
{
    size_t length = strlen(name);
    const char *at = *text;
    char *end;
    if (*at != ' ' || strncmp(at + 1, name, length) != 0 || at[1 + length] != '=')
        return false;
    at += length + 2;
    *out = strtod(at, &end);
    *text = end;
    return *at >= '0' && *at <= '9' && end <= at + strspn(at, "0123456789.e+-") && *out <= most &&
           isfinite(*out);
}

bool sounds_parse(mica_sounds_opts *out, const char *text)
{
    static const char *const names[] = {"rate", "seconds", "window", "hop", "mels", "low", "high", "floor"};
    double n[8] = {0};
    size_t kind = strcspn(text, " ");
    bool samples = kind == 7 && strncmp(text, "samples", kind) == 0;
    if (!samples && (kind != 7 || strncmp(text, "log-mel", kind) != 0))
        return false;
    text += kind;
    for (int i = 0; i < (samples ? 2 : 8); i++)
        if (!read_number(&text, names[i], i == 1 ? 1e9 : 1e8, &n[i]))
            return false;
    *out = (mica_sounds_opts){.rate = (int32_t)n[0], .seconds = n[1], .samples = samples};
    if (!samples)
        out->log_mel = (mica_log_mel_opts){.rate = (int32_t)n[0],
                                           .window = (int32_t)n[2],
                                           .hop = (int32_t)n[3],
                                           .mels = (int32_t)n[4],
                                           .low = (float)n[5],
                                           .high = (float)n[6],
                                           .floor = (float)n[7]};
    return *text == '\0';
}

int sounds_check(const saved *s, const verb *v, mica_context *ctx)
{
    const meaning *m = &s->meaning;
    mica_sounds_opts opts = m->sound;
    mica_tensor shape;
    if (!m->is_sound)
        return EXIT_OK;
    if (mica_sounds_settle(ctx, &shape, &opts) != MICA_OK)
        return verb_error(v, EXIT_FILE, "%s: its \"mica.sound\": %s", s->path, mica_error(ctx));
    bool same = shape.rank == m->sample.rank;
    for (int i = 0; same && i < shape.rank; i++)
        same = shape.dim[i] == m->sample.dim[i];
    if (!same)
        return verb_error(v, EXIT_FILE,
                          "%s: its \"mica.sound\" makes other samples than its \"mica.sample\" says",
                          s->path);
    return EXIT_OK;
}
