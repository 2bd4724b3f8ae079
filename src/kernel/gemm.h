/* Matrix product kernels: a register tile that runs down a strip of the product, the packing of strided
 * matrices, and matrix-vector products.
 *
 * A packed panel of A holds `tile_rows` rows, of B `tile_columns` columns, for a run of k: element (p, i) at
 * p * width + i. Missing rows and columns are zeros. */
#ifndef MICA_SRC_KERNEL_GEMM_H
#define MICA_SRC_KERNEL_GEMM_H

#include <stdbool.h>
#include <stddef.h>

/* What is read after a strip, and comes from far away: `runs` runs of so many floats, `stride` apart. It is asked for
 * along the way, so that the second cache has it by then. */
typedef struct mica_gemm_ahead {
    const float *from; /* NULL: nothing is asked for */
    size_t runs, floats;
    ptrdiff_t stride;
} mica_gemm_ahead;

/* A strip of the product, at most a tile's columns wide: c = alpha * (a b) + beta * from + bias. */
typedef struct mica_gemm_strip {
    size_t rows, columns, k;
    /* Element (i, p) at a[i * a_row_stride + p * a_k_stride]; or, with a_packed, panels one behind the other. */
    const float *a;
    ptrdiff_t a_row_stride, a_k_stride;
    bool a_packed;
    /* Element (p, j) at b[p * b_stride + j]: a whole tile's columns are read, even where fewer are wanted. */
    const float *b;
    ptrdiff_t b_stride;
    float *b_panel; /* not NULL: b is packed into it along the way */
#if !defined(MICA_SMALL)
    mica_gemm_ahead ahead;
#endif
    float *c; /* element (i, j) at c[i * row_stride + j * column_stride] */
    ptrdiff_t row_stride, column_stride;
    const float *from; /* may be c; not read with beta == 0 */
    ptrdiff_t from_row_stride, from_column_stride;
    float alpha, beta;
    const float *row_bias;    /* [rows] or NULL */
    const float *column_bias; /* [columns] or NULL */
} mica_gemm_strip;

#if !defined(MICA_SMALL)
/* Rows of `a` times rows of `b`, both contiguous, of length k. */
typedef struct mica_gemm_dots_part {
    const float *a, *b;
    ptrdiff_t a_stride, b_stride;
    size_t k;
} mica_gemm_dots_part;

/* c[i * stride + j] = the sum over both parts of row i of a times row j of b, plus bias[j] or, with `adds`, what c was.
 * Parts' strips of a should stay in the first cache. */
typedef struct mica_gemm_dots {
    size_t rows, columns;
    mica_gemm_dots_part part[2];
    float *c;
    ptrdiff_t stride;
    const float *bias; /* or NULL */
    bool adds;
} mica_gemm_dots;
#endif

/* Panels that row_times_panels is fastest with: their sums are all in registers. */
#define MICA_GEMM_MOST_RUNS 4

typedef struct mica_gemm_kernels {
    size_t tile_rows, tile_columns;

    /* Computes a strip, tile by tile. */
    void (*strip)(const mica_gemm_strip *s);

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

#if !defined(MICA_SMALL)
    /* y[r * y_run + j] += sum_p x[p] panels[r * panel_run + p * tile_columns + j] for `runs` packed panels of B, and
     * the first `columns` (at most tile_columns) of each: the bits of a strip of one row. */
    void (*row_times_panels)(float *y, size_t y_run, const float *panels, size_t panel_run, const float *x,
                             size_t runs, size_t k, size_t columns);

    /* NULL where vectors are too short for it. */
    void (*dots)(const mica_gemm_dots *d);
#endif

    /* c[i * stride + j] = alpha * x[i * x_stride] y[j] + beta * c[i * stride + j], for contiguous rows of
     * length n. */
    void (*outer)(float *c, ptrdiff_t stride, const float *x, ptrdiff_t x_stride, const float *y, size_t rows,
                  size_t n, float alpha, float beta);
} mica_gemm_kernels;

#endif
