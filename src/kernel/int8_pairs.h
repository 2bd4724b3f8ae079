/* Products of numbers of 16 bits, by pairs; channels, or columns, are in lanes. Part of int8.c. */
#ifndef MICA_SRC_KERNEL_INT8_PAIRS_H
#define MICA_SRC_KERNEL_INT8_PAIRS_H

#include "kernel/int8.h"
#include "kernel/vec.h"

static void less_zero(int16_t *restrict to, const int8_t *restrict from, size_t count, int32_t zero)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (int16_t)(from[i] - zero);
}

static void pair_rows(int16_t *restrict to, const int8_t *restrict a, const int8_t *restrict b, size_t count,
                      int32_t zero)
{
    for (size_t i = 0; i < count; i++) {
        to[2 * i] = (int16_t)(a[i] - zero);
        to[2 * i + 1] = (int16_t)(b[i] - zero);
    }
}

#if VF_LANES > 1

enum { PAIRS_ROWS = LAST, AHEAD = 4096 };

/* Rows, a constant: their sums stay in registers. Every fourth has an address. */
VF_INLINE void pairs_of(int32_t *sum, const int16_t *x, size_t stride, size_t rows, size_t pairs,
                        const int16_t *w)
{
    vi s[LAST][2];
    const uint8_t *fourth[(LAST + 3) / 4], *panel = (const uint8_t *)w;
    size_t one = 2 * stride, three = 3 * one;
    for (size_t k = 0; 4 * k < rows; k++)
        fourth[k] = (const uint8_t *)x + 4 * k * one;
#pragma GCC unroll 14
    for (size_t r = 0; r < rows; r++)
        s[r][0] = s[r][1] = vi_set1(0);
    for (size_t p = 0; p < pairs; p++, panel += 4 * LAST_PANEL) {
        vb first = vb_load(panel), second = vb_load(panel + 4 * VF_LANES);
        __builtin_prefetch(panel + AHEAD);
        __builtin_prefetch(panel + AHEAD + 4 * VF_LANES);
        for (size_t k = 0; 4 * k < rows; k++)
            for (size_t r = 0; r < 4 && 4 * k + r < rows; r++) {
                vb pair = vb_repeat4(fourth[k] + 4 * p + (r == 3 ? three : r * one));
                s[4 * k + r][0] = vi_dot_pairs(s[4 * k + r][0], pair, first);
                s[4 * k + r][1] = vi_dot_pairs(s[4 * k + r][1], pair, second);
            }
    }
#pragma GCC unroll 14
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < 2; v++)
            vi_store(sum + r * LAST_PANEL + v * VF_LANES, s[r][v]);
}

/* Runs of about the same length. */
static void pairs_of_rows(int32_t *sum, const int16_t *x, size_t stride, size_t rows, size_t pairs,
                          const int16_t *w)
{
    size_t runs = (rows + LAST - 1) / LAST;
    for (size_t run = 0, row = 0; run < runs; run++) {
        size_t count = (rows - row + runs - run - 1) / (runs - run);
        int32_t *to = sum + row * LAST_PANEL;
        const int16_t *from = x + row * stride;
        switch (count) {
#define PAIRS_CASE(n)                            \
    case n:                                      \
        pairs_of(to, from, stride, n, pairs, w); \
        break;
#if VF_REGISTERS >= 32
            PAIRS_CASE(14)
            PAIRS_CASE(13)
            PAIRS_CASE(12)
            PAIRS_CASE(11)
            PAIRS_CASE(10)
            PAIRS_CASE(9)
            PAIRS_CASE(8)
            PAIRS_CASE(7)
            PAIRS_CASE(6)
            PAIRS_CASE(5)
#endif
            PAIRS_CASE(4)
            PAIRS_CASE(3)
            PAIRS_CASE(2)
            PAIRS_CASE(1)
#undef PAIRS_CASE
        default:
            break;
        }
        row += count;
    }
}

static void finish_panel(char *y, size_t stride, const int32_t *sum, size_t rows, size_t columns,
                         const mica_int8_finish *f, int each)
{
    lane_ends e;
    set_ends(&e, f, columns, (columns + VF_LANES - 1) / VF_LANES * VF_LANES, each, NULL);
    end_others(y, stride, sum, rows, columns, &e);
}

#else

enum { PAIRS_ROWS = 4 };

static void pairs_of_rows(int32_t *sum, const int16_t *x, size_t stride, size_t rows, size_t pairs,
                          const int16_t *w)
{
    for (size_t r = 0; r < rows; r++, x += stride, sum += LAST_PANEL) {
        uint32_t s[LAST_PANEL] = {0};
        for (size_t p = 0; p < 2 * pairs; p++)
            for (size_t c = 0; c < LAST_PANEL; c++)
                s[c] += (uint32_t)(x[p] * w[(p / 2 * LAST_PANEL + c) * 2 + p % 2]);
        for (size_t c = 0; c < LAST_PANEL; c++)
            sum[c] = (int32_t)s[c];
    }
}

static void finish_panel(char *y, size_t stride, const int32_t *sum, size_t rows, size_t columns,
                         const mica_int8_finish *f, int each)
{
    for (size_t r = 0; r < rows; r++)
        finish_row(y + r * stride, sum + r * LAST_PANEL, columns, f, each);
}

#endif

#endif
