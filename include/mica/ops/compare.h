/* Element-wise comparisons and selection.
 *
 * Inputs are f32, of any layout, and are broadcast to dst's shape. A condition is f32, u8 or bool; nonzero is
 * true. dst may be exactly an input of its dtype. */
#ifndef MICA_OPS_COMPARE_H
#define MICA_OPS_COMPARE_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* dst, f32, u8 or bool, becomes 1 where the comparison holds, else 0. With NaN, only ne holds. Both inputs may also be
 * f64, bool or of one integer type of eight bits or more; dst is u8 or bool then. */

/* a == b */
MICA_API mica_status mica_eq(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                             const mica_tensor *b);
/* a != b */
MICA_API mica_status mica_ne(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                             const mica_tensor *b);
/* a < b */
MICA_API mica_status mica_lt(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                             const mica_tensor *b);
/* a <= b */
MICA_API mica_status mica_le(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                             const mica_tensor *b);
/* a > b */
MICA_API mica_status mica_gt(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                             const mica_tensor *b);
/* a >= b */
MICA_API mica_status mica_ge(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                             const mica_tensor *b);
/* 1 where a is NaN; dst is f32, u8 or bool. */
MICA_API mica_status mica_isnan(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* 1 where a is neither infinite nor NaN; dst is f32, u8 or bool. */
MICA_API mica_status mica_isfinite(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);

/* cond ? a : b. All three are of one plain dtype. */
MICA_API mica_status mica_where(mica_context *ctx, const mica_tensor *dst, const mica_tensor *cond,
                                const mica_tensor *a, const mica_tensor *b);
/* The gradients of where: da = cond ? dy : 0 and db = cond ? 0 : dy, both of dy's shape (sum them over the
 * axes along which a or b was broadcast). Either may be NULL, and either may be exactly dy. */
MICA_API mica_status mica_where_backward(mica_context *ctx, const mica_tensor *da, const mica_tensor *db,
                                         const mica_tensor *dy, const mica_tensor *cond);

#ifdef __cplusplus
}
#endif
#endif
