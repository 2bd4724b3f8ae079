/* Copying and converting. */
#ifndef MICA_OPS_COPY_H
#define MICA_OPS_COPY_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* dst = src, broadcast to dst's shape: any layouts, any dtypes.
 *
 * To a float type: rounded to nearest, ties to even, once. From a float to an integer type: truncated toward
 * zero, the nearest there is if out of range, 0 for NaN. From an integer to an integer type: the nearest
 * there is if out of range (a copy never wraps).
 *
 * dst may be exactly src. */
MICA_API mica_status mica_copy(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src);

#ifdef __cplusplus
}
#endif
#endif
