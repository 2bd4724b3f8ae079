/* Shared by the indexing operations. */
#ifndef MICA_SRC_OPS_INDEX_H
#define MICA_SRC_OPS_INDEX_H

#include "ops/check.h"

/* Every element of `index` is 0 to size - 1, where size is that of an axis of t; else MICA_ERR_INDEX. */
mica_status mica_check_indices(mica_context *ctx, const char *op, const mica_tensor *index,
                               const mica_tensor *t, const char *name, int axis);

#endif
