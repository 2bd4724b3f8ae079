/* Element-wise operations: dst[i] = f(a[i], ...).
 *
 * All tensors are f32, of any layout; inputs are broadcast to dst's shape. dst may be exactly an input. */
#ifndef MICA_OPS_ELEMENTWISE_H
#define MICA_OPS_ELEMENTWISE_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

MICA_API mica_status mica_add(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                              const mica_tensor *b);

#ifdef __cplusplus
}
#endif
#endif
