/* Operations along one axis, on any layout: contiguous lines use a kernel's line form, adjacent lines
 * its panel form, and all others go through the workspace. */
#ifndef MICA_SRC_OPS_AXIS_H
#define MICA_SRC_OPS_AXIS_H

#include "ops/check.h"

/* A whole operation: args[0] is the destination, the others are sources of the same shape. */
mica_status mica_axis_op(mica_context *ctx, const char *op, const mica_axis_kernel *kernel, float param,
                         const mica_arg *args, int count, int axis);

#endif
