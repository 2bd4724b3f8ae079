/* Direct sums over taps where the library is built small: no windows and no stage, so that they take next to no stack
 * and code. Pixels whose taps all lie within the image go four at a time; those at its edges one by one. */
#ifndef MICA_SRC_KERNEL_TAPS_SMALL_H
#define MICA_SRC_KERNEL_TAPS_SMALL_H

#include "kernel/conv.h"
#include "kernel/vec.h"

/* Output positions `begin` to `end`. */
typedef struct range {
    ptrdiff_t begin, end;
} range;

/* The positions at which a tap meets a pixel. */
static range range_of_tap(const mica_conv_axis *axis, size_t tap)
{
    ptrdiff_t at = axis->base + (ptrdiff_t)tap * axis->step, image = (ptrdiff_t)axis->image;
    range r = {at < 0 ? (-at + axis->scale - 1) / axis->scale : 0,
               at < image ? (image - at + axis->scale - 1) / axis->scale : 0};
    if (r.end > (ptrdiff_t)axis->count)
        r.end = (ptrdiff_t)axis->count;
    return r;
}

/* The positions at which all taps do. */
static range range_of_all(const mica_conv_axis *axis)
{
    range a = range_of_tap(axis, 0), b = range_of_tap(axis, axis->taps - 1);
    return (range){a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

/* ---- Images ---- */

/* Four pixels side by side, or one above the other, that the same taps meet: those of row t that lie within the image,
 * in columns `taps_of`. */
typedef struct four {
    ptrdiff_t i, j;  /* the first of them */
    ptrdiff_t pixel; /* from one to the next, in the image that is read */
    range taps_of;
} four;

/* `near`: pixels and taps lie one behind the other, and there are three of these. */
VF_INLINE void sum_four(float *sum, const mica_conv_patches *in, const mica_conv_taps *taps, const four *f,
                        bool near)
{
    ptrdiff_t first = f->i * in->rows.scale + in->rows.base, pixel = near ? 1 : f->pixel;
    ptrdiff_t column = f->j * in->columns.scale + in->columns.base + f->taps_of.begin * in->columns.step;
    ptrdiff_t count = near ? 3 : f->taps_of.end - f->taps_of.begin;
    ptrdiff_t x_step = near ? 1 : in->columns.step * in->column_stride,
              w_step = near ? 1 : taps->column_stride;
    const float *plane = in->data + column * in->column_stride;
    const float *weights = taps->data + f->taps_of.begin * taps->column_stride;
    float s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3];
    for (size_t c = 0; c < taps->channels; c++) {
        ptrdiff_t row = first;
        const float *from = weights;
        for (size_t t = 0; t < in->rows.taps; t++, row += in->rows.step, from += taps->row_stride) {
            if ((size_t)row >= in->rows.image)
                continue;
            const float *x = plane + row * in->row_stride, *w = from;
#pragma GCC unroll 3
            for (ptrdiff_t u = 0; u < count; u++, x += x_step, w += w_step) {
                float k = *w;
                s0 += k * x[0];
                s1 += k * x[pixel];
                s2 += k * x[2 * pixel];
                s3 += k * x[3 * pixel];
            }
        }
        plane += in->channel_stride;
        weights += taps->channel_stride;
    }
    sum[0] = s0;
    sum[1] = s1;
    sum[2] = s2;
    sum[3] = s3;
}

static void four_pixels(float *sum, const mica_conv_patches *in, const mica_conv_taps *taps, const four *f)
{
    bool near = f->pixel == 1 && in->columns.step * in->column_stride == 1 && taps->column_stride == 1 &&
                f->taps_of.end - f->taps_of.begin == 3;
    if (near)
        sum_four(sum, in, taps, f, true);
    else
        sum_four(sum, in, taps, f, false);
}

static float one_pixel(float sum, const mica_conv_patches *in, const mica_conv_taps *taps, const four *f)
{
    ptrdiff_t first = f->i * in->rows.scale + in->rows.base;
    ptrdiff_t column = f->j * in->columns.scale + in->columns.base + f->taps_of.begin * in->columns.step;
    ptrdiff_t x_step = in->columns.step * in->column_stride;
    for (size_t c = 0; c < taps->channels; c++)
        for (size_t t = 0; t < in->rows.taps; t++) {
            ptrdiff_t row = first + (ptrdiff_t)t * in->rows.step;
            if ((size_t)row >= in->rows.image)
                continue;
            const float *x = in->data + (ptrdiff_t)c * in->channel_stride + row * in->row_stride +
                             column * in->column_stride;
            const float *w = taps->data + (ptrdiff_t)c * taps->channel_stride +
                             (ptrdiff_t)t * taps->row_stride + f->taps_of.begin * taps->column_stride;
            for (ptrdiff_t u = f->taps_of.begin; u < f->taps_of.end;
                 u++, x += x_step, w += taps->column_stride)
                sum += *w * *x;
        }
    return sum;
}

/* The taps that meet pixels of column j: one behind the other, as all of them step the same way. */
static range taps_of_column(const mica_conv_axis *axis, ptrdiff_t j)
{
    ptrdiff_t at = j * axis->scale + axis->base;
    range r = {0, (ptrdiff_t)axis->taps};
    while (r.begin < r.end && (size_t)(at + r.begin * axis->step) >= axis->image)
        r.begin++;
    while (r.begin < r.end && (size_t)(at + (r.end - 1) * axis->step) >= axis->image)
        r.end--;
    return r;
}

/* What is there to begin with, and where sums go. */
typedef struct target {
    const mica_conv_planes *out;
    float bias;
    bool accumulate;
} target;

/* `count` pixels, four or one, from f on; `next` from one to the next in the output. */
static void write_pixels(const target *to, const mica_conv_patches *in, const mica_conv_taps *taps,
                         const four *f, ptrdiff_t count, ptrdiff_t next)
{
    float *y = to->out->data + f->i * to->out->row_stride + f->j * to->out->column_stride;
    float sum[4] = {to->bias, to->bias, to->bias, to->bias};
    for (ptrdiff_t k = 0; k < count && to->accumulate; k++)
        sum[k] += y[k * next];
    if (count == 4)
        four_pixels(sum, in, taps, f);
    else
        sum[0] = one_pixel(sum[0], in, taps, f);
    for (ptrdiff_t k = 0; k < count; k++)
        y[k * next] = sum[k];
}

/* Where four pixels begin that have number `at` among them and lie within a range; -1: there are none. The last four may
 * lie over those before, which are then made twice; where sums are added to what is there they must not. */
static ptrdiff_t four_with(const target *to, ptrdiff_t at, range within)
{
    if (at < within.begin || at >= within.end || within.end - within.begin < 4)
        return -1;
    return at + 4 <= within.end ? at : to->accumulate ? -1 : within.end - 4;
}

static void image(const mica_conv_planes *out, const mica_conv_patches *in, const mica_conv_taps *taps,
                  size_t first, size_t count, float bias, bool accumulate)
{
    const target to = {out, bias, accumulate};
    range across = range_of_all(&in->columns), down = range_of_all(&in->rows);
    range rows = {(ptrdiff_t)first, (ptrdiff_t)(first + count)}, all = {0, (ptrdiff_t)in->columns.taps};
    down.begin = down.begin > rows.begin ? down.begin : rows.begin;
    down.end = down.end < rows.end ? down.end : rows.end;
    if (across.end - across.begin < 4) /* then all columns go downwards */
        across.end = across.begin;
    for (ptrdiff_t j = 0, done; j < (ptrdiff_t)in->columns.count; j = done) {
        ptrdiff_t at = four_with(&to, j, across);
        done = at >= 0 ? at + 4 : j + 1;
        if (at >= 0) {
            four f = {.j = at, .pixel = in->columns.scale * in->column_stride, .taps_of = all};
            for (f.i = rows.begin; f.i < rows.end; f.i++)
                write_pixels(&to, in, taps, &f, 4, out->column_stride);
            continue;
        }
        four f = {
            .j = j, .pixel = in->rows.scale * in->row_stride, .taps_of = taps_of_column(&in->columns, j)};
        for (ptrdiff_t i = rows.begin; i < rows.end;) {
            ptrdiff_t above = four_with(&to, i, down), some = above >= 0 ? 4 : 1;
            f.i = above >= 0 ? above : i;
            write_pixels(&to, in, taps, &f, some, out->row_stride);
            i = f.i + some;
        }
    }
}

/* ---- Gradients of taps ---- */

/* The sum of n products. */
static float dot_run(const float *y, ptrdiff_t y_step, const float *x, ptrdiff_t x_step, ptrdiff_t n)
{
    float even = 0.0f, odd = 0.0f;
    if (y_step == 1 && x_step == 1)
        for (; n >= 4; n -= 4, y += 4, x += 4) {
            even += y[0] * x[0];
            odd += y[1] * x[1];
            even += y[2] * x[2];
            odd += y[3] * x[3];
        }
    for (; n > 0; n--, y += y_step, x += x_step)
        even += *y * *x;
    return even + odd;
}

static void gradient(const mica_conv_taps *taps, const mica_conv_patches *in, const mica_conv_planes *dy,
                     size_t images, bool accumulate)
{
    for (size_t t = 0; t < in->rows.taps; t++)
        for (size_t u = 0; u < in->columns.taps; u++) {
            range rows = range_of_tap(&in->rows, t), columns = range_of_tap(&in->columns, u);
            ptrdiff_t row = in->rows.base + (ptrdiff_t)t * in->rows.step,
                      column = in->columns.base + (ptrdiff_t)u * in->columns.step +
                               columns.begin * in->columns.scale;
            float sum = 0.0f;
            for (size_t n = 0; n < images; n++)
                for (ptrdiff_t i = rows.begin; i < rows.end; i++)
                    sum += dot_run(dy->data + (ptrdiff_t)n * dy->image_stride + i * dy->row_stride +
                                       columns.begin * dy->column_stride,
                                   dy->column_stride,
                                   in->data + (ptrdiff_t)n * in->image_stride +
                                       (i * in->rows.scale + row) * in->row_stride +
                                       column * in->column_stride,
                                   in->columns.scale * in->column_stride, columns.end - columns.begin);
            float *place = taps->data + (ptrdiff_t)t * taps->row_stride + (ptrdiff_t)u * taps->column_stride;
            *place = accumulate ? *place + sum : sum;
        }
}

#endif
