/* WAV files as a data set: each at the same rate and length, as samples or log-mel features. */
#include "data/sounds.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "data/classes.h"
#include "io/quote.h"
#include "tensor/tensor.h"

#define MOST_SECONDS 3600.0

static int32_t samples_of(const mica_sounds_opts *o) { return (int32_t)(o->seconds * o->rate + 0.5); }

mica_status mica_sounds_settle(mica_context *ctx, mica_tensor *shape, mica_sounds_opts *opts)
{
    opts->rate = opts->rate != 0 ? opts->rate : 16000;
    opts->seconds = opts->seconds != 0 ? opts->seconds : 1;
    if (opts->rate < MICA_SOUND_LEAST_RATE || opts->rate > MICA_SOUND_MOST_RATE)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "sounds: rate is %d: expected %d to %d", (int)opts->rate,
                         MICA_SOUND_LEAST_RATE, MICA_SOUND_MOST_RATE);
    if (!(opts->seconds > 0 && opts->seconds <= MOST_SECONDS && opts->seconds * opts->rate <= INT32_MAX / 4 &&
          samples_of(opts) >= 1))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "sounds: seconds is %g: expected one sample to an hour",
                         opts->seconds);
    mica_index length = samples_of(opts);
    *shape = (mica_tensor){.dtype = MICA_F32, .rank = 2, .dim = {1, length}};
    if (!opts->samples) {
        mica_log_mel *m;
        opts->log_mel.rate = opts->rate;
        MICA_TRY(mica_log_mel_create(ctx, &m, &opts->log_mel));
        opts->log_mel = mica_log_mel_options(m);
        *shape = (mica_tensor){
            .dtype = MICA_F32, .rank = 3, .dim = {1, mica_log_mel_frames(m, length), opts->log_mel.mels}};
        mica_log_mel_destroy(ctx, m);
        if (shape->dim[1] == 0)
            return mica_fail(ctx, MICA_ERR_ARGUMENT,
                             "sounds: %g seconds are %td samples: expected at least a window of %d",
                             opts->seconds, length, (int)opts->log_mel.window);
    }
    mica_tensor_set_strides(shape);
    return MICA_OK;
}

mica_status mica_sounds_list(mica_context *ctx, mica_folder *out, const char *path, bool flat,
                             const mica_sounds_opts *opts)
{
    static const char *const ends[] = {".wav", ".wav.gz"};
    mica_folder_opts listing = {.ends = ends,
                                .end_count = sizeof ends / sizeof ends[0],
                                .flat = flat,
                                .classes = opts->classes,
                                .class_count = opts->class_count};
    return mica_folder_list(ctx, out, path, &listing);
}

/* ---- A set being made ---- */

typedef struct loading {
    mica_context *ctx;
    mica_sounds_opts opts; /* with nothing left open */
    mica_tensor shape;     /* of one sound */
    mica_log_mel *features;
    float *samples; /* [samples_of] of one sound */
    mica_dataset set;
} loading;

static mica_status take_inputs(loading *l, size_t count, const char *path)
{
    mica_tensor all = {.dtype = MICA_F32, .rank = l->shape.rank + 1, .dim = {(mica_index)count}};
    memcpy(all.dim + 1, l->shape.dim, (size_t)l->shape.rank * sizeof all.dim[0]);
    mica_tensor_set_strides(&all);
    char text[MICA_SHAPE_TEXT];
    const char *flaw = mica_tensor_flaw(&all, text);
    if (flaw != NULL)
        return mica_fail(l->ctx, MICA_ERR_SHAPE, "%s: the sounds as %s %s", MICA_QUOTE(path),
                         MICA_SHAPE(&all), flaw);
    all.data = mica_allocate(l->ctx, mica_most(mica_tensor_bytes(&all), 1));
    if (all.data == NULL)
        return l->ctx->status;
    l->set.inputs = all;
    l->set.owned[0] = mica_most(mica_tensor_bytes(&all), 1);
    l->set.count = (mica_index)count;
    return MICA_OK;
}

static mica_status take_targets(loading *l, size_t count)
{
    void *block = mica_allocate(l->ctx, mica_most(count * sizeof(int32_t), 1));
    if (block == NULL)
        return l->ctx->status;
    l->set.owned[1] = mica_most(count * sizeof(int32_t), 1);
    l->set.has_targets = true;
    return mica_tensor_init(l->ctx, &l->set.targets, block, MICA_I32, 1, (mica_index[]){(mica_index)count});
}

static mica_status begin(loading *l, mica_context *ctx, size_t count, bool targets, const char *path,
                         const mica_sounds_opts *opts)
{
    *l = (loading){.ctx = ctx};
    if (opts != NULL)
        l->opts = *opts;
    MICA_TRY(mica_sounds_settle(ctx, &l->shape, &l->opts));
    if (!l->opts.samples)
        MICA_TRY(mica_log_mel_create(ctx, &l->features, &l->opts.log_mel));
    l->samples = mica_allocate(ctx, (size_t)samples_of(&l->opts) * sizeof *l->samples);
    if (l->samples == NULL)
        return ctx->status;
    MICA_TRY(take_inputs(l, count, path));
    return targets ? take_targets(l, count) : MICA_OK;
}

/* The set, or nothing. */
static mica_status finish(loading *l, mica_dataset *out, mica_status status)
{
    mica_log_mel_destroy(l->ctx, l->features);
    if (l->samples != NULL)
        mica_release(l->ctx, l->samples, (size_t)samples_of(&l->opts) * sizeof *l->samples);
    if (status == MICA_OK)
        *out = l->set;
    else
        mica_dataset_destroy(l->ctx, &l->set);
    return status;
}

/* Sound i; gives its memory back. */
static mica_status store(loading *l, mica_sound *sound, size_t i)
{
    size_t length = (size_t)samples_of(&l->opts), have = mica_least(length, (size_t)sound->samples.dim[1]);
    float *to = (float *)l->set.inputs.data + i * mica_tensor_count(&l->shape);
    float *samples = l->opts.samples ? to : l->samples;
    if (have > 0)
        memcpy(samples, sound->samples.data, have * sizeof *samples);
    memset(samples + have, 0, (length - have) * sizeof *samples);
    mica_sound_destroy(l->ctx, sound);
    if (l->opts.samples)
        return MICA_OK;
    mica_tensor from = mica_1d(samples, (mica_index)length),
                frames = mica_2d(to, l->shape.dim[1], l->shape.dim[2]);
    return mica_log_mel_all(l->ctx, &frames, l->features, &from);
}

static mica_status load_all(loading *l, const mica_folder_file *files, size_t count)
{
    mica_wav_opts wav = {.rate = l->opts.rate, .mono = true};
    for (size_t i = 0; i < count; i++) {
        mica_sound sound;
        MICA_TRY(mica_sound_load_wav(l->ctx, &sound, files[i].path, &wav));
        MICA_TRY(store(l, &sound, i));
        if (l->set.has_targets)
            ((int32_t *)l->set.targets.data)[i] = files[i].number;
    }
    return MICA_OK;
}

mica_status mica_sounds_load(mica_context *ctx, mica_dataset *out, const mica_folder_file *files,
                             size_t count, const char *path, const mica_sounds_opts *opts)
{
    loading l;
    *out = (mica_dataset){0};
    mica_status status = begin(&l, ctx, count, count > 0 && files[0].number >= 0, path, opts);
    if (status == MICA_OK)
        status = load_all(&l, files, count);
    return finish(&l, out, status);
}

mica_status mica_sounds_from_memory(mica_context *ctx, mica_dataset *out, const void *bytes, size_t count,
                                    const char *name, const mica_sounds_opts *opts)
{
    loading l;
    mica_sound sound;
    *out = (mica_dataset){0};
    mica_status status = begin(&l, ctx, 1, false, name, opts);
    if (status == MICA_OK)
        status = mica_sound_from_memory(ctx, &sound, bytes, count, name,
                                        &(mica_wav_opts){.rate = l.opts.rate, .mono = true});
    if (status == MICA_OK)
        status = store(&l, &sound, 0);
    return finish(&l, out, status);
}

mica_status mica_dataset_load_sounds(mica_context *ctx, mica_dataset *out, const char *folder,
                                     const mica_sounds_opts *opts)
{
    if (out == NULL || folder == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "dataset: %s is NULL", out == NULL ? "out" : "folder");
    *out = (mica_dataset){0};
    mica_folder files;
    mica_sounds_opts all = {0};
    if (opts != NULL)
        all = *opts;
    MICA_TRY(mica_sounds_list(ctx, &files, folder, false, &all));
    mica_status status = mica_sounds_load(ctx, out, files.files, files.count, folder, &all);
    if (status == MICA_OK)
        status = mica_classes_copy(ctx, out, files.classes, files.class_count);
    if (status != MICA_OK)
        mica_dataset_destroy(ctx, out);
    mica_folder_release(ctx, &files);
    return status;
}
