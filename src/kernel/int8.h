/* Products of bytes, and what int8 operations do to single values: integers, the same bits on every set.
 *
 * A product reads rows of x, whose bytes are x + offset, and panels of `width` weight rows. For each four values of a
 * row, a panel has four bytes of each of its weight rows:
 *
 *     quads x width x 4 bytes        quads = values / 4, rounded up; what is missing is 0
 *
 * and beside it what the sums of its weight rows start at: bias - (offset + zero point) * the sum of the row. */
#ifndef MICA_SRC_KERNEL_INT8_H
#define MICA_SRC_KERNEL_INT8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How sums s become results. */
typedef enum mica_int8_outcome {
    MICA_INT8_SHIFTED, /* bytes: (s * multiplier + 2^(shift - 1)) >> shift, limited */
    MICA_INT8_AFFINE,  /* bytes: s * factor in f32, rounded half to even, plus zero, limited */
    MICA_INT8_FLOATS,  /* f32: s * factor */
    MICA_INT8_SUMS,    /* i32: s */
} mica_int8_outcome;

/* `each`, where it is a parameter: a multiplier and a shift, or a factor, for each value. */
typedef struct mica_int8_finish {
    const int32_t *multiplier;
    const uint8_t *shift;
    int32_t low, high;
    mica_int8_outcome kind;
    const float *factor;
    int32_t zero;
} mica_int8_finish;

/* Bytes of a result. */
static inline size_t mica_int8_result_bytes(mica_int8_outcome kind)
{
    return kind == MICA_INT8_FLOATS || kind == MICA_INT8_SUMS ? 4 : 1;
}

/* Part of a convolution. A window has four bytes for each place (a quad): a byte of each of four channels, or four
 * bytes in a row of one; they are x + offset. A pixel's taps are quads at fixed distances from its place, the same
 * for all pixels. */
typedef struct mica_int8_tile {
    const uint8_t *x;  /* the place of the first pixel; others follow */
    const int32_t *at; /* [phases][quads]: distances, in bytes */
    size_t quads;      /* of a pixel */
    size_t phases;     /* 1, or 4: of the sums at four places the largest counts */
    size_t vectors;    /* of `lanes` pixels each: so many are read and made */
    bool bytes;        /* of one channel and phase: places have one byte, and a quad is that of four places */
    const int8_t *w;   /* [quads][channels][4], quads `apart` bytes from one another */
    size_t apart;
    const int32_t *start; /* [channels]: bias - (offset + zero point) * the sum of weights */
    void *y;              /* results [channels], `stride` apart, of pixels */
    size_t stride;
} mica_int8_tile;

/* The same with channels last: lanes are output channels, and what is repeated are the quads of pixels. */
typedef struct mica_int8_last {
    const uint8_t *x; /* the first pixel; others are `step` bytes apart, rows of them `x_row` */
    size_t step, x_row;
    size_t rows, pixels;
    const int32_t *at; /* [quads]: distances, in bytes */
    size_t quads;
    const int8_t *w; /* [quads][width][4]: channels, rounded up to whole vectors */
    const int32_t *start;
    char *y; /* results of pixels, `stride` bytes apart, rows of them `y_row` */
    size_t stride, y_row;
} mica_int8_last;

/* Depthwise, with channels last: so many of them at a time, at most `deep`. A quad has four rows of one column of
 * taps. What is read of x may lie up to `deep` bytes behind it. */
typedef struct mica_int8_deep {
    const uint8_t *x;            /* of the first pixel's first tap */
    size_t row, column;          /* bytes from one row of x, and one pixel, to the next */
    size_t step[2];              /* bytes of x from one result to the next: down, across */
    size_t taps[2], dilation[2]; /* down, across */
    size_t made[2];              /* results: down, across */
    const int8_t *w;             /* [quads down][across][deep][4], channels as the kernel has them */
    const int32_t *start;        /* [channels] */
    char *y;                     /* bytes of results */
    size_t y_row, y_column;      /* of y, in bytes */
} mica_int8_deep;

/* Convolutions of 3 x 3 by tiles of 4 x 4 results (Winograd), in whole numbers; channels last. What a tile reads, 6 x 6
 * pixels, and the weights become 36 numbers of 16 bits for each channel, so that a product of channels is left for each
 * of them; what 36 sums become is 576 times the sum of a convolution, modulo 2^32. That determines every sum of less
 * than 2^25, so the bits are those of any other way. */
enum { MICA_INT8_POINTS = 36 };
#define MICA_INT8_TILED_SUM ((int32_t)1 << 25)

/* Where results of a tile go: 4 x 4 of them, or those that the image has. */
typedef struct mica_int8_place {
    char *y;
    size_t rows, columns;
} mica_int8_place;

typedef struct mica_int8_tiled {
    const int32_t *sum; /* [36][`apart` / panel tiles][panel] */
    size_t apart;
    const mica_int8_place *place; /* of tiles */
    size_t tiles;
    const int32_t *start;         /* [panel] */
    size_t y_at, y_row, y_column; /* of y, in bytes: the panel's channels in a pixel; from one to the next */
} mica_int8_tiled;

typedef struct mica_int8_kernels {
    size_t width;   /* weight rows of a panel */
    uint8_t offset; /* of x in products: a power of two that x is XORed with, or 0 */

    /* y[count] of sums, bytes */
    void (*finish)(int8_t *y, const int32_t *sum, size_t count, const mica_int8_finish *f, int each);
    /* The same for rows of `width` sums, of which the first `count` are wanted; rows of y are `stride` apart. */
    void (*finish_rows)(void *y, size_t stride, const int32_t *sum, size_t rows, size_t count,
                        const mica_int8_finish *f, int each);
    void (*quantize)(int8_t *y, const float *x, size_t count, float factor);
    /* y = what quantize and dequantize make of x, less x */
    void (*error)(float *y, const float *x, size_t count, float scale);
    void (*dequantize)(float *y, const int8_t *x, size_t count, float scale);
    void (*add)(int8_t *y, const int8_t *a, const int8_t *b, size_t count, const int32_t multiplier[2],
                int shift, const int32_t limit[2]);
    /* With zero points: x / scale, and (x - zero) scale; (a - zero[0]) factor[0] + (b - zero[1]) factor[1], rounded,
     * plus zero[2]. */
    void (*affine_quantize)(int8_t *y, const float *x, size_t count, float scale, int32_t zero);
    void (*affine_dequantize)(float *y, const int8_t *x, size_t count, float scale, int32_t zero);
    void (*affine_add)(int8_t *y, const int8_t *a, const int8_t *b, size_t count, const float factor[2],
                       const int32_t zero[3], const int32_t limit[2]);

    /* Rows of weights, `stride` apart, to a panel; those from `rows` on are 0. Sums are of x - zero. */
    void (*pack)(int8_t *panel, int32_t *start, const int8_t *w, size_t stride, size_t rows, size_t values,
                 const int32_t *bias, int32_t zero);
    /* sum[rows][width] of rows of x, `stride` apart, of 4 * quads bytes that can be read. */
    void (*product)(int32_t *sum, const uint8_t *x, size_t stride, size_t rows, size_t quads,
                    const int8_t *panel, const int32_t *start);
    /* sum[rows] = bias + one row of x, as it is, times weight rows as they lie. */
    void (*dots)(int32_t *sum, const int8_t *x, const int8_t *w, size_t stride, size_t rows, size_t values,
                 const int32_t *bias);
    /* Convolutions. A block has `block` channels; the rest of them go by four, two and one. */
    size_t lanes, block;
    void (*tile)(const mica_int8_tile *t, size_t channels, const mica_int8_finish *f, int each);
#if !defined(MICA_SMALL)
    /* With channels last: of a panel of at most `panel` channels; depthwise, results are bytes. */
    size_t panel, deep;
    void (*last)(const mica_int8_last *t, size_t channels, const mica_int8_finish *f, int each);
    void (*depthwise)(const mica_int8_deep *t, size_t channels, const mica_int8_finish *f, int each);
    /* y[count] = the largest of x[at[t] + k], t below taps, which is at least 1 */
    void (*largest_of)(int8_t *y, const int8_t *x, const ptrdiff_t *at, size_t taps, size_t count);
    /* Where channel c of `deep` is in a panel. */
    size_t (*deep_at)(size_t c);
    /* Products of numbers of 16 bits: sum[rows][panel] of rows of x, `stride` numbers apart, and w [pairs][panel][2],
     * how many rows are in registers; rows of bytes, and pairs of the bytes of two rows, less zero; results of some
     * columns of a panel, rows of y `stride` bytes apart: sums of three more rows are read. */
    size_t pairs_rows;
    void (*pairs)(int32_t *sum, const int16_t *x, size_t stride, size_t rows, size_t pairs, const int16_t *w);
    void (*less_zero)(int16_t *to, const int8_t *from, size_t count, int32_t zero);
    void (*pair_rows)(int16_t *to, const int8_t *a, const int8_t *b, size_t count, int32_t zero);
    void (*finish_panel)(char *y, size_t stride, const int32_t *sum, size_t rows, size_t columns,
                         const mica_int8_finish *f, int each);
    /* By tiles. How long a product of pairs takes, in percent of one of quads; 0: not with this set.
     * to[36], `apart` numbers from one another, of channels; x: 6 x 6 pixels. Results of a panel. */
    int pairs_cost;
    void (*to_tile)(int16_t *to, size_t apart, const int8_t *x, size_t row, size_t column, size_t channels);
    void (*from_tiles)(const mica_int8_tiled *t, const mica_int8_finish *f, int each);
#endif
    /* Quads of windows: of four planes, whose bytes get the offset; of bytes `step` apart in a row that has it. The
     * latter makes whole vectors, and reads 32 bytes more than that. */
    void (*quads_of_planes)(uint32_t *to, const int8_t *const plane[4], size_t count);
    void (*quads_of_row)(uint32_t *to, const uint8_t *row, size_t step, size_t count);
    /* Quads k * step + phase of a row to to[phase * plane + k]. */
    void (*spread)(uint32_t *to, size_t plane, const uint32_t *row, size_t step, size_t count);
    void (*offset_row)(uint8_t *to, const int8_t *from, size_t count);
    /* sum[k] += w * x[k * step], k below count */
    void (*tap_i32)(int32_t *sum, const int32_t *x, size_t step, size_t count, int32_t w);
    void (*tap)(int32_t *sum, const int8_t *x, size_t step, size_t count, int w);
    /* y[k] = the larger of it and x[k * step] */
    void (*largest)(int8_t *y, const int8_t *x, size_t step, size_t count);
} mica_int8_kernels;

#endif
