/* Whole vectors of long runs, which go through memory in order while little is done to them.
 *
 * Where a vector is as long as a cache line, they come and go in halves: a run is foreseen by its accesses, and those
 * by whole lines are too few. Where there is more to do than to wait for memory, this would only take longer. What is
 * written elsewhere than where it was read from goes in whole vectors (map_loop.h). */
#ifndef MICA_SRC_KERNEL_VEC_RUN_H
#define MICA_SRC_KERNEL_VEC_RUN_H

#include "kernel/vec.h"

#if defined(VF_HALVES)
VF_INLINE vf run_load(const float *p)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(p)), _mm256_loadu_ps(p + 8), 1);
}
VF_INLINE void run_store(float *p, vf v)
{
    _mm256_storeu_ps(p, _mm512_castps512_ps256(v));
    _mm256_storeu_ps(p + 8, _mm512_extractf32x8_ps(v, 1));
}
/* Up to half a vector by half a load: what a store of half a vector wrote is not passed on to a longer one. */
VF_INLINE vf run_load_tail(const float *p, size_t n)
{
    if (n > VF_LANES / 2)
        return vf_load_tail(p, n);
    return _mm512_zextps256_ps512(n == VF_LANES / 2 ? _mm256_loadu_ps(p)
                                                    : _mm256_maskz_loadu_ps((__mmask8)vm_first(n), p));
}
#else
VF_INLINE vf run_load(const float *p) { return vf_load(p); }
VF_INLINE vf run_load_tail(const float *p, size_t n) { return vf_load_tail(p, n); }
VF_INLINE void run_store(float *p, vf v) { vf_store(p, v); }
#endif

#endif
