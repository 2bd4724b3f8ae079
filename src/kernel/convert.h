/* Conversion of contiguous runs between element types.
 *
 *   to a float      rounds to nearest even, once: i64 to f16 and f64 to bf16 are correctly rounded too
 *   float to int    truncates toward zero, saturates; NaN gives 0
 *   int to int      saturates (never wraps)
 *   to bool         whether it is not 0; NaN is not
 *   to a small float (8 or 4 bits): saturates, NaN stays where the type has it
 *   blocks          through f32 (block.h); whole blocks only
 */
#ifndef MICA_SRC_KERNEL_CONVERT_H
#define MICA_SRC_KERNEL_CONVERT_H

#include <mica/tensor.h>

typedef struct mica_convert_kernels {
    /* dst[i] = src[i], i < n. dst may be src where both types have the same size; else they share nothing. Where
     * there are blocks, pointers are to the start of one and n is a multiple of their size. */
    void (*run)(void *dst, mica_dtype to, const void *src, mica_dtype from, size_t n);
    /* The same between plain types, with options. */
    void (*cast)(void *dst, mica_dtype to, const void *src, mica_dtype from, size_t n,
                 const mica_cast_opts *opts);
    /* Copies floats past the cache: for blocks larger than it, which share nothing. */
    void (*stream)(float *dst, const float *src, size_t n);
    /* dst[c * dst_stride + r] = src[r * src_stride + c] for r < rows, c < columns: elements of four bytes. */
    void (*transpose)(uint32_t *dst, ptrdiff_t dst_stride, const uint32_t *src, ptrdiff_t src_stride,
                      ptrdiff_t rows, ptrdiff_t columns);
} mica_convert_kernels;

#endif
