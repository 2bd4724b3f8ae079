/* Shared by softmax and cross-entropy: the maximum of a row, and the sum of exponentials. */
#ifndef MICA_SRC_KERNEL_SOFTMAX_LOOP_H
#define MICA_SRC_KERNEL_SOFTMAX_LOOP_H

#include "kernel/sum_loop.h"
#include "kernel/vmath.h"

/* A NaN may be lost here; it shows again in the sum of exponentials. */
static float line_max(const float *x, size_t n)
{
    vf m[4];
    for (int w = 0; w < 4; w++)
        m[w] = vf_set1(-INFINITY);
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES)
        for (size_t w = 0; w < 4; w++)
            m[w] = vf_max(m[w], vf_load(x + i + w * VF_LANES));
    for (; i + VF_LANES <= n; i += VF_LANES)
        m[0] = vf_max(m[0], vf_load(x + i));
    if (i < n)
        m[1] = vf_select(vm_first(n - i), vf_max(m[1], vf_load_tail(x + i, n - i)), m[1]);
    return vf_hmax(vf_max(vf_max(m[0], m[1]), vf_max(m[2], m[3])));
}

/* The sum of e^(x - max) of a chunk; dst becomes the terms, unless it is NULL. */
VF_INLINE float exp_chunk(float *dst, const float *x, size_t n, vf max)
{
    vf sum = vf_zero(), other = vf_zero();
    size_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        vf e = vf_exp_down(vf_sub(vf_load(x + i), max));
        vf f = vf_exp_down(vf_sub(vf_load(x + i + VF_LANES), max));
        if (dst != NULL) {
            vf_store(dst + i, e);
            vf_store(dst + i + VF_LANES, f);
        }
        sum = vf_add(sum, e);
        other = vf_add(other, f);
    }
    for (; i < n; i += VF_LANES) {
        size_t lanes = n - i < VF_LANES ? n - i : VF_LANES;
        vf e = vf_exp_down(vf_sub(vf_load_tail(x + i, lanes), max));
        if (dst != NULL)
            vf_store_tail(dst + i, e, lanes);
        sum = vf_add(sum, vf_select(vm_first(lanes), e, vf_zero()));
    }
    return vf_sum(vf_add(sum, other));
}

/* The sum of e^(x - max), made in chunks so that it is accurate for any length. */
VF_INLINE double exp_line(float *dst, const float *x, size_t n, float max)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i += SUM_CHUNK)
        sum += (double)exp_chunk(dst != NULL ? dst + i : NULL, x + i, n - i < SUM_CHUNK ? n - i : SUM_CHUNK,
                                 vf_set1(max));
    return sum;
}

static float log_of(float x)
{
    float lane[VF_LANES];
    vf_store(lane, vf_log(vf_set1(x)));
    return lane[0];
}

#endif
