/* Activations fused into other operations. */
#ifndef MICA_SRC_OPS_ACTIVATION_H
#define MICA_SRC_OPS_ACTIVATION_H

#include <mica/ops/activation.h>

#include "base/context.h"
#include "kernel/map.h"

/* The element-wise kernel of an activation, whose parameter (a slope) is one float; NULL for MICA_NO_ACTIVATION. */
mica_map_fn *mica_activation_kernel(const mica_context *ctx, mica_activation activation);

const char *mica_activation_name(mica_activation activation);

/* Whether other operations can end with it. Where the library is built small (MICA_SMALL), only with those that are a
 * comparison or two: each operation that ends with any activation would link all of them. */
static inline bool mica_activation_fuses(mica_activation activation)
{
#if defined(MICA_SMALL)
    return activation == MICA_RELU || activation == MICA_RELU6 || activation == MICA_LEAKY_RELU;
#else
    return activation != MICA_NO_ACTIVATION;
#endif
}
/* Fails if the options of a call name an activation that it cannot end with. */
mica_status mica_check_activation(mica_context *ctx, const char *op, mica_activation activation);

#endif
