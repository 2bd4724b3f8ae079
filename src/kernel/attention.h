/* Attention kernels: small matrix products that need no packing, and the softmax between them. */
#ifndef MICA_SRC_KERNEL_ATTENTION_H
#define MICA_SRC_KERNEL_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A matrix by its first element and strides. */
typedef struct mica_matrix {
    const float *data;
    ptrdiff_t row, column; /* strides */
} mica_matrix;

/* What becomes of a tile of scores [rows, n] before the softmax. Row i sees its first visible + i * step
 * keys (none if that is negative). */
typedef struct mica_score_rule {
    float scale;
    ptrdiff_t visible, step;
    const float *add;    /* added where given: row i, key j at [i * mask_row + j * mask_column] */
    const uint8_t *keep; /* hides where 0 */
    ptrdiff_t mask_row, mask_column;
} mica_score_rule;

typedef struct mica_attention_kernels {
    /* c [m, n] = a [m, k] b [k, n], added to c if `add`. The columns of b lie one behind the other. */
    void (*product)(float *c, ptrdiff_t c_stride, const mica_matrix *a, const float *b, ptrdiff_t b_stride,
                    size_t m, size_t n, size_t k, bool add);

    /* s = scale * s + mask, -infinity for hidden keys. */
    void (*scores)(float *s, ptrdiff_t stride, size_t rows, size_t n, const mica_score_rule *rule);

    /* One step of the softmax over keys: with the new largest score m of each row, s = e^(s - m), and what
     * was summed up under the old one, sum and out [rows, d], is scaled to the new. */
    void (*softmax_step)(float *s, ptrdiff_t stride, size_t rows, size_t n, float *largest, float *sum,
                         float *out, ptrdiff_t out_stride, size_t d);

    /* y = acc / sum, or 0 where sum is; lse = largest + log(sum), unless that is NULL. */
    void (*softmax_end)(float *y, ptrdiff_t y_stride, float *lse, ptrdiff_t lse_stride, const float *acc,
                        ptrdiff_t acc_stride, size_t rows, size_t d, const float *largest, const float *sum);

    /* From scores s and dp [rows, n]: s = p = e^(s - lse), dp = p (dp - delta) scale. */
    void (*softmax_backward)(float *s, float *dp, ptrdiff_t stride, size_t rows, size_t n, const float *lse,
                             const float *delta, float scale);

    float (*dot)(const float *a, const float *b, size_t n);
} mica_attention_kernels;

#endif
