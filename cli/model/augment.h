/* --augment: what is done to pictures on their way into a batch. */
#ifndef MICA_CLI_MODEL_AUGMENT_H
#define MICA_CLI_MODEL_AUGMENT_H

#include "cli/model/data.h"

#define AUGMENT_HELP                                                                         \
    "--augment takes a list of:\n"                                                           \
    "  flip        half of the pictures mirrored left to right\n"                            \
    "  shift=N     moved by up to N pixels each way\n"                                       \
    "  crop=X      up to a share X of height and width cut off, the rest enlarged\n"         \
    "  rotate=X    turned by up to X degrees either way\n"                                   \
    "  noise=X     noise added, its standard deviation X of the range from black to white\n" \
    "Drawn anew for each sample in each epoch, from --seed; for training samples alone.\n"

/* Reads a list; "none" is one of nothing. False, with what is wrong in why[size]: it is no such list. */
bool augment_parse(mica_augment *out, const char *list, char *why, size_t size);

/* The transform that a list asks for, for samples [...] of this shape and dtype; none for NULL and "none". *augment
 * must outlive it. */
int augment_read(mica_transform *out, mica_augment *augment, const verb *v, mica_context *ctx,
                 const char *list, const mica_tensor *sample);

#endif
