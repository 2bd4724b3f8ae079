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
MICA_API mica_status mica_weights_load(mica_net *net, const char *path);

/* What a training has done besides what is in the net. */
typedef struct mica_training_state {
    mica_cursor cursor; /* of its data */
    float best_loss;    /* of validation */
    int bad_epochs;     /* since then */

    /* Metadata of the caller's own, written beside those above, under keys of other names. Not read back:
     * mica_safetensors_metadata_find finds them. */
    const mica_metadata *notes;
    size_t note_count;
} mica_training_state;

/* Weights, the state of sequences, optimizer state, seed, steps and *state: everything it takes to go on with the
 * same bits as if the training had never stopped. The tensors are named "NAME", "optimizer.0.NAME" and "optimizer.1.NAME". */
MICA_API mica_status mica_checkpoint_save(mica_net *net, const char *path, const mica_training_state *state);
MICA_API mica_status mica_checkpoint_load(mica_net *net, mica_training_state *state, const char *path);

#ifdef __cplusplus
}
#endif
#endif
