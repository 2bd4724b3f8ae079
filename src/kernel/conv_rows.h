/* Rows of pixels, copied with zeros where they reach over the borders of an image: for the convolution
 * kernels. */
#ifndef MICA_SRC_KERNEL_CONV_ROWS_H
#define MICA_SRC_KERNEL_CONV_ROWS_H

#include "kernel/conv_window.h"
#include "kernel/vec.h"

VF_INLINE size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Every second element: n of them, at most VF_LANES, a constant where it is that. */
VF_INLINE void copy_second(float *dst, const float *src, size_t n)
{
    vf even, odd;
    size_t read = 2 * n - 1, low = least(read, VF_LANES);
    vf_unzip(n == VF_LANES ? vf_load(src) : vf_load_tail(src, low), vf_load_tail(src + low, read - low),
             &even, &odd);
    if (n == VF_LANES)
        vf_store(dst, even);
    else
        vf_store_tail(dst, even, n);
}

__attribute__((unused)) static void copy_strided(float *dst, const float *src, ptrdiff_t stride, size_t n)
{
    size_t i = 0;
    if (stride == 2 && VF_LANES > 1) {
        for (; i + VF_LANES <= n; i += VF_LANES)
            copy_second(dst + i, src + 2 * i, VF_LANES);
        if (i < n && n >= VF_LANES) /* the last vector once more */
            copy_second(dst + n - VF_LANES, src + 2 * (n - VF_LANES), VF_LANES);
        else if (i < n && VF_LANES > 8) /* parts of vectors cost little */
            copy_second(dst, src, n);
        i = n >= VF_LANES || VF_LANES > 8 ? n : i;
    }
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(dst + i, vf_gather(src + (ptrdiff_t)i * stride, stride));
    for (; i < n; i++)
        dst[i] = src[(ptrdiff_t)i * stride];
}

VF_INLINE void copy(float *dst, const float *src, ptrdiff_t stride, size_t n)
{
    if (stride != 1) {
        copy_strided(dst, src, stride, n);
        return;
    }
    if (n < VF_LANES) {
        vf_store_tail(dst, vf_load_tail(src, n), n);
        return;
    }
    /* The last vector ends with the run and may lie over the one before it. */
    for (size_t i = 0; i + VF_LANES < n; i += VF_LANES)
        vf_store(dst + i, vf_load(src + i));
    vf_store(dst + n - VF_LANES, vf_load(src + n - VF_LANES));
}

VF_INLINE void zero(float *dst, size_t n)
{
    if (n < VF_LANES) {
        vf_store_tail(dst, vf_zero(), n);
        return;
    }
    for (size_t i = 0; i + VF_LANES < n; i += VF_LANES)
        vf_store(dst + i, vf_zero());
    vf_store(dst + n - VF_LANES, vf_zero());
}

/* Whether all of `count` positions from `at` on, `scale` apart, lie inside the image. */
VF_INLINE bool inside(const mica_conv_axis *axis, ptrdiff_t at, size_t count)
{
    return at >= 0 && at + ((ptrdiff_t)count - 1) * axis->scale < (ptrdiff_t)axis->image;
}

/* The part of a run that lies inside the image: positions low .. high - 1 of it. */
VF_INLINE size_t clip(const mica_conv_axis *axis, ptrdiff_t at, size_t count, size_t *high)
{
    ptrdiff_t size = (ptrdiff_t)axis->image, scale = axis->scale;
    if (scale == 1) { /* spares two divisions */
        *high = at >= size ? 0 : least(count, (size_t)(size - at));
        return least(at >= 0 ? 0 : (size_t)-at, *high);
    }
    size_t low = at >= 0 ? 0 : (size_t)((-at + scale - 1) / scale);
    *high = at >= size ? 0 : least(count, (size_t)((size - 1 - at) / scale) + 1);
    return least(low, *high);
}

/* A run that reaches over a border: zeros there. */
__attribute__((unused)) static void copy_clipped(float *dst, const float *row, ptrdiff_t stride,
                                                 const mica_conv_axis *axis, ptrdiff_t at, size_t count)
{
    size_t high, low = clip(axis, at, count, &high);
    zero(dst, count);
    if (low < high)
        copy(dst + low, row + (at + (ptrdiff_t)low * axis->scale) * stride, axis->scale * stride, high - low);
}

typedef struct position {
    ptrdiff_t row, column;
} position;

/* Copies the columns of one residue into a window: `run` of them of each row, from `at` on. */
__attribute__((unused)) static void stage_rows(float *stage, ptrdiff_t row_stride, size_t run,
                                               const mica_conv_patches *in, const float *plane, position at,
                                               size_t rows)
{
    size_t high, low = clip(&in->columns, at.column, run, &high);
    const float *from = plane + (at.column + (ptrdiff_t)low * in->columns.scale) * in->column_stride;
    ptrdiff_t step = in->columns.scale * in->column_stride;
    bool narrow = run >= VF_LANES && low <= VF_LANES &&
                  run - high <= VF_LANES; /* borders of one vector each */
    for (size_t r = 0; r < rows; r++, at.row++, stage += row_stride) {
        if (low >= high || at.row < 0 || at.row >= (ptrdiff_t)in->rows.image) {
            zero(stage, run);
            continue;
        }
        if (narrow) {
            vf_store(stage, vf_zero());
            vf_store(stage + run - VF_LANES, vf_zero());
        } else {
            zero(stage, low);
            zero(stage + high, run - high);
        }
        copy(stage + low, from + at.row * in->row_stride, step, high - low);
    }
}

#endif
