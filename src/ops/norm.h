/* What the normalizations share. */
#ifndef MICA_SRC_OPS_NORM_H
#define MICA_SRC_OPS_NORM_H

#include <mica/ops/norm.h>

#include "ops/check.h"
#include "tensor/tensor.h"

static inline float mica_norm_eps(float eps) { return eps != 0.0f ? eps : 1e-5f; }

static inline mica_status mica_norm_check_eps(mica_context *ctx, const char *op, float eps)
{
    if (eps >= 0.0f)
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: eps is %g, expected 0 (for 1e-5) or more", op, (double)eps);
}

static inline mica_status mica_norm_check_structs(mica_context *ctx, const char *op,
                                                  const mica_norm_grads *grads, const mica_norm_saved *saved)
{
    if (grads != NULL && saved != NULL)
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", op, grads == NULL ? "grads" : "saved");
}

#endif
