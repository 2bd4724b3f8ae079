/* mica info of a folder of images or sounds: how many of each class, and how large or long. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/mica.h>

#include "cli/info/info.h"
#include "cli/model/take.h"
#include "cli/picture/text.h"
#include "data/images.h"
#include "data/sounds.h"

/* What was found. */
typedef struct survey {
    mica_folder parts[2]; /* those for training, and for tests */
    int part_count;
    size_t *counts; /* [class_count][2] */
    size_t greyscale, colour;
    mica_index least[2], most[2]; /* height, width */
    bool sounds;
    int rate[2]; /* of sounds, the least and the most; and their length */
    double seconds[2];
} survey;

static mica_status list(const survey *s, mica_context *ctx, mica_folder *out, const char *path, bool flat)
{
    const mica_folder *train = &s->parts[0]; /* its classes are those of the other part */
    mica_images_opts images = {.classes = train->classes, .class_count = train->class_count};
    mica_sounds_opts sounds = {.classes = train->classes, .class_count = train->class_count};
    return s->sounds ? mica_sounds_list(ctx, out, path, flat, &sounds)
                     : mica_images_list(ctx, out, path, flat, &images);
}

static mica_status measure_sounds(survey *s, mica_context *ctx, const mica_folder *folder, int part)
{
    for (size_t i = 0; i < folder->count; i++) {
        const mica_folder_file *file = &folder->files[i];
        mica_sound sound;
        mica_status status = mica_sound_load_wav(ctx, &sound, file->path, NULL);
        if (status != MICA_OK)
            return status;
        double seconds = (double)sound.file_frames / sound.rate;
        bool first = s->rate[0] == 0;
        s->seconds[0] = first || seconds < s->seconds[0] ? seconds : s->seconds[0];
        s->seconds[1] = first || seconds > s->seconds[1] ? seconds : s->seconds[1];
        s->rate[0] = first || sound.rate < s->rate[0] ? (int)sound.rate : s->rate[0];
        s->rate[1] = first || sound.rate > s->rate[1] ? (int)sound.rate : s->rate[1];
        if (file->number >= 0)
            s->counts[2 * file->number + part]++;
        mica_sound_destroy(ctx, &sound);
    }
    return MICA_OK;
}

/* Looks at every image, so that one that cannot be read is found. */
static mica_status measure(survey *s, mica_context *ctx, const mica_folder *folder, int part)
{
    for (size_t i = 0; i < folder->count; i++) {
        const mica_folder_file *file = &folder->files[i];
        mica_dataset image;
        mica_status status = mica_dataset_load_image(ctx, &image, file->path);
        if (status != MICA_OK)
            return status;
        bool first = s->greyscale + s->colour == 0;
        for (int k = 0; k < 2; k++) {
            mica_index size = image.inputs.dim[2 + k];
            s->least[k] = first || size < s->least[k] ? size : s->least[k];
            s->most[k] = first || size > s->most[k] ? size : s->most[k];
        }
        *(image.inputs.dim[1] >= 3 ? &s->colour : &s->greyscale) += 1;
        if (file->number >= 0)
            s->counts[2 * file->number + part]++;
        mica_dataset_destroy(ctx, &image);
    }
    return MICA_OK;
}

/* As mica train would: with parts, or classes; else all that there is. */
static mica_status find(survey *s, mica_context *ctx, const char *path)
{
    char part[MICA_FOLDER_PATH];
    bool parts = mica_folder_part_of(ctx, part, path, MICA_FOLDER_TRAIN);
    mica_status status = list(s, ctx, &s->parts[0], parts ? part : path, false);
    if (status != MICA_OK && !parts)
        status = list(s, ctx, &s->parts[0], path, true);
    if (status != MICA_OK)
        return status;
    s->part_count = 1;
    s->counts = take(2 * (size_t)s->parts[0].class_count + 1, sizeof *s->counts);
    if (!parts || (!mica_folder_part_of(ctx, part, path, MICA_FOLDER_TEST) &&
                   !mica_folder_part_of(ctx, part, path, MICA_FOLDER_VALIDATION)))
        return MICA_OK;
    s->part_count = 2;
    return list(s, ctx, &s->parts[1], part, false);
}

static void put_sizes(const survey *s, bool json)
{
    const mica_index *a = s->least, *b = s->most;
    if (s->sounds && json)
        printf("\"rate\": [%d, %d], \"seconds\": [%.9g, %.9g]}\n", s->rate[0], s->rate[1], s->seconds[0],
               s->seconds[1]);
    else if (s->sounds && s->rate[0] == s->rate[1])
        printf("\n%d Hz, %.3f to %.3f s\n", s->rate[0], s->seconds[0], s->seconds[1]);
    else if (s->sounds)
        printf("\n%d to %d Hz, %.3f to %.3f s\n", s->rate[0], s->rate[1], s->seconds[0], s->seconds[1]);
    else if (json)
        printf("\"height\": [%td, %td], \"width\": [%td, %td], \"greyscale\": %zu, \"colour\": %zu}\n", a[0],
               b[0], a[1], b[1], s->greyscale, s->colour);
    else if (a[0] == b[0] && a[1] == b[1])
        printf("\nheight x width %td x %td; %zu in greyscale, %zu in colour\n", a[0], a[1], s->greyscale,
               s->colour);
    else
        printf("\nheight x width from %td x %td to %td x %td; %zu in greyscale, %zu in colour\n", a[0], a[1],
               b[0], b[1], s->greyscale, s->colour);
}

static void put_json_survey(const survey *s)
{
    const mica_folder *f = &s->parts[0];
    printf("{\"kind\": \"%s\", \"files\": %zu, \"classes\": [", s->sounds ? "sounds" : "images",
           f->count + s->parts[1].count);
    for (int c = 0; c < f->class_count; c++) {
        printf("%s{\"name\": ", c > 0 ? ", " : "");
        put_json(stdout, f->classes[c]);
        printf(", \"train\": %zu, \"test\": %zu}", s->counts[2 * c], s->counts[2 * c + 1]);
    }
    printf("], ");
    put_sizes(s, true);
}

static void put_text_survey(const survey *s, const char *path)
{
    const mica_folder *f = &s->parts[0];
    const char *what = s->sounds ? "sounds" : "images";
    size_t width = 5;
    put_plain(stdout, path);
    printf(": %zu %s", f->count + s->parts[1].count, what);
    if (f->class_count > 0)
        printf(" of %d class%s", f->class_count, f->class_count == 1 ? "" : "es");
    for (int c = 0; c < f->class_count; c++) {
        size_t length = strlen(f->classes[c]);
        width = length > width && length < 60 ? length : width;
    }
    if (f->class_count > 0)
        printf("\n\n%-*s  %8s%s\n", (int)width, "class", s->part_count > 1 ? "train" : what,
               s->part_count > 1 ? "      test" : "");
    else
        printf("\n");
    for (int c = 0; c < f->class_count; c++) {
        size_t length = strlen(f->classes[c]);
        put_plain_up_to(stdout, f->classes[c], 240);
        printf("%*s  %8zu", length < width ? (int)(width - length) : 0, "", s->counts[2 * c]);
        if (s->part_count > 1)
            printf("  %8zu", s->counts[2 * c + 1]);
        printf("\n");
    }
    put_sizes(s, false);
}

bool has_images(mica_context *ctx, const char *path)
{
    mica_folder all;
    bool some = mica_images_list(ctx, &all, path, true, &(mica_images_opts){0}) == MICA_OK;
    mica_folder_release(ctx, &all);
    return some;
}

int info_folder(mica_context *ctx, const info_settings *set, const char *path, bool sounds)
{
    survey s = {.sounds = sounds};
    mica_status status = find(&s, ctx, path);
    for (int i = 0; i < s.part_count && status == MICA_OK; i++)
        status = sounds ? measure_sounds(&s, ctx, &s.parts[i], i) : measure(&s, ctx, &s.parts[i], i);
    if (status == MICA_OK && set->shared.json)
        put_json_survey(&s);
    else if (status == MICA_OK)
        put_text_survey(&s, path);
    free(s.counts);
    mica_folder_release(ctx, &s.parts[1]);
    mica_folder_release(ctx, &s.parts[0]);
    return status == MICA_OK ? EXIT_OK : verb_failed(&verb_info, ctx);
}
