/* How the pixels of a convolution's narrow side are cut into blocks, for the kernels that read a window of the
 * image instead of packed patches (kernel/conv_window.h). */
#ifndef MICA_SRC_OPS_CONV_GRID_H
#define MICA_SRC_OPS_CONV_GRID_H

#include "base/context.h"
#include "kernel/kernels.h"
#include "base/size.h"
#include "ops/conv/extent.h"

typedef struct mica_conv_grid {
    mica_conv_window window; /* of one block and some channels: those fit the first cache */
    size_t channels, taps;   /* in all, and of each */
    size_t down, across;     /* blocks of an image */
    size_t window_bytes, offset_bytes;
} mica_conv_grid;

/* What is to be cut, but for sizes: output pixels whose patches are those of `channels` channels, for m channels on the
 * other side; so many taps of a pixel are worth a window, and so many multiply-adds a block. */
typedef struct mica_conv_grid_aim {
    size_t channels, m, deep, work;
    bool any_columns; /* also rows that fill their vectors badly */
} mica_conv_grid_aim;

/* Whether rows of so many pixels, or pixels of so many channels, fill their vectors badly. */
static inline bool mica_conv_fills_badly(size_t count, size_t lanes)
{
    return 3 * count < 2 * mica_round_up(count, lanes);
}

/* Cuts the output pixels of `in`. False where there is nothing to gain: a single tap, rows that fill their vectors
 * badly, or windows that are too large. */
bool mica_conv_grid_plan(mica_conv_grid *g, const mica_conv_patches *in, const mica_conv_grid_aim *aim,
                         const mica_tiles_kernels *kernels);

/* The most bytes of a window and of offsets, and blocks of an image, for any sizes within *up_to and as much work or
 * more, in *g, but the least channels of a window; leaves in *up_to the sizes that are not cut. False where none
 * is. */
bool mica_conv_grid_most(mica_conv_grid *g, const mica_conv_patches *in, const mica_conv_grid_aim *aim,
                         const mica_tiles_kernels *kernels, mica_conv_extent *up_to);

/* offset [window.channels * taps], as mica_conv_block has it. */
void mica_conv_grid_offsets(ptrdiff_t *offset, const mica_conv_grid *g, const mica_conv_patches *in);

/* Block `number` of an image, for the channels of a window from `first` on; the window is the caller's. */
mica_conv_block mica_conv_grid_block(const mica_conv_grid *g, const mica_conv_patches *in, size_t number,
                                     size_t first, const float *window, const ptrdiff_t *offset);

#endif
