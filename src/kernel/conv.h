/* Convolution kernels: image patches packed into the panels of the matrix product (family conv), direct sums in
 * register tiles (family tiles), and one plane at a time (family taps).
 *
 * All of them see a convolution as reading: at output position (i, j), tap (t, u) meets the pixel at row
 * i * scale + base + t * step of an image, and likewise for columns; outside of the image there are zeros. A
 * convolution, and the gradient by its input, differ in these numbers only (src/ops/conv/image.c). */
#ifndef MICA_SRC_KERNEL_CONV_H
#define MICA_SRC_KERNEL_CONV_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/gemm.h"
#include "kernel/map.h"

typedef struct mica_conv_axis {
    size_t image; /* positions of the image that is read */
    size_t count; /* positions of the output */
    size_t taps;
    ptrdiff_t scale, base, step; /* scale is positive */
} mica_conv_axis;

/* A matrix of patches: element (tap, pixel), where tap numbers (channel, t, u) and pixel numbers (image, i,
 * j), the last fastest. */
typedef struct mica_conv_patches {
    const float *data;
    ptrdiff_t image_stride, channel_stride, row_stride, column_stride;
    mica_conv_axis rows, columns;
    size_t first_tap, first_pixel; /* where tap 0 and pixel 0 of the matrix lie */
    const mica_gemm_kernels *gemm; /* for pack_transposed */
} mica_conv_patches;

/* Whether pixels of patches are packed one at a time: where a row has few of them, fewer where rows can be copied, and
 * where each has a vector's worth of taps side by side, but pixels are far apart. */
static inline bool mica_conv_short_rows(const mica_conv_axis *columns)
{
    return columns->count <= (columns->scale == 1 ? 6 : 12) || (columns->scale >= 8 && columns->taps >= 8);
}

/* The most pixels that `fill`, and columns that a panel, may have. */
#define MICA_CONV_PIXELS 64

/* Planes of pixels that are written, or read as they are. */
typedef struct mica_conv_planes {
    float *data;
    ptrdiff_t image_stride, channel_stride, row_stride, column_stride;
} mica_conv_planes;

/* The taps of one output channel: channels x rows x columns of them. */
typedef struct mica_conv_taps {
    float *data;
    size_t channels;
    ptrdiff_t channel_stride, row_stride, column_stride;
} mica_conv_taps;

typedef struct mica_conv_kernels {
    /* Taps k0 .. k0 + k - 1 of pixels first .. first + count - 1: element (p, i) at dst[p * stride + i]. */
    void (*fill)(const mica_conv_patches *in, float *dst, size_t stride, size_t first, size_t count,
                 size_t k0, size_t k);

    /* A mica_gemm_pack_fn, source a mica_conv_patches: pixels are the vectors, k runs over taps. */
    void (*pack)(const void *source, float *panel, size_t width, size_t first, size_t count, size_t k0,
                 size_t k);
    /* The same with taps as vectors and k running over pixels. */
    void (*pack_transposed)(const void *source, float *panel, size_t width, size_t first, size_t count,
                            size_t k0, size_t k);

    /* Sum of n elements. */
    double (*sum)(const float *x, ptrdiff_t stride, size_t n);
    /* dst[i * dst_stride] += src[i * src_stride] */
    void (*add)(float *dst, ptrdiff_t dst_stride, const float *src, ptrdiff_t src_stride, size_t n);
} mica_conv_kernels;

/* The window of a block of output pixels: conv_window.h. */
typedef struct mica_conv_window {
    size_t channels;      /* at most */
    size_t rows, columns; /* of output pixels, at most */
    size_t run;           /* columns of one residue */
    size_t row_stride, channel_stride;
} mica_conv_window;

/* A block of output pixels over its window. */
typedef struct mica_conv_block {
    size_t i, rows, j, columns; /* pixels of the output; columns of 1 or more */
    const float *window;
    const ptrdiff_t
        *offset; /* [channels * taps]: where each (channel, t, u) meets the first pixel of the block */
    size_t channels, taps; /* of the window, and of each of them */
    ptrdiff_t row_step;    /* in the window, from one output row to the next */
} mica_conv_block;

/* What becomes of pixels before they are added up: a map; or where that is NULL, bounds, which may be infinite. */
typedef struct mica_conv_finish {
    mica_map_fn *map;
    float slope; /* its parameter */
    float low, high;
} mica_conv_finish;

/* Vectors of a tile of several channels, and taps of one where gradients are summed. */
#define MICA_TILES_VECTORS 3
#define MICA_TILES_TAPS    3

/* Convolutions without packing: register tiles of several channels by several vectors of pixels, over a window
 * that the first cache holds. */
typedef struct mica_tiles_kernels {
    size_t lanes;
    size_t channels; /* output channels of a tile: panels of weights are that wide, in the manner of gemm */

    /* Copies the window of a block, for one image. */
    void (*load)(float *window, const mica_conv_window *w, const mica_conv_patches *in,
                 const mica_conv_block *block);
    /* out = bias + panels x window, added to what is there if `accumulate`, for m channels; out is at the first
     * pixel of the block, panels are panel_stride apart, bias may be NULL. */
    void (*image)(const mica_conv_planes *out, const mica_conv_block *block, const float *panels,
                  size_t panel_stride, const float *bias, size_t m, bool accumulate);
    /* The same by vectors of output channels, of which a panel has `lanes`. */
    void (*across)(const mica_conv_planes *out, const mica_conv_block *block, const float *panels,
                   size_t panel_stride, const float *bias, size_t m, bool accumulate);
    /* totals[o] = the sum over the block's pixels of what `image` makes, once it is finished. */
    void (*totals)(double *totals, const mica_conv_block *block, const float *panels, size_t panel_stride,
                   const float *bias, size_t m, const mica_conv_finish *finish);

    /* sums[o, p, lane] += dy[o] * what tap p meets, over the pixels of the block, for m channels; dy is at the
     * first pixel of the block. sums is [m / channels, k / MICA_TILES_TAPS, channels, MICA_TILES_TAPS, lanes],
     * both rounded up; stage has room for as many channels of the block, rows up to whole vectors. */
    void (*gradient)(float *sums, const mica_conv_block *block, const mica_conv_planes *dy, size_t m,
                     float *stage);
    /* dst[p] = the sum of all lanes of sums[o, p] in all parts, for p < k. */
    void (*fold)(float *dst, const float *sums, size_t parts, size_t part_stride, size_t o, size_t k);
} mica_tiles_kernels;

/* For convolutions too narrow for that: sums over taps, for one plane at a time. */
typedef struct mica_taps_kernels {
    /* Rows first .. first + count - 1 of one plane of one image: bias + sum over channels and taps of tap *
     * pixel, added to what is there if `accumulate`. */
    void (*image)(const mica_conv_planes *out, const mica_conv_patches *in, const mica_conv_taps *taps,
                  size_t first, size_t count, float bias, bool accumulate);
    /* taps (t, u) (+)= sum over images and pixels of dy * pixel, for one channel of each. */
    void (*gradient)(const mica_conv_taps *taps, const mica_conv_patches *in, const mica_conv_planes *dy,
                     size_t images, bool accumulate);
} mica_taps_kernels;

#endif
