/* What a checkpoint says of its net besides the weights: all it takes to use it without the data it was trained on.
 *
 *     mica.net         the net file's text, MICA_NETFILE_KEY
 *     mica.title       what the net is called: "lenet"
 *     mica.data        what --data was
 *     mica.sample      the shape of a sample of it
 *     mica.classes     their names, a line each
 *     mica.vocabulary  "bytes", or the code points of the characters
 *     mica.scale, mica.mean, mica.deviation    how inputs are normalized
 *     mica.train.NAME  the options of the training, by their names
 */
#ifndef MICA_CLI_MODEL_SAVED_H
#define MICA_CLI_MODEL_SAVED_H

#include <mica/netfile.h>

#include "cli/model/data.h"

#define CHECKPOINT_NAME "checkpoint.safetensors" /* in the folder of a training */

/* How a net's inputs and outputs are to be understood. */
typedef struct meaning {
    const char *title, *data;
    const char **class_names; /* [class_count]; NULL: their numbers */
    int class_count;
    mica_vocabulary vocabulary; /* count 0: it is no net for text */
    normalization normalization;
    mica_tensor sample; /* of the data: its shape, without memory; rank 0: text */
    void *owned[2];     /* by one that was read */
} meaning;

/* ---- Writing ---- */

typedef struct notes {
    mica_metadata *list;
    size_t count;
} notes;

void notes_add(notes *n, const char *key, const char *value); /* copies both */
void notes_add_number(notes *n, const char *key, double value);
void notes_add_meaning(notes *n, const meaning *m);
void notes_free(notes *n);

/* ---- Reading ---- */

typedef struct saved {
    char path[4096];
    mica_safetensors *file;
    meaning meaning;
} saved;

/* Opens a checkpoint, or that of a folder. Else says what is wrong and returns what the program ends with. */
int saved_open(saved *out, const verb *v, mica_context *ctx, const char *where);
void saved_close(mica_context *ctx, saved *s);

/* NULL where it is not there; `otherwise` where it is not there or no number. */
const char *saved_text(const saved *s, const char *key);
double saved_number(const saved *s, const char *key, double otherwise);

/* Builds the saved net for inference (or, with its loss, for evaluation), and loads its weights. `net` is NULL
 * after a failure. */
int saved_build(mica_net **net, mica_netfile_info *info, const verb *v, mica_context *ctx, const saved *s,
                mica_index batch, bool with_loss);

/* FOLDER/CHECKPOINT_NAME, if `where` is a folder; else `where`. False: too long. */
bool checkpoint_path(char *path, size_t size, const char *where);

#endif
