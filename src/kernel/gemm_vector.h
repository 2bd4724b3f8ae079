/* Matrix-vector and outer products, for src/kernel/gemm.c: nothing is packed, and the memory bandwidth of the
 * matrix is the bound. */
#ifndef MICA_SRC_KERNEL_GEMM_VECTOR_H
#define MICA_SRC_KERNEL_GEMM_VECTOR_H

#include "kernel/vec.h"

/* place = alpha * v + beta * place, for n elements. */
VF_INLINE void scale_into(float *place, vf v, size_t n, float alpha, float beta)
{
    vf r = vf_mul(v, vf_set1(alpha));
    if (beta != 0.0f)
        r = vf_fma(vf_set1(beta), vf_load_tail(place, n), r);
    vf_store_tail(place, r, n);
}

/* ---- Rows times a vector ---- */

/* Rows whose lanes are added up together. */
#define VECTOR_ROWS (VF_LANES > 8 ? VF_LANES : 8)
/* Rows that are gone along together: they share their loads of x, and their sums do not wait for each other. Long rows
 * are taken fewer at a time: sixteen that lie pages apart drive each other out of the first cache (32 rows of 1024 take
 * 2.7 us instead of 1.3). */
#define LONG_ROW  (16 * VF_LANES)
#define LONG_ROWS (VF_LANES > 8 ? 4 : 8)

/* `rows` is a constant where this is inlined, but at the end. */
VF_INLINE void sum_rows(vf *sum, const float *m, ptrdiff_t stride, const float *x, size_t rows, size_t k)
{
    size_t p = 0;
    for (; p + VF_LANES <= k; p += VF_LANES) {
        vf part = vf_load(x + p);
#pragma GCC unroll 16
        for (size_t i = 0; i < rows; i++)
            sum[i] = vf_fma(vf_load(m + (ptrdiff_t)i * stride + p), part, sum[i]);
    }
    if (p < k) {
        vf part = vf_load_tail(x + p, k - p);
        for (size_t i = 0; i < rows; i++)
            sum[i] = vf_fma(vf_load_tail(m + (ptrdiff_t)i * stride + p, k - p), part, sum[i]);
    }
}

/* VECTOR_ROWS of them, or `rows` that are fewer. `along` is a constant where this is inlined. */
VF_INLINE void dot_rows(float *out, const float *m, ptrdiff_t stride, const float *x, size_t along,
                        size_t rows, size_t k)
{
    vf sum[VECTOR_ROWS];
#pragma GCC unroll 16
    for (size_t i = 0; i < VECTOR_ROWS; i++)
        sum[i] = vf_zero();
    if (rows < VECTOR_ROWS)
        sum_rows(sum, m, stride, x, rows, k);
    else
#pragma GCC unroll 4
        for (size_t i = 0; i < VECTOR_ROWS; i += along)
            sum_rows(sum + i, m + (ptrdiff_t)i * stride, stride, x, along, k);
    for (size_t i = 0; i < VECTOR_ROWS; i += VF_LANES)
        vf_store(out + i, vf_sums(sum + i));
}

#if defined(VF_HALVES)
/* As many rows as half a vector has lanes, each as long. Whole halves: what one node of a net has just stored is read
 * without a wait by the next one, unlike parts of a vector. */
VF_INLINE void dot_half(float *y, const float *m, ptrdiff_t stride, const float *x, float alpha, float beta)
{
    vh part = vh_load(x), product[VF_LANES / 2];
#pragma GCC unroll 8
    for (size_t r = 0; r < VF_LANES / 2; r++)
        product[r] = vh_mul(vh_load(m + (ptrdiff_t)r * stride), part);
    vh sum = vh_mul(vh_sums(product), vh_set1(alpha));
    vh_store(y, beta != 0.0f ? vh_fma(vh_set1(beta), vh_load(y), sum) : sum);
}
#endif

static void rows_times_vector(float *y, ptrdiff_t y_stride, const float *m, ptrdiff_t stride, const float *x,
                              size_t rows, size_t k, float alpha, float beta)
{
    float sum[VECTOR_ROWS];
#if defined(VF_HALVES)
    if (k == VF_LANES / 2 && rows == VF_LANES / 2 && y_stride == 1) {
        dot_half(y, m, stride, x, alpha, beta);
        return;
    }
#endif
    for (size_t i = 0; i < rows; i += VECTOR_ROWS, m += VECTOR_ROWS * stride) {
        size_t n = rows - i < VECTOR_ROWS ? rows - i : VECTOR_ROWS;
        if (n < VECTOR_ROWS)
            dot_rows(sum, m, stride, x, 1, n, k);
        else if (LONG_ROWS < VECTOR_ROWS && k >= LONG_ROW)
            dot_rows(sum, m, stride, x, LONG_ROWS, VECTOR_ROWS, k);
        else
            dot_rows(sum, m, stride, x, VECTOR_ROWS, VECTOR_ROWS, k);
        if (y_stride == 1) {
            for (size_t r = 0; r < n; r += VF_LANES)
                scale_into(y + i + r, vf_load(sum + r), n - r < VF_LANES ? n - r : VF_LANES, alpha, beta);
            continue;
        }
        for (size_t r = 0; r < n; r++) {
            float *place = y + (ptrdiff_t)(i + r) * y_stride;
            *place = beta != 0.0f ? alpha * sum[r] + beta * *place : alpha * sum[r];
        }
    }
}

/* ---- A vector times rows ---- */

/* Vectors of columns whose sums stay in registers over all of k, and sums of each, that do not wait for each other:
 * every row of m goes to the next one. */
#define MOST_VECTORS   (VF_REGISTERS >= 32 ? 8 : 4)
#define COLUMN_VECTORS 4
#define FEW_VECTORS    2
#if defined(MICA_SMALL)
#define MOST_CHAINS 1
#else
#define MOST_CHAINS 4
#endif

typedef struct column_sums {
    vf at[MOST_CHAINS][MOST_VECTORS];
} column_sums;

/* The last vector has `some` columns. `vectors` is a constant where this is inlined, and so is `some` where there are
 * as many as lanes. */
VF_INLINE void add_row(vf *sum, float x, const float *row, size_t vectors, size_t some)
{
    vf s = vf_set1(x);
#pragma GCC unroll 8
    for (size_t v = 0; v < vectors; v++) {
        const float *at = row + v * VF_LANES;
        sum[v] = vf_fma(s, v + 1 < vectors || some == VF_LANES ? vf_load(at) : vf_load_tail(at, some),
                        sum[v]);
    }
}

/* y = alpha * x m + beta * y for that many columns. */
VF_INLINE void add_columns(float *y, const float *x, ptrdiff_t x_stride, const float *m, ptrdiff_t stride,
                           size_t k, size_t vectors, size_t some, float alpha, float beta)
{
    size_t chains = vectors <= FEW_VECTORS ? MOST_CHAINS : MOST_CHAINS / 2, p = 0;
    column_sums sum;
#pragma GCC unroll 4
    for (size_t c = 0; c < chains; c++)
#pragma GCC unroll 8
        for (size_t v = 0; v < vectors; v++)
            sum.at[c][v] = vf_zero();
    for (; p + chains <= k; p += chains, m += (ptrdiff_t)chains * stride, x += (ptrdiff_t)chains * x_stride)
#pragma GCC unroll 4
        for (size_t c = 0; c < chains; c++)
            add_row(sum.at[c], x[(ptrdiff_t)c * x_stride], m + (ptrdiff_t)c * stride, vectors, some);
    for (; p < k; p++, m += stride, x += x_stride)
        add_row(sum.at[0], *x, m, vectors, some);
#pragma GCC unroll 2
    for (size_t half = chains / 2; half > 0; half /= 2)
#pragma GCC unroll 2
        for (size_t c = 0; c < half; c++)
#pragma GCC unroll 8
            for (size_t v = 0; v < vectors; v++)
                sum.at[c][v] = vf_add(sum.at[c][v], sum.at[c + half][v]);
#pragma GCC unroll 8
    for (size_t v = 0; v < vectors; v++)
        scale_into(y + v * VF_LANES, sum.at[0][v], v + 1 < vectors ? VF_LANES : some, alpha, beta);
}

static void vector_times_rows(float *y, const float *x, ptrdiff_t x_stride, const float *m, ptrdiff_t stride,
                              size_t k, size_t n, float alpha, float beta)
{
    size_t j = 0;
#if !defined(MICA_SMALL)
    for (; j + MOST_VECTORS * VF_LANES <= n; j += MOST_VECTORS * VF_LANES)
        add_columns(y + j, x, x_stride, m + j, stride, k, MOST_VECTORS, VF_LANES, alpha, beta);
    for (; j + COLUMN_VECTORS * VF_LANES <= n; j += COLUMN_VECTORS * VF_LANES)
        add_columns(y + j, x, x_stride, m + j, stride, k, COLUMN_VECTORS, VF_LANES, alpha, beta);
#endif
    for (; j + FEW_VECTORS * VF_LANES <= n; j += FEW_VECTORS * VF_LANES)
        add_columns(y + j, x, x_stride, m + j, stride, k, FEW_VECTORS, VF_LANES, alpha, beta);
    for (; j < n; j += VF_LANES)
        add_columns(y + j, x, x_stride, m + j, stride, k, 1, n - j < VF_LANES ? n - j : VF_LANES, alpha,
                    beta);
}

#if !defined(MICA_SMALL)
/* ---- A row times panels ---- */

/* `runs` is a constant where this is inlined. */
VF_INLINE void row_by_panels(float *y, size_t y_run, const float *panels, size_t panel_run, const float *x,
                             size_t runs, size_t k, size_t columns)
{
    vf sum[MICA_GEMM_MOST_RUNS][TILE_VECTORS];
#pragma GCC unroll 4
    for (size_t run = 0; run < runs; run++)
#pragma GCC unroll 4
        for (size_t v = 0; v < TILE_VECTORS; v++)
            sum[run][v] = vf_zero();
    for (size_t p = 0; p < k; p++, panels += TILE_COLUMNS) {
        vf s = vf_set1(x[p]);
#pragma GCC unroll 4
        for (size_t run = 0; run < runs; run++)
#pragma GCC unroll 4
            for (size_t v = 0; v < TILE_VECTORS; v++)
                sum[run][v] = vf_fma(s, vf_load(panels + run * panel_run + v * VF_LANES), sum[run][v]);
    }
#pragma GCC unroll 4
    for (size_t run = 0; run < runs; run++)
        for (size_t v = 0; v < TILE_VECTORS && v * VF_LANES < columns; v++) {
            size_t n = columns - v * VF_LANES;
            float *place = y + run * y_run + v * VF_LANES;
            if (n >= VF_LANES)
                vf_store(place, vf_add(vf_load(place), sum[run][v]));
            else
                vf_store_tail(place, vf_add(vf_load_tail(place, n), sum[run][v]), n);
        }
}

static void row_times_panels(float *y, size_t y_run, const float *panels, size_t panel_run, const float *x,
                             size_t runs, size_t k, size_t columns)
{
    if (runs == 4)
        row_by_panels(y, y_run, panels, panel_run, x, 4, k, columns);
    else if (runs == 3)
        row_by_panels(y, y_run, panels, panel_run, x, 3, k, columns);
    else
        for (size_t run = 0; run < runs; run++)
            row_by_panels(y + run * y_run, y_run, panels + run * panel_run, panel_run, x, 1, k, columns);
}

#endif

/* ---- A column times a row ---- */

/* Where a vector is a whole line, c is asked for so many floats ahead: nothing else comes from memory, and stores alone
 * do not run ahead. */
#define OUTER_AHEAD 512

static void outer(float *c, ptrdiff_t stride, const float *x, ptrdiff_t x_stride, const float *y, size_t rows,
                  size_t n, float alpha, float beta)
{
    for (size_t i = 0; i < rows; i++, c += stride, x += x_stride) {
        vf s = vf_set1(*x);
        size_t j = 0;
        for (; j + VF_LANES <= n; j += VF_LANES) {
            if (VF_LANES * sizeof(float) >= 64)
                __builtin_prefetch(c + j + OUTER_AHEAD, 1);
            scale_into(c + j, vf_mul(s, vf_load(y + j)), VF_LANES, alpha, beta);
        }
        if (j < n)
            scale_into(c + j, vf_mul(s, vf_load_tail(y + j, n - j)), n - j, alpha, beta);
    }
}

#endif
