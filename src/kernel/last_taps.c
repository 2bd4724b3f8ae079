/* Depthwise convolutions of images that lie channels last; compiled once per instruction set.
 *
 * Some pixels of a row are summed at a time, a vector of channels of each. For each row of taps, what they meet is
 * loaded once, and goes to all pixels that it meets; rows and columns outside of the image are left out. Channels are
 * the innermost loop, so that what is read lies side by side. */
#include "kernel/last.h"

#include "kernel/conv_rows.h"
#include "kernel/kernels.h"

#define TAPS   5 /* the most, across, that have a loop of their own */
#define PIXELS 7 /* at a time: rows of 7, 14, 28, 56 and 112 are common */

typedef mica_last_row row_of;

/* Some pixels: what is the same for all channels. */
typedef struct group {
    const float *in; /* the first row of taps that lies in the image, where the first pixel's first tap is */
    ptrdiff_t row, step; /* from one row of taps to the next, from one pixel of the image to the next */
    const float *taps;   /* the first of these */
    size_t rows;         /* of taps */
    ptrdiff_t low, high; /* columns from there that lie in the image */
    float *out;
} group;

VF_INLINE vf load_some(const float *p, size_t n) { return n == VF_LANES ? vf_load(p) : vf_load_tail(p, n); }

VF_INLINE void end_sums(const row_of *r, float *out, const vf *sum, size_t pixels, size_t n)
{
    vf low = vf_set1(r->end.low), high = vf_set1(r->end.high);
#pragma GCC unroll 8
    for (size_t x = 0; x < pixels; x++, out += r->out_stride) {
        vf v = sum[x];
        if (r->end.accumulate)
            v = vf_add(v, load_some(out, n));
        if (r->end.bounded)
            v = vf_min(high, vf_max(low, v));
        if (n == VF_LANES)
            vf_store(out, v);
        else
            vf_store_tail(out, v, n);
    }
}

VF_INLINE void begin_sums(const row_of *r, vf *sum, size_t c, size_t pixels, size_t n)
{
    vf bias = r->bias != NULL ? load_some(r->bias + c, n) : vf_zero();
#pragma GCC unroll 8
    for (size_t x = 0; x < pixels; x++)
        sum[x] = bias;
}

/* n channels from c on, at most a vector. But for n and the edges, all are constants where this is inlined. */
VF_INLINE void sum_taps(const row_of *r, const group *g, size_t c, size_t n, size_t taps, size_t scale,
                        size_t pixels, bool inner)
{
    vf sum[PIXELS];
    begin_sums(r, sum, c, pixels, n);
    const float *in = g->in + c, *w = g->taps + c;
    for (size_t t = 0; t < g->rows; t++, in += g->row, w += taps * r->tap_stride) {
        vf tap[TAPS];
#pragma GCC unroll 5
        for (size_t u = 0; u < taps; u++)
            tap[u] = vf_load(w + u * r->tap_stride);
#pragma GCC unroll 20
        for (size_t at = 0; at < (pixels - 1) * scale + taps; at++) {
            if (!inner && ((ptrdiff_t)at < g->low || (ptrdiff_t)at >= g->high))
                continue;
            vf x = load_some(in + (ptrdiff_t)at * g->step, n);
#pragma GCC unroll 5
            for (size_t u = 0; u < taps; u++)
                if (at >= u && (at - u) % scale == 0 && (at - u) / scale < pixels)
                    sum[(at - u) / scale] = vf_fma(tap[u], x, sum[(at - u) / scale]);
        }
    }
    end_sums(r, g->out + c, sum, pixels, n);
}

VF_INLINE void all_channels(const row_of *r, const group *g, size_t taps, size_t scale, size_t pixels)
{
    size_t c = 0;
    if (pixels == PIXELS && g->low <= 0 && g->high >= (ptrdiff_t)((pixels - 1) * scale + taps))
        for (; c + VF_LANES <= r->channels; c += VF_LANES)
            sum_taps(r, g, c, VF_LANES, taps, scale, pixels, true);
    for (; c + VF_LANES <= r->channels; c += VF_LANES)
        sum_taps(r, g, c, VF_LANES, taps, scale, pixels, false);
    if (VF_LANES > 1 && c < r->channels)
        sum_taps(r, g, c, r->channels - c, taps, scale, pixels, false);
}

/* How many of the pixels that are left go next: there are loops for these only. */
static size_t next_pixels(size_t left)
{
    if (left == PIXELS || left >= PIXELS + 4)
        return PIXELS;
    return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

VF_INLINE void some_pixels(const row_of *r, const group *g, size_t pixels, size_t taps, size_t scale)
{
    if (pixels == PIXELS)
        all_channels(r, g, taps, scale, PIXELS);
    else if (pixels == 4)
        all_channels(r, g, taps, scale, 4);
    else if (pixels == 2)
        all_channels(r, g, taps, scale, 2);
    else
        all_channels(r, g, taps, scale, 1);
}

#define SHAPE(taps, scale)                                                                 \
    static void pixels_##taps##_by_##scale(const row_of *r, const group *g, size_t pixels) \
    {                                                                                      \
        some_pixels(r, g, pixels, taps, scale);                                            \
    }
SHAPE(3, 1)
SHAPE(3, 2)
SHAPE(5, 1)
SHAPE(5, 2)

/* One pixel, any taps: those of a row that lie in the image, `between` of what is read apart. */
static void any_pixel(const row_of *r, const group *g, size_t taps, ptrdiff_t between)
{
    for (size_t c = 0; c < r->channels; c += VF_LANES) {
        size_t n = least(r->channels - c, VF_LANES);
        vf sum;
        begin_sums(r, &sum, c, 1, n);
        const float *in = g->in + c, *w = g->taps + c;
        for (size_t t = 0; t < g->rows; t++, in += g->row, w += taps * r->tap_stride)
            for (ptrdiff_t u = g->low; u < g->high; u++)
                sum = vf_fma(vf_load(w + (size_t)u * r->tap_stride), load_some(in + u * between, n), sum);
        end_sums(r, g->out + c, &sum, 1, n);
    }
}

/* Taps of an axis that lie in the image, from position `at` on: begin .. end - 1. */
static size_t taps_inside(const mica_conv_axis *axis, ptrdiff_t at, size_t *end)
{
    size_t begin = axis->taps;
    *end = 0;
    for (size_t t = 0; t < axis->taps; t++, at += axis->step)
        if (at >= 0 && at < (ptrdiff_t)axis->image) {
            begin = least(begin, t);
            *end = t + 1;
        }
    return least(begin, *end);
}

/* The loop for these taps, or NULL. */
typedef void pixels_fn(const row_of *r, const group *g, size_t pixels);
static pixels_fn *loop_for(const mica_conv_axis *axis)
{
    if (axis->step != 1 || axis->scale > 2)
        return NULL;
    if (axis->taps == 3)
        return axis->scale == 1 ? pixels_3_by_1 : pixels_3_by_2;
    return axis->taps == 5 ? (axis->scale == 1 ? pixels_5_by_1 : pixels_5_by_2) : NULL;
}

static void row(const row_of *r)
{
    const mica_conv_patches *in = r->in;
    const mica_conv_axis *columns = &in->columns;
    ptrdiff_t at = (ptrdiff_t)r->i * in->rows.scale + in->rows.base;
    size_t end, begin = taps_inside(&in->rows, at, &end);
    group g = {.row = in->rows.step * in->row_stride,
               .step = in->column_stride,
               .taps = r->taps + begin * columns->taps * r->tap_stride,
               .rows = end - begin,
               .out = r->out};
    const float *from = g.rows == 0 ? in->data
                                    : in->data + (at + (ptrdiff_t)begin * in->rows.step) * in->row_stride;
    pixels_fn *pixels = loop_for(columns);
    for (size_t j = r->j, left = r->count, n; left > 0; left -= n, j += n) {
        ptrdiff_t column = (ptrdiff_t)j * columns->scale + columns->base;
        g.in = from + column * in->column_stride;
        if (pixels != NULL) {
            n = next_pixels(left);
            g.low = -column;
            g.high = (ptrdiff_t)columns->image - column;
            pixels(r, &g, n);
        } else {
            size_t high, low = taps_inside(columns, column, &high);
            n = 1;
            g.low = (ptrdiff_t)low;
            g.high = (ptrdiff_t)high;
            any_pixel(r, &g, columns->taps, columns->step * in->column_stride);
        }
        g.out += (ptrdiff_t)n * r->out_stride;
    }
}

const mica_last_taps_kernels VF_SYMBOL(mica_last_taps_kernels) = {.lanes = VF_LANES, .row = row};
