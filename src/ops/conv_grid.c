/* Cutting a convolution's pixels into blocks. */
#include "ops/conv_grid.h"

#include "kernel/conv_window.h"

/* Floats of a window: as many rows as this holds, and what one row may take at most. */
#define WINDOW_FLOATS ((size_t)6144)
#define MOST_FLOATS   ((size_t)16384)
/* Columns of a block, a multiple of every vector. */
#define BLOCK_COLUMNS 96
/* Multiply-adds of a block. */
#define BLOCK_WORK ((size_t)1 << 19)

bool mica_conv_grid_plan(mica_conv_grid *g, const mica_conv_patches *in, size_t channels, size_t m,
                         const mica_tiles_kernels *kernels)
{
    size_t rows = in->rows.count, columns = in->columns.count, lanes = kernels->lanes;
    size_t taps = in->rows.taps * in->columns.taps;
    if (taps < 2 || rows * columns == 0 || channels == 0)
        return false;
    if (columns > BLOCK_COLUMNS + BLOCK_COLUMNS / 2)
        columns = BLOCK_COLUMNS;
    if (3 * columns < 2 * mica_round_up(columns, lanes))
        return false;
    mica_conv_window one = mica_conv_window_of(in, channels, 1, columns, lanes);
    if (one.row_stride > MOST_FLOATS / channels || one.channel_stride > MOST_FLOATS / channels)
        return false;
    size_t each = one.row_stride * channels * (size_t)in->rows.scale; /* floats of one more row */
    size_t fit = one.channel_stride * channels < WINDOW_FLOATS
                     ? 1 + (WINDOW_FLOATS - one.channel_stride * channels) / each
                     : 1;
    g->k = channels * taps;
    size_t worth = mica_most(in->rows.taps, BLOCK_WORK / (columns * g->k * m));
    rows = mica_least(rows, mica_least(fit, worth));
    g->window = mica_conv_window_of(in, channels, rows, columns, lanes);
    g->down = mica_div_up(in->rows.count, rows);
    g->across = mica_div_up(in->columns.count, columns);
    g->window_bytes = mica_align_up((g->window.channel_stride * channels + lanes) * sizeof(float));
    g->offset_bytes = mica_align_up(g->k * sizeof(ptrdiff_t));
    return true;
}

void mica_conv_grid_offsets(ptrdiff_t *offset, const mica_conv_grid *g, const mica_conv_patches *in)
{
    const mica_conv_window *w = &g->window;
    for (size_t c = 0; c < w->channels; c++)
        for (size_t t = 0; t < in->rows.taps; t++)
            for (size_t u = 0; u < in->columns.taps; u++)
                *offset++ = (ptrdiff_t)(c * w->channel_stride) +
                            mica_conv_tap_offset(in, w->run, (ptrdiff_t)w->row_stride, t, u);
}

mica_conv_block mica_conv_grid_block(const mica_conv_grid *g, const mica_conv_patches *in, size_t number,
                                     const float *window, const ptrdiff_t *offset)
{
    size_t i = number / g->across * g->window.rows, j = number % g->across * g->window.columns;
    return (mica_conv_block){.i = i,
                             .rows = mica_least(g->window.rows, in->rows.count - i),
                             .j = j,
                             .columns = mica_least(g->window.columns, in->columns.count - j),
                             .window = window,
                             .offset = offset,
                             .k = g->k,
                             .row_step = in->rows.scale * (ptrdiff_t)g->window.row_stride};
}
