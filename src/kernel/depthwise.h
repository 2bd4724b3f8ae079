/* Depthwise convolutions, where each channel is read by one output channel alone. Two families:
 *
 *   lanes    planes too narrow for a vector: as many channels as a vector has lanes go together, each pixel of
 *            theirs one vector. Any taps and strides, and the gradient by the input of any stride.
 *   strips   wider planes: a vector has pixels of a row; a strip of several rows of them is summed at a time, so that
 *            what is read is loaded once for all rows that it meets. Three by three and five by five, strides 1 and 2.
 */
#ifndef MICA_SRC_KERNEL_DEPTHWISE_H
#define MICA_SRC_KERNEL_DEPTHWISE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/map.h"

/* ---- Lanes ---- */

/* The most taps, phases, and pixels of a window and of a band of results. */
#define MICA_LANES_TAPS   49
#define MICA_LANES_PHASES 9
#define MICA_LANES_WINDOW 256
#define MICA_LANES_BAND   512

/* Output positions that meet the same taps: rows x columns of them from (row, column) on, `spread` apart. */
typedef struct mica_lanes_phase {
    size_t rows, columns, row, column;
    size_t first_tap, taps; /* in the lists of the plan */
} mica_lanes_phase;

/* Planes are contiguous: height x width of them are read, out_height x out_width written (or, of the gradient by the
 * taps, read too). A window has all columns of what is read, with zeros around, and the rows that a band meets. */
typedef struct mica_lanes_plan {
    size_t images;
    size_t height, width, out_height, out_width;
    ptrdiff_t in_image, in_channel, out_image, out_channel, tap_channel; /* strides */
    size_t scale[2];  /* from one position of a phase to the next, in what is read */
    size_t spread[2]; /* and in what is written */
    ptrdiff_t low[2]; /* row and column of the window's first pixel, for the first position */
    size_t window_width, window_reach; /* window rows that one row of positions meets */
    size_t band, bands;                /* rows of positions at a time, and how often for a plane */
    size_t phases;
    mica_lanes_phase phase[MICA_LANES_PHASES];
    size_t taps;
    size_t
        offset[MICA_LANES_TAPS]; /* pixels of the window: where a tap meets what the first position reads */
    ptrdiff_t tap_offset[MICA_LANES_TAPS]; /* where the tap itself lies */
    bool accumulate;
    mica_map_fn *finish; /* or NULL */
    float slope;
} mica_lanes_plan;

typedef struct mica_lanes_kernels {
    size_t lanes;
    /* Units begin .. end - 1, of which each is a band of an image, for so many channels: all pointers are at the first
     * of these. bias may be NULL. */
    void (*image)(const mica_lanes_plan *p, float *out, const float *in, const float *taps, const float *bias,
                  size_t channels, size_t begin, size_t end);
    /* sums[channel, tap] = the sum over these units of dy * what the tap meets, for up to `lanes` channels. */
    void (*gradient)(const mica_lanes_plan *p, float *sums, const float *dy, const float *in, size_t channels,
                     size_t begin, size_t end);
} mica_lanes_kernels;

/* ---- Strips ---- */

/* One plane: pixel (i, j) meets rows i * scale + base[0] on and columns j * scale + base[1] on, `taps` of each. */
typedef struct mica_strip_shape {
    size_t taps;  /* 3 or 5 */
    size_t scale; /* 1 or 2 */
    size_t height, width, rows, columns;
    ptrdiff_t base[2];
    ptrdiff_t in_stride, out_stride; /* from row to row */
} mica_strip_shape;

#define MICA_STRIPS_TAPS 25

typedef struct mica_strips_kernels {
    size_t lanes;
    /* Rows first .. first + count - 1 of a plane. */
    void (*image)(float *out, const float *in, const float *taps, float bias, const mica_strip_shape *s,
                  size_t first, size_t count, bool accumulate);
    /* sums[tap, lane] += dy * what the tap meets, over these rows. */
    void (*gradient)(float *sums, const float *dy, const float *in, const mica_strip_shape *s, size_t first,
                     size_t count);
    /* dst[tap] = the sum of its lanes. */
    void (*fold)(float *dst, const float *sums, size_t taps);
} mica_strips_kernels;

#endif
