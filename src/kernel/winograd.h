/* Winograd's transforms F(4 x 4, 3 x 3): tiles of 4 x 4 outputs of a 3 x 3 convolution from 6 x 6 inputs with 36
 * multiplications per channel instead of 144.
 *
 *   y = AT [ (G w GT) * (BT x B) ] A      x 6 x 6, w 3 x 3, y 4 x 4, * element-wise
 *
 * A tile has 36 transformed numbers, "frequencies"; frequency f of many tiles and channels is a matrix, and the
 * sums over channels are 36 matrix products. A run is a number of tiles side by side in a row of tiles: their
 * transforms go through vectors whose lanes are tiles.
 *
 * In one dimension (flat) it is F(4, 3): 6 frequencies for 12 multiplications, along rows alone.
 *
 * Down the columns alone it is F(4, 3) for any number of taps across: six lines of frequencies, of vectors as pixels
 * lie, for four rows. Half of the multiplications are left, and the transforms are cheap enough for few channels.
 *
 * The gradient by the weights is the same in reverse: dw = GT [ (A dy AT) * (BT x B) ] G, summed over tiles.
 *
 * The points are 0, 3/4, -3/4, 3/2, -3/2 and infinity: numbers that are exact in binary, and whose rounding errors
 * are a quarter of those of the usual 0, 1, -1, 2, -2 and infinity. */
#ifndef MICA_SRC_KERNEL_WINOGRAD_H
#define MICA_SRC_KERNEL_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>

#define MICA_WINOGRAD_TILE             4
#define MICA_WINOGRAD_FREQUENCIES      36
#define MICA_WINOGRAD_FLAT_FREQUENCIES 6
/* The most tiles of a run. */
#define MICA_WINOGRAD_RUN 64

/* A plane of pixels, its columns side by side. */
typedef struct mica_winograd_plane {
    float *data;
    ptrdiff_t rows, columns, row_stride;
} mica_winograd_plane;

/* A run: the upper left pixel of its first tile, and the tiles it has. */
typedef struct mica_winograd_run {
    ptrdiff_t row, column;
    size_t tiles;
    bool flat; /* tiles of one row */
} mica_winograd_run;

/* Lines of several channels: four rows of pixels each (six of inputs), one below the other. */
typedef struct mica_winograd_lines {
    mica_winograd_plane plane; /* of the first channel */
    size_t channels;
    ptrdiff_t channel_stride;
    ptrdiff_t row, column; /* where the first line begins */
    size_t lines;
    /* Positions of a line, zeros around the plane: up to `count` of each, from `begin` on of the first and up to
     * `last` of the last. Up to a vector more is written. */
    size_t begin, count, last;
    /* From a line and a channel to the next, of frequencies. What of a line lies beyond the pitch are zeros, the
     * first of the next. */
    size_t pitch, room;
} mica_winograd_lines;

typedef struct mica_winograd_kernels {
    /* f[frequency * stride + tile] of the 6 x 6 inputs of a run, zeros around the plane. Writes up to `room` tiles,
     * of which only the run's are meant: what follows is to be written afterwards. */
    void (*input)(float *f, size_t stride, size_t room, const mica_winograd_plane *x,
                  const mica_winograd_run *run);
    /* The same of 4 x 4 gradients. */
    void (*gradient)(float *f, size_t stride, size_t room, const mica_winograd_plane *dy,
                     const mica_winograd_run *run);
    /* 4 x 4 outputs of a run from its frequencies: y = (y +) bias + outputs. Reads up to whole vectors of tiles. */
    void (*output)(const mica_winograd_plane *y, const mica_winograd_run *run, const float *f, size_t stride,
                   float bias, bool accumulate);
    /* Down the columns alone: f[frequency * stride + channel * room + line * pitch + x]. */
    void (*input_lines)(float *f, size_t stride, const mica_winograd_lines *lines);
    /* The same of four rows of gradients. */
    void (*gradient_lines)(float *f, size_t stride, const mica_winograd_lines *lines);
    /* Four rows of outputs from such lines, all columns of them: y = (y +) bias + outputs. Reads up to whole vectors.
     * bias has one number a channel, or is NULL. */
    void (*output_lines)(const mica_winograd_lines *lines, const float *f, size_t stride, const float *bias,
                         bool accumulate);
    /* Sums of six frequencies, `stride` apart, back to those of three rows of taps: n of each, lane by lane. */
    void (*sums_back)(float *w, size_t w_stride, const float *f, size_t stride, size_t n);
    /* f[frequency * stride + i * step] of `count` kernels, w_stride apart. */
    void (*kernels)(float *f, size_t stride, size_t step, const float *w, ptrdiff_t w_stride,
                    ptrdiff_t row_stride, ptrdiff_t column_stride, size_t count);
    /* The same of `count` kernels of each of `vectors` output channels, as a panel: f[frequency * stride + i * width +
     * vector]. A row may be written beyond its vectors, up to the next one. */
    void (*panel)(float *f, size_t stride, size_t width, const float *w, ptrdiff_t vector_stride,
                  ptrdiff_t w_stride, ptrdiff_t row_stride, ptrdiff_t column_stride, size_t vectors,
                  size_t count);
    /* The way back: gradients of `count` kernels from frequencies side by side. */
    void (*kernels_back)(float *w, ptrdiff_t w_stride, ptrdiff_t row_stride, ptrdiff_t column_stride,
                         const float *f, size_t stride, size_t count, bool accumulate);
} mica_winograd_kernels;

#endif
