/* Rows times rows, both contiguous along k, for src/kernel/gemm.c: nothing is packed. */
#ifndef MICA_SRC_KERNEL_GEMM_DOTS_H
#define MICA_SRC_KERNEL_GEMM_DOTS_H

#include <string.h>

#include "kernel/vec.h"

/* A tile's products are as many as a vector has lanes. Each is a vector of partial sums, whose lanes are added up in
 * the end, together with those of all others. With fewer lanes that would take too much of the time: eight need 115 us
 * where tiles of packed rows take 100. */
#if defined(MICA_SMALL)
#define HAS_DOTS 0
#else
#define HAS_DOTS (VF_LANES == 16)
#endif

#if HAS_DOTS

enum { DOTS_SIDE = 4 };

/* The next n elements of each row; n is VF_LANES, a constant where this is inlined, or less at the end. */
VF_INLINE void dots_step(vf *sum, const float *a, ptrdiff_t a_stride, const float *b, ptrdiff_t b_stride,
                         size_t rows, size_t n)
{
    vf column[DOTS_SIDE];
#pragma GCC unroll 4
    for (size_t j = 0; j < DOTS_SIDE; j++) {
        const float *at = b + (ptrdiff_t)j * b_stride;
        column[j] = vf_keep(n == VF_LANES ? vf_load(at) : vf_load_tail(at, n));
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < rows; i++) {
        const float *at = a + (ptrdiff_t)i * a_stride;
        vf row = vf_keep(n == VF_LANES ? vf_load(at) : vf_load_tail(at, n));
#pragma GCC unroll 4
        for (size_t j = 0; j < DOTS_SIDE; j++)
            sum[i * DOTS_SIDE + j] = vf_fma(row, column[j], sum[i * DOTS_SIDE + j]);
    }
}

/* Each tile asks for one of the rows of b behind its own. */
VF_INLINE void dots_part(vf *sum, const mica_gemm_dots_part *part, size_t i, size_t j, size_t rows,
                         bool single)
{
    if (part->k == 0)
        return;
    const float *a = part->a + (ptrdiff_t)i * part->a_stride, *b = part->b + (ptrdiff_t)j * part->b_stride;
    ptrdiff_t b_stride = single ? 0 : part->b_stride;
    const float *ahead = b + (ptrdiff_t)(DOTS_SIDE + i / DOTS_SIDE % DOTS_SIDE) * part->b_stride;
    size_t left = part->k;
    for (; left >= VF_LANES; left -= VF_LANES, a += VF_LANES, b += VF_LANES, ahead += VF_LANES) {
        dots_step(sum, a, part->a_stride, b, b_stride, rows, VF_LANES);
        __builtin_prefetch(ahead);
    }
    if (left > 0)
        dots_step(sum, a, part->a_stride, b, b_stride, rows, left);
}

/* `rows` rows from i on, and a tile's columns from j on; or a single column, which then takes the place of all four.
 * `rows`, and whether it is, are constants where this is inlined. */
VF_INLINE void dots_tile(const mica_gemm_dots *d, size_t i, size_t j, size_t rows, bool single)
{
    vf sum[VF_LANES];
    float room[VF_LANES] = {0}, *c = d->c + (ptrdiff_t)i * d->stride + j;
    size_t bytes = (single ? 1 : DOTS_SIDE) * sizeof *c;
    /* Piece by piece, long before it is read as a whole. */
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
        if (d->adds)
            memcpy(room + r * DOTS_SIDE, c + (ptrdiff_t)r * d->stride, bytes);
        else if (d->bias != NULL)
            memcpy(room + r * DOTS_SIDE, d->bias + j, bytes);
#pragma GCC unroll 16
    for (size_t l = 0; l < VF_LANES; l++)
        sum[l] = vf_keep(vf_zero()); /* or else the first step becomes code of its own */
    dots_part(sum, &d->part[0], i, j, rows, single);
    dots_part(sum, &d->part[1], i, j, rows, single);
    vf_store(room, vf_add(vf_load(room), vf_sums(sum)));
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
        memcpy(c + (ptrdiff_t)r * d->stride, room + r * DOTS_SIDE, bytes);
}

/* Two tiles of about the same height are better than a whole one and a single row, whose sums wait for each other. */
VF_INLINE void dots_columns(const mica_gemm_dots *d, size_t j, bool single)
{
    for (size_t i = 0, rows; i < d->rows; i += rows) {
        size_t left = d->rows - i;
        rows = left >= 2 * DOTS_SIDE || left == DOTS_SIDE ? DOTS_SIDE
               : left > DOTS_SIDE                         ? (left + 1) / 2
                                                          : left;
        if (rows == 4)
            dots_tile(d, i, j, 4, single);
        else if (rows == 3)
            dots_tile(d, i, j, 3, single);
        else if (rows == 2)
            dots_tile(d, i, j, 2, single);
        else
            dots_tile(d, i, j, 1, single);
    }
}

static void dots(const mica_gemm_dots *d)
{
    size_t j = 0;
    for (; j + DOTS_SIDE <= d->columns; j += DOTS_SIDE)
        dots_columns(d, j, false);
    for (; j < d->columns; j++)
        dots_columns(d, j, true);
}

#endif
#endif
