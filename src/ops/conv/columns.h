/* Convolutions whose kernel has three rows, of few channels: Winograd's F(4, 3) down the columns alone, the
 * taps across in register tiles. kernel/winograd.h has the idea; the full transforms save more, but take many
 * channels to pay.
 *
 * Four rows of output pixels are a line, and lines are numbered through all images. Those of a block lie side
 * by side, for each of six frequencies and each channel; the zeros between two lines serve both of them:
 *
 *   one frequency of a channel    0 x x x x x 0 x x x x x 0 x x x x x 0 ...
 *                                 |-- pitch --|
 *
 * so rows need not fill vectors, and a small image is as good as a large one. */
#ifndef MICA_SRC_OPS_CONV_COLUMNS_H
#define MICA_SRC_OPS_CONV_COLUMNS_H

#include "base/context.h"
#include "kernel/kernels.h"
#include "ops/conv/extent.h"

enum { MICA_CONV_LINE_FREQUENCIES = MICA_WINOGRAD_FLAT_FREQUENCIES };

typedef struct mica_conv_lines {
    size_t channels;       /* of the inputs */
    size_t columns;        /* output pixels of a line's rows */
    size_t down, all;      /* lines of an image, of all of them */
    size_t block, most;    /* of a block, and of one of any batch up to this one: what room is for */
    size_t span, pitch;    /* positions that the taps of a line meet, and from one line to the next */
    size_t room;           /* floats of a block's lines of one channel */
    ptrdiff_t row, column; /* where the inputs of an image's first line begin */
} mica_conv_lines;

/* Cuts the output pixels of `in` into lines: `channels` are read, m are on the other side. False if the taps, the
 * layout or the sizes are not for it.
 * In a block are as many lines as the first cache takes of all channels, and as threads can share. */
bool mica_conv_lines_plan(const mica_context *ctx, mica_conv_lines *l, const mica_conv_patches *in,
                          size_t images, size_t channels, size_t m);

/* The same for any sizes within *up_to: floats of a block's lines of one channel at most, if it has at most so many
 * positions. Leaves in *up_to the sizes that are not cut. 0 where none is. */
size_t mica_conv_lines_most(const mica_context *ctx, const mica_conv_patches *in, size_t channels, size_t m,
                            size_t positions, mica_conv_extent *up_to);

/* Cuts `count` lines, at least one, into blocks of about one size that take so many positions at most. */
void mica_conv_lines_cut(mica_conv_lines *l, size_t count, size_t positions, size_t lanes);

/* The pixels of `count` lines of inputs, over all positions that they take up to whole vectors: a row of them. */
mica_conv_block mica_conv_lines_block(const mica_conv_lines *l, const mica_conv_axis *columns, size_t count,
                                      size_t lanes, const ptrdiff_t *offset);

/* Where what the taps of that block meet ends. */
size_t mica_conv_lines_end(const mica_conv_lines *l, size_t count, size_t lanes);

/* offset [channels * taps]: where each (channel, u) meets the first pixel of a block. */
void mica_conv_lines_offsets(ptrdiff_t *offset, const mica_conv_lines *l, const mica_conv_axis *columns);

/* Lines from number `first` on, those of one image of at most `most`, of planes of rows x columns pixels. */
mica_winograd_lines mica_conv_lines_at(const mica_conv_lines *l, size_t first, size_t most,
                                       const mica_conv_planes *from, size_t rows, size_t columns);

/* Inputs [6, channels, room] of lines first .. first + count - 1, with zeros behind them. */
void mica_conv_lines_load(float *inputs, const mica_conv_lines *l, const mica_conv_patches *in, size_t first,
                          size_t count, const mica_kernels *kernels);

#endif
