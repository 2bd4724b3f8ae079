/* Splitting a convolution's pixels into blocks. */
#include "ops/conv/grid.h"

#include <stdint.h>

#include "kernel/conv_window.h"

/* Floats of a window. */
#define WINDOW_FLOATS ((size_t)6144)
/* Columns of a block, a multiple of every vector: more of them where a window of all channels stays this small. */
#define BLOCK_COLUMNS 96
#define SMALL_WINDOW  ((size_t)2048)

/* Output rows for which so many channels fit a window; 0 if not even one row does. */
static size_t rows_that_fit(const mica_conv_patches *in, size_t channels, const mica_conv_window *one)
{
    if (one->channel_stride > WINDOW_FLOATS / channels)
        return 0;
    size_t spare = WINDOW_FLOATS / channels - one->channel_stride;
    return 1 + spare / (one->row_stride * (size_t)in->rows.scale);
}

/* Of blocks of at most `most` rows, as many as there must be: the rows of each for blocks of about one size, in which
 * tiles are whole where a row has so many vectors. */
static size_t even_rows(size_t rows, size_t most, size_t vectors)
{
    size_t even = mica_div_up(rows, mica_div_up(rows, most));
    size_t whole = vectors % MICA_TILES_VECTORS != 0 ? mica_round_up(even, MICA_TILES_VECTORS) : even;
    return whole <= most ? whole : even;
}

/* Columns that a block of so many may have, the odd ones at the end included. */
static size_t block_columns(const mica_conv_patches *in, size_t channels, size_t columns)
{
    size_t most = SMALL_WINDOW / (channels * mica_conv_span(&in->rows, 1)) / BLOCK_COLUMNS * BLOCK_COLUMNS;
    most = mica_most(BLOCK_COLUMNS, most);
    return columns > most + BLOCK_COLUMNS / 2 ? most : columns;
}

/* Channels of a window, at least. */
static size_t window_channels(const mica_conv_grid *g, size_t deep)
{
    return mica_least(g->channels, mica_div_up(deep, g->taps));
}

static void set_bytes(mica_conv_grid *g, size_t floats, size_t channels, size_t lanes)
{
    g->window_bytes = mica_align_up((floats + lanes) * sizeof(float));
    g->offset_bytes = mica_align_up(channels * g->taps * sizeof(ptrdiff_t));
}

static bool begin(mica_conv_grid *g, const mica_conv_patches *in, const mica_conv_grid_aim *aim)
{
    *g = (mica_conv_grid){.channels = aim->channels, .taps = in->rows.taps * in->columns.taps};
    return g->taps > 1 && aim->channels * aim->m > 0;
}

/* Rows of a block that are worth it. */
static size_t worth_rows(const mica_conv_grid *g, const mica_conv_patches *in, const mica_conv_grid_aim *aim,
                         size_t columns)
{
    return mica_most(in->rows.taps, aim->work / (columns * g->taps * aim->channels * aim->m));
}

bool mica_conv_grid_plan(mica_conv_grid *g, const mica_conv_patches *in, const mica_conv_grid_aim *aim,
                         const mica_tiles_kernels *kernels)
{
    size_t rows = in->rows.count, columns = in->columns.count, lanes = kernels->lanes;
    size_t channels = aim->channels;
    if (!begin(g, in, aim) || rows * columns == 0)
        return false;
    columns = block_columns(in, channels, columns);
    mica_conv_window one = mica_conv_window_of(in, 1, 1, columns, lanes);
    size_t some = window_channels(g, aim->deep), fit = rows_that_fit(in, some, &one);
    if ((mica_conv_fills_badly(columns, lanes) && !aim->any_columns) || fit == 0)
        return false;
    fit = mica_least(fit, worth_rows(g, in, aim, columns));
    rows = even_rows(rows, fit, mica_div_up(columns, lanes));
    one = mica_conv_window_of(in, 1, rows, columns, lanes);
    some = mica_least(channels, mica_most(some, WINDOW_FLOATS / one.channel_stride));
    some = mica_div_up(channels, mica_div_up(channels, some)); /* windows of about one size */
    g->window = mica_conv_window_of(in, some, rows, columns, lanes);
    g->down = mica_div_up(in->rows.count, rows);
    g->across = mica_div_up(in->columns.count, columns);
    set_bytes(g, g->window.channel_stride * some, some, lanes);
    return true;
}

bool mica_conv_grid_most(mica_conv_grid *g, const mica_conv_patches *in, const mica_conv_grid_aim *aim,
                         const mica_tiles_kernels *kernels, mica_conv_extent *up_to)
{
    if (!begin(g, in, aim))
        return false;
    size_t lanes = kernels->lanes, most = block_columns(in, aim->channels, SIZE_MAX / 2);
    size_t columns = mica_least(up_to->columns, most + BLOCK_COLUMNS / 2);
    size_t rows = mica_round_up(up_to->rows, MICA_TILES_VECTORS); /* even_rows may go up to that */
    g->window = mica_conv_window_of(in, aim->channels, rows, columns, lanes);
    set_bytes(g, mica_least(WINDOW_FLOATS, g->window.channel_stride * aim->channels), aim->channels, lanes);
    mica_conv_window one = mica_conv_window_of(in, 1, 1, columns, lanes);
    g->window.channels = window_channels(g, aim->deep);
    size_t fit = rows_that_fit(in, g->window.channels, &one);
    g->down = mica_div_up(up_to->rows, mica_most(1, mica_least(fit, worth_rows(g, in, aim, columns))));
    g->across = up_to->columns > columns ? mica_div_up(up_to->columns, most) : 1;
    /* If a row of the widest block fits, what is left is rows that fill their vectors badly: these have less than a
     * vector, or a little more than one. */
    if (fit > 0 && aim->any_columns)
        mica_conv_extent_clear(up_to);
    else if (fit > 0)
        up_to->columns = mica_least(up_to->columns, (4 * lanes - 1) / 3);
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
                                     size_t first, const float *window, const ptrdiff_t *offset)
{
    size_t i = number / g->across * g->window.rows, j = number % g->across * g->window.columns;
    return (mica_conv_block){.i = i,
                             .rows = mica_least(g->window.rows, in->rows.count - i),
                             .j = j,
                             .columns = mica_least(g->window.columns, in->columns.count - j),
                             .window = window,
                             .offset = offset,
                             .channels = mica_least(g->window.channels, g->channels - first),
                             .taps = g->taps,
                             .row_step = in->rows.scale * (ptrdiff_t)g->window.row_stride};
}
