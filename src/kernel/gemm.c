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

/* Any part of a tile, to c of any stride. `sum` is the tile, row-major. */
static void store_part(const mica_gemm_tile *out, const float *sum)
{
    for (size_t i = 0; i < out->rows; i++) {
        float *c = out->c + (ptrdiff_t)i * out->row_stride;
        float row_bias = out->row_bias != NULL ? out->row_bias[i] : 0.0f;
        for (size_t j = 0; j < out->columns; j++, c += out->column_stride) {
            float v = sum[i * TILE_COLUMNS + j] * out->alpha + row_bias;
            if (out->column_bias != NULL)
                v += out->column_bias[j];
            *c = out->beta != 0.0f ? v + out->beta * *c : v;
        }
    }
}

/* Whole, contiguous rows; `rows`, `reads` and the biases are constants where this is inlined. */
VF_INLINE void store_whole(const mica_gemm_tile *out, vf sum[TILE_ROWS][TILE_VECTORS], size_t rows,
                           bool reads, bool biased)
{
    vf alpha = vf_set1(out->alpha), beta = vf_set1(out->beta);
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++) {
        float *c = out->c + (ptrdiff_t)i * out->row_stride;
        vf row_bias = biased && out->row_bias != NULL ? vf_set1(out->row_bias[i]) : vf_zero();
#pragma GCC unroll 4
        for (size_t j = 0; j < TILE_VECTORS; j++) {
            vf v = biased ? vf_fma(sum[i][j], alpha, row_bias) : vf_mul(sum[i][j], alpha);
            if (biased && out->column_bias != NULL)
                v = vf_add(v, vf_load(out->column_bias + j * VF_LANES));
            if (reads)
                v = vf_fma(beta, vf_load(c + j * VF_LANES), v);
            vf_store(c + j * VF_LANES, v);
        }
    }
}

/* The first `rows` rows, a constant where this is inlined. */
VF_INLINE void tile_of(const mica_gemm_tile *out, const float *a, const float *b, size_t k, size_t rows)
{
    vf sum[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < TILE_VECTORS; j++)
            sum[i][j] = vf_zero();

    for (size_t p = 0; p < k; p++, a += TILE_ROWS, b += TILE_COLUMNS) {
        vf row[TILE_VECTORS];
#pragma GCC unroll 4
        for (size_t j = 0; j < TILE_VECTORS; j++)
            row[j] = vf_load(b + j * VF_LANES);
#pragma GCC unroll 16
        for (size_t i = 0; i < rows; i++) {
            vf broadcast = vf_set1(a[i]);
#pragma GCC unroll 4
            for (size_t j = 0; j < TILE_VECTORS; j++)
                sum[i][j] = vf_fma(broadcast, row[j], sum[i][j]);
        }
    }

    bool whole = out->rows == rows && out->columns == TILE_COLUMNS && out->column_stride == 1;
    bool biased = out->row_bias != NULL || out->column_bias != NULL, reads = out->beta != 0.0f;
    if (!whole) {
        float part[TILE_ROWS * TILE_COLUMNS];
#pragma GCC unroll 16
        for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (size_t j = 0; j < TILE_VECTORS; j++)
                vf_store(part + i * TILE_COLUMNS + j * VF_LANES, sum[i][j]);
        store_part(out, part);
    } else if (biased) {
        store_whole(out, sum, rows, reads, true);
    } else if (reads) {
        store_whole(out, sum, rows, true, false);
    } else {
        store_whole(out, sum, rows, false, false);
    }
}

static void tile(const mica_gemm_tile *out, const float *a, const float *b, size_t k)
{
    /* At the end of a matrix there may be fewer rows: then about as few are computed. */
    if (out->rows > TILE_ROWS / 3 * 2)
        tile_of(out, a, b, k, TILE_ROWS);
    else if (out->rows > TILE_ROWS / 3)
        tile_of(out, a, b, k, TILE_ROWS / 3 * 2);
    else
        tile_of(out, a, b, k, TILE_ROWS / 3);
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

/* Any strides, from step `first` of k on. */
static void pack_strided(float *panel, size_t width, const float *src, ptrdiff_t vector_stride,
                         ptrdiff_t k_stride, size_t count, size_t first, size_t k)
{
    for (size_t p = first; p < k; p++) {
        const float *from = src + (ptrdiff_t)p * k_stride;
        float *to = panel + p * width;
        for (size_t i = 0; i < count; i++)
            to[i] = from[(ptrdiff_t)i * vector_stride];
        for (size_t i = count; i < width; i++)
            to[i] = 0.0f;
    }
}

/* Contiguous vectors (rows of a row-major A): squares of them are transposed in registers. Returns the steps
 * of k done.
 *
 * Where a panel is narrower than the last square, that square's stores run over into the next step, which is
 * then stored over it; so the steps go upwards, and the last ones are left to the caller. */
static size_t pack_transposed(float *panel, size_t width, const float *src, ptrdiff_t vector_stride,
                              size_t count, size_t k)
{
    bool runs_over = width % VF_LANES != 0;
    if (runs_over && width > VF_LANES)
        return 0;
    size_t p = 0;
    for (; p + VF_LANES + (runs_over ? 1 : 0) <= k; p += VF_LANES) {
        for (size_t i0 = 0; i0 < width; i0 += VF_LANES) {
            vf square[VF_LANES];
#pragma GCC unroll 16
            for (size_t i = 0; i < VF_LANES; i++)
                square[i] = i0 + i < count ? vf_load(src + (ptrdiff_t)(i0 + i) * vector_stride + p)
                                           : vf_zero();
            vf_transpose(square);
#pragma GCC unroll 16
            for (size_t i = 0; i < VF_LANES; i++)
                vf_store(panel + (p + i) * width + i0, square[i]);
        }
    }
    return p;
}

static void pack(float *panel, size_t width, const float *src, ptrdiff_t vector_stride, ptrdiff_t k_stride,
                 size_t count, size_t k)
{
    if (vector_stride == 1) {
        pack_adjacent(panel, width, src, k_stride, count, k);
        return;
    }
    size_t done = k_stride == 1 ? pack_transposed(panel, width, src, vector_stride, count, k) : 0;
    pack_strided(panel, width, src, vector_stride, k_stride, count, done, k);
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
