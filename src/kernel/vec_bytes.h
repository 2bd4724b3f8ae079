/* Vectors of bytes, for products in integers; beside vec.h, and not for sets of one lane.
 *
 *   vb  4 * VF_LANES bytes: VF_LANES / 4 quarters of 16
 *
 *   vb_source                         VF_LANES rows in memory, at equal distances
 *   vb_rows(s, j, at)                 16 bytes, from byte `at` on, of rows j, j + 4, j + 8, ..., a quarter for each.
 *                                     With j = 0 to 3 that is all rows, and then
 *   vb_turn_rows(v)                   v[4] becomes, in order, the first, second, third and fourth four bytes of each
 *                                     row, rows in order
 *   vb_repeat16(p) vb_repeat4(p)      16 bytes in each quarter; 4 bytes in each lane
 *   vb_slide(p)                       lane i: bytes i to i + 3; up to 32 bytes are read
 *   vb_load(p) vb_store(p, v)         unaligned
 *   vb_make_quads(v)                  v[4]: in each quarter, byte c of v[0] to v[3] becomes lane c % 4 of v[c / 4]
 *   vb_pack_quads(v)                  lanes of v[4] as bytes, saturated, in the order that vb_make_quads had
 *   vb_pack_lanes(v)                  the same, lanes in order
 *   vb_store_part(p, v, k)            VF_LANES bytes, number k, a constant, of four
 *   vb_limit(v, low, high)            signed bytes
 *   vi_store_bytes(p, v)              VF_LANES numbers of -128 to 127 as bytes
 *   vb_set1(x) vb_and vb_or vb_xor
 *   vb_shift(v, n)                    bits of bytes n up, or -n down, n constant, -7 to 7: bits of neighbours come in
 *   vi_down(v, n)                     lanes n bits down, n 0 to 31
 *   vi_sar_by(v, n) vi_sar_each(v, n) arithmetic; n a number, or one for each lane
 *   vb_lookup(table, v)               in each quarter the table's byte at the index v, 0 to 15
 *   vb_or_where(v, x, bits, more)     v | more where a bit of `bits` is set in x
 *   vi_dot(sum, u, a)                 sum + the four products of each lane: u 0 to 127, a -127 to 127
 *   vi_dot_wide(sum, w, a)            the same for w of eight bits, which hold a value plus VB_WIDE_OFFSET
 *   vi_dot_pairs(sum, a, b)           sum + the two products of each lane's halves, i16, which may wrap
 *   vi_words_of_rows(s, at)           four bytes of each row
 *   vi_halfword(v, high)              the f16 in the low or high half of each lane, as a vf
 *
 * Capabilities: VB_WIDE_OFFSET; VB_TILE and VB_PANEL: how many rows, and vectors of each, a product keeps in
 * registers; VB_HAS_PAIRS: the time of vi_dot_pairs, in percent of that of vi_dot_wide. */
#ifndef MICA_SRC_KERNEL_VEC_BYTES_H
#define MICA_SRC_KERNEL_VEC_BYTES_H

#include "kernel/vec.h"

/* Every fourth row, and the distances to those that follow it: addresses that need no arithmetic of their own. */
typedef struct vb_source {
    const uint8_t *fourth[VF_LANES / 4];
    ptrdiff_t one, three;
} vb_source;

VF_INLINE vb_source vb_source_at(const uint8_t *first, ptrdiff_t row_bytes)
{
    vb_source s = {.one = row_bytes, .three = 3 * row_bytes};
    for (int k = 0; k < VF_LANES / 4; k++)
        s.fourth[k] = first + 4 * k * row_bytes;
    return s;
}
VF_INLINE void vb_source_move(vb_source *s, size_t bytes)
{
    for (int k = 0; k < VF_LANES / 4; k++)
        s->fourth[k] += bytes;
}
VF_INLINE const uint8_t *vb_row(const vb_source *s, int i)
{
    const uint8_t *p = s->fourth[i / 4];
    return i % 4 == 3 ? p + s->three : p + i % 4 * s->one;
}

#if defined(MICA_BUILD_AVX512)
#include "kernel/vec_bytes_avx512.h"
#elif defined(MICA_BUILD_AVX2)
#include "kernel/vec_bytes_avx2.h"
#elif defined(MICA_BUILD_NEON)
#include "kernel/vec_bytes_neon.h"
#endif

typedef uint32_t vb_words __attribute__((vector_size(4 * VF_LANES)));
typedef int32_t vb_numbers __attribute__((vector_size(4 * VF_LANES)));

VF_INLINE vb vb_and(vb a, vb b) { return a & b; }
VF_INLINE vb vb_or(vb a, vb b) { return a | b; }
VF_INLINE vb vb_xor(vb a, vb b) { return a ^ b; }
VF_INLINE vb vb_shift(vb v, int n) { return n >= 0 ? (vb)((vb_words)v << n) : (vb)((vb_words)v >> -n); }
VF_INLINE vi vi_down(vi v, int n) { return (vi)((vb_words)v >> n); }
VF_INLINE vi vi_sar_by(vi v, int n) { return (vi)((vb_numbers)v >> n); }
VF_INLINE vi vi_sar_each(vi v, vi n) { return (vi)((vb_numbers)v >> (vb_numbers)n); }

VF_INLINE vi vi_words_of_rows(const vb_source *s, size_t at)
{
    int32_t word[VF_LANES];
    for (int i = 0; i < VF_LANES; i++)
        memcpy(&word[i], vb_row(s, i) + at, sizeof word[i]);
    return vi_load(word);
}

#endif
