/* Tiles of a convolution whose lanes are output channels: for rows of so few pixels that vectors of these would be
 * half empty. Included by tiles.c.
 *
 * A tile is two rows of some pixels. Each tap is one vector of weights, and one number of the window for each pixel;
 * the sums are turned into planes as they leave. */
#ifndef MICA_SRC_KERNEL_TILES_ACROSS_H
#define MICA_SRC_KERNEL_TILES_ACROSS_H

#include "kernel/conv_rows.h"

/* Pixels of each of a tile's rows: two rows of them, with room for the weights and a number. */
#if VF_REGISTERS >= 32
#define ACROSS_PIXELS 12
#else
#define ACROSS_PIXELS 6
#endif

/* What the tiles of some channels share. */
typedef struct across_work {
    const mica_conv_block *block;
    const float *panel;   /* [channels of the window, taps, lanes] */
    mica_conv_planes out; /* at the first of the channels */
    float bias[VF_LANES];
    size_t channels;
    bool accumulate;
} across_work;

/* The sums of some pixels, n vectors of channels, become that many pixels of each plane. */
VF_INLINE void leave_across(const across_work *w, float *to, const vf *sum, size_t n)
{
    vf square[VF_LANES];
#pragma GCC unroll 16
    for (size_t x = 0; x < VF_LANES; x++)
        square[x] = x < n ? sum[x] : vf_zero();
    vf_transpose(square);
#pragma GCC unroll 16
    for (size_t i = 0; i < VF_LANES; i++, to += w->out.channel_stride) {
        if (i >= w->channels)
            return;
        if (w->out.column_stride != 1) {
            float lane[VF_LANES];
            vf_store(lane, square[i]);
            for (size_t x = 0; x < n; x++) {
                float *at = to + (ptrdiff_t)x * w->out.column_stride;
                *at = w->accumulate ? *at + lane[x] : lane[x];
            }
        } else {
            vf_store_tail(to, w->accumulate ? vf_add(square[i], vf_load_tail(to, n)) : square[i], n);
        }
    }
}

/* Pixels j .. j + pixels - 1, a constant number, of two rows, or of one twice: then only the first of them leaves. */
VF_INLINE void across_tile(const across_work *w, size_t row, size_t j, size_t pixels)
{
    const mica_conv_block *b = w->block;
    bool both = row + 1 < b->rows;
    const float *upper = b->window + (ptrdiff_t)row * b->row_step + (ptrdiff_t)j;
    const float *lower = upper + (both ? b->row_step : 0), *panel = w->panel;
    const ptrdiff_t *offset = b->offset, *end = b->offset + b->channels * b->taps;
    vf sum[2][ACROSS_PIXELS];
#pragma GCC unroll 12
    for (size_t x = 0; x < pixels; x++)
        sum[0][x] = sum[1][x] = vf_load(w->bias);
    for (; offset < end; offset++, panel += VF_LANES) {
        vf weights = vf_load(panel);
        const float *first = upper + *offset, *second = lower + *offset;
#pragma GCC unroll 12
        for (size_t x = 0; x < pixels; x++)
            sum[0][x] = vf_fma(vf_set1(first[x]), weights, sum[0][x]);
#pragma GCC unroll 12
        for (size_t x = 0; x < pixels; x++)
            sum[1][x] = vf_fma(vf_set1(second[x]), weights, sum[1][x]);
    }
    float *to = w->out.data + (ptrdiff_t)row * w->out.row_stride + (ptrdiff_t)j * w->out.column_stride;
#pragma GCC unroll 12
    for (size_t x = 0; x < pixels; x += VF_LANES) {
        size_t n = pixels - x < VF_LANES ? pixels - x : VF_LANES;
        leave_across(w, to + (ptrdiff_t)x * w->out.column_stride, sum[0] + x, n);
        if (both)
            leave_across(w, to + w->out.row_stride + (ptrdiff_t)x * w->out.column_stride, sum[1] + x, n);
    }
}

/* Columns j .. of all rows: functions of their own, then all pointers stay in registers. */
#define ACROSS(pixels)                                                                       \
    __attribute__((noinline)) static void across_by_##pixels(const across_work *w, size_t j) \
    {                                                                                        \
        for (size_t row = 0; row < w->block->rows; row += 2)                                 \
            across_tile(w, row, j, pixels);                                                  \
    }
ACROSS(1)
ACROSS(2)
ACROSS(3)
ACROSS(4)
ACROSS(5)
ACROSS(6)
#if ACROSS_PIXELS > 6
ACROSS(7)
ACROSS(8)
ACROSS(9)
ACROSS(10)
ACROSS(11)
ACROSS(12)
#endif

static void across_columns(const across_work *w, size_t j, size_t pixels)
{
    typedef void columns_fn(const across_work *, size_t);
    static columns_fn *const by[] = {
        across_by_1,
        across_by_2,
        across_by_3,
        across_by_4,
        across_by_5,
        across_by_6,
#if ACROSS_PIXELS > 6
        across_by_7,
        across_by_8,
        across_by_9,
        across_by_10,
        across_by_11,
        across_by_12
#endif
    };
    by[pixels - 1](w, j);
}

static void across(const mica_conv_planes *out, const mica_conv_block *b, const float *panels,
                   size_t panel_stride, const float *bias, size_t m, bool accumulate)
{
    across_work w = {.block = b, .panel = panels, .out = *out, .accumulate = accumulate};
    for (size_t o = 0; o < m; o += VF_LANES, w.panel += panel_stride) {
        w.channels = least(m - o, VF_LANES);
        w.out.data = out->data + (ptrdiff_t)o * out->channel_stride;
        for (size_t i = 0; i < w.channels && bias != NULL; i++)
            w.bias[i] = bias[o + i];
        for (size_t j = 0, pixels; j < b->columns; j += pixels) { /* of about one size */
            size_t left = b->columns - j, tiles = (left + ACROSS_PIXELS - 1) / ACROSS_PIXELS;
            pixels = (left + tiles - 1) / tiles;
            across_columns(&w, j, pixels);
        }
    }
}

#endif
