/* Windows of a convolution: all pixels that any tap meets for a block of output pixels, copied with zeros where
 * they reach over the borders. For a stride of s the columns of each residue by s lie side by side, so that
 * every tap meets a contiguous run:
 *
 *   columns  0 1 2 3 4 5 6 7    stride 2    window row  0 2 4 6 | 1 3 5 7 */
#ifndef MICA_SRC_KERNEL_CONV_WINDOW_H
#define MICA_SRC_KERNEL_CONV_WINDOW_H

#include "kernel/conv.h"

/* How far apart the taps of an axis are. */
static inline ptrdiff_t mica_conv_reach(const mica_conv_axis *a)
{
    ptrdiff_t last = a->taps > 0 ? ((ptrdiff_t)a->taps - 1) * a->step : 0;
    return last < 0 ? -last : last;
}

/* The lowest of the taps' offsets. */
static inline ptrdiff_t mica_conv_lowest(const mica_conv_axis *a)
{
    return a->step < 0 ? -mica_conv_reach(a) : 0;
}

/* Positions of the image that `count` outputs meet, the gaps included. */
static inline size_t mica_conv_span(const mica_conv_axis *a, size_t count)
{
    return (count - 1) * (size_t)a->scale + (size_t)mica_conv_reach(a) + 1;
}

static inline size_t mica_conv_residues(const mica_conv_axis *a)
{
    return a->taps > 1 ? (size_t)a->scale : 1;
}

/* Columns of one residue in the window. */
static inline size_t mica_conv_run(const mica_conv_axis *a, size_t count)
{
    return (mica_conv_span(a, count) + (size_t)a->scale - 1) / (size_t)a->scale;
}

/* The layout of a window of several channels, for at most rows x columns output pixels. Rows are as long as
 * whole vectors want them. */
static inline mica_conv_window mica_conv_window_of(const mica_conv_patches *in, size_t channels, size_t rows,
                                                   size_t columns, size_t lanes)
{
    mica_conv_window w = {.channels = channels, .rows = rows, .columns = columns};
    w.run = mica_conv_run(&in->columns, (columns + lanes - 1) / lanes * lanes);
    w.row_stride = w.run * mica_conv_residues(&in->columns);
    w.channel_stride = w.row_stride * mica_conv_span(&in->rows, rows);
    return w;
}

/* Where tap (t, u) of channel 0 meets the first pixel of the block. */
static inline ptrdiff_t mica_conv_tap_offset(const mica_conv_patches *in, size_t run, ptrdiff_t row_stride,
                                             size_t t, size_t u)
{
    ptrdiff_t row = (ptrdiff_t)t * in->rows.step - mica_conv_lowest(&in->rows);
    ptrdiff_t column = (ptrdiff_t)u * in->columns.step - mica_conv_lowest(&in->columns);
    return row * row_stride + column % in->columns.scale * (ptrdiff_t)run + column / in->columns.scale;
}

#endif
