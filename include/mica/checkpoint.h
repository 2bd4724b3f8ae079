/* Weights and checkpoints in safetensors files.
 *
 * A file takes its name only when all of it is on the disk, so that killing the process at any moment leaves
 * the old file or the new one. A bad file is an error that names what is wrong, and the net stays as it was. */
#ifndef MICA_CHECKPOINT_H
#define MICA_CHECKPOINT_H

#include <mica/data.h>
#include <mica/io.h>
#include <mica/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is learned, and the statistics that belong to it (running means), under their own names: what another program
 * needs to run the net, and what its files have. A file may hold more than that. */
MICA_API mica_status mica_weights_save(mica_net *net, const char *path);
/* From the checkpoint of a training that has not ended, the best weights so far, where it holds them. */
MICA_API mica_status mica_weights_load(mica_net *net, const char *path);
/* The bytes of them all; 0 if the net is not bound. */
MICA_API size_t mica_weights_bytes(const mica_net *net);

/* What mica_weights_load_matching found for a tensor of the net. */
typedef enum mica_weights_found {
    MICA_WEIGHTS_LOADED,
    MICA_WEIGHTS_MISSING,   /* the file has none of this name */
    MICA_WEIGHTS_DIFFERENT, /* it has another shape there, or a dtype that cannot be read */
} mica_weights_found;

typedef struct mica_weights_match {
    size_t loaded, missing, different; /* tensors */
    /* Called for each tensor of the net; `in_file` is NULL if it is missing. May be NULL. */
    void (*tell)(void *user, mica_weights_found found, const mica_named_tensor *wanted,
                 const mica_safetensors_entry *in_file);
    void *user;
} mica_weights_match;

/* As mica_weights_load, for fine-tuning: loads the tensors that have the same name and shape in the file, and leaves
 * the others as they are (initialized). `match` may be NULL. A file from which nothing can be loaded is an error. */
MICA_API mica_status mica_weights_load_matching(mica_net *net, mica_weights_match *match, const char *path);

/* What a training has done besides what is in the net. */
typedef struct mica_training_state {
    mica_cursor cursor; /* of its data */
    float best_loss;    /* of validation */
    int bad_epochs;     /* since then */
    /* That of best_loss, from 1, and its accuracy (NaN: none). 0: the best weights are not known. Otherwise they are
     * those of the net, or in a checkpoint of mica_fit while it trains, tensors of their own: "best.NAME". */
    uint64_t best_epoch;
    double best_accuracy;

    /* Metadata of the caller's own, written beside those above, under keys of other names. Not read back:
     * mica_safetensors_metadata_find finds them. */
    const mica_metadata *notes;
    size_t note_count;
} mica_training_state;

/* Weights, the state of sequences, optimizer state, seed, steps and *state: everything it takes to go on with the
 * same bits as if the training had never stopped. The tensors are named "NAME", "optimizer.0.NAME" and
 * "optimizer.1.NAME"; while mica_fit trains and keeps the best weights, these are "best.NAME". */
MICA_API mica_status mica_checkpoint_save(mica_net *net, const char *path, const mica_training_state *state);
MICA_API mica_status mica_checkpoint_load(mica_net *net, mica_training_state *state, const char *path);

#ifdef __cplusplus
}
#endif
#endif
