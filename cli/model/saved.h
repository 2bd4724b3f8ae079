/* What a checkpoint says of its net besides the weights: all it takes to use it without the data it was trained on.
 *
 *     mica.net         the net file's text, MICA_NETFILE_KEY
 *     mica.title       what the net is called: "lenet"
 *     mica.data        what --data was
 *     mica.sample      the shape of a sample of it
 *     mica.classes     their names, a line each
 *     mica.vocabulary  "bytes", or the code points of the characters
 *     mica.sound       how sounds are made ready: "log-mel rate=16000 seconds=1 ..."
 *     mica.table       what is known of the columns of a table, as mica_table_to_text has it
 *     mica.scale, mica.mean, mica.deviation    how inputs are normalized
 *     mica.train.NAME  the options of the training, by their names
 *     mica.int8        how the net becomes one of bytes: cli/model/int8.h
 *
 * A checkpoint may come from anywhere. Nothing of it is used before saved_open has read all of it, field by field
 * (saved_read.c), and has held it against the net (saved_check.c). */
#ifndef MICA_CLI_MODEL_SAVED_H
#define MICA_CLI_MODEL_SAVED_H

#include <mica/netfile.h>

#include "cli/model/data.h"
#include "cli/model/units.h"

#define CHECKPOINT_NAME "checkpoint.safetensors" /* in the folder of a training */

/* How a net's inputs and outputs are to be understood. */
typedef struct meaning {
    const char *title, *data;
    const char **
        class_names; /* [class_count]; NULL: their numbers. Fewer than the net tells apart: see cli/model/names.h */
    int class_count;
    mica_vocabulary vocabulary; /* count 0: it is no net for text */
    normalization normalization;
    mica_tensor sample;      /* of the data: its shape, without memory; rank 0: text */
    target_units units;      /* of what a regression learns */
    column_spans columns;    /* of a table */
    forecast_shape forecast; /* of a series */
    const mica_table *table; /* NULL: it was trained on something else */
    mica_index season;
    bool is_sound;
    mica_sounds_opts sound; /* without classes */
    void *owned[2];         /* by one that was read */
} meaning;

/* The options of a training. -1, NULL: the checkpoint does not say. */
typedef struct saved_settings {
    int64_t epochs, batch, shares, warmup, patience, checkpoint_steps, optimizer, schedule, budget, seed;
    int64_t window, horizon, season; /* of a series */
    double lr, weight_decay, momentum, clip, validation;
    const char *label, *test, *augment;
    const char *weights, *freeze; /* prefixes, a line each */
    float *class_weights;         /* [class_weight_count]; NULL: none */
    mica_index class_weight_count;
} saved_settings;

/* Limits of options: also what a checkpoint may hold. */
#define MOST_EPOCHS           INT64_C(1000000000)
#define MOST_BATCH            INT64_C(1000000)
#define MOST_SHARES           INT64_C(65536)
#define MOST_WARMUP           INT64_C(1000000000000000)
#define MOST_CHECKPOINT_STEPS INT64_C(1000000000000000)
#define MOST_WINDOW           INT64_C(1000000)
#define MOST_SHARE            0.9 /* held back for validation */

/* ---- Writing ---- */

typedef struct notes {
    mica_metadata *list;
    size_t count;
} notes;

void notes_add(notes *n, const char *key, const char *value); /* copies both */
void notes_add_number(notes *n, const char *key, double value);
void notes_add_whole(notes *n, const char *key, int64_t value); /* to the last digit */
void notes_add_floats(notes *n, const char *key, const float *values, mica_index count); /* to the last bit */
/* Fails, with a message, for what cannot be written. */
int notes_add_meaning(notes *n, const meaning *m, const verb *v, mica_context *ctx);
void notes_free(notes *n);

/* Says so if something in them could not be written: better before a training than after its first epoch. */
int notes_check(const notes *n, const verb *v);

/* ---- Reading ---- */

typedef struct saved {
    char path[4096];
    mica_safetensors *file;
    meaning meaning;
    saved_settings settings;
    mica_table *table; /* that the meaning has */
} saved;

/* Opens a checkpoint, or that of a folder, and reads all that it says. Else says what is wrong, naming the field, and
 * returns what the program ends with. */
int saved_open(saved *out, const verb *v, mica_context *ctx, const char *where);
/* The same, but refuses an int8 net: for training. */
int saved_open_floats(saved *out, const verb *v, mica_context *ctx, const char *where);
void saved_close(mica_context *ctx, saved *s);

/* NULL where it is not there. */
const char *saved_text(const saved *s, const char *key);

/* For saved_open: fills meaning and settings; holds them against the net, which is built for that alone. */
int saved_read(saved *s, const verb *v);
int saved_check(const saved *s, const verb *v, mica_context *ctx);

/* Builds the saved net for inference, its weights prepared if this is wanted (or, with its loss, for evaluation), and
 * loads its weights. `net` is NULL after a failure. */
typedef struct saved_build_opts {
    mica_index batch;
    bool with_loss, prepare;
} saved_build_opts;
int saved_build(mica_net **net, mica_netfile_info *info, const verb *v, mica_context *ctx, const saved *s,
                const saved_build_opts *opts);
/* The same for one text, for mica_generation. *windows says why each token needs the whole window; NULL: it does not
 * (mica_net_continue). */
int saved_build_writer(mica_net **net, mica_netfile_info *info, const verb *v, mica_context *ctx,
                       const saved *s, const char **windows);

/* Loads data for the saved net: as its own were. Of `asked`, table and tell count. */
int saved_load_data(data *out, const verb *v, mica_context *ctx, const saved *s, const char *spec,
                    const data_opts *asked);

/* FOLDER/CHECKPOINT_NAME, if `where` is a folder; else `where`. False: too long. */
bool checkpoint_path(char *path, size_t size, const char *where);

#endif
