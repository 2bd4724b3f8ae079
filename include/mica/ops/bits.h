/* Element-wise operations on the bits of integers; on bool they are those of logic.
 *
 * All tensors are of one dtype: an integer of eight bits or more, or, but for shifts, bool. They may have any layout;
 * inputs are broadcast to dst's shape. dst may be exactly an input. */
#ifndef MICA_OPS_BITS_H
#define MICA_OPS_BITS_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* a and b */
MICA_API mica_status mica_bit_and(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                  const mica_tensor *b);
/* a or b */
MICA_API mica_status mica_bit_or(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                 const mica_tensor *b);
/* Either a or b */
MICA_API mica_status mica_bit_xor(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                  const mica_tensor *b);
/* Not a */
MICA_API mica_status mica_bit_not(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a);
/* a times 2 to the power b; 0 where b is negative or the width of the type or more. */
MICA_API mica_status mica_shift_left(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                     const mica_tensor *b);
/* a divided by 2 to the power b, rounded down; 0 or -1 where b is negative or the width of the type or more. */
MICA_API mica_status mica_shift_right(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                      const mica_tensor *b);

#ifdef __cplusplus
}
#endif
#endif
