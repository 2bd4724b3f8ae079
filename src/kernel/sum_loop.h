/* Sums over contiguous runs, accurate for any length.
 *
 * SUM_WAYS vectors add up chunks of at most SUM_STEPS terms per lane; the chunks' sums are added in double.
 * The error is thus at most (SUM_STEPS + 8) half-ulps of the sum of magnitudes, however long the run. */
#ifndef MICA_SRC_KERNEL_SUM_LOOP_H
#define MICA_SRC_KERNEL_SUM_LOOP_H

#include "kernel/vec.h"

#define SUM_WAYS  4
#define SUM_STEPS 32
#define SUM_CHUNK ((size_t)VF_LANES * SUM_WAYS * SUM_STEPS)

/* A term from an element of a, one of b and the caller's k (in all lanes). */
typedef vf sum_term(vf a, vf b, vf k);

VF_INLINE float sum_chunk(const float *a, const float *b, size_t n, vf k, sum_term *f)
{
    vf s[SUM_WAYS];
    for (int w = 0; w < SUM_WAYS; w++)
        s[w] = vf_zero();
    size_t i = 0;
    for (; i + SUM_WAYS * VF_LANES <= n; i += SUM_WAYS * VF_LANES)
        for (size_t w = 0; w < SUM_WAYS; w++)
            s[w] = vf_add(s[w], f(vf_load(a + i + w * VF_LANES), vf_load(b + i + w * VF_LANES), k));
    for (; i + VF_LANES <= n; i += VF_LANES)
        s[0] = vf_add(s[0], f(vf_load(a + i), vf_load(b + i), k));
    if (i < n) {
        vf term = f(vf_load_tail(a + i, n - i), vf_load_tail(b + i, n - i), k);
        s[1] = vf_add(s[1], vf_select(vm_first(n - i), term, vf_zero()));
    }
    return vf_sum(vf_add(vf_add(s[0], s[1]), vf_add(s[2], s[3])));
}

/* The sum of f(a[i], b[i], k); `f` is a constant, so it is inlined. */
VF_INLINE double sum_run(const float *a, const float *b, size_t n, float k, sum_term *f)
{
    double total = 0.0;
    for (size_t i = 0; i < n; i += SUM_CHUNK) {
        size_t chunk = n - i < SUM_CHUNK ? n - i : SUM_CHUNK;
        total += (double)sum_chunk(a + i, b + i, chunk, vf_set1(k), f);
    }
    return total;
}

VF_INLINE vf term_value(vf a, vf b, vf k) { return (void)b, (void)k, a; }
VF_INLINE vf term_abs(vf a, vf b, vf k) { return (void)b, (void)k, vf_abs(a); }
VF_INLINE vf term_square(vf a, vf b, vf k) { return (void)b, (void)k, vf_mul(a, a); }
VF_INLINE vf term_product(vf a, vf b, vf k) { return (void)k, vf_mul(a, b); }
VF_INLINE vf term_deviation(vf a, vf b, vf k) { return (void)b, vf_sub(a, k); }
VF_INLINE vf term_square_deviation(vf a, vf b, vf k)
{
    (void)b;
    vf d = vf_sub(a, k);
    return vf_mul(d, d);
}

#endif
