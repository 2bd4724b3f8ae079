/* Vectors: the thin layer that every kernel is written on.
 *
 * A kernel's source is compiled once per instruction set; the backend that the compiler's flags select gives
 * the same names a different width. A body may ask for VF_LANES or another capability below, never for a set
 * by name.
 *
 *   vf  VF_LANES floats      vi  VF_LANES int32_t / uint32_t      vm  VF_LANES booleans
 *
 *   vf_load(p) vf_store(p, v)                   unaligned
 *   vf_load_tail(p, n)                          the first n of VF_LANES, 0 <= n <= VF_LANES; other lanes load
 *   vf_store_tail(p, v, n)                      as 0, and their memory is neither read nor written
 *   vf_load_where(p, m)                         the lanes of m; others load as 0, and their memory is not read
 *   vf_stream(p, v)                             store past the cache where the set can; p aligned to
 *   vf_stream_end()                             VF_LANES * 4; vf_stream_end after the last vf_stream
 *   vf_gather(p, s) vf_scatter(p, s, v)         p[0], p[s], p[2s], ...  (s in elements, may be negative)
 *   vf_lookup(table, i)                         table[i % 32] of 32 floats, by lanes of i, where VF_LOOKUP is defined
 *   vf_unzip(a, b, &even, &odd)                 the even and odd elements of the 2 * VF_LANES floats a, b
 *   vf_zip(even, odd, &a, &b)                   the inverse
 *   vf_pairs(a, b, &even, &odd)                 like vf_unzip, but with lanes in an order specific to the set, where
 *   vf_in_order(v)                              that is cheaper; in_order restores the order
 *   vf_set1(x) vf_zero()
 *   vf_keep(v)                                  v, forced into a register: it is not loaded again
 *   vf_add vf_sub vf_mul vf_div vf_sqrt         IEEE
 *   vf_fma(a, b, c)  a*b + c                    fused where VF_HAS_FMA, else two roundings
 *   vf_fnma(a, b, c) c - a*b
 *   vf_two_product(a, b, &low)                  returns a*b rounded; low is the exact remainder, on every
 *                                               set, as long as neither overflows nor underflows
 *   vf_min(a, b) vf_max(a, b)                   fast; a NaN in b passes through, one in a only may not
 *   vf_min_nan(a, b) vf_max_nan(a, b)           a NaN in either passes through
 *   vf_abs vf_neg vf_copysign(x, sign)
 *   vf_round vf_floor vf_ceil vf_trunc          vf_round: to nearest, ties to even
 *   vf_lt vf_le vf_eq vf_ne vf_ge vf_gt         -> vm; ordered, false for NaN (vf_ne: true for NaN)
 *   vf_isnan(a)                                 -> vm
 *   vm_and vm_or vm_not, vm_any(m) vm_all(m)    -> vm; -> bool
 *   vm_first(n)                                 lanes 0 to n - 1
 *   vm_store_bytes(p, m)                        m[4] as 4 * VF_LANES bytes, 1 or 0
 *   vf_select(m, a, b)                          m ? a : b
 *   vf_sum(v) vf_hmin(v) vf_hmax(v)             across lanes, in a fixed order (the upper half folded upon
 *                                               the lower until one lane is left); NaN passes
 *
 *   vf_transpose(rows)                          rows[VF_LANES], as a square matrix, in place
 *   vf_sums(rows)                               lane i: vf_sum(rows[i]), to the last bit, for rows[VF_LANES]
 *
 *   vh                                          half of a vector, of half the work, where VF_HALVES is defined:
 *   vh_load(p) vh_store(p, v) vh_set1(x)        as above, for VF_LANES / 2 floats
 *   vh_mul(a, b) vh_fma(a, b, c) vh_sums(v)     as above
 *   vh_low(v) -> vh, vf_of_low(v) -> vf         the lower half; other lanes are unspecified
 *
 *   vi_load vi_store vi_load_tail vi_store_tail on int32_t *
 *   vi_set1 vi_iota()                           iota: 0, 1, 2, ...
 *   vi_add vi_sub vi_mul vi_and vi_or vi_xor    wrapping; vi_mul: the low half
 *   vi_shl(a, k) vi_shr(a, k) vi_sar(a, k)      k a constant, 1 to 31; logical and arithmetic
 *   vi_mulhi_u(a, b)                            high half of the unsigned product
 *   vi_mulhi vi_min vi_max                      signed; not for sets of one lane
 *   vi_eq vi_gt (signed)                        -> vm
 *   vi_select(m, a, b)                          m ? a : b
 *   vf_from_vi(v) vi_from_vf(v)                 convert; vi_from_vf rounds to nearest even, and gives an
 *                                               unspecified number for what does not fit and for NaN
 *   vf_bits(v) -> vi, vf_of_bits(v) -> vf       reinterpret
 *   vf_pow2i(n)                                 2^n, n a vi from -126 to 127; 0 for -127
 *
 *   vf_load_f16(p) vf_store_f16(p, v)           VF_LANES uint16_t, unaligned; round to nearest even
 *   vf_load_bf16(p) vf_store_bf16(p, v)
 *   the same four with _tail                    the first n, as above
 *   vf_load_i8(p)                               VF_LANES int8_t, unaligned
 *
 * Capabilities: VF_LANES, VF_HAS_FMA, VF_REGISTERS (how many vectors a kernel can keep), VF_HALVES, VF_LOOKUP, VF_NAME
 * (a suffix for symbols). */
#ifndef MICA_SRC_KERNEL_VEC_H
#define MICA_SRC_KERNEL_VEC_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VF_INLINE static inline __attribute__((always_inline, unused))

/* For large bodies that are compiled once for each of many constants. Sanitizers check each of their accesses, which
 * would take minutes to compile: there, one body serves all. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VF_UNROLLED static __attribute__((noinline))
#else
#define VF_UNROLLED VF_INLINE
#endif

#if defined(MICA_BUILD_AVX512)
#include "kernel/vec_avx512.h"
#elif defined(MICA_BUILD_AVX2)
#include "kernel/vec_avx2.h"
#elif defined(MICA_BUILD_NEON)
#include "kernel/vec_neon.h"
#else
#include "kernel/vec_scalar.h"
#endif

VF_INLINE vf vf_load_f16_tail(const uint16_t *p, size_t n)
{
    uint16_t lanes[VF_LANES] = {0};
    memcpy(lanes, p, n * sizeof *p);
    return vf_load_f16(lanes);
}
VF_INLINE void vf_store_f16_tail(uint16_t *p, vf v, size_t n)
{
    uint16_t lanes[VF_LANES];
    vf_store_f16(lanes, v);
    memcpy(p, lanes, n * sizeof *p);
}
VF_INLINE vf vf_load_bf16_tail(const uint16_t *p, size_t n)
{
    uint16_t lanes[VF_LANES] = {0};
    memcpy(lanes, p, n * sizeof *p);
    return vf_load_bf16(lanes);
}
VF_INLINE void vf_store_bf16_tail(uint16_t *p, vf v, size_t n)
{
    uint16_t lanes[VF_LANES];
    vf_store_bf16(lanes, v);
    memcpy(p, lanes, n * sizeof *p);
}

/* A symbol of this instruction set: VF_SYMBOL(mica_gemm_kernels) is mica_gemm_kernels_avx2. */
#define VF_JOIN_(a, b)  a##_##b
#define VF_JOIN(a, b)   VF_JOIN_(a, b)
#define VF_SYMBOL(name) VF_JOIN(name, VF_NAME)
/* The same for families that are compiled again for a variant of the set: mica_quant_kernels_avx512_vnni. */
#if defined(MICA_BUILD_VARIANT)
#define VF_VARIANT_SYMBOL(name) VF_JOIN(VF_SYMBOL(name), MICA_BUILD_VARIANT)
#else
#define VF_VARIANT_SYMBOL(name) VF_SYMBOL(name)
#endif
#define VF_TEXT_(a) #a
#define VF_TEXT(a)  VF_TEXT_(a)

#endif
