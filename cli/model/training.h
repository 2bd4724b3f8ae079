/* A training: its settings, what it works on, and what it finds out. cli/train.c reads the settings; what else there
 * is of the verb is in cli/model/. */
#ifndef MICA_CLI_MODEL_TRAINING_H
#define MICA_CLI_MODEL_TRAINING_H

#include <signal.h>

#include "cli/model/lock.h"
#include "cli/model/match.h"
#include "cli/model/measure.h"
#include "cli/model/progress.h"
#include "cli/model/saved.h"
#include "cli/ranks.h"
#include "cli/model/score_report.h"
#include "host/heap.h"
#include "cli/model/watch.h"

/* What was asked for. -1, NULL, 0 bytes: not given. After settings_complete nothing is open any more. */
typedef struct train_settings {
    shared_settings shared;
    const char *data, *checkpoint, *report, *trace, *test;
    table_settings table;
    const char *size, *augment; /* of pictures */
    bool colour, grey;
    int64_t epochs, batch, warmup, patience, checkpoint_steps;
    int64_t shares; /* of a batch; 0: one for each rank, added in any order */
    int optimizer, schedule;
    double lr, weight_decay, momentum, clip, validation;
    size_t budget;
    bool keep_cheap, parts, shard;
    int features;        /* of sounds: FEATURES_LOG_MEL, ... */
    int64_t rate;        /* and their frames per second */
    double seconds;      /* and their length */
    option_list set;     /* NAME=VALUE of the net's constants */
    const char *weights; /* a file to start from; training_weights.h */
    option_list freeze;
    bool balance;
    option_list class_weight; /* NAME=W */
    int64_t folds;            /* of cross-validation; -1: none */
    bool resume, overwrite, where;
    const char *net; /* a name or a path */
} train_settings;

/* Nothing was asked for. */
#define TRAIN_DEFAULTS                                                                                   \
    {                                                                                                    \
        .shared = SHARED_DEFAULTS, .table = TABLE_DEFAULTS, .epochs = -1, .batch = -1, .shares = -1,     \
        .warmup = -1, .patience = -1, .checkpoint_steps = -1, .optimizer = -1, .schedule = -1, .lr = -1, \
        .weight_decay = -1, .momentum = -1, .clip = -1, .validation = -1, .features = -1, .rate = -1,    \
        .seconds = -1, .folds = -1                                                                       \
    }

/* Names in the order of mica_optimizer_kind and mica_schedule_kind. */
extern const char *const optimizer_names[], *const schedule_names[];

/* A value for every so many steps, and the place of each: at most CURVE_POINTS of them. */
#define CURVE_POINTS 2000
typedef struct curve {
    double x[CURVE_POINTS], y[CURVE_POINTS];
    size_t count;
} curve;

typedef struct training {
    const verb *v;
    mica_context *ctx;
    train_settings settings;
    char folder[2048], path[4096]; /* of the checkpoint */
    folder_lock lock;              /* on the folder, from before it is looked into to the end */
    saved saved;                   /* with --resume, and if there is one */
    bool resumes;
    saved source;  /* what --weights names, if that is a checkpoint of ours */
    char *kept[3]; /* memory of options that the checkpoint has */
    bool ended;    /* what is resumed had ended already: there is nothing to do */

    data data;
    mica_augment augment; /* which train's transform points to */
    meaning meaning;
    mica_net *net;
    mica_netfile_info info;
    net_ends ends;
    mica_optimizer optimizer;
    mica_schedule schedule;
    notes notes;
    mica_index
        rows; /* of a share, which is what the net is built for; of the whole batch where there are none */
    mica_ranks *ranks; /* NULL: this process alone, without shares */
    size_t rank_bytes; /* beside the net's block, of the rank that takes most */
    feed train, validation, test;
    int fold;             /* of cross-validation, from 0 */
    float *class_weights; /* [class_weight_count] of the net's loss; NULL: none. training_classes.c */
    mica_index class_weight_count;

    /* While it runs. */
    progress progress;
    watch *watch; /* NULL: nobody wants to know */
    bool in_step;
    heap_counts before_step;
    uint64_t heap_calls, steps_done; /* by this process, in its steps */
    uint64_t wire_calls;             /* heap calls of MPI's, which are not among these */
    wire_use before_use;
    double step_seconds, began_step;
    measure train_measure, validation_measure;
    curve train_loss, train_metric, learning_rate, validation_loss, validation_metric;
    uint64_t curve_stride; /* steps to a point */
    double curve_sum[2], curve_weight[2];

    mica_fit_result result;
    score score;            /* of the test part, or that of validation */
    const char *score_part; /* "test" */
    importance columns;     /* for the report, and so are the texts */
    writings texts;
} training;

/* Prints where the checkpoint is, or would be. */
int training_where(training *t);

/* Everything before the first step. Returns what the program ends with if it cannot start. */
int training_open(training *t);
/* Of an ONNX model that is looked at as if it were to be trained: the data, what they mean, and the net with its loss,
 * not compiled. */
int training_open_model(training *t);

/* The steps; ends with EXIT_INTERRUPTED after a signal. */
int training_run(training *t);

/* Scores, by all ranks; prints, and writes the pages. */
int training_finish(training *t);
/* The score alone: t->score. */
int training_score(training *t);

/* All of a cross-validation: as many trainings as there are folds. */
int training_folds(const verb *v, const train_settings *s);

void training_close(training *t);

/* Parts of training_open: loads the data; finds out what the net's inputs and outputs mean, or takes it from the
 * checkpoint; cuts the data into parts. And the last part of a path, up to its first point, in out[size]. */
int training_load(training *t);
int training_meaning(training *t);
int training_feeds(training *t);
const char *training_stem(char *out, size_t size, const char *path);

/* Whether a signal asked to stop. */
bool interrupted(void);
extern volatile sig_atomic_t interruptions;

/* The report page and the trace, where they were asked for. */
int training_pages(training *t);

#endif
