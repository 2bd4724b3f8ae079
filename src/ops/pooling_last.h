/* Pooling of images that lie channels last (ops/conv/last.h), without copying them. */
#ifndef MICA_SRC_OPS_POOLING_LAST_H
#define MICA_SRC_OPS_POOLING_LAST_H

#include "base/context.h"
#include "kernel/pooling.h"
#include "tensor/tensor.h"

#if defined(MICA_SMALL)
static inline bool mica_pooling_is_last(const mica_tensor *y, const mica_tensor *x)
{
    (void)y, (void)x;
    return false;
}
static inline bool mica_means_is_last(const mica_tensor *x)
{
    (void)x;
    return false;
}
#else
/* Whether both lie so; built small, no image does. */
bool mica_pooling_is_last(const mica_tensor *y, const mica_tensor *x);
/* Whether an image [N, C, ...] lies so, with all its pixels at one stride. */
bool mica_means_is_last(const mica_tensor *x);
#endif

/* The largest of windows, or their means, where both lie so. */
void mica_pooling_last(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                       const mica_pool_shape *s, bool largest);
/* The mean of each channel, where x does: y is [N, C, ...]. */
void mica_means_last(mica_context *ctx, const mica_tensor *y, const mica_tensor *x);

#endif
