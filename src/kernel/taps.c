/* Direct sums over taps; compiled once per instruction set.
 *
 * Output pixels are computed in blocks whose window, all pixels that any tap touches, stays in the L1 cache. A
 * window inside the image is read in place, others are copied (conv_window.h). */
#include "kernel/conv_rows.h"
#include "kernel/kernels.h"

/* The most floats of a window, pixels of a row of a block, pixels of a block, and taps at a time. */
#define WINDOW 4096
#define PIXELS 128
#define BLOCK  2048
#define TAPS   16

/* A block of output pixels: rows i on, columns j on. */
typedef struct block {
    size_t i, rows, j, columns;
} block;

typedef struct window {
    const float *data;
    ptrdiff_t row_stride; /* from one image row to the next */
    size_t run;           /* columns of one residue */
} window;

/* The most rows that a block of so many columns can have; 0 if not one window row fits. */
static size_t rows_that_fit(const mica_conv_patches *in, size_t columns)
{
    size_t row = mica_conv_run(&in->columns, columns) * mica_conv_residues(&in->columns);
    size_t fit = WINDOW / row, first = (size_t)mica_conv_reach(&in->rows) + 1;
    if (fit < first)
        return 0;
    return least((fit - first) / (size_t)in->rows.scale + 1, BLOCK / columns);
}

static window open_window(const mica_conv_patches *in, const float *plane, const block *b, float *stage)
{
    window w = {.run = mica_conv_run(&in->columns, b->columns)};
    ptrdiff_t row = (ptrdiff_t)b->i * in->rows.scale + in->rows.base + mica_conv_lowest(&in->rows);
    ptrdiff_t column = (ptrdiff_t)b->j * in->columns.scale + in->columns.base +
                       mica_conv_lowest(&in->columns);
    size_t rows = mica_conv_span(&in->rows, b->rows), columns = mica_conv_span(&in->columns, b->columns);
    bool within = row >= 0 && row + (ptrdiff_t)rows <= (ptrdiff_t)in->rows.image && column >= 0 &&
                  column + (ptrdiff_t)columns <= (ptrdiff_t)in->columns.image;
    if (within && in->columns.scale * in->column_stride == 1) {
        w.data = plane + row * in->row_stride + column;
        w.row_stride = in->row_stride;
        return w;
    }
    w.data = stage;
    w.row_stride = (ptrdiff_t)(w.run * mica_conv_residues(&in->columns));
    for (size_t f = 0; f < mica_conv_residues(&in->columns); f++)
        stage_rows(stage + f * w.run, w.row_stride, w.run, in, plane, (position){row, column + (ptrdiff_t)f},
                   rows);
    return w;
}

static const float *tap_start(const window *w, const mica_conv_patches *in, size_t t, size_t u)
{
    return w->data + mica_conv_tap_offset(in, w->run, w->row_stride, t, u);
}

/* One tap of `in` alone: its window always fits. */
static mica_conv_patches single_tap(const mica_conv_patches *in, size_t t, size_t u)
{
    mica_conv_patches one = *in;
    one.rows.base += (ptrdiff_t)t * in->rows.step;
    one.columns.base += (ptrdiff_t)u * in->columns.step;
    one.rows.taps = one.columns.taps = 1;
    return one;
}

/* ---- Images ---- */

/* y[j] += sum over taps of weight * pixel[offset + j]. */
static void add_taps(float *y, const float *const *pixel, ptrdiff_t offset, const float *weight, size_t taps,
                     size_t n)
{
    size_t j = 0;
    for (; j + 4 * VF_LANES <= n; j += 4 * VF_LANES) {
        vf s0 = vf_load(y + j), s1 = vf_load(y + j + VF_LANES);
        vf s2 = vf_load(y + j + 2 * VF_LANES), s3 = vf_load(y + j + 3 * VF_LANES);
        for (size_t p = 0; p < taps; p++) {
            const float *x = pixel[p] + offset + j;
            vf w = vf_set1(weight[p]);
            s0 = vf_fma(w, vf_load(x), s0);
            s1 = vf_fma(w, vf_load(x + VF_LANES), s1);
            s2 = vf_fma(w, vf_load(x + 2 * VF_LANES), s2);
            s3 = vf_fma(w, vf_load(x + 3 * VF_LANES), s3);
        }
        vf_store(y + j, s0);
        vf_store(y + j + VF_LANES, s1);
        vf_store(y + j + 2 * VF_LANES, s2);
        vf_store(y + j + 3 * VF_LANES, s3);
    }
    for (; j + VF_LANES <= n; j += VF_LANES) {
        vf s = vf_load(y + j);
        for (size_t p = 0; p < taps; p++)
            s = vf_fma(vf_set1(weight[p]), vf_load(pixel[p] + offset + j), s);
        vf_store(y + j, s);
    }
    if (j < n) {
        vf s = vf_load_tail(y + j, n - j);
        for (size_t p = 0; p < taps; p++)
            s = vf_fma(vf_set1(weight[p]), vf_load_tail(pixel[p] + offset + j, n - j), s);
        vf_store_tail(y + j, s, n - j);
    }
}

/* A block += all taps of one channel, whose plane and weights are given. */
static void add_channel(float *y, ptrdiff_t y_stride, const block *b, const mica_conv_patches *in,
                        const float *plane, const mica_conv_taps *taps, const float *weights)
{
    float stage[WINDOW], weight[TAPS];
    const float *pixel[TAPS];
    window w = open_window(in, plane, b, stage);
    size_t all = in->rows.taps * in->columns.taps;
    for (size_t k0 = 0; k0 < all; k0 += TAPS) {
        size_t k = least(all - k0, TAPS);
        for (size_t p = 0; p < k; p++) {
            size_t t = (k0 + p) / in->columns.taps, u = (k0 + p) % in->columns.taps;
            pixel[p] = tap_start(&w, in, t, u);
            weight[p] = weights[(ptrdiff_t)t * taps->row_stride + (ptrdiff_t)u * taps->column_stride];
        }
        for (size_t i = 0; i < b->rows; i++)
            add_taps(y + (ptrdiff_t)i * y_stride, pixel, (ptrdiff_t)i * in->rows.scale * w.row_stride, weight,
                     k, b->columns);
    }
}

/* A block += all taps of all channels. */
static void add_channels(float *y, ptrdiff_t y_stride, const block *b, const mica_conv_patches *in,
                         const mica_conv_taps *taps, bool whole)
{
    for (size_t c = 0; c < taps->channels; c++) {
        const float *plane = in->data + (ptrdiff_t)c * in->channel_stride;
        const float *weights = taps->data + (ptrdiff_t)c * taps->channel_stride;
        if (whole) {
            add_channel(y, y_stride, b, in, plane, taps, weights);
            continue;
        }
        for (size_t t = 0; t < in->rows.taps; t++)
            for (size_t u = 0; u < in->columns.taps; u++) {
                mica_conv_patches one = single_tap(in, t, u);
                add_channel(y, y_stride, b, &one, plane, taps,
                            weights + (ptrdiff_t)t * taps->row_stride + (ptrdiff_t)u * taps->column_stride);
            }
    }
}

/* y = bias, or bias + what is there. */
static void begin_row(float *y, const float *place, ptrdiff_t stride, size_t n, float bias, bool accumulate)
{
    if (accumulate && y != place)
        copy_strided(y, place, stride, n);
    if (accumulate && bias == 0.0f)
        return;
    const vf b = vf_set1(bias);
    size_t j = 0;
    for (; j + VF_LANES <= n; j += VF_LANES)
        vf_store(y + j, accumulate ? vf_add(vf_load(y + j), b) : b);
    if (j < n)
        vf_store_tail(y + j, accumulate ? vf_add(vf_load_tail(y + j, n - j), b) : b, n - j);
}

static void image_block(const mica_conv_planes *out, const mica_conv_patches *in, const mica_conv_taps *taps,
                        const block *b, bool whole, float bias, bool accumulate)
{
    float sums[BLOCK];
    float *place = out->data + (ptrdiff_t)b->i * out->row_stride + (ptrdiff_t)b->j * out->column_stride;
    bool direct = out->column_stride == 1;
    float *y = direct ? place : sums;
    ptrdiff_t y_stride = direct ? out->row_stride : (ptrdiff_t)b->columns;
    for (size_t i = 0; i < b->rows; i++)
        begin_row(y + (ptrdiff_t)i * y_stride, place + (ptrdiff_t)i * out->row_stride, out->column_stride,
                  b->columns, bias, accumulate);
    add_channels(y, y_stride, b, in, taps, whole);
    for (size_t i = 0; i < b->rows && !direct; i++)
        for (size_t j = 0; j < b->columns; j++)
            place[(ptrdiff_t)i * out->row_stride + (ptrdiff_t)j * out->column_stride] = y[i * b->columns + j];
}

static void image(const mica_conv_planes *out, const mica_conv_patches *in, const mica_conv_taps *taps,
                  size_t first, size_t count, float bias, bool accumulate)
{
    for (block b = {.j = 0}; b.j < in->columns.count; b.j += b.columns) {
        b.columns = least(in->columns.count - b.j, PIXELS);
        size_t fit = rows_that_fit(in, b.columns);
        for (b.i = first; b.i < first + count; b.i += b.rows) {
            b.rows = least(first + count - b.i, fit > 0 ? fit : 1);
            image_block(out, in, taps, &b, fit > 0, bias, accumulate);
        }
    }
}

/* ---- Gradients of taps ---- */

/* Taps whose sums stay in registers: all of a three by three kernel. */
#define DOT_TAPS 9

/* sum[p] += dy[j] * pixel[p][offset + j], lane by lane, for a constant number of taps. */
VF_INLINE void dot_few(vf *sum, const float *dy, const float *const *pixel, ptrdiff_t offset, size_t taps,
                       size_t n)
{
    vf s[DOT_TAPS];
    for (size_t p = 0; p < taps; p++)
        s[p] = sum[p];
    size_t j = 0;
    for (; j + VF_LANES <= n; j += VF_LANES) {
        vf y = vf_load(dy + j);
        for (size_t p = 0; p < taps; p++)
            s[p] = vf_fma(y, vf_load(pixel[p] + offset + j), s[p]);
    }
    if (j < n) {
        vf y = vf_load_tail(dy + j, n - j);
        for (size_t p = 0; p < taps; p++)
            s[p] = vf_fma(y, vf_load_tail(pixel[p] + offset + j, n - j), s[p]);
    }
    for (size_t p = 0; p < taps; p++)
        sum[p] = s[p];
}

static void dot_taps(vf *sum, const float *dy, const float *const *pixel, ptrdiff_t offset, size_t taps,
                     size_t n)
{
    size_t p = 0;
    for (; p + DOT_TAPS <= taps; p += DOT_TAPS)
        dot_few(sum + p, dy, pixel + p, offset, DOT_TAPS, n);
    for (; p + 4 <= taps; p += 4)
        dot_few(sum + p, dy, pixel + p, offset, 4, n);
    for (; p + 2 <= taps; p += 2)
        dot_few(sum + p, dy, pixel + p, offset, 2, n);
    if (p < taps)
        dot_few(sum + p, dy, pixel + p, offset, 1, n);
}

/* sum[] += one block of dy against taps k0 .. k0 + k - 1. */
static void dot_block(vf *sum, const mica_conv_patches *in, const float *plane, const float *dy,
                      const mica_conv_planes *strides, const block *b, size_t k0, size_t k)
{
    float stage[WINDOW], row[PIXELS];
    const float *pixel[TAPS];
    window w = open_window(in, plane, b, stage);
    for (size_t p = 0; p < k; p++)
        pixel[p] = tap_start(&w, in, (k0 + p) / in->columns.taps, (k0 + p) % in->columns.taps);
    for (size_t i = 0; i < b->rows; i++) {
        const float *y = dy + (ptrdiff_t)(b->i + i) * strides->row_stride +
                         (ptrdiff_t)b->j * strides->column_stride;
        if (strides->column_stride != 1) {
            copy_strided(row, y, strides->column_stride, b->columns);
            y = row;
        }
        dot_taps(sum, y, pixel, (ptrdiff_t)i * in->rows.scale * w.row_stride, k, b->columns);
    }
}

/* Taps k0 .. k0 + k - 1 over all images. */
static void dot_images(vf *sum, const mica_conv_patches *in, const mica_conv_planes *dy, size_t images,
                       size_t k0, size_t k)
{
    for (size_t n = 0; n < images; n++) {
        const float *plane = in->data + (ptrdiff_t)n * in->image_stride;
        const float *y = dy->data + (ptrdiff_t)n * dy->image_stride;
        for (block b = {.j = 0}; b.j < in->columns.count; b.j += b.columns) {
            b.columns = least(in->columns.count - b.j, PIXELS);
            size_t fit = rows_that_fit(in, b.columns);
            for (b.i = 0; b.i < in->rows.count; b.i += b.rows) {
                b.rows = least(in->rows.count - b.i, fit > 0 ? fit : 1);
                dot_block(sum, in, plane, y, dy, &b, k0, k);
            }
        }
    }
}

static void gradient(const mica_conv_taps *taps, const mica_conv_patches *in, const mica_conv_planes *dy,
                     size_t images, bool accumulate)
{
    size_t all = in->rows.taps * in->columns.taps;
    bool whole = rows_that_fit(in, least(in->columns.count, PIXELS)) > 0;
    for (size_t k0 = 0, k; k0 < all; k0 += k) {
        k = whole ? least(all - k0, TAPS) : 1;
        vf sum[TAPS];
        for (size_t p = 0; p < TAPS; p++)
            sum[p] = vf_zero();
        if (whole) {
            dot_images(sum, in, dy, images, k0, k);
        } else {
            mica_conv_patches one = single_tap(in, k0 / in->columns.taps, k0 % in->columns.taps);
            dot_images(sum, &one, dy, images, 0, 1);
        }
        for (size_t p = 0; p < k; p++) {
            float *place = taps->data + (ptrdiff_t)((k0 + p) / in->columns.taps) * taps->row_stride +
                           (ptrdiff_t)((k0 + p) % in->columns.taps) * taps->column_stride;
            *place = accumulate ? *place + vf_sum(sum[p]) : vf_sum(sum[p]);
        }
    }
}

const mica_taps_kernels VF_SYMBOL(mica_taps_kernels) = {.image = image, .gradient = gradient};

MICA_KERNEL_SYMBOL(taps, image, image)
MICA_KERNEL_SYMBOL(taps, gradient, gradient)
