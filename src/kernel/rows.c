/* Products of rows with rows of weights; compiled once per instruction set. */
#include "kernel/rows.h"

#include "kernel/lines.h"
#include "kernel/vec.h"

/* A tile's sums: TILE_ROWS x PANEL vectors, with room left for a vector of each of the weights and one of x. A single
 * row takes twice as many weights, so that multiplications need not wait for each other. */
#if VF_REGISTERS >= 32
#define TILE_ROWS 6
#else
#define TILE_ROWS 3
#endif
#define PANEL 4
#define GROUP 8
#define MOST  (TILE_ROWS * PANEL + VF_LANES)

/* Rows up to which weights are converted again for every tile: as many as there are where a tile of wide vectors hides
 * that behind its multiplications. */
#define DIRECT_ROWS (VF_LANES > 8 ? SIZE_MAX : VF_LANES > 1 ? 2 * TILE_ROWS : TILE_ROWS)

/* What weights lie as; a constant wherever it is inlined. */
typedef enum source { F32, F16, BF16, PANELS } source;

VF_INLINE size_t bytes_of(source type) { return type == F16 || type == BF16 ? 2 : 4; }

/* n of VF_LANES weights from `p` on; n is VF_LANES but at the end of a row. */
VF_INLINE vf load_weights(const void *p, source type, size_t n)
{
    if (type == F16)
        return n == VF_LANES ? vf_load_f16(p) : vf_load_f16_tail(p, n);
    if (type == BF16)
        return n == VF_LANES ? vf_load_bf16(p) : vf_load_bf16_tail(p, n);
    return n == VF_LANES ? vf_load(p) : vf_load_tail(p, n);
}

/* ---- A tile ---- */

/* sum += x w for VF_LANES elements of each row. */
VF_INLINE void step(vf *sum, const lines *x, const lines *w, source type, size_t rows, size_t units, size_t n)
{
    vf weight[GROUP];
#pragma GCC unroll 8
    for (size_t j = 0; j < units; j++)
        weight[j] = vf_keep(load_weights(lines_place(w, j), type, type == PANELS ? VF_LANES : n));
#pragma GCC unroll 8
    for (size_t i = 0; i < rows; i++) {
        const float *from = lines_place(x, i);
        vf row = vf_keep(n == VF_LANES ? vf_load(from) : vf_load_tail(from, n));
#pragma GCC unroll 8
        for (size_t j = 0; j < units; j++)
            sum[i * units + j] = vf_fma(row, weight[j], sum[i * units + j]);
    }
}

/* Lanes are added up for as many outputs at once as there are lanes; the last few fill up by being there again. */
VF_INLINE void finish(const mica_rows_product *p, vf *sum, float *y, const float *bias, size_t rows,
                      size_t units)
{
    float out[MOST];
    size_t count = rows * units;
#pragma GCC unroll 32
    for (size_t i = 0; i < count; i += VF_LANES) {
        size_t there = count - i < VF_LANES ? count - i : VF_LANES;
#pragma GCC unroll 16
        for (size_t j = there; j < VF_LANES; j++)
            sum[i + j] = sum[i + j % there];
        vf_store(out + i, vf_sums(sum + i));
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < rows; i++, y += p->y_stride)
        for (size_t j = 0; j < units; j++)
            y[j] = out[i * units + j] + bias[j];
}

/* Weights are asked for a whole group ahead: they come straight from memory, and hardware gives up on so many streams
 * at once, and at the end of a page. To the first cache, even where a group does not fit: it is then in the second. */
VF_INLINE void prefetch_group(const lines *w, ptrdiff_t ahead, size_t units)
{
#pragma GCC unroll 8
    for (size_t j = 0; j < units; j++)
        __builtin_prefetch((const char *)lines_place(w, j) + ahead, 0, 3);
}

/* Steps in a line of a cache. */
VF_INLINE size_t line_steps(source type)
{
    size_t steps = 64 / (VF_LANES * bytes_of(type));
    return steps > 4 ? 4 : steps;
}

VF_INLINE void tile_of(const mica_rows_product *p, float *y, const float *x, const void *w, const float *bias,
                       source type, size_t rows, size_t units)
{
    vf sum[MOST];
#pragma GCC unroll 32
    for (size_t i = 0; i < rows * units; i++)
        sum[i] = vf_zero();
    ptrdiff_t x_stride = p->x_stride * (ptrdiff_t)sizeof *x;
    ptrdiff_t w_stride = type == PANELS ? VF_LANES * (ptrdiff_t)sizeof *x
                                        : p->w_stride * (ptrdiff_t)bytes_of(type);
    ptrdiff_t w_step = type == PANELS ? PANEL * w_stride : VF_LANES * (ptrdiff_t)bytes_of(type);
    lines at = lines_of_bytes(x, x_stride, VF_LANES * (ptrdiff_t)sizeof *x);
    lines from = lines_of_bytes(w, w_stride, w_step);
    size_t k = p->k;
    if (type != PANELS && VF_LANES > 1) {
        size_t steps = line_steps(type);
        ptrdiff_t ahead = (ptrdiff_t)units * w_stride;
        for (; k >= steps * VF_LANES; k -= steps * VF_LANES) {
            lines_forget(&at);
            lines_forget(&from);
            prefetch_group(&from, ahead, units);
#pragma GCC unroll 8
            for (size_t s = 0; s < steps; s++) {
                step(sum, &at, &from, type, rows, units, VF_LANES);
                lines_step(&at);
                lines_step(&from);
            }
        }
    }
    for (; k >= VF_LANES; k -= VF_LANES) {
        lines_forget(&at);
        lines_forget(&from);
        step(sum, &at, &from, type, rows, units, VF_LANES);
        lines_step(&at);
        lines_step(&from);
    }
    if (VF_LANES > 1 && k > 0)
        step(sum, &at, &from, type, rows, units, k);
    finish(p, sum, y, bias, rows, units);
}

/* ---- Weights as they lie ---- */

static const float no_bias[GROUP];

/* One case for each number of rows. */
#define TILE_CASE(n, type)                         \
    case n:                                        \
        tile_of(p, y, x, w, bias, type, n, PANEL); \
        break;

VF_INLINE void tile(const mica_rows_product *p, float *y, const float *x, const void *w, const float *bias,
                    source type, size_t rows)
{
    switch (rows) {
        TILE_CASE(1, type)
        TILE_CASE(2, type)
#if TILE_ROWS > 3
        TILE_CASE(3, type)
        TILE_CASE(4, type)
        TILE_CASE(5, type)
#endif
    default:
        tile_of(p, y, x, w, bias, type, TILE_ROWS, PANEL);
    }
}

/* How many of `left` rows the next tile takes. At the end two tiles of about the same height are better than a whole
 * one and a rest of few rows, whose sums wait for each other. */
static size_t next_rows(size_t left)
{
    if (left <= TILE_ROWS)
        return left;
    return left >= 2 * TILE_ROWS ? TILE_ROWS : (left + 1) / 2;
}

VF_INLINE void direct(const mica_rows_product *p, source type)
{
    size_t width = p->rows == 1 ? GROUP : PANEL;
    const char *w = p->w;
    ptrdiff_t next = (ptrdiff_t)width * p->w_stride * (ptrdiff_t)bytes_of(type);
    for (size_t j = 0; j < p->units; j += width, w += next) {
        const float *bias = p->bias != NULL ? p->bias + j : no_bias;
        if (p->rows == 1) {
            tile_of(p, p->y + j, p->x, w, bias, type, 1, GROUP);
            continue;
        }
        for (size_t i = 0, rows; i < p->rows; i += rows) {
            rows = next_rows(p->rows - i);
            tile(p, p->y + (ptrdiff_t)i * p->y_stride + j, p->x + (ptrdiff_t)i * p->x_stride, w, bias, type,
                 rows);
        }
    }
}

LINES_ALONE static void direct_f32(const mica_rows_product *p) { direct(p, F32); }
LINES_ALONE static void direct_f16(const mica_rows_product *p) { direct(p, F16); }
LINES_ALONE static void direct_bf16(const mica_rows_product *p) { direct(p, BF16); }

/* ---- Weights in panels ---- */

/* A panel has its steps one behind the other: a vector of each of its weights. */
VF_INLINE void unpack(float *panels, const void *w, ptrdiff_t stride, size_t units, size_t k, source type)
{
    const char *from = w;
    size_t steps = (k + VF_LANES - 1) / VF_LANES;
    for (size_t j = 0; j < units || j % PANEL != 0; j++, from += stride * (ptrdiff_t)bytes_of(type)) {
        float *to = panels + j / PANEL * PANEL * steps * VF_LANES + j % PANEL * VF_LANES;
        for (size_t i = 0; i < k; i += VF_LANES, to += PANEL * VF_LANES) {
            vf v = vf_zero();
            if (j < units)
                v = k - i >= VF_LANES ? load_weights(from + i * bytes_of(type), type, VF_LANES)
                                      : load_weights(from + i * bytes_of(type), type, k - i);
            vf_store(to, v);
        }
    }
}

static void unpack_f32(float *panels, const void *w, ptrdiff_t stride, size_t units, size_t k)
{
    unpack(panels, w, stride, units, k, F32);
}
static void unpack_f16(float *panels, const void *w, ptrdiff_t stride, size_t units, size_t k)
{
    unpack(panels, w, stride, units, k, F16);
}
static void unpack_bf16(float *panels, const void *w, ptrdiff_t stride, size_t units, size_t k)
{
    unpack(panels, w, stride, units, k, BF16);
}

/* A tile's rows of x stay in the first cache while all panels go by, which the second cache has. The tile of a last
 * panel that is not full is put aside, and what is wanted of it taken from there. */
LINES_ALONE static void panels(const mica_rows_product *p)
{
    float aside[TILE_ROWS * PANEL], few_bias[PANEL] = {0};
    mica_rows_product edge = *p;
    edge.y_stride = PANEL;
    size_t length = PANEL * ((p->k + VF_LANES - 1) / VF_LANES * VF_LANES), few = p->units % PANEL;
    if (p->bias != NULL)
        memcpy(few_bias, p->bias + p->units - few, few * sizeof(float));
    for (size_t i = 0, rows; i < p->rows; i += rows) {
        const float *x = p->x + (ptrdiff_t)i * p->x_stride, *w = p->w;
        float *y = p->y + (ptrdiff_t)i * p->y_stride;
        rows = next_rows(p->rows - i);
        for (size_t j = 0; j < p->units; j += PANEL, w += length) {
            bool whole = j + PANEL <= p->units;
            const float *bias = !whole ? few_bias : p->bias != NULL ? p->bias + j : no_bias;
            tile(whole ? p : &edge, whole ? y + j : aside, x, w, bias, PANELS, rows);
        }
        for (size_t r = 0; few > 0 && r < rows; r++)
            memcpy(y + (ptrdiff_t)r * p->y_stride + p->units - few, aside + r * PANEL, few * sizeof(float));
    }
}

const mica_rows_kernels VF_SYMBOL(mica_rows_kernels) = {
    .lanes = VF_LANES,
    .tile_rows = TILE_ROWS,
    .direct_rows = DIRECT_ROWS,
    .panel_units = PANEL,
    .group_units = GROUP,
    .direct = {[MICA_F32] = direct_f32, [MICA_F16] = direct_f16, [MICA_BF16] = direct_bf16},
    .unpack = {[MICA_F32] = unpack_f32, [MICA_F16] = unpack_f16, [MICA_BF16] = unpack_bf16},
    .panels = panels,
};
