/* Convolutions of 3 x 3 by tiles: the transforms before and behind products of pairs. Part of int8.c.
 *
 * In one dimension, y[4] = A ((G g) * (B d)) / 24 of weights g[3] and values d[6], where
 *
 *         6  0  0          4  0 -5  0  1  0
 *        -4 -4 -4          0 -4 -4  1  1  0          1  1  1  1  1  0
 *     G  -4  4 -4       B  0  4 -4 -1  1  0       A  0  1 -1  2 -2  0
 *         1  2  4          0 -2 -1  2  1  0          0  1  1  4  4  0
 *         1 -2  4          0  2 -1 -2  1  0          0  1 -1  8 -8  2
 *         0  0 12          0  4  0 -5  0  1
 *
 * In two, bytes become at most 100 * 128, and weights 144 * 127: 16 bits hold both. G is in ops/int8_tiled.c. */
#ifndef MICA_SRC_KERNEL_INT8_WINOGRAD_H
#define MICA_SRC_KERNEL_INT8_WINOGRAD_H

#include "kernel/int8.h"
#include "kernel/vec.h"

#if defined(VB_HAS_PAIRS)

enum { EDGE = 6, MADE = 4, WORDS = 2 * VF_LANES };

typedef int16_t words __attribute__((vector_size(2 * WORDS)));
typedef int8_t half_bytes __attribute__((vector_size(WORDS)));

VF_INLINE words words_of_bytes(const int8_t *p)
{
    half_bytes bytes;
    memcpy(&bytes, p, sizeof bytes);
    return __builtin_convertvector(bytes, words);
}

/* B */
VF_INLINE void spread_six(words *t, const words *d)
{
    words even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1], far = d[4] - d[2], near = d[3] - d[1];
    t[0] = 4 * (d[0] - d[2]) + far;
    t[1] = even + odd;
    t[2] = even - odd;
    t[3] = far + 2 * near;
    t[4] = far - 2 * near;
    t[5] = d[5] - d[3] - 4 * near;
}

static void to_tile(int16_t *to, size_t apart, const int8_t *x, size_t row, size_t column, size_t channels)
{
    for (size_t c = 0; c < channels; c += WORDS) {
        words down[EDGE][EDGE]; /* by column */
#pragma GCC unroll 6
        for (size_t j = 0; j < EDGE; j++) {
            words d[EDGE];
            for (size_t i = 0; i < EDGE; i++)
                d[i] = words_of_bytes(x + i * row + j * column + c);
            spread_six(down[j], d);
        }
#pragma GCC unroll 6
        for (size_t i = 0; i < EDGE; i++) {
            words d[EDGE], t[EDGE];
            for (size_t j = 0; j < EDGE; j++)
                d[j] = down[j][i];
            spread_six(t, d);
            for (size_t j = 0; j < EDGE; j++)
                memcpy(to + (i * EDGE + j) * apart + c, &t[j], sizeof t[j]);
        }
    }
}

/* A */
VF_INLINE void gather_six(vi *y, const vi *m)
{
    vi both = vi_add(m[1], m[2]), apart = vi_sub(m[1], m[2]), far = vi_add(m[3], m[4]),
       across_far = vi_sub(m[3], m[4]);
    y[0] = vi_add(vi_add(m[0], both), far);
    y[1] = vi_add(apart, vi_shl(across_far, 1));
    y[2] = vi_add(both, vi_shl(far, 2));
    y[3] = vi_add(vi_add(apart, vi_shl(across_far, 3)), vi_shl(m[5], 1));
}

/* The sums of a vector of channels of a tile: 576 is 9 * 64, and 9 has an inverse modulo 2^32. */
VF_INLINE void sums_of_tile(vi (*sum)[MADE], const int32_t *from, size_t apart, vi start)
{
    const vi ninth = vi_set1(0x38e38e39);
    vi down[EDGE][MADE];
#pragma GCC unroll 6
    for (size_t j = 0; j < EDGE; j++) {
        vi m[EDGE];
        for (size_t i = 0; i < EDGE; i++)
            m[i] = vi_load(from + (i * EDGE + j) * apart);
        gather_six(down[j], m);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < MADE; i++) {
        vi m[EDGE];
        for (size_t j = 0; j < EDGE; j++)
            m[j] = down[j][i];
        gather_six(sum[i], m);
        for (size_t j = 0; j < MADE; j++)
            sum[i][j] = vi_add(vi_sar(vi_mul(sum[i][j], ninth), 6), start);
    }
}

/* Four neighbours of a row, of which `columns` are there. */
VF_INLINE void store_four(char *y, size_t column, size_t columns, vb bytes)
{
    int8_t *to = (int8_t *)y;
    vb_store_part(to, bytes, 0);
    if (columns > 1)
        vb_store_part(to + column, bytes, 1);
    if (columns > 2)
        vb_store_part(to + 2 * column, bytes, 2);
    if (columns > 3)
        vb_store_part(to + 3 * column, bytes, 3);
}

VF_INLINE void finish_tiles(const mica_int8_tiled *t, const lane_ends *e, size_t v, bool affine)
{
    lane_numbers n;
    load_numbers(&n, e, 2);
    const vi start = vi_load(t->start + v * VF_LANES);
    for (size_t k = 0; k < t->tiles; k++) {
        const mica_int8_place *place = &t->place[k];
        vi sum[MADE][MADE], four[4];
        sums_of_tile(sum, t->sum + k * LAST_PANEL + v * VF_LANES, t->apart, start);
        for (size_t i = 0; i < place->rows; i++) {
            for (size_t j = 0; j < MADE; j++)
                four[j] = ended(&n, sum[i][j], v, affine);
            store_four(place->y + t->y_at + i * t->y_row + v * VF_LANES, t->y_column, place->columns,
                       vb_limit(vb_pack_lanes(four), n.low, n.high));
        }
    }
}

/* Results that are not bytes, or that vectors do not make. */
static void finish_tiles_by_rows(const mica_int8_tiled *t, const mica_int8_finish *f, int each)
{
    for (size_t k = 0; k < t->tiles; k++) {
        const mica_int8_place *place = &t->place[k];
        int32_t room[MADE][MADE][LAST_PANEL];
        for (size_t v = 0; v < 2; v++) {
            vi sum[MADE][MADE];
            sums_of_tile(sum, t->sum + k * LAST_PANEL + v * VF_LANES, t->apart,
                         vi_load(t->start + v * VF_LANES));
            for (size_t i = 0; i < MADE; i++)
                for (size_t j = 0; j < MADE; j++)
                    vi_store(room[i][j] + v * VF_LANES, sum[i][j]);
        }
        for (size_t i = 0; i < place->rows; i++)
            for (size_t j = 0; j < place->columns; j++)
                finish_row(place->y + t->y_at + i * t->y_row + j * t->y_column, room[i][j], LAST_PANEL, f,
                           each);
    }
}

static void from_tiles(const mica_int8_tiled *t, const mica_int8_finish *f, int each)
{
    lane_ends e;
    set_ends(&e, f, LAST_PANEL, LAST_PANEL, each, NULL);
    if (!e.affine && !e.high) {
        finish_tiles_by_rows(t, f, each);
        return;
    }
#pragma GCC unroll 2
    for (size_t v = 0; v < 2; v++)
        if (e.affine)
            finish_tiles(t, &e, v, true);
        else
            finish_tiles(t, &e, v, false);
}

#define TILED_KERNELS .pairs_cost = VB_HAS_PAIRS, .to_tile = to_tile, .from_tiles = from_tiles,
#else
#define TILED_KERNELS
#endif

#endif
