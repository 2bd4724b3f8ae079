/* Copying and converting. */
#ifndef MICA_OPS_COPY_H
#define MICA_OPS_COPY_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* dst = src, broadcast to dst's shape: any layouts, any dtypes.
 *
 * To a float type: rounded once to nearest, ties to even. From a float to an integer type: truncated toward
 * zero, saturated, 0 for NaN. From an integer to an integer type:
 * saturated (a copy never wraps). To bool: whether it is not 0. To a float of eight or four bits: saturated, also an
 * infinity; NaN stays NaN, or becomes 0 in f4e2m1, which has none; to f8e8m0 rounded up.
 *
 * From a block-quantized type: the values of its blocks in f32, and then as above. To one: rounded to f32, and
 * then quantized, each block by itself; a NaN or an infinity, or a scale beyond f16, corrupts its whole block. q4_0,
 * q4_1, q5_0, q5_1 and q8_0 are quantized as ggml's reference does it, the others for a small squared error by a search
 * of their own, which takes longer: some 10 to 50 ns a value on one thread with AVX2.
 *
 * dst may be exactly src. */
MICA_API mica_status mica_copy(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src);

/* mica_copy between plain dtypes, with options. NULL is mica_copy. */
MICA_API mica_status mica_cast(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                               const mica_cast_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
