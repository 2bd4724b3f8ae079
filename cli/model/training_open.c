/* Everything that a training does before its first step. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/model/same.h"
#include "cli/model/tables.h"
#include "cli/model/take.h"
#include "cli/model/training_weights.h"
#include "cli/net/argument.h"
#include "cli/onnx/onnx.h"
#include "cli/onnx/net.h"
#include "cli/picture/text.h"

const char *const optimizer_names[] = {"sgd", "adam", "adamw", "rmsprop", "adagrad", NULL};
const char *const schedule_names[] = {"constant", "step", "exponential", "cosine", "one-cycle", NULL};

/* ---- Names ---- */

const char *training_stem(char *out, size_t size, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash != NULL && slash[1] == '\0' && slash != path) { /* a folder with a slash behind it */
        size_t n = (size_t)(slash - path);
        while (n > 0 && path[n - 1] != '/')
            n--;
        slash = n > 0 ? path + n - 1 : NULL;
    }
    const char *from = slash != NULL ? slash + 1 : path;
    size_t length = strcspn(from, ".,:/");
    (void)snprintf(out, size, "%.*s", (int)(length < size ? length : size - 1), from);
    return out;
}

/* Neither --checkpoint nor both of NET and --data: says what to write, by what is there. */
static int what_is_missing(const training *t)
{
    const train_settings *s = &t->settings;
    char path[4096];
    const char *net = s->net != NULL ? s->net : "";
    if (s->resume && *net != '\0' && checkpoint_path(path, sizeof path, net) && is_safetensors(path))
        return usage_error(t->v, "%s is a checkpoint; to continue it: mica train --checkpoint %s --resume",
                           net, net);
    if (s->resume)
        return usage_error(t->v, "--resume needs NET and --data, or --checkpoint DIR");
    if (file_kind_of(net) != FILE_UNKNOWN)
        return usage_error(t->v, "%s is data, and which net? Try: mica train %s --data %s", net,
                           file_kind_of(net) == FILE_TEXT ? "gpt-tiny" : "mlp", net);
    return usage_error(t->v, "which net, and on what data? Try: mica train lenet --data digits");
}

/* Where the checkpoint is: --checkpoint, or a folder named after net and data. */
static int choose_folder(training *t)
{
    train_settings *s = &t->settings;
    char net[256], from[256];
    if (s->net == NULL && s->weights != NULL && !(s->resume && s->checkpoint != NULL))
        s->net = s->weights; /* what is fine-tuned has a net */
    if (s->checkpoint == NULL && (s->net == NULL || s->data == NULL))
        return what_is_missing(t);
    if (s->folds > 0)
        return EXIT_OK; /* nothing is saved */
    if (s->checkpoint != NULL)
        (void)snprintf(t->folder, sizeof t->folder, "%s", s->checkpoint);
    else
        (void)snprintf(t->folder, sizeof t->folder, "%s-%s", training_stem(net, sizeof net, s->net),
                       training_stem(from, sizeof from, s->data));
    if (strlen(t->folder) >= sizeof t->folder - 1)
        return usage_error(t->v, "the folder name is longer than %zu bytes", sizeof t->folder - 2);
    (void)snprintf(t->path, sizeof t->path, "%s/%s", t->folder, CHECKPOINT_NAME);
    return EXIT_OK;
}

int training_where(training *t)
{
    int code = choose_folder(t);
    if (code == EXIT_OK)
        printf("%s\n", t->path);
    return code;
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* A folder that is there is locked before it is looked into. */
static int lock_folder(training *t)
{
    if (ranks_rank() > 0 || t->path[0] == '\0')
        return EXIT_OK; /* rank 0 has it for all */
    return is_folder(t->folder) ? folder_lock_take(&t->lock, t->v, t->folder) : EXIT_OK;
}

/* One that was not is made when all else is well, and may be another's by then. */
static int make_folder(training *t)
{
    struct stat about;
    if (t->lock.held || ranks_rank() > 0 || t->path[0] == '\0')
        return EXIT_OK;
    if (mkdir(t->folder, 0777) != 0 && (errno != EEXIST || !is_folder(t->folder)))
        return verb_error(t->v, EXIT_FAILED, "cannot create the folder %s: %s", t->folder, strerror(errno));
    int code = folder_lock_take(&t->lock, t->v, t->folder);
    if (code == EXIT_OK && stat(t->path, &about) == 0)
        code = verb_error(t->v, EXIT_FAILED, "%s was written by another training run in the meantime",
                          t->path);
    return code;
}

/* What is there already: goes on with it, or asks what is meant. */
static int look_for_checkpoint(training *t)
{
    struct stat about;
    const train_settings *s = &t->settings;
    bool there = t->path[0] != '\0' && stat(t->path, &about) == 0;
    int other = ranks_differing(there), unlike = ranks_differing(s->resume);
    if (unlike > 0)
        return verb_error(t->v, EXIT_FAILED, "--resume is for all ranks: rank %d differs from rank 0",
                          unlike);
    if (other > 0 && there && (ranks_rank() == 0 || ranks_rank() == other)) /* one of the two */
        return verb_error(t->v, EXIT_FILE, "%s is there, but rank %d does not see it", t->path,
                          ranks_rank() == 0 ? other : 0);
    if (other > 0)
        return EXIT_FILE;
    if (!there)
        return EXIT_OK;
    if (!s->resume && !s->overwrite)
        return usage_error(t->v,
                           "%s already exists: --resume continues it, --overwrite replaces it,\n"
                           "  --checkpoint DIR saves this run elsewhere",
                           t->path);
    t->resumes = s->resume;
    return t->resumes ? saved_open_floats(&t->saved, t->v, t->ctx, t->path) : EXIT_OK;
}

/* ---- Settings ---- */

/* What was not given comes from the checkpoint. */
static void settings_of_saved(training *t)
{
    train_settings *s = &t->settings;
    const saved_settings *from = &t->saved.settings;
#define FILL(field, type) \
    if (s->field < 0)     \
        s->field = (type)from->field;
    FILL(epochs, int64_t)
    FILL(batch, int64_t)
    FILL(shares, int64_t)
    FILL(warmup, int64_t)
    FILL(patience, int64_t)
    FILL(checkpoint_steps, int64_t)
    FILL(optimizer, int)
    FILL(schedule, int)
    FILL(lr, double)
    FILL(weight_decay, double)
    FILL(momentum, double)
    FILL(clip, double)
    FILL(validation, double)
#undef FILL
    if (s->data == NULL)
        s->data = t->saved.meaning.data;
    if (s->table.label == NULL)
        s->table.label = from->label;
    if (s->test == NULL)
        s->test = from->test;
    if (s->augment == NULL)
        s->augment = from->augment;
    if (s->budget == 0 && from->budget > 0)
        s->budget = (size_t)from->budget;
    if (from->seed >= 0)
        s->shared.seed = from->seed;
    if (s->weights == NULL)
        s->weights = from->weights;
    if (s->freeze.count == 0 && from->freeze != NULL)
        list_of_lines(&s->freeze, t->kept[0] = take_text(from->freeze));
}

/* What --resume cannot change: the checkpoint would not be of the same net. */
static int compare_saved(const training *t)
{
    char *freeze = list_lines(&t->settings.freeze);
    int code = same_as_saved(t, "--weights", t->settings.weights, t->saved.settings.weights);
    if (code == EXIT_OK)
        code = same_as_saved(t, "--label", t->settings.table.label, t->saved.settings.label);
    if (code == EXIT_OK)
        code = same_as_saved(t, "--freeze", freeze, t->saved.settings.freeze);
    free(freeze);
    return code;
}

static void note_settings(training *t)
{
    const train_settings *s = &t->settings;
    notes *n = &t->notes;
    notes_add_whole(n, "mica.train.epochs", s->epochs);
    notes_add_whole(n, "mica.train.batch", s->batch);
    notes_add_whole(n, "mica.train.shares", s->shares);
    notes_add_whole(n, "mica.train.warmup", s->warmup);
    notes_add_whole(n, "mica.train.patience", s->patience);
    notes_add_whole(n, "mica.train.checkpoint_steps", s->checkpoint_steps);
    notes_add_whole(n, "mica.train.optimizer", s->optimizer);
    notes_add_whole(n, "mica.train.schedule", s->schedule);
    notes_add_number(n, "mica.train.lr", s->lr);
    notes_add_number(n, "mica.train.weight_decay", s->weight_decay);
    notes_add_number(n, "mica.train.momentum", s->momentum);
    notes_add_number(n, "mica.train.clip", s->clip);
    notes_add_number(n, "mica.train.validation", s->validation);
    notes_add_whole(n, "mica.train.budget", (int64_t)s->budget);
    notes_add_whole(n, "mica.train.seed", s->shared.seed);
    if (s->table.label != NULL)
        notes_add(n, "mica.train.label", s->table.label);
    if (s->test != NULL)
        notes_add(n, "mica.train.test", s->test);
    if (t->data.window > 0) {
        notes_add_whole(n, "mica.train.window", t->data.window);
        notes_add_whole(n, "mica.train.horizon", t->data.horizon);
        notes_add_whole(n, "mica.train.season", t->data.season);
    }
    if (s->augment != NULL)
        notes_add(n, "mica.train.augment", s->augment);
    if (s->weights != NULL)
        notes_add(n, "mica.train.weights", s->weights);
    char *freeze = list_lines(&s->freeze);
    if (freeze != NULL)
        notes_add(n, "mica.train.freeze", freeze);
    if (t->class_weights != NULL)
        notes_add_floats(n, "mica.train.class_weights", t->class_weights, t->class_weight_count);
    free(freeze);
}

/* Tables are often small and seen many times: weights must decay as much in a few hundred steps as in many thousands,
 * or the net learns rows by heart. So their decay follows from the number of steps. */
static bool decays_by_steps(const training *t)
{
    return t->data.table != NULL && t->settings.optimizer == MICA_ADAMW;
}

static double decay_of_steps(double lr, double steps)
{
    const double sum = 3, most = 5; /* the sum over all steps of lr * decay, but for the schedule */
    double decay = sum / (lr * (steps > 0 ? steps : 1));
    return decay < most ? decay : most;
}

/* What nobody gave: what usually works. */
static void choose_settings(training *t)
{
    train_settings *s = &t->settings;
    bool text = t->data.is_text;
    if (s->batch < 0)
        s->batch = text ? 16 : 32;
    if (s->shares < 0)
        s->shares = 0;
    if (s->optimizer < 0)
        s->optimizer = MICA_ADAMW;
    if (s->schedule < 0)
        s->schedule = MICA_SCHEDULE_COSINE;
    bool adam = s->optimizer == MICA_ADAM || s->optimizer == MICA_ADAMW;
    if (s->lr < 0)
        s->lr = adam ? (text ? 3e-3 : 2e-3) : s->optimizer == MICA_SGD ? 0.05 : 0.01;
    if (s->momentum < 0)
        s->momentum = s->optimizer == MICA_SGD ? 0.9 : 0;
    if (s->weight_decay < 0 && !decays_by_steps(t))
        s->weight_decay = s->optimizer == MICA_ADAMW ? (text ? 0.1 : 0.01) : 0;
    if (s->clip < 0)
        s->clip = text ? 1 : 0;
    if (s->warmup < 0)
        s->warmup = text && s->schedule != MICA_SCHEDULE_ONE_CYCLE ? 50 : 0;
    if (s->patience < 0)
        s->patience = 0;
    if (s->checkpoint_steps < 0)
        s->checkpoint_steps = 0;
    if (s->validation < 0)
        s->validation = SHARE_VALIDATION;
    if (s->folds < 0)
        s->folds = 0;
}

/* Few samples need many epochs, many samples few: about 100000 samples are seen. */
static int64_t choose_epochs(const training *t)
{
    double samples = (double)(t->train.samples > 0 ? t->train.samples : 1);
    int64_t epochs = (int64_t)ceil((t->data.is_text ? 24000 : 100000) / samples);
    return epochs < 3 && !t->data.is_text ? 3 : epochs < 1 ? 1 : epochs > 100 ? 100 : epochs;
}

/* ---- The net ---- */

static bool is_float(mica_dtype dtype) { return dtype == MICA_F32 || dtype == MICA_F64 || dtype == MICA_F16; }

/* The net of the name or file that was given, with what the data say of it; or that of the checkpoint. */
static int build_net(training *t)
{
    const train_settings *s = &t->settings;
    const mica_tensor *sample = &t->meaning.sample;
    mica_netfile_constant constant = {"classes", (double)t->data.class_count, true};
    mica_task task = MICA_TASK_CLASSES;
    if (t->data.is_text)
        constant = (mica_netfile_constant){"vocabulary", t->data.text.vocabulary.count, true};
    else if (t->data.table != NULL && t->data.task != TABLE_CLASSES) {
        task = t->data.task == TABLE_NUMBERS ? MICA_TASK_REGRESSION : MICA_TASK_BINARY;
        mica_index outputs = mica_table_targets(t->data.table) * (t->data.window > 0 ? t->data.horizon : 1);
        constant = (mica_netfile_constant){"outputs", (double)outputs, true};
    } else if (t->data.table == NULL && s->net != NULL && is_onnx(s->net) && t->data.samples.has_targets &&
               is_float(t->data.samples.targets.dtype)) {
        task = MICA_TASK_REGRESSION; /* nets have a loss of their own, a model has none */
    }
    mica_netfile_opts opts = {
        .batch = t->rows, .class_weights = t->class_weights, .class_weight_count = t->class_weight_count};
    if (s->net == NULL)
        return net_build(&t->net, &t->info, t->v, t->ctx, t->path, NULL, &opts);
    opts.constants = &constant;
    opts.constant_count = constant.value > (task == MICA_TASK_CLASSES);
    opts.sample_rank = sample->rank;
    memcpy(opts.sample, sample->dim, sizeof opts.sample);
    int code = mica_netfile_builtin(s->net) == NULL && is_onnx(s->net)
                   ? onnx_train_build(&t->net, &t->info, t->v, t->ctx, s->net, task, &s->set, &opts)
                   : net_build_for(&t->net, &t->info, t->v, t->ctx, s->net, task, &s->set, &opts);
    if (code != EXIT_OK || !t->resumes || strcmp(t->info.text, saved_text(&t->saved, MICA_NETFILE_KEY)) == 0)
        return code;
    return verb_error(
        t->v, EXIT_FILE,
        "%s belongs to a different net than %s; without NET, --resume uses the one in the checkpoint",
        t->path, s->net);
}

/* Whether net and data fit together. */
static int match(training *t)
{
    const char *name = t->settings.net != NULL ? t->settings.net : "the net";
    int code = net_ends_find(&t->ends, t->v, t->net, &t->info, name);
    return code == EXIT_OK ? data_match(&t->data, t->settings.data, t->v, &t->ends, &t->info, name) : code;
}

/* The weights of classes are known once there are a net and data, and the net is then built with them. */
static int weigh_classes(training *t)
{
    int code = classes_weigh(t);
    if (code != EXIT_OK || t->class_weights == NULL)
        return code;
    mica_net_destroy(t->net);
    t->net = NULL;
    code = build_net(t);
    return code == EXIT_OK ? match(t) : code;
}

static int compile_net(training *t)
{
    const train_settings *s = &t->settings;
    t->optimizer = (mica_optimizer){.kind = (mica_optimizer_kind)s->optimizer,
                                    .lr = (float)s->lr,
                                    .momentum = (float)s->momentum,
                                    .weight_decay = (float)s->weight_decay,
                                    .clip_norm = (float)s->clip};
    /* The budget is for the net: what ranks take beside it depends on their number, on which no bit may depend. */
    mica_compile_opts compile = {.train = true,
                                 .optimizer = &t->optimizer,
                                 .budget = s->budget,
                                 .keep_cheap = s->keep_cheap,
                                 .same_parts = s->shares > 0,
                                 .part_rows = s->parts ? MICA_CHEAP_PARTS : 0,
                                 .ranks = s->shard ? ranks_count() : 0};
    if (mica_net_compile(t->net, &compile) != MICA_OK || mica_net_bind(t->net, NULL, 0) != MICA_OK ||
        mica_net_initialize(t->net, (uint64_t)s->shared.seed) != MICA_OK)
        return verb_error(t->v, EXIT_FAILED, "%s", mica_error(t->ctx));
    return EXIT_OK;
}

static void set_schedule(training *t)
{
    const train_settings *s = &t->settings;
    uint64_t total = (uint64_t)s->epochs * (uint64_t)t->train.steps;
    t->schedule = (mica_schedule){.kind = (mica_schedule_kind)s->schedule,
                                  .lr = (float)s->lr,
                                  .min_lr = (float)s->lr / 100,
                                  .warmup = (uint64_t)s->warmup < total ? (uint64_t)s->warmup : 0,
                                  .period = total / 3 > 0 ? total / 3 : 1,
                                  .total = total};
    if (t->schedule.kind == MICA_SCHEDULE_EXPONENTIAL)
        t->schedule.gamma = (float)pow(0.01, 1.0 / (double)total); /* a hundredth at the end */
}

/* What the checkpoints will say of it. */
static int make_notes(training *t)
{
    notes_add(&t->notes, MICA_NETFILE_KEY, t->info.text);
    int code = notes_add_meaning(&t->notes, &t->meaning, t->v, t->ctx);
    note_settings(t);
    return code == EXIT_OK ? notes_check(&t->notes, t->v) : code;
}

/* The model of a net that is one, so that the checkpoint can be used without the file that it came from. */
static int keep_model(training *t)
{
    if (ranks_rank() > 0 || t->path[0] == '\0')
        return EXIT_OK;
    return onnx_keep_source(t->net, t->v, t->info.text, t->path);
}

static int find_settings(training *t)
{
    if (t->resumes)
        settings_of_saved(t);
    int other = t->resumes ? compare_saved(t) : EXIT_OK;
    if (other != EXIT_OK)
        return other;
    if (t->settings.data == NULL || (t->settings.net == NULL && !t->resumes))
        return usage_error(t->v, "%s has no checkpoint to resume: NET and --data are required", t->folder);
    int code = training_load(t);
    if (code == EXIT_OK)
        choose_settings(t);
    if (code == EXIT_OK && t->settings.folds > 0 && (t->data.is_text || t->data.window > 0))
        code = usage_error(t->v, "--folds is for samples: a %s is held out in one piece, at its end",
                           t->data.is_text ? "text" : "series");
    return code;
}

/* Batches are cut into shares, one or more for each rank. */
static int cut_batches(training *t)
{
    const train_settings *s = &t->settings;
    int ranks = ranks_count();
    if (s->shares % ranks != 0)
        return usage_error(t->v, "--shares %lld: expected a multiple of the %d ranks", (long long)s->shares,
                           ranks);
    int64_t shares = s->shares > 0 ? s->shares : ranks;
    t->rows = (mica_index)((s->batch + shares - 1) / shares);
    return EXIT_OK;
}

static int compare_data(training *t) { return same_data(&t->data, t->v, t->settings.data); }

static int open_ranks(training *t)
{
    const train_settings *s = &t->settings;
    if (ranks_wire() == NULL && s->shares == 0)
        return EXIT_OK;
    mica_ranks_opts opts = {
        .transport = ranks_wire(), .batch = (mica_index)s->batch, .shares = (int)s->shares};
    mica_status status = mica_ranks_create(t->ctx, &t->ranks, t->net, &opts);
    if (status != MICA_OK)
        return verb_failed(t->v, t->ctx);
    /* Ranks in the middle of the tree may take more than the first. */
    double own = (double)mica_ranks_bytes(t->ranks), *all = take((size_t)ranks_count(), sizeof *all);
    status = mica_ranks_gather(t->ranks, all, &own, 1);
    for (int rank = 0; rank < ranks_count() && status == MICA_OK; rank++)
        t->rank_bytes = (size_t)all[rank] > t->rank_bytes ? (size_t)all[rank] : t->rank_bytes;
    free(all);
    return status == MICA_OK ? EXIT_OK : verb_failed(t->v, t->ctx);
}

static int compare_settings(training *t) { return same_notes(&t->notes, t->v); }

static int plan_steps(training *t)
{
    train_settings *s = &t->settings;
    if (s->epochs < 0)
        s->epochs = choose_epochs(t);
    if (s->weight_decay < 0)
        s->weight_decay = decay_of_steps(s->lr, (double)s->epochs * (double)t->train.steps);
    set_schedule(t);
    return EXIT_OK;
}

static uint64_t saved_number(const training *t, const char *key)
{
    const char *text = saved_text(&t->saved, key);
    return text != NULL ? strtoull(text, NULL, 16) : 0;
}

/* Says so where nothing is left to do: what ended stays as it is. */
static int look_for_end(training *t)
{
    const train_settings *s = &t->settings;
    if (!t->resumes)
        return EXIT_OK;
    unsigned long long done = saved_number(t, "epoch"), bad = saved_number(t, "bad_epochs");
    bool early = s->patience > 0 && bad >= (uint64_t)s->patience, all = done >= (uint64_t)s->epochs;
    t->ended = all || early;
    if (!t->ended || ranks_rank() > 0)
        return EXIT_OK;
    if (s->shared.json) {
        printf("{\"event\": \"already done\", \"epochs\": %llu, \"stopped_early\": %s, \"checkpoint\": ",
               done, early ? "true" : "false");
        put_json(stdout, t->path);
        printf("}\n");
    } else if (early) {
        printf("already stopped early after epoch %llu; --patience N above %lld goes on\n", done,
               (long long)s->patience);
    } else {
        printf("already %llu of %lld epochs; --epochs N %sgoes on\n", done, (long long)s->epochs,
               done > (uint64_t)s->epochs ? "above that " : "");
    }
    return EXIT_OK;
}

int training_open(training *t)
{
    int (*const steps[])(training *) = {choose_folder, lock_folder,    look_for_checkpoint, weights_open,
                                        find_settings, cut_batches,    training_meaning,    build_net,
                                        match,         training_feeds, weigh_classes,       plan_steps,
                                        look_for_end,  make_notes,     weights_freeze,      compile_net,
                                        weights_load,  compare_data,   open_ranks,          compare_settings,
                                        make_folder,   keep_model};
    int code = EXIT_OK;
    for (size_t i = 0; code == EXIT_OK && !t->ended && i < sizeof steps / sizeof steps[0]; i++)
        code = ranks_agree(steps[i](t));
    return code;
}

int training_open_model(training *t)
{
    int (*const steps[])(training *) = {training_load, training_meaning, build_net, match};
    choose_settings(t);
    t->rows = (mica_index)t->settings.batch;
    int code = EXIT_OK;
    for (size_t i = 0; code == EXIT_OK && i < sizeof steps / sizeof steps[0]; i++)
        code = steps[i](t);
    return code;
}

void training_close(training *t)
{
    if (!t->resumes) {
        free((void *)t->meaning.title);
        normalization_free(&t->meaning.normalization);
        table_meaning_free(&t->meaning);
    }
    notes_free(&t->notes);
    feed_close(t->ctx, &t->train);
    feed_close(t->ctx, &t->validation);
    feed_close(t->ctx, &t->test);
    score_free(&t->score);
    watch_free(t->watch);
    importance_free(&t->columns);
    writings_free(&t->texts);
    measure_close(&t->train_measure);
    measure_close(&t->validation_measure);
    free(t->class_weights);
    mica_ranks_destroy(t->ranks);
    mica_net_destroy(t->net);
    data_release(t->ctx, &t->data);
    saved_close(t->ctx, &t->saved);
    saved_close(t->ctx, &t->source);
    for (size_t i = 0; i < sizeof t->kept / sizeof t->kept[0]; i++)
        free(t->kept[i]);
    folder_lock_release(&t->lock);
}
