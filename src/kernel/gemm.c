/* Matrix product kernels; compiled once per instruction set. */
#include "kernel/gemm.h"
#include "kernel/vec.h"

/* The register tile: TILE_ROWS x TILE_VECTORS accumulators, with room left for a row of B and a broadcast of
 * A. */
#if VF_REGISTERS >= 32 && VF_LANES >= 16
#define TILE_ROWS    14
#define TILE_VECTORS 2
#elif VF_REGISTERS >= 32
#define TILE_ROWS    8
#define TILE_VECTORS 3
#elif VF_LANES > 1
#define TILE_ROWS    6
#define TILE_VECTORS 2
#else
#define TILE_ROWS    4
#define TILE_VECTORS 2
#endif
#define TILE_COLUMNS (TILE_VECTORS * VF_LANES)

/* ---- The tile ---- */

/* alpha * sum + bias, then beta * c. */
VF_INLINE vf finish(const mica_gemm_tile *out, vf sum, vf old, size_t row, vf column_bias)
{
    vf v = vf_mul(sum, vf_set1(out->alpha));
    if (out->row_bias != NULL)
        v = vf_add(v, vf_set1(out->row_bias[row]));
    if (out->column_bias != NULL)
        v = vf_add(v, column_bias);
    return out->beta != 0.0f ? vf_fma(vf_set1(out->beta), old, v) : v;
}

/* One row of the tile into contiguous c. */
VF_INLINE void store_row(const mica_gemm_tile *out, const vf *sum, size_t row)
{
    float *c = out->c + (ptrdiff_t)row * out->row_stride;
    bool reads = out->beta != 0.0f;
    for (size_t j = 0; j < out->columns; j += VF_LANES, sum++) {
        size_t n = out->columns - j;
        if (n >= VF_LANES) {
            vf bias = out->column_bias != NULL ? vf_load(out->column_bias + j) : vf_zero();
            vf_store(c + j, finish(out, *sum, reads ? vf_load(c + j) : vf_zero(), row, bias));
        } else {
            vf bias = out->column_bias != NULL ? vf_load_tail(out->column_bias + j, n) : vf_zero();
            vf old = reads ? vf_load_tail(c + j, n) : vf_zero();
            vf_store_tail(c + j, finish(out, *sum, old, row, bias), n);
        }
    }
}

/* One row of the tile into c of any stride. */
static void store_row_strided(const mica_gemm_tile *out, const vf *sum, size_t row)
{
    float value[TILE_COLUMNS];
    for (size_t j = 0; j < TILE_VECTORS; j++)
        vf_store(value + j * VF_LANES, sum[j]);
    float *c = out->c + (ptrdiff_t)row * out->row_stride;
    for (size_t j = 0; j < out->columns; j++) {
        float v = value[j] * out->alpha;
        if (out->row_bias != NULL)
            v += out->row_bias[row];
        if (out->column_bias != NULL)
            v += out->column_bias[j];
        float *place = c + (ptrdiff_t)j * out->column_stride;
        *place = out->beta != 0.0f ? v + out->beta * *place : v;
    }
}

static void tile(const mica_gemm_tile *out, const float *a, const float *b, size_t k)
{
    vf sum[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 16
    for (size_t i = 0; i < TILE_ROWS; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < TILE_VECTORS; j++)
            sum[i][j] = vf_zero();

    for (size_t p = 0; p < k; p++, a += TILE_ROWS, b += TILE_COLUMNS) {
        vf row[TILE_VECTORS];
#pragma GCC unroll 4
        for (size_t j = 0; j < TILE_VECTORS; j++)
            row[j] = vf_load(b + j * VF_LANES);
#pragma GCC unroll 16
        for (size_t i = 0; i < TILE_ROWS; i++) {
            vf broadcast = vf_set1(a[i]);
#pragma GCC unroll 4
            for (size_t j = 0; j < TILE_VECTORS; j++)
                sum[i][j] = vf_fma(broadcast, row[j], sum[i][j]);
        }
    }

    if (out->column_stride != 1) {
        for (size_t i = 0; i < out->rows; i++)
            store_row_strided(out, sum[i], i);
        return;
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < TILE_ROWS; i++)
        if (i < out->rows)
            store_row(out, sum[i], i);
}

/* ---- Packing ---- */

/* Vectors side by side in memory: each step of k is one short contiguous copy. */
static void pack_adjacent(float *panel, size_t width, const float *src, ptrdiff_t k_stride, size_t count,
                          size_t k)
{
    for (size_t p = 0; p < k; p++, src += k_stride, panel += width) {
        size_t i = 0;
        for (; i + VF_LANES <= count; i += VF_LANES)
            vf_store(panel + i, vf_load(src + i));
        for (; i < count; i++)
            panel[i] = src[i];
        for (; i < width; i++)
            panel[i] = 0.0f;
    }
}

static void pack(float *panel, size_t width, const float *src, ptrdiff_t vector_stride, ptrdiff_t k_stride,
                 size_t count, size_t k)
{
    if (vector_stride == 1) {
        pack_adjacent(panel, width, src, k_stride, count, k);
        return;
    }
    for (size_t p = 0; p < k; p++, panel += width) {
        const float *from = src + (ptrdiff_t)p * k_stride;
        for (size_t i = 0; i < count; i++)
            panel[i] = from[(ptrdiff_t)i * vector_stride];
        for (size_t i = count; i < width; i++)
            panel[i] = 0.0f;
    }
}

/* ---- Matrix times vector ---- */

/* Rows that are summed at once: their loads of x are shared. */
#define VECTOR_ROWS 4

VF_INLINE void dot_rows(float *out, const float *m, ptrdiff_t stride, const float *x, size_t rows, size_t k)
{
    vf sum[VECTOR_ROWS][2];
    for (size_t i = 0; i < VECTOR_ROWS; i++)
        sum[i][0] = sum[i][1] = vf_zero();
    size_t p = 0;
    for (; p + 2 * VF_LANES <= k; p += 2 * VF_LANES) {
        vf x0 = vf_load(x + p), x1 = vf_load(x + p + VF_LANES);
        for (size_t i = 0; i < rows; i++) {
            const float *row = m + (ptrdiff_t)i * stride + p;
            sum[i][0] = vf_fma(vf_load(row), x0, sum[i][0]);
            sum[i][1] = vf_fma(vf_load(row + VF_LANES), x1, sum[i][1]);
        }
    }
    for (; p < k; p += VF_LANES) {
        size_t n = k - p < VF_LANES ? k - p : VF_LANES;
        vf x0 = vf_load_tail(x + p, n);
        for (size_t i = 0; i < rows; i++)
            sum[i][0] = vf_fma(vf_load_tail(m + (ptrdiff_t)i * stride + p, n), x0, sum[i][0]);
    }
    for (size_t i = 0; i < rows; i++)
        out[i] = vf_sum(vf_add(sum[i][0], sum[i][1]));
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
        for (size_t r = 0; r < n; r++) {
            float *place = y + (ptrdiff_t)(i + r) * y_stride;
            *place = beta != 0.0f ? alpha * sum[r] + beta * *place : alpha * sum[r];
        }
    }
}

/* Columns whose sums stay in registers over all of k. */
#define COLUMN_VECTORS 4

static void vector_times_rows(float *y, const float *x, ptrdiff_t x_stride, const float *m, ptrdiff_t stride,
                              size_t k, size_t n, float alpha, float beta)
{
    size_t j = 0;
    for (; j + COLUMN_VECTORS * VF_LANES <= n; j += COLUMN_VECTORS * VF_LANES) {
        vf sum[COLUMN_VECTORS];
        for (size_t v = 0; v < COLUMN_VECTORS; v++)
            sum[v] = vf_zero();
        for (size_t p = 0; p < k; p++) {
            vf s = vf_set1(x[(ptrdiff_t)p * x_stride]);
            const float *row = m + (ptrdiff_t)p * stride + j;
            for (size_t v = 0; v < COLUMN_VECTORS; v++)
                sum[v] = vf_fma(s, vf_load(row + v * VF_LANES), sum[v]);
        }
        for (size_t v = 0; v < COLUMN_VECTORS; v++) {
            vf r = vf_mul(sum[v], vf_set1(alpha));
            float *place = y + j + v * VF_LANES;
            vf_store(place, beta != 0.0f ? vf_fma(vf_set1(beta), vf_load(place), r) : r);
        }
    }
    for (; j < n; j += VF_LANES) {
        size_t some = n - j < VF_LANES ? n - j : VF_LANES;
        vf sum = vf_zero();
        for (size_t p = 0; p < k; p++)
            sum = vf_fma(vf_set1(x[(ptrdiff_t)p * x_stride]),
                         vf_load_tail(m + (ptrdiff_t)p * stride + j, some), sum);
        vf r = vf_mul(sum, vf_set1(alpha));
        vf_store_tail(y + j, beta != 0.0f ? vf_fma(vf_set1(beta), vf_load_tail(y + j, some), r) : r, some);
    }
}

const mica_gemm_kernels VF_SYMBOL(mica_gemm_kernels) = {
    .tile_rows = TILE_ROWS,
    .tile_columns = TILE_COLUMNS,
    .tile = tile,
    .pack = pack,
    .rows_times_vector = rows_times_vector,
    .vector_times_rows = vector_times_rows,
};
