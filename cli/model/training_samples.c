/* Pictures of the training part, for the report. */
#include "cli/model/training_samples.h"

#include <stdlib.h>

#include "cli/model/take.h"

#define MOST_BYTES ((size_t)2 << 20) /* of all pictures together */

/* One sample at a time, by its place in the training part. */
typedef struct viewer {
    mica_context *ctx;
    mica_batches *batches;
    float *values; /* [channels, height, width] */
    int channels, height, width;
} viewer;

/* As in training, but in order and without normalization. What is drawn for a sample depends on its epoch alone. */
static mica_status open_viewer(viewer *out, const training *t, bool augmented)
{
    const train_settings *s = &t->settings;
    mica_batches_opts opts = {.batch = 1,
                              .seed = (uint64_t)s->shared.seed,
                              .sequential = true,
                              .split = {.part = MICA_PART_TRAIN,
                                        .validation = s->validation,
                                        .test = test_share(&t->data, (int)s->folds),
                                        .folds = (int)s->folds,
                                        .fold = t->fold}};
    mica_status status = MICA_OK;
    if (augmented)
        status = mica_augment_transform(t->ctx, &opts.transform, &t->augment);
    return status == MICA_OK ? mica_batches_create(t->ctx, &out->batches, &t->data.samples, &opts) : status;
}

/* The pixels [height, width, channels] of a place in an epoch; NULL: there is no such. */
static unsigned char *view(viewer *v, mica_cursor at, int32_t *label)
{
    size_t plane = (size_t)v->height * (size_t)v->width, channels = (size_t)v->channels;
    mica_tensor x = mica_4d(v->values, 1, v->channels, v->height, v->width), y;
    mica_index count = 0;
    if (mica_tensor_init(v->ctx, &y, label, MICA_I32, 1, (mica_index[]){1}) != MICA_OK ||
        mica_batches_seek(v->ctx, v->batches, at) != MICA_OK ||
        mica_batches_next(v->ctx, &x, &y, &count, v->batches) != MICA_OK || count != 1)
        return NULL;
    unsigned char *pixels = take(plane * channels, 1);
    for (size_t i = 0; i < plane * channels; i++) {
        float value = v->values[i];
        pixels[i % plane * channels + i / plane] = (unsigned char)(value < 0     ? 0
                                                                   : value > 255 ? 255
                                                                                 : value + 0.5f);
    }
    return pixels;
}

/* Whether there is something to see: class by class, or without. */
static bool are_pictures(viewer *v, const training *t)
{
    const mica_tensor *s = &t->meaning.sample;
    if (t->data.is_text || t->data.samples.inputs.dtype != MICA_U8 || t->data.class_count == 0 ||
        (s->rank != 2 && (s->rank != 3 || (s->dim[0] != 1 && s->dim[0] != 3))))
        return false;
    v->channels = s->rank == 3 ? (int)s->dim[0] : 1;
    v->height = (int)s->dim[s->rank - 2];
    v->width = (int)s->dim[s->rank - 1];
    return true;
}

void sample_pictures_take(sample_pictures *out, const training *t)
{
    viewer plain = {.ctx = t->ctx};
    *out = (sample_pictures){.count = 0};
    if (!are_pictures(&plain, t))
        return;
    bool augmented = t->augment.height > 0;
    size_t each = (size_t)plain.channels * (size_t)plain.height * (size_t)plain.width;
    size_t wanted = sizeof out->list / sizeof out->list[0],
           afford = MOST_BYTES / (each * (augmented ? 4 : 1));
    plain.values = take(each, sizeof *plain.values);
    viewer changed = plain;
    wanted = wanted < afford ? wanted : afford;
    mica_status status = open_viewer(&plain, t, false);
    if (status == MICA_OK && augmented)
        status = open_viewer(&changed, t, true);
    size_t samples = status == MICA_OK ? (size_t)mica_batches_samples(plain.batches) : 0;
    wanted = wanted < samples ? wanted : samples;
    for (size_t i = 0; i < wanted; i++) {
        report_sample *s = &out->list[out->count];
        int32_t label = -1;
        uint64_t place = i * samples / wanted;
        *s = (report_sample){.width = plain.width, .height = plain.height, .channels = plain.channels};
        s->pixels = view(&plain, (mica_cursor){0, place}, &label);
        s->label = label;
        for (uint64_t epoch = 0; augmented && epoch < sizeof s->changed / sizeof s->changed[0]; epoch++)
            if ((s->changed[s->changed_count] = view(&changed, (mica_cursor){epoch, place}, &label)) != NULL)
                s->changed_count++;
        out->count += s->pixels != NULL;
    }
    mica_batches_destroy(t->ctx, changed.batches);
    mica_batches_destroy(t->ctx, plain.batches);
    free(plain.values);
}

void sample_pictures_free(sample_pictures *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free((void *)s->list[i].pixels);
        for (size_t k = 0; k < s->list[i].changed_count; k++)
            free((void *)s->list[i].changed[k]);
    }
}
