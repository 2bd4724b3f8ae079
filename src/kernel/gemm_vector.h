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

/* Rows that are summed at once: their loads of x are shared, and their sums do not wait for each other. */
#define VECTOR_ROWS (VF_LANES > 8 ? VF_LANES : 8)

/* `rows` is a constant where this is inlined, but at the end. */
VF_INLINE void dot_rows(float *out, const float *m, ptrdiff_t stride, const float *x, size_t rows, size_t k)
{
    vf sum[VECTOR_ROWS];
#pragma GCC unroll 16
    for (size_t i = 0; i < VECTOR_ROWS; i++)
        sum[i] = vf_zero();
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
    /* Lanes are added up for as many rows at once as there are lanes. */
    for (size_t i = 0; i < VECTOR_ROWS; i += VF_LANES) {
        vf_transpose(sum + i);
#pragma GCC unroll 4
        for (size_t half = VF_LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
            for (size_t r = 0; r < half; r++)
                sum[i + r] = vf_add(sum[i + r], sum[i + r + half]);
        vf_store(out + i, sum[i]);
    }
}

static void rows_times_vector(float *y, ptrdiff_t y_stride, const float *m, ptrdiff_t stride, const float *x,
                              size_t rows, size_t k, float alpha, float beta)
{
    float sum[VECTOR_ROWS];
    for (size_t i = 0; i < rows; i += VECTOR_ROWS, m += VECTOR_ROWS * stride) {
        size_t n = rows - i < VECTOR_ROWS ? rows - i : VECTOR_ROWS;
        if (n == VECTOR_ROWS)
            dot_rows(sum, m, stride, x, VECTOR_ROWS, k);
        else
            dot_rows(sum, m, stride, x, n, k);
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

/* Columns whose sums stay in registers over all of k, even and odd steps apart. */
#define COLUMN_VECTORS 4

VF_INLINE void add_row(vf sum[COLUMN_VECTORS], float x, const float *row)
{
    vf s = vf_set1(x);
#pragma GCC unroll 4
    for (size_t v = 0; v < COLUMN_VECTORS; v++)
        sum[v] = vf_fma(s, vf_load(row + v * VF_LANES), sum[v]);
}

static void vector_times_rows(float *y, const float *x, ptrdiff_t x_stride, const float *m, ptrdiff_t stride,
                              size_t k, size_t n, float alpha, float beta)
{
    size_t j = 0;
    for (; j + COLUMN_VECTORS * VF_LANES <= n; j += COLUMN_VECTORS * VF_LANES) {
        vf even[COLUMN_VECTORS], odd[COLUMN_VECTORS];
        for (size_t v = 0; v < COLUMN_VECTORS; v++)
            even[v] = odd[v] = vf_zero();
        const float *row = m + j, *at = x;
        for (size_t p = 0; p + 2 <= k; p += 2, row += 2 * stride, at += 2 * x_stride) {
            add_row(even, at[0], row);
            add_row(odd, at[x_stride], row + stride);
        }
        if (k % 2 != 0)
            add_row(even, at[0], row);
        for (size_t v = 0; v < COLUMN_VECTORS; v++)
            scale_into(y + j + v * VF_LANES, vf_add(even[v], odd[v]), VF_LANES, alpha, beta);
    }
    for (; j < n; j += VF_LANES) {
        size_t some = n - j < VF_LANES ? n - j : VF_LANES;
        vf sum = vf_zero();
        for (size_t p = 0; p < k; p++)
            sum = vf_fma(vf_set1(x[(ptrdiff_t)p * x_stride]),
                         vf_load_tail(m + (ptrdiff_t)p * stride + j, some), sum);
        scale_into(y + j, sum, some, alpha, beta);
    }
}

/* ---- A column times a row ---- */

static void outer(float *c, ptrdiff_t stride, const float *x, ptrdiff_t x_stride, const float *y, size_t rows,
                  size_t n, float alpha, float beta)
{
    for (size_t i = 0; i < rows; i++, c += stride, x += x_stride) {
        vf s = vf_set1(*x);
        size_t j = 0;
        for (; j + VF_LANES <= n; j += VF_LANES)
            scale_into(c + j, vf_mul(s, vf_load(y + j)), VF_LANES, alpha, beta);
        if (j < n)
            scale_into(c + j, vf_mul(s, vf_load_tail(y + j, n - j)), n - j, alpha, beta);
    }
}

#endif
