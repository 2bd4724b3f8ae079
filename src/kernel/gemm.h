/* Matrix product kernels: a register tile over packed panels, the packing of strided matrices, and matrix
 * times vector.
 *
 * A packed panel of A holds `rows` rows, of B `columns` columns, for a run of k: element (p, i) at p * width
 * + i. Missing rows and columns are zeros, so that the tile always computes a whole one. */
#ifndef MICA_SRC_KERNEL_GEMM_H
#define MICA_SRC_KERNEL_GEMM_H

#include <stddef.h>

/* Where a tile goes, and what becomes of it: c = alpha * (a b) + beta * c + bias. */
typedef struct mica_gemm_tile {
    float *c;
    ptrdiff_t row_stride, column_stride;
    size_t rows, columns;     /* that exist */
    float alpha, beta;        /* with beta == 0, c is not read */
    const float *row_bias;    /* [rows] or NULL */
    const float *column_bias; /* [columns] or NULL */
} mica_gemm_tile;

typedef struct mica_gemm_kernels {
    size_t tile_rows, tile_columns;

    /* One tile from a panel of A and a panel of B. */
    void (*tile)(const mica_gemm_tile *out, const float *a, const float *b, size_t k);

    /* Packs `count` (at most `width`) vectors of length k, element (p, i) at src[i * vector_stride + p *
     * k_stride], into a panel of that width. For A the vectors are rows, for B columns. */
    void (*pack)(float *panel, size_t width, const float *src, ptrdiff_t vector_stride, ptrdiff_t k_stride,
                 size_t count, size_t k);

    /* y[i] = alpha * sum_p m[i * stride + p] x[p] + beta * y[i], for `rows` contiguous rows of length k. */
    void (*rows_times_vector)(float *y, ptrdiff_t y_stride, const float *m, ptrdiff_t stride, const float *x,
                              size_t rows, size_t k, float alpha, float beta);

    /* y[j] = alpha * sum_p x[p * x_stride] m[p * stride + j] + beta * y[j], for k contiguous rows of length
     * n. */
    void (*vector_times_rows)(float *y, const float *x, ptrdiff_t x_stride, const float *m, ptrdiff_t stride,
                              size_t k, size_t n, float alpha, float beta);
} mica_gemm_kernels;

#endif
