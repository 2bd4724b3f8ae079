/* Depthwise convolutions: plans for the kernels of src/kernel/depthwise.h, which images and gradients by weights share.
 * None of them takes scratch for an image. */
#ifndef MICA_SRC_OPS_CONV_DEPTHWISE_H
#define MICA_SRC_OPS_CONV_DEPTHWISE_H

#include "kernel/depthwise.h"
#include "ops/conv/product.h"

/* Multiply-adds in one block of work, about. */
#define MICA_DEPTHWISE_WORK ((size_t)65536)

/* ---- Lanes ---- */

/* A plan as it comes to be: begun, a phase added for each residue of what is written by its stride, ended. Each is
 * false where it cannot be gone this way. */
typedef struct mica_conv_lanes {
    mica_lanes_plan plan;
    ptrdiff_t met[MICA_LANES_TAPS]
                 [2]; /* row and column that a tap meets from the first position of its phase */
} mica_conv_lanes;

bool mica_conv_lanes_begin(mica_conv_lanes *l, const mica_conv_patches *in, const mica_conv_planes *out,
                           size_t images, size_t out_height, size_t out_width);
/* Positions from (row, column) on; taps lie from `first` on. */
bool mica_conv_lanes_add(mica_conv_lanes *l, const mica_conv_patches *in, size_t row, size_t column,
                         const mica_conv_taps *taps, ptrdiff_t first);
bool mica_conv_lanes_end(mica_conv_lanes *l);

/* About how many multiply-adds one band is, for one channel. */
size_t mica_conv_lanes_work(const mica_lanes_plan *plan);

/* Makes the image of so many channels. Pointers are at channel 0 of image 0. */
typedef struct mica_conv_lanes_image {
    const mica_kernels *kernels;
    float *out;
    const float *in, *taps, *bias;
    size_t channels;
} mica_conv_lanes_image;
void mica_conv_lanes_run(mica_context *ctx, const mica_lanes_plan *plan, const mica_conv_lanes_image *image);

/* Whether planes of so many columns, of so many channels, are narrow enough for it. Up to eight columns transposing
 * costs less than what a strip does for each plane. */
static inline bool mica_conv_is_narrow(size_t lanes, size_t columns, size_t channels)
{
    return lanes > 1 && columns <= (lanes < 8 ? lanes / 2 : 8) && 4 * channels >= lanes;
}

/* ---- Strips ---- */

/* The shape of one plane; false where it has none. What is written has rows out_stride apart. */
bool mica_conv_strip_shape(mica_strip_shape *s, const mica_conv_patches *in, ptrdiff_t out_stride,
                           ptrdiff_t out_column_stride);

#endif
