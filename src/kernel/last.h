/* Convolutions of images that lie channels last: the channels of a pixel side by side. Three families:
 *
 *   last        output channels of pixels = pixels of some taps x weights: register tiles of pixels by vectors of
 *               output channels. What is read is broadcast from where it lies, or from patches.
 *   last_taps   depthwise: vectors across channels, some pixels of a row at a time.
 *   last_pool   the largest, the mean and the sum of pixels: vectors across channels.
 */
#ifndef MICA_SRC_KERNEL_LAST_H
#define MICA_SRC_KERNEL_LAST_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/conv.h"

/* What becomes of a sum before it is stored: it is held within bounds, or is left. */
typedef struct mica_last_end {
    bool accumulate; /* added to what is there, before all else */
    bool bounded;
    float low, high;
} mica_last_end;

/* Some pixels of m output channels. Weights are in panels of `width` channels, of the last of them as many vectors as
 * it takes, zeros behind: element (p, o) of the one that begins with channel f at f * k + p * its width + o. */
typedef struct mica_last_product {
    size_t pixels, k, m;
    const float *in; /* element (pixel, p) at pixel * pixel_stride + p * k_stride */
    ptrdiff_t pixel_stride, k_stride;
    const float *panels;
    const float *bias; /* [m] or NULL */
    float *out;        /* channels side by side */
    ptrdiff_t out_stride;
    mica_last_end end;
} mica_last_product;

typedef struct mica_last_kernels {
    size_t lanes, width;
    size_t tile; /* pixels */
    void (*image)(const mica_last_product *b);
    /* The patches of pixels first .. first + count - 1 of an image that lies channels last: element (pixel, t, u, c) at
     * pixel * stride + (t * taps across + u) * channels + c. */
    void (*patches)(float *dst, size_t stride, const mica_conv_patches *in, size_t channels, size_t first,
                    size_t count);
} mica_last_kernels;

/* Depthwise: pixels j .. j + count - 1 of row i of an image, `channels` of them; all pointers are at the first of
 * these. */
typedef struct mica_last_row {
    const mica_conv_patches *in; /* data: of the image */
    size_t i, j, count, channels;
    const float *taps; /* [t, u, tap_stride]: whole vectors are read */
    size_t tap_stride;
    const float *bias; /* or NULL */
    float *out;        /* at pixel j */
    ptrdiff_t out_stride;
    mica_last_end end;
} mica_last_row;

typedef struct mica_last_taps_kernels {
    size_t lanes;
    void (*row)(const mica_last_row *r);
} mica_last_taps_kernels;

/* A window: rows x columns of pixels that lie in the image, from the first of them on. */
typedef struct mica_last_window {
    const float *in;
    ptrdiff_t row_stride, column_stride;
    size_t rows, columns, channels;
} mica_last_window;

typedef struct mica_last_pool_kernels {
    /* Of equal ones the first, of NaNs one of them; of no pixels -infinity. */
    void (*max)(float *out, const mica_last_window *w);
    /* Sums over `divisor`. */
    void (*average)(float *out, const mica_last_window *w, float divisor);
    /* totals [channels]: single sums are short. */
    void (*totals)(double *totals, const mica_last_window *w);
} mica_last_pool_kernels;

#endif
