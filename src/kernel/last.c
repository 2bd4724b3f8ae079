/* Products of images that lie channels last; compiled once per instruction set.
 *
 * The matrix product's register tile with pixels for rows: an element of each pixel is broadcast, a row of the panel
 * is one or more vectors of output channels. The number of pixels and of vectors is a constant in each case, so that
 * nothing is computed in vain but the lanes of a last vector. */
#include "kernel/last.h"

#include <stdint.h>

#include "kernel/conv_rows.h"
#include "kernel/kernels.h"
#include "kernel/lines.h"

#if VF_REGISTERS >= 32 && VF_LANES >= 16
#define TILE_PIXELS  14
#define TILE_VECTORS 2
#elif VF_REGISTERS >= 32
#define TILE_PIXELS  8
#define TILE_VECTORS 3
#elif VF_LANES > 1
#define TILE_PIXELS  6
#define TILE_VECTORS 2
#else
#define TILE_PIXELS  4
#define TILE_VECTORS 2
#endif
#define WIDTH (TILE_VECTORS * VF_LANES)

enum { SECOND_CACHE = 2 };

/* Where a last vector is half empty, it is half of one. */
#if !defined(VF_HALVES)
typedef vf vh;
#define vh_load      vf_load
#define vh_fma       vf_fma
#define vh_low(v)    (v)
#define vf_of_low(v) (v)
#endif

typedef mica_last_product product;

/* A tile: pointers are at its first pixel, and its first channel. */
typedef struct place {
    const float *in, *panel, *bias;
    float *out;
    size_t last; /* lanes of its last vector */
    /* What is asked for while it is summed, so many bytes further in each step: a part of the next panel. An address:
     * behind the last panel there may be nothing. */
    uintptr_t ahead;
    size_t ahead_step;
} place;

typedef struct sums {
    vf at[TILE_PIXELS][TILE_VECTORS];
    vh half[TILE_PIXELS]; /* instead of the last vector of each, while they are summed */
} sums;

/* `vectors` and what the end is are constants where this is inlined. */
VF_INLINE void store(const product *b, const place *at, const sums *sum, size_t pixels, size_t vectors,
                     bool whole, bool accumulate, bool bounded)
{
    vf low = vf_set1(b->end.low), high = vf_set1(b->end.high);
#pragma GCC unroll 16
    for (size_t i = 0; i < pixels; i++) {
        float *to = at->out + (ptrdiff_t)i * b->out_stride;
#pragma GCC unroll 4
        for (size_t j = 0; j < vectors; j++, to += VF_LANES) {
            bool all = whole || j + 1 < vectors;
            vf v = sum->at[i][j];
            if (accumulate)
                v = vf_add(v, all ? vf_load(to) : vf_load_tail(to, at->last));
            if (bounded)
                v = vf_min(high, vf_max(low, v));
            if (all)
                vf_store(to, v);
            else
                vf_store_tail(to, v, at->last);
        }
    }
}

/* The sums, of `vectors` vectors, the last of which may be half of one. */
VF_INLINE void sum_tile(sums *sum, const product *b, const place *at, size_t pixels, size_t vectors,
                        bool half)
{
    size_t whole = half ? vectors - 1 : vectors;
    lines a = lines_at(at->in, b->pixel_stride, b->k_stride);
    const float *panel = at->panel;
    uintptr_t ahead = at->ahead;
#pragma GCC unroll 4
    for (size_t p = b->k; p > 0; p--, panel += vectors * VF_LANES, ahead += at->ahead_step) {
        lines_forget(&a);
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): nothing is read by it */
        __builtin_prefetch((const void *)ahead, 0, SECOND_CACHE);
        vf row[TILE_VECTORS];
#pragma GCC unroll 4
        for (size_t j = 0; j < whole; j++)
            row[j] = vf_load(panel + j * VF_LANES);
        vh last = half ? vh_load(panel + whole * VF_LANES) : vh_low(row[0]);
#pragma GCC unroll 16
        for (size_t i = 0; i < pixels; i++) {
            vf broadcast = vf_set1(lines_get(&a, i));
#pragma GCC unroll 4
            for (size_t j = 0; j < whole; j++)
                sum->at[i][j] = vf_fma(broadcast, row[j], sum->at[i][j]);
            if (half)
                sum->half[i] = vh_fma(vh_low(broadcast), last, sum->half[i]);
        }
        lines_step(&a);
    }
}

VF_UNROLLED void tile_of(const product *b, const place *at, size_t pixels, size_t vectors, bool half)
{
    sums sum;
#pragma GCC unroll 4
    for (size_t j = 0; j < vectors; j++) {
        size_t n = j + 1 < vectors ? VF_LANES : at->last;
        vf bias = b->bias != NULL ? vf_load_tail(at->bias + j * VF_LANES, n) : vf_zero();
#pragma GCC unroll 16
        for (size_t i = 0; i < pixels; i++)
            sum.at[i][j] = bias;
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < pixels; i++) /* sums take long enough for it to come */
        __builtin_prefetch(at->out + (ptrdiff_t)i * b->out_stride);
    if (half) {
#pragma GCC unroll 16
        for (size_t i = 0; i < pixels; i++)
            sum.half[i] = vh_low(sum.at[i][vectors - 1]);
    }
    sum_tile(&sum, b, at, pixels, vectors, half);
    if (half) {
#pragma GCC unroll 16
        for (size_t i = 0; i < pixels; i++)
            sum.at[i][vectors - 1] = vf_of_low(sum.half[i]);
    }
    if (at->last < VF_LANES || b->end.accumulate)
        store(b, at, &sum, pixels, vectors, false, b->end.accumulate, b->end.bounded);
    else if (b->end.bounded)
        store(b, at, &sum, pixels, vectors, true, false, true);
    else
        store(b, at, &sum, pixels, vectors, true, false, false);
}

#define TILE_CASE(n)                      \
    case n:                               \
        tile_of(b, at, n, vectors, half); \
        break;

VF_INLINE void tile_of_any(const product *b, const place *at, size_t pixels, size_t vectors, bool half)
{
    switch (pixels) {
        TILE_CASE(1)
        TILE_CASE(2)
        TILE_CASE(3)
#if TILE_PIXELS > 4
        TILE_CASE(4)
        TILE_CASE(5)
#endif
#if TILE_PIXELS > 6
        TILE_CASE(6)
        TILE_CASE(7)
#endif
#if TILE_PIXELS > 8
        TILE_CASE(8)
        TILE_CASE(9)
        TILE_CASE(10)
        TILE_CASE(11)
        TILE_CASE(12)
        TILE_CASE(13)
#endif
    default:
        tile_of(b, at, TILE_PIXELS, vectors, half);
    }
}

LINES_ALONE static void tile_1(const product *b, const place *at, size_t pixels)
{
    tile_of_any(b, at, pixels, 1, false);
}

LINES_ALONE static void tile_2(const product *b, const place *at, size_t pixels)
{
    tile_of_any(b, at, pixels, 2, false);
}

#if TILE_VECTORS > 2
LINES_ALONE static void tile_3(const product *b, const place *at, size_t pixels)
{
    tile_of_any(b, at, pixels, 3, false);
}
#endif

#if defined(VF_HALVES)
LINES_ALONE static void half_tile_1(const product *b, const place *at, size_t pixels)
{
    tile_of_any(b, at, pixels, 1, true);
}

LINES_ALONE static void half_tile_2(const product *b, const place *at, size_t pixels)
{
    tile_of_any(b, at, pixels, 2, true);
}
#endif

typedef void tile_fn(const product *b, const place *at, size_t pixels);

static tile_fn *tile_for(size_t vectors, size_t last)
{
#if defined(VF_HALVES)
    if (last <= VF_LANES / 2)
        return vectors == 1 ? half_tile_1 : half_tile_2;
#else
    (void)last;
#endif
#if TILE_VECTORS > 2
    if (vectors > 2)
        return tile_3;
#endif
    return vectors == 1 ? tile_1 : tile_2;
}

/* All pixels of one panel: tiles of about the same size, as sums of few wait for each other. While the panel is used
 * the next one, which may be in memory only, comes to the second cache, a part during each tile. */
static void panel_of(const product *b, place at, size_t vectors)
{
    if (b->pixels == 0)
        return;
    tile_fn *tile = tile_for(vectors, at.last);
    size_t tiles = (b->pixels + TILE_PIXELS - 1) / TILE_PIXELS;
    at.ahead = (uintptr_t)(at.panel + vectors * VF_LANES * b->k);
    at.ahead_step = vectors * VF_LANES * sizeof(float) / tiles;
    for (size_t left = b->pixels, n; left > 0; left -= n, tiles--) {
        n = (left + tiles - 1) / tiles;
        tile(b, &at, n);
        at.in += (ptrdiff_t)n * b->pixel_stride;
        at.out += (ptrdiff_t)n * b->out_stride;
        at.ahead += b->k * at.ahead_step;
    }
}

static void image(const product *b)
{
    for (size_t o = 0; o < b->m; o += WIDTH) {
        size_t channels = least(b->m - o, WIDTH), vectors = (channels + VF_LANES - 1) / VF_LANES;
        place at = {.in = b->in,
                    .panel = b->panels + o * b->k,
                    .bias = b->bias != NULL ? b->bias + o : NULL,
                    .out = b->out + o,
                    .last = channels - (vectors - 1) * VF_LANES};
        panel_of(b, at, vectors);
    }
}

/* ---- Patches ---- */

/* A row of taps of one pixel, from column `at` on. */
static void patch_row(float *dst, const mica_conv_patches *in, const float *row, ptrdiff_t at,
                      size_t channels)
{
    const mica_conv_axis *axis = &in->columns;
    bool dense = axis->step == 1 && in->column_stride == (ptrdiff_t)channels;
    if (dense && at >= 0 && at + (ptrdiff_t)axis->taps <= (ptrdiff_t)axis->image) {
        copy(dst, row + at * in->column_stride, 1, axis->taps * channels);
        return;
    }
    for (size_t u = 0; u < axis->taps; u++, at += axis->step, dst += channels) {
        if (at < 0 || at >= (ptrdiff_t)axis->image)
            zero(dst, channels);
        else
            copy(dst, row + at * in->column_stride, 1, channels);
    }
}

/* All taps of a pixel, of which a row is a vector at most: lanes beyond the image are not loaded. What a row's store
 * runs over is the next row's, or belongs to nobody. */
VF_INLINE void short_patch(float *dst, size_t stride, const mica_conv_patches *in, const float *plane,
                           ptrdiff_t row, ptrdiff_t at, size_t channels)
{
    const ptrdiff_t image = (ptrdiff_t)in->columns.image, taps = (ptrdiff_t)in->columns.taps;
    size_t low = at < 0 ? least((size_t)-at, in->columns.taps) : 0;
    size_t high = at + taps <= image ? in->columns.taps : at < image ? (size_t)(image - at) : 0;
    const vm inside = vm_and(vm_first(high * channels), vm_not(vm_first(low * channels)));
    const float *from = plane + row * in->row_stride + at * in->column_stride;
    size_t across = in->columns.taps * channels, left = stride;
    for (size_t t = 0; t < in->rows.taps; t++, row += in->rows.step, from += in->rows.step * in->row_stride) {
        bool there = row >= 0 && row < (ptrdiff_t)in->rows.image;
        vf v = there ? vf_load_where(from, inside) : vf_zero();
        if (left >= VF_LANES)
            vf_store(dst, v);
        else
            vf_store_tail(dst, v, across);
        dst += across;
        left -= across;
    }
}

static void patches(float *dst, size_t stride, const mica_conv_patches *in, size_t channels, size_t first,
                    size_t count)
{
    size_t j = first % in->columns.count, rows = first / in->columns.count;
    size_t i = rows % in->rows.count, image_number = rows / in->rows.count;
    size_t across = in->columns.taps * channels;
    bool is_short = VF_LANES > 1 && across <= VF_LANES && in->columns.step == 1 &&
                    in->column_stride == (ptrdiff_t)channels;
    for (size_t pixel = 0; pixel < count; pixel++, dst += stride) {
        const float *plane = in->data + (ptrdiff_t)image_number * in->image_stride;
        ptrdiff_t at = (ptrdiff_t)j * in->columns.scale + in->columns.base;
        ptrdiff_t row = (ptrdiff_t)i * in->rows.scale + in->rows.base;
        if (is_short)
            short_patch(dst, stride, in, plane, row, at, channels);
        for (size_t t = 0; !is_short && t < in->rows.taps; t++, row += in->rows.step) {
            if (row < 0 || row >= (ptrdiff_t)in->rows.image)
                zero(dst + t * across, across);
            else
                patch_row(dst + t * across, in, plane + row * in->row_stride, at, channels);
        }
        if (++j == in->columns.count) {
            j = 0;
            if (++i == in->rows.count) {
                i = 0;
                image_number++;
            }
        }
    }
}

const mica_last_kernels VF_SYMBOL(mica_last_kernels) = {
    .lanes = VF_LANES, .width = WIDTH, .tile = TILE_PIXELS, .image = image, .patches = patches};
