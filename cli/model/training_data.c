/* What a training works on: its data, what is known of them, and how they are handed out. */
#include <stdlib.h>
#include <string.h>

#include "cli/model/augment.h"
#include "cli/model/images.h"
#include "cli/model/sounds.h"
#include "cli/model/tables.h"
#include "cli/model/take.h"
#include "cli/model/training_weights.h"
#include "cli/net/argument.h"
#include "cli/onnx/onnx.h"
#include "cli/ranks.h"

/* Whether a net can be read now and again later: a pipe cannot. */
static bool can_read_twice(const char *net)
{
    char path[4096];
    return mica_netfile_builtin(net) != NULL ||
           (strcmp(net, "-") != 0 && checkpoint_path(path, sizeof path, net) && is_regular(path));
}

/* The net as it stands, before the data are known, for what data must know of it: images become what it takes, save
 * where the options say otherwise; a net file's own loss says what is to be learned from a table. */
static int look_at_net(training *t, data_opts *opts)
{
    const train_settings *s = &t->settings;
    mica_net *net = NULL;
    mica_netfile_info info;
    net_ends ends;
    bool images = data_is_images(s->data) && !is_sound_folder(t->ctx, s->data),
         table = file_kind_of(s->data) == FILE_CSV;
    if (!images && (s->size != NULL || s->colour || s->grey))
        return usage_error(t->v, "--size, --colour and --grey are for folders of images");
    if (t->resumes)
        opts->images = images_size_of_sample(&t->saved.meaning.sample);
    bool own = s->net != NULL && mica_netfile_builtin(s->net) == NULL;
    int code = EXIT_OK;
    if (!t->resumes && (images || (table && own)) && can_read_twice(s->net)) {
        mica_netfile_opts build = {.batch = is_onnx(s->net) ? 0 : 1}; /* one may be written into a model */
        code = net_build(&net, &info, t->v, t->ctx, s->net, &s->set, &build);
        if (code == EXIT_OK && images)
            code = net_ends_find(&ends, t->v, net, &info, s->net);
        if (code == EXIT_OK && images)
            opts->images = images_size_of(&ends.input);
        if (code == EXIT_OK && table && opts->table.task < 0 && info.task != MICA_TASK_NONE)
            opts->table.task = info.task == MICA_TASK_REGRESSION ? TABLE_NUMBERS
                               : info.task == MICA_TASK_BINARY   ? TABLE_YES_NO
                                                                 : TABLE_CLASSES;
        mica_net_destroy(net);
    }
    return code == EXIT_OK && images ? images_size_given(&opts->images, t->v, s->size, s->colour, s->grey)
                                     : code;
}

int training_load(training *t)
{
    const train_settings *s = &t->settings;
    const meaning *m = &t->saved.meaning;
    data_opts opts = {.table = s->table,
                      .test = s->test,
                      .tell = !s->shared.quiet && !s->shared.json && ranks_rank() == 0 && t->fold == 0};
    mica_sounds_opts sound = {.rate = s->rate > 0 ? (int32_t)s->rate : 0,
                              .seconds = s->seconds > 0 ? s->seconds : 0,
                              .samples = s->features == FEATURES_SAMPLES};
    const meaning *before = t->resumes ? m : &t->source.meaning; /* of the weights, if there are some */
    opts.sound_asked = s->features >= 0 || s->rate > 0 || s->seconds > 0;
    opts.sound = before->is_sound && !opts.sound_asked ? &before->sound : &sound;
    if (t->resumes && opts.sound_asked)
        return usage_error(t->v, "--resume takes --features, --rate and --seconds from the checkpoint");
    if (t->resumes) {
        opts.known = m->table;
        opts.same_rows = m->table != NULL && m->data != NULL && strcmp(s->data, m->data) == 0;
        opts.window = m->forecast.window;
        opts.horizon = m->forecast.horizon;
        opts.table.season = m->season;
        opts.classes = (const char *const *)m->class_names;
        opts.class_count = m->class_count;
        opts.vocabulary = m->vocabulary.count > 0 ? &m->vocabulary : NULL;
    }
    int code = look_at_net(t, &opts);
    if (code == EXIT_OK)
        code = data_load(&t->data, t->v, t->ctx, s->data, &opts);
    if (code != EXIT_OK || !weights_meaning(t, &opts))
        return code;
    data_release(t->ctx, &t->data);
    return data_load(&t->data, t->v, t->ctx, s->data, &opts);
}

/* The meaning of the net's inputs and outputs: learned from the data, or as the checkpoint has it. */
int training_meaning(training *t)
{
    meaning *m = &t->meaning;
    char title[256];
    if (t->resumes) {
        *m = t->saved.meaning;
        m->data = t->settings.data;
        return EXIT_OK;
    }
    *m = (meaning){.data = t->settings.data, .vocabulary = t->data.text.vocabulary};
    m->title = take_text(training_stem(title, sizeof title, t->settings.net));
    m->sample = data_sample(&t->data);
    m->is_sound = t->data.is_sound;
    m->sound = t->data.sound;
    m->sound.classes = NULL; /* as class_names has them */
    m->sound.class_count = 0;
    if (t->data.table != NULL)
        table_meaning(m, t->data.table, t->data.window, t->data.horizon, t->data.season);
    m->class_names = (const char **)t->data.class_names;
    m->class_count = m->class_names != NULL ? (int)t->data.class_count : 0;
    for (int i = 0; i < m->class_count; i++)
        if (strchr(m->class_names[i], '\n') != NULL)
            return verb_error(t->v, EXIT_FILE, "%s: a class name contains a newline and could not be saved",
                              m->data);
    if (t->settings.net != NULL && is_onnx(t->settings.net) && t->data.samples.inputs.dtype != MICA_U8) {
        m->normalization = (normalization){
            .scale = 1}; /* numbers are ready for the model that they are given to */
        return EXIT_OK;
    }
    int folds = (int)t->settings.folds;
    mica_data_split split = {.validation = t->settings.validation,
                             .test = test_share(&t->data, folds),
                             .folds = folds,
                             .fold = t->fold};
    mica_status status = normalization_learn(&m->normalization, t->ctx, &t->data, &split);
    return status == MICA_OK ? EXIT_OK : verb_failed(t->v, t->ctx);
}

int training_feeds(training *t)
{
    mica_tensor sample = t->meaning.sample;
    sample.dtype = data_sample(&t->data).dtype;
    const train_settings *s = &t->settings;
    feed_opts opts = {.part = MICA_PART_TRAIN,
                      .batch = (mica_index)s->batch,
                      .length = t->info.length,
                      .seed = (uint64_t)s->shared.seed,
                      .shuffled = true,
                      .validation = s->validation,
                      .folds = (int)s->folds,
                      .fold = t->fold,
                      .normalization = &t->meaning.normalization};
    int code = augment_read(&opts.transform, &t->augment, t->v, t->ctx, s->augment, &sample);
    if (code != EXIT_OK)
        return code;
    mica_status status = feed_open(&t->train, t->ctx, &t->data, &opts);
    opts.transform = (mica_transform){0};
    opts.shuffled = false;
    opts.batch = t->rows;
    opts.part = MICA_PART_VALIDATION;
    if (status == MICA_OK)
        status = feed_open(&t->validation, t->ctx, &t->data, &opts);
    opts.part = MICA_PART_TEST;
    if (status == MICA_OK)
        status = feed_open(&t->test, t->ctx, &t->data, &opts);
    if (status != MICA_OK)
        return verb_failed(t->v, t->ctx);
    if (t->train.samples == 0)
        return verb_error(t->v, EXIT_FILE, "%s is too short: nothing is left for training", s->data);
    return EXIT_OK;
}
