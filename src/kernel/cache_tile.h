/* Products of a tile of queries with the keys and the values of pages; part of cache.c. */
#ifndef MICA_SRC_KERNEL_CACHE_TILE_H
#define MICA_SRC_KERNEL_CACHE_TILE_H

#include "kernel/cache.h"
#include "kernel/vmath.h"

#define PAGE    ((size_t)MICA_CACHE_PLACES)
#define SEGMENT ((size_t)MICA_CACHE_SEGMENT)
#define BLOCK   ((size_t)32) /* features that share a scale */

/* The register tile: ROWS x 2 sums, with room for two vectors of keys or values and a broadcast. Up to FEW rows take
 * four vectors at a time: fewer sums would wait for one another. */
#if VF_REGISTERS >= 32
#define ROWS 12
#define FEW  4
#else
#define ROWS 6
#define FEW  1
#endif
_Static_assert(ROWS <= MICA_CACHE_TILE, "scratch is for tiles of that height");

/* Elements i to i + VF_LANES - 1 of an array of the cache's type; q8_0: of its bytes. `type` is a constant where this
 * is inlined. */
VF_INLINE vf load(const uint8_t *from, size_t i, mica_dtype type)
{
    if (type == MICA_F16)
        return vf_load_f16((const uint16_t *)(const void *)from + i);
    if (type == MICA_Q8_0)
        return vf_load_i8((const int8_t *)from + i);
    return vf_load((const float *)(const void *)from + i);
}

/* Fetches what `load` will read. Pages lie anywhere, so the processor cannot guess where the next one is. */
VF_INLINE void fetch(const uint8_t *from, size_t i, mica_dtype type)
{
    __builtin_prefetch(from + i * (type == MICA_F32 ? 4 : type == MICA_F16 ? 2 : 1));
}

/* Keys of two pages, and the page behind those of each. */
typedef struct key_pages {
    const uint8_t *keys[2], *next[2];
} key_pages;

/* s [rows][SEGMENT] = q [width][rows] times keys: of the first page, or of both where more vectors than one page has
 * are taken at a time. */
VF_INLINE void score_keys(float *s, const float *q, const key_pages *p, size_t width, mica_dtype type,
                          size_t rows, size_t vectors)
{
    size_t block = type == MICA_Q8_0 ? BLOCK : width, places = vectors * VF_LANES > PAGE ? 2 * PAGE : PAGE;
    for (size_t place = 0; place < places; place += vectors * VF_LANES) {
        vf sum[ROWS][4], scale[4];
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (size_t j = 0; j < vectors; j++)
                sum[r][j] = vf_zero();
        for (size_t first = 0; first < width; first += block) {
#pragma GCC unroll 4
            for (size_t j = 0; j < vectors; j++) {
                size_t at = place + j * VF_LANES;
                if (type == MICA_Q8_0)
                    scale[j] = load(p->keys[at / PAGE] + width * PAGE, first / BLOCK * PAGE + at % PAGE,
                                    MICA_F16);
            }
            const float *factor = q + first * rows;
            for (size_t i = first; i < first + block; i++, factor += rows) {
                vf key[4];
#pragma GCC unroll 4
                for (size_t j = 0; j < vectors; j++) {
                    size_t at = place + j * VF_LANES, element = i * PAGE + at % PAGE;
                    key[j] = load(p->keys[at / PAGE], element, type);
                    if (type == MICA_Q8_0)
                        key[j] = vf_mul(key[j], scale[j]);
                    if (j % 2 == 0 || type == MICA_F32)
                        fetch(p->next[at / PAGE], element, type);
                }
#pragma GCC unroll 12
                for (size_t r = 0; r < rows; r++) {
                    vf one = vf_set1(factor[r]);
#pragma GCC unroll 4
                    for (size_t j = 0; j < vectors; j++)
                        sum[r][j] = vf_fma(one, key[j], sum[r][j]);
                }
            }
        }
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (size_t j = 0; j < vectors; j++)
                vf_store(s + r * SEGMENT + place + j * VF_LANES, sum[r][j]);
    }
}

/* Where values of a head are found, and a stretch of places within a segment. */
typedef struct value_range {
    const mica_cache_queries *of;
    size_t begin, end, origin; /* places; origin: of the segment's first */
    size_t last;               /* that will be read, after this range */
} value_range;

VF_INLINE const uint8_t *values_at(const mica_cache_queries *b, size_t place)
{
    return b->values + (size_t)b->table[(ptrdiff_t)(place / PAGE) * b->table_stride] * b->layout->value_page;
}

/* Some vectors of features, from `feature` on: sums [rows][stride] += s [rows][SEGMENT] times the values. */
VF_INLINE void add_features(float *sums, size_t stride, const float *s, const value_range *range,
                            size_t feature, mica_dtype type, size_t rows, size_t vectors)
{
    const mica_cache_queries *b = range->of;
    size_t width = b->layout->value_stride;
    vf sum[ROWS][4];
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (size_t j = 0; j < vectors; j++)
            sum[r][j] = vf_load(sums + r * stride + feature + j * VF_LANES);
    for (size_t place = range->begin; place < range->end;) {
        const uint8_t *values = values_at(b, place);
        const uint8_t *next = values_at(b, place + PAGE < range->last ? place + PAGE : place);
        float scale[PAGE];
        if (type == MICA_Q8_0) {
            const uint8_t *scales = values + width * PAGE + feature / BLOCK * PAGE * sizeof(uint16_t);
            for (size_t i = 0; i < PAGE; i += VF_LANES)
                vf_store(scale + i, load(scales, i, MICA_F16));
        }
        size_t end = place / PAGE * PAGE + PAGE;
        end = end < range->end ? end : range->end;
        const float *factor = s + (place - range->origin);
        size_t at = place % PAGE * width + feature;
        for (; place < end; place++, factor++, at += width) {
            vf value[4];
#pragma GCC unroll 4
            for (size_t j = 0; j < vectors; j++) {
                value[j] = load(values, at + j * VF_LANES, type);
                if (j % 2 == 0 || type == MICA_F32)
                    fetch(next, at + j * VF_LANES, type);
                if (type == MICA_Q8_0)
                    value[j] = vf_mul(value[j], vf_set1(scale[place % PAGE]));
            }
#pragma GCC unroll 12
            for (size_t r = 0; r < rows; r++) {
                vf one = vf_set1(factor[r * SEGMENT]);
#pragma GCC unroll 4
                for (size_t j = 0; j < vectors; j++)
                    sum[r][j] = vf_fma(one, value[j], sum[r][j]);
            }
        }
    }
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (size_t j = 0; j < vectors; j++)
            vf_store(sums + r * stride + feature + j * VF_LANES, sum[r][j]);
}

VF_INLINE void add_values(float *sums, size_t stride, const float *s, const value_range *range,
                          mica_dtype type, size_t rows)
{
    size_t feature = 0, width = range->of->layout->value_stride;
    if (rows <= FEW && (type != MICA_Q8_0 || 4 * VF_LANES <= BLOCK)) /* a block of features has one scale */
        for (; feature + 4 * VF_LANES <= width; feature += 4 * VF_LANES)
            add_features(sums, stride, s, range, feature, type, rows, 4);
    for (; feature + 2 * VF_LANES <= width; feature += 2 * VF_LANES)
        add_features(sums, stride, s, range, feature, type, rows, 2);
    for (; feature < width; feature += VF_LANES)
        add_features(sums, stride, s, range, feature, type, rows, 1);
}

/* ---- A function for each type and height ---- */

typedef void score_fn(float *s, const float *q, const key_pages *pages, size_t width);
typedef void values_fn(float *sums, size_t stride, const float *s, const value_range *range);

typedef struct tile_kernels {
    score_fn *score, *score_two; /* one page; two, or NULL */
    values_fn *values;
} tile_kernels;

#define TWO_PAGES(rows) ((rows) <= FEW && 2 * VF_LANES == PAGE)

#define TILE(name, type, rows)                                                                             \
    static void name##_score_##rows(float *s, const float *q, const key_pages *pages, size_t width)        \
    {                                                                                                      \
        score_keys(s, q, pages, width, type, rows, 2);                                                     \
    }                                                                                                      \
    static void name##_score_two_##rows(float *s, const float *q, const key_pages *pages, size_t width)    \
    {                                                                                                      \
        if (TWO_PAGES(rows))                                                                               \
            score_keys(s, q, pages, width, type, rows, 4);                                                 \
    }                                                                                                      \
    static void name##_values_##rows(float *sums, size_t stride, const float *s, const value_range *range) \
    {                                                                                                      \
        add_values(sums, stride, s, range, type, rows);                                                    \
    }

#if ROWS == 12
#define HEIGHTS(X, name, type) \
    X(name, type, 1)           \
    X(name, type, 2) X(name, type, 3) X(name, type, 4) X(name, type, 6) X(name, type, 8) X(name, type, 12)
#else
#define HEIGHTS(X, name, type) \
    X(name, type, 1) X(name, type, 2) X(name, type, 3) X(name, type, 4) X(name, type, 6)
#endif

HEIGHTS(TILE, f32, MICA_F32)
HEIGHTS(TILE, f16, MICA_F16)
HEIGHTS(TILE, q8, MICA_Q8_0)

#define TILE_ENTRY(name, type, rows) \
    [rows] = {name##_score_##rows, TWO_PAGES(rows) ? name##_score_two_##rows : NULL, name##_values_##rows},
static const tile_kernels f32_tiles[ROWS + 1] = {HEIGHTS(TILE_ENTRY, f32, MICA_F32)};
static const tile_kernels f16_tiles[ROWS + 1] = {HEIGHTS(TILE_ENTRY, f16, MICA_F16)};
static const tile_kernels q8_tiles[ROWS + 1] = {HEIGHTS(TILE_ENTRY, q8, MICA_Q8_0)};

static const tile_kernels *tiles_of(mica_dtype type)
{
    return type == MICA_F32 ? f32_tiles : type == MICA_F16 ? f16_tiles : q8_tiles;
}

/* The height of the tile that takes the first of `left` queries. */
static size_t tile_height(size_t left)
{
    size_t height = left < ROWS ? left : ROWS;
    while (f32_tiles[height].score == NULL)
        height--;
    return height;
}

#endif
