/* npz files as data. */
#ifndef MICA_CLI_MODEL_NPZ_H
#define MICA_CLI_MODEL_NPZ_H

#include "cli/model/data.h"

/* Inputs and targets by their usual names, and those for tests if there are such. */
int npz_load(data *out, const verb *v, mica_context *ctx, const char *path);

#endif
