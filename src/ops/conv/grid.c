/* Cutting a convolution's pixels into blocks. */
#include "ops/conv/grid.h"

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

bool mica_conv_grid_plan(mica_conv_grid *g, const mica_conv_patches *in, size_t channels, size_t m,
                         size_t deep, size_t work, const mica_tiles_kernels *kernels)
{
    size_t rows = in->rows.count, columns = in->columns.count, lanes = kernels->lanes;
    *g = (mica_conv_grid){.channels = channels, .taps = in->rows.taps * in->columns.taps};
    if (g->taps < 2 || rows * columns * m == 0 || channels == 0)
        return false;
    size_t most = SMALL_WINDOW / (channels * mica_conv_span(&in->rows, 1)) / BLOCK_COLUMNS * BLOCK_COLUMNS;
    most = mica_most(BLOCK_COLUMNS, most);
    if (columns > most + BLOCK_COLUMNS / 2)
        columns = most;
    if (3 * columns < 2 * mica_round_up(columns, lanes))
        return false;
    mica_conv_window one = mica_conv_window_of(in, 1, 1, columns, lanes);
    size_t some = mica_least(channels, mica_div_up(deep, g->taps)), fit = rows_that_fit(in, some, &one);
    if (fit == 0)
        return false;
    size_t worth = mica_most(in->rows.taps, work / (columns * g->taps * channels * m));
    rows = even_rows(rows, mica_least(fit, worth), mica_div_up(columns, lanes));
    one = mica_conv_window_of(in, 1, rows, columns, lanes);
    some = mica_least(channels, mica_most(some, WINDOW_FLOATS / one.channel_stride));
    some = mica_div_up(channels, mica_div_up(channels, some)); /* windows of about one size */
    g->window = mica_conv_window_of(in, some, rows, columns, lanes);
    g->down = mica_div_up(in->rows.count, rows);
    g->across = mica_div_up(in->columns.count, columns);
    g->window_bytes = mica_align_up((g->window.channel_stride * some + lanes) * sizeof(float));
    g->offset_bytes = mica_align_up(some * g->taps * sizeof(ptrdiff_t));
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
