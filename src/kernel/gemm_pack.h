/* Packing of strided matrices into panels, for src/kernel/gemm.c. */
#ifndef MICA_SRC_KERNEL_GEMM_PACK_H
#define MICA_SRC_KERNEL_GEMM_PACK_H

#include "kernel/vec.h"

/* Vectors side by side in memory: each step of k is one short contiguous copy. A store that runs over the panel's
 * width is put right by that of the next step; the last step takes care. */
VF_INLINE void pack_step(float *panel, size_t width, const float *src, size_t count, bool last)
{
    for (size_t i = 0; i < width; i += VF_LANES) {
        size_t n = count > i ? count - i : 0;
        vf v = n >= VF_LANES ? vf_load(src + i) : vf_load_tail(src + i, n);
        if (!last || i + VF_LANES <= width)
            vf_store(panel + i, v);
        else
            vf_store_tail(panel + i, v, width - i);
    }
}

/* Steps of k are too far apart for the hardware to run ahead: where a vector is a line, what comes so many steps later
 * is asked for. */
#define PACK_AHEAD 16

static void pack_adjacent(float *panel, size_t width, const float *src, ptrdiff_t k_stride, size_t count,
                          size_t k)
{
    for (size_t p = 1; p < k; p++, src += k_stride, panel += width) {
        if (VF_LANES * sizeof(float) >= 64 && p + PACK_AHEAD < k) {
            __builtin_prefetch(src + PACK_AHEAD * k_stride);
            __builtin_prefetch(src + PACK_AHEAD * k_stride + count - 1);
        }
        pack_step(panel, width, src, count, false);
    }
    if (k > 0)
        pack_step(panel, width, src, count, true);
}

/* Any strides, from step `first` of k on. */
static void pack_strided(float *panel, size_t width, const float *src, ptrdiff_t vector_stride,
                         ptrdiff_t k_stride, size_t count, size_t first, size_t k)
{
    for (size_t p = first; p < k; p++) {
        const float *from = src + (ptrdiff_t)p * k_stride;
        float *to = panel + p * width;
        for (size_t i = 0; i < count; i++)
            to[i] = from[(ptrdiff_t)i * vector_stride];
        for (size_t i = count; i < width; i++)
            to[i] = 0.0f;
    }
}

/* Contiguous vectors (rows of a row-major A): squares of them are transposed in registers. Returns the steps
 * of k done. Where a vector is less than a line, those of the next panel are asked for meanwhile: each is too short
 * for the hardware to run ahead. Where it reads whole lines, asking only costs, and takes the cache from others.
 *
 * Where a panel is narrower than the last square, that square's stores run over into the next step, which is
 * then stored over it; so the steps go upwards, and the last ones are left to the caller. */
static size_t pack_transposed(float *panel, size_t width, const float *src, ptrdiff_t vector_stride,
                              size_t count, size_t k)
{
    bool runs_over = width % VF_LANES != 0;
    if (runs_over && width > VF_LANES)
        return 0;
    size_t p = 0;
    for (; p + VF_LANES + (runs_over ? 1 : 0) <= k; p += VF_LANES) {
        for (size_t i0 = 0; i0 < width; i0 += VF_LANES) {
            vf square[VF_LANES];
#pragma GCC unroll 16
            for (size_t i = 0; i < VF_LANES; i++) {
                square[i] = i0 + i < count ? vf_load(src + (ptrdiff_t)(i0 + i) * vector_stride + p)
                                           : vf_zero();
                if (VF_LANES * sizeof(float) < 64 && i0 + i < count)
                    __builtin_prefetch(src + (ptrdiff_t)(i0 + i + width) * vector_stride + p);
            }
            vf_transpose(square);
#pragma GCC unroll 16
            for (size_t i = 0; i < VF_LANES; i++)
                vf_store(panel + (p + i) * width + i0, square[i]);
        }
    }
    return p;
}

static void pack(float *panel, size_t width, const float *src, ptrdiff_t vector_stride, ptrdiff_t k_stride,
                 size_t count, size_t k)
{
    if (vector_stride == 1) {
        pack_adjacent(panel, width, src, k_stride, count, k);
        return;
    }
    size_t done = k_stride == 1 ? pack_transposed(panel, width, src, vector_stride, count, k) : 0;
    pack_strided(panel, width, src, vector_stride, k_stride, count, done, k);
}

#endif
