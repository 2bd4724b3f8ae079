/* Block-quantized values to floats and back: the formats of GGUF files.
 *
 * Values match the reference bit for bit: every product and sum is rounded to f32 in the same order. So do blocks of
 * the types that the reference writes (Q4_0 to Q8_0). It is the NumPy code of the `gguf` package, which agrees with
 * ggml's plain C. The other blocks are the same for every instruction set. */
#ifndef MICA_SRC_KERNEL_BLOCK_H
#define MICA_SRC_KERNEL_BLOCK_H

#include <mica/tensor.h>

typedef void mica_block_decode_fn(float *values, const uint8_t *blocks, size_t count);
typedef void mica_block_encode_fn(uint8_t *blocks, const float *values, size_t count);

typedef struct mica_block_kernels {
    /* The values of `count` blocks. NULL for plain types. */
    mica_block_decode_fn *decode[MICA_DTYPE_COUNT];
    /* `count` blocks out of as many times the block's values. A NaN or an infinity spoils its block, which then
     * decodes to NaNs and infinities. NULL for plain types. */
    mica_block_encode_fn *encode[MICA_DTYPE_COUNT];
} mica_block_kernels;

#endif
