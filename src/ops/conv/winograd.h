/* Convolutions of three by three taps, and of three in a row, by Winograd's transforms: kernel/winograd.h has
 * the idea.
 *
 * Tiles of 4 x 4 outputs are numbered through all images. A block of them is done at a time, by one thread:
 * its inputs are transformed, and then, for some output channels after the other, 36 products
 * (6 in one dimension) are made and transformed back. So the scratch is the transformed weights, at most 1.5
 * MiB, and for each thread the frequencies of one block: about 256 KiB of inputs and 60 KiB of outputs.
 *
 *   scratch:  [ weights: 36 x channels x output channels, in panels | offsets of channels |
 *               for each thread: inputs 36 x channels x block, outputs 36 x some channels x block ]
 *
 * Of many channels neither the weights nor a block's inputs stay in a core's caches, and small images are few blocks.
 * Then ("deep") the inputs of several blocks are transformed by all threads, and threads share the output channels:
 * each transforms the weights of some of them, which its second cache keeps, and multiplies them with all these blocks.
 *
 *   scratch:  [ offsets of channels | several blocks: inputs 36 x channels x block |
 *               for each thread: weights 36 x channels x some channels, outputs 36 x some channels x block ]
 *
 * Weights that are prepared (prepare.h) are all panels of this, and take no scratch. Where they are few beside the
 * inputs, threads share the tiles instead: each transforms, multiplies and transforms back its own, and reads all
 * weights.
 *
 *   scratch:  [ offsets of channels |
 *               for each thread: inputs 36 x channels x block, outputs 36 x some channels x block ]
 */
#ifndef MICA_SRC_OPS_CONV_WINOGRAD_H
#define MICA_SRC_OPS_CONV_WINOGRAD_H

#include "base/context.h"
#include "kernel/kernels.h"
#include "ops/conv/extent.h"

/* The tiles of an image, and of a block. */
typedef struct mica_conv_tiling {
    bool flat; /* tiles of one row: one row of taps */
    size_t frequencies;
    size_t down, across;
    size_t all;   /* of all images */
    size_t block; /* a multiple of what a register tile takes, or all */
} mica_conv_tiling;

typedef struct mica_conv_winograd {
    mica_conv_tiling tiling;
    size_t chunk; /* output channels whose weights are transformed at a time */
    size_t some;  /* output channels of a round of products */
    size_t panel_stride, input_stride, output_stride; /* of frequencies */
    size_t group;                                     /* deep: blocks whose inputs are there at a time */
    size_t weight_bytes, offset_bytes, input_bytes, output_bytes;
} mica_conv_winograd;

/* Whether a convolution has the taps, the layout and the channels for it, `channels` that are read, m on the other
 * side: what does not change with the sizes of images. And whether it has these too. */
bool mica_conv_winograd_suits(const mica_context *ctx, const mica_conv_patches *in, size_t channels,
                              size_t m);
bool mica_conv_winograd_pays(const mica_context *ctx, const mica_conv_patches *in, size_t images,
                             size_t channels, size_t m);

/* Tiles of the output pixels of `in`: in a block about so many bytes of frequencies of `channels` channels, and at
 * most so many tiles. */
mica_conv_tiling mica_conv_tiling_of(const mica_context *ctx, const mica_conv_patches *in, size_t images,
                                     size_t channels, size_t bytes, size_t most);

/* The same for the largest sizes within *up_to; leaves in *up_to those that have too few tiles. Nothing is cut, and
 * .all is 0, if they all have. */
mica_conv_tiling mica_conv_tiling_most(const mica_context *ctx, const mica_conv_patches *in, size_t channels,
                                       size_t bytes, size_t most, mica_conv_extent *up_to);

/* The run of tiles from `first` on, at most `most` of them, of which image it is; rows and columns are those of the
 * output. */
mica_winograd_run mica_conv_run_at(const mica_conv_tiling *t, size_t first, size_t most, size_t *image);

/* Frequencies [36, channels, block], `stride` apart, of some tiles of planes, image_stride and channel_stride apart,
 * whose upper left inputs are `row` and `column` away from their outputs. */
typedef struct mica_conv_frequencies {
    const mica_conv_tiling *tiling;
    mica_winograd_plane plane; /* channel 0 of image 0 */
    ptrdiff_t image_stride, channel_stride;
    ptrdiff_t row, column;
    size_t stride; /* from one frequency to the next */
    bool gradient; /* 4 x 4 of them instead of 6 x 6 */
} mica_conv_frequencies;

/* The stride of frequencies of so many floats each: a transform writes to all of them at a time, and at a power of two
 * they would be in each other's place in the first cache. */
static inline size_t mica_conv_frequency_stride(size_t floats) { return mica_round_up(floats, 16) + 16; }

/* Those of channel c, tiles first .. first + count - 1. */
void mica_conv_transform(float *f, const mica_conv_frequencies *from, const mica_winograd_kernels *kernels,
                         size_t c, size_t first, size_t count);

#endif
