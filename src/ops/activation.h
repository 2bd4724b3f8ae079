/* Activations fused into other operations. */
#ifndef MICA_SRC_OPS_ACTIVATION_H
#define MICA_SRC_OPS_ACTIVATION_H

#include <mica/ops/activation.h>

#include "base/context.h"
#include "kernel/map.h"

/* The element-wise kernel of an activation, whose parameter (a slope) is one float; NULL for MICA_NO_ACTIVATION. */
mica_map_fn *mica_activation_kernel(const mica_context *ctx, mica_activation activation);

#endif
