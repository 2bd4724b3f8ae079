/* Whether all ranks of a job have the same before them: they divide the work by numbers of batches, and none of it says
 * what was in them. All ranks come here at the same points, and all return the same; alone, nothing is compared. */
#ifndef MICA_CLI_MODEL_SAME_H
#define MICA_CLI_MODEL_SAME_H

#include "cli/model/saved.h"

/* The data that `spec` names. */
int same_data(const data *d, const verb *v, const char *spec);
/* Inputs alone, or the tokens of a text. */
int same_inputs(const mica_tensor *inputs, const verb *v, const char *spec);

/* The checkpoint and the net made of it; also the kernels, as ranks shall make the bits that one process makes. */
int same_net(const saved *s, mica_net *net, const verb *v);

/* Options: what of them decides how many batches there are, and what is kept of them. */
int same_options(const int64_t *options, size_t count, const verb *v);

/* What the checkpoints of a training will say of it, its settings among them: where these differ, ranks would part
 * later, one waiting for the other. */
int same_notes(const notes *n, const verb *v);

#endif
