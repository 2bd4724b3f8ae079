/* Products of bytes, and what int8 operations do to single values: integers, the same bits on every set.
 *
 * A product reads rows of x, whose bytes are x + offset, and panels of `width` weight rows. For each four values of a
 * row, a panel has four bytes of each of its weight rows:
 *
 *     quads x width x 4 bytes        quads = values / 4, rounded up; what is missing is 0
 *
 * and beside it what the sums of its weight rows start at: bias - offset * the sum of the row. */
#ifndef MICA_SRC_KERNEL_INT8_H
#define MICA_SRC_KERNEL_INT8_H

#include <stddef.h>
#include <stdint.h>

/* r = (s * multiplier + 2^(shift - 1)) >> shift, limited. `each`: a multiplier and a shift for each value, else one. */
typedef struct mica_int8_finish {
    const int32_t *multiplier;
    const uint8_t *shift;
    int32_t low, high;
} mica_int8_finish;

typedef struct mica_int8_kernels {
    size_t width;   /* weight rows of a panel */
    uint8_t offset; /* of x in products: a power of two that x is XORed with, or 0 */

    /* y[count] of sums */
    void (*finish)(int8_t *y, const int32_t *sum, size_t count, const mica_int8_finish *f, int each);
    /* The same for rows of `width` sums and results, of which the first `count` are wanted. */
    void (*finish_rows)(int8_t *y, const int32_t *sum, size_t rows, size_t count, const mica_int8_finish *f,
                        int each);
    void (*quantize)(int8_t *y, const float *x, size_t count, float factor);
    void (*dequantize)(float *y, const int8_t *x, size_t count, float scale);
    void (*add)(int8_t *y, const int8_t *a, const int8_t *b, size_t count, const int32_t multiplier[2],
                int shift, const int32_t limit[2]);

    /* Rows of weights, `stride` apart, to a panel; those from `rows` on are 0. */
    void (*pack)(int8_t *panel, int32_t *start, const int8_t *w, size_t stride, size_t rows, size_t values,
                 const int32_t *bias);
    /* sum[rows][width] of rows of x, `stride` apart, of 4 * quads bytes that can be read. */
    void (*product)(int32_t *sum, const uint8_t *x, size_t stride, size_t rows, size_t quads,
                    const int8_t *panel, const int32_t *start);
    /* sum[rows] = bias + one row of x, as it is, times weight rows as they lie. */
    void (*dots)(int32_t *sum, const int8_t *x, const int8_t *w, size_t stride, size_t rows, size_t values,
                 const int32_t *bias);
    /* sum[k] += w * x[k * step], k below count */
    void (*tap)(int32_t *sum, const int8_t *x, size_t step, size_t count, int w);
    /* y[k] = the larger of it and x[k * step] */
    void (*largest)(int8_t *y, const int8_t *x, size_t step, size_t count);
} mica_int8_kernels;

#endif
