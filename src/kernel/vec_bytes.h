/* Vectors of bytes, for products in integers; beside vec.h, and not for sets of one lane.
 *
 *   vb  4 * VF_LANES bytes: VF_LANES / 4 quarters of 16. A vector may hold 16 bytes of as many rows:
 *
 *   vb_rows(row, at)                  row[0] + at, row[4] + at, ...: 16 bytes of every fourth of VF_LANES rows. With
 *                                     row + 1, row + 2 and row + 3 that is all of them, and then
 *   vi_sum_rows(v)                    v[4] of 32-bit sums of those: the sum of each row's four, rows in order
 *   vb_turn_rows(v)                   v[4] becomes, in order, the first, second, third and fourth four bytes of each
 *                                     row, rows in order
 *   vb_repeat16(p) vb_repeat4(p)      16 bytes in each quarter; 4 bytes in each lane
 *   vb_load(p) vb_store(p, v)         unaligned
 *   vb_set1(x) vb_and vb_or vb_xor
 *   vb_shift(v, n)                    bits of bytes n up, or -n down, n constant, -7 to 7: bits of neighbours come in
 *   vi_down(v, n)                     lanes n bits down, n 0 to 31
 *   vb_lookup(table, v)               in each quarter the table's byte at the index v, 0 to 15
 *   vb_or_where(v, x, bits, more)     v | more where a bit of `bits` is set in x
 *   vi_dot(sum, u, a)                 sum + the four products of each lane: u 0 to 127, a -127 to 127
 *   vi_dot_wide(sum, w, a)            the same for w of eight bits, which hold a value plus VB_WIDE_OFFSET
 *   vf_halves_of_rows(row, at)        an f16 of each of VF_LANES rows
 *   vi_words_of_rows(row, at)         four bytes of each
 *   vi_halfword(v, high)              the f16 in the low or high half of each lane, as a vf
 *
 * Capabilities: VB_WIDE_OFFSET, and VB_TILE: how many rows a product keeps in registers. */
#ifndef MICA_SRC_KERNEL_VEC_BYTES_H
#define MICA_SRC_KERNEL_VEC_BYTES_H

#include "kernel/vec.h"

#if defined(MICA_BUILD_AVX512)
#include "kernel/vec_bytes_avx512.h"
#elif defined(MICA_BUILD_AVX2)
#include "kernel/vec_bytes_avx2.h"
#elif defined(MICA_BUILD_NEON)
#include "kernel/vec_bytes_neon.h"
#endif

typedef uint32_t vb_words __attribute__((vector_size(4 * VF_LANES)));

VF_INLINE vb vb_and(vb a, vb b) { return a & b; }
VF_INLINE vb vb_or(vb a, vb b) { return a | b; }
VF_INLINE vb vb_xor(vb a, vb b) { return a ^ b; }
VF_INLINE vb vb_shift(vb v, int n) { return n >= 0 ? (vb)((vb_words)v << n) : (vb)((vb_words)v >> -n); }
VF_INLINE vi vi_down(vi v, int n) { return (vi)((vb_words)v >> n); }

VF_INLINE vf vf_halves_of_rows(const uint8_t *const *row, size_t at)
{
    uint16_t half[VF_LANES];
    for (int i = 0; i < VF_LANES; i++)
        memcpy(&half[i], row[i] + at, sizeof half[i]);
    return vf_load_f16(half);
}

VF_INLINE vi vi_words_of_rows(const uint8_t *const *row, size_t at)
{
    int32_t word[VF_LANES];
    for (int i = 0; i < VF_LANES; i++)
        memcpy(&word[i], row[i] + at, sizeof word[i]);
    return vi_load(word);
}

#endif
