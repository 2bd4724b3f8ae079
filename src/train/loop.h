/* What the training loop asks of its neighbours. */
#ifndef MICA_SRC_TRAIN_LOOP_H
#define MICA_SRC_TRAIN_LOOP_H

#include <mica/checkpoint.h>
#include <mica/train.h>

/* The optimizer's own learning rate. */
float mica_optimizer_lr(const mica_optimizer *optimizer);

/* Updates `count` learned elements from `first` on, with the norm of all gradients as it is in the net, and counts a
 * step. */
void mica_train_update_part(mica_net *net, float lr, size_t first, size_t count);
mica_status mica_train_check_lr(mica_net *net, float lr);

/* Fails where mica_checkpoint_save would fail for what it is given, rather than for the disk: before a training
 * begins whose work would be lost. Writes nothing. */
mica_status mica_checkpoint_check(mica_net *net, const char *path, const mica_training_state *state);

#endif
