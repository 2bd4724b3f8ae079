/* Bytes in vectors of 64: AVX-512 BW, with VNNI where the compiler's flags have it. See vec_bytes.h for what each name
 * means. */
#ifndef MICA_SRC_KERNEL_VEC_BYTES_AVX512_H
#define MICA_SRC_KERNEL_VEC_BYTES_AVX512_H

#define VB_TILE  6
#define VB_PANEL 2

typedef __m512i vb;

VF_INLINE __m128i vec_16_bytes(const uint8_t *p) { return _mm_loadu_si128((const void *)p); }
VF_INLINE vb vb_rows(const vb_source *s, int j, size_t at)
{
    __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(vec_16_bytes(vb_row(s, j) + at)),
                                          vec_16_bytes(vb_row(s, j + 4) + at), 1);
    __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(vec_16_bytes(vb_row(s, j + 8) + at)),
                                           vec_16_bytes(vb_row(s, j + 12) + at), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
VF_INLINE vb vb_load(const uint8_t *p) { return _mm512_loadu_si512((const void *)p); }
VF_INLINE void vb_store(uint8_t *p, vb v) { _mm512_storeu_si512((void *)p, v); }
VF_INLINE void vi_store_bytes(int8_t *p, vi v) { _mm_storeu_si128((void *)p, _mm512_cvtsepi32_epi8(v)); }
VF_INLINE vb vb_set1(uint8_t x) { return _mm512_set1_epi8((char)x); }
VF_INLINE vb vb_repeat16(const uint8_t *p) { return _mm512_broadcast_i32x4(vec_16_bytes(p)); }
VF_INLINE vb vb_repeat4(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}
VF_INLINE vb vb_slide(const uint8_t *p)
{
    vb words = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)p));
    vb from = _mm512_set_epi32(6, 5, 4, 3, 5, 4, 3, 2, 4, 3, 2, 1, 3, 2, 1, 0);
    vb bytes = _mm512_broadcast_i32x4(_mm_set_epi32(0x06050403, 0x05040302, 0x04030201, 0x03020100));
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(from, words), bytes);
}
VF_INLINE vb vb_lookup(vb table, vb v) { return _mm512_shuffle_epi8(table, v); }
VF_INLINE vb vb_or_where(vb v, vb x, vb bits, vb more)
{
    return _mm512_mask_mov_epi8(v, _mm512_test_epi8_mask(x, bits), _mm512_or_si512(v, more));
}

#if defined(__AVX512VNNI__)
#define VB_WIDE_OFFSET 128
VF_INLINE vi vi_dot(vi sum, vb u, vb a) { return _mm512_dpbusd_epi32(sum, u, a); }
/* Around the intrinsic, gcc 12 copies sums from register to register. */
VF_INLINE vi vi_dot_wide(vi sum, vb w, vb a)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(a));
    return sum;
}
#define VB_HAS_PAIRS 100
VF_INLINE vi vi_dot_pairs(vi sum, vb a, vb b)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}
#else
#define VB_WIDE_OFFSET 0
VF_INLINE vi vi_dot(vi sum, vb u, vb a)
{
    return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(u, a), _mm512_set1_epi16(1)));
}
/* Pairs of products of up to 128 * 127 fit 16 bits. */
VF_INLINE vi vi_dot_wide(vi sum, vb w, vb a)
{
    vb signed_a = _mm512_mask_sub_epi8(a, _mm512_movepi8_mask(w), _mm512_setzero_si512(), a);
    return vi_dot(sum, _mm512_abs_epi8(w), signed_a);
}
#define VB_HAS_PAIRS   40
VF_INLINE vi vi_dot_pairs(vi sum, vb a, vb b) { return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b)); }
#endif

VF_INLINE void vb_turn_rows(vb *v)
{
    vb a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpacklo_epi32(v[2], v[3]);
    vb c = _mm512_unpackhi_epi32(v[0], v[1]), d = _mm512_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm512_unpacklo_epi64(a, b);
    v[1] = _mm512_unpackhi_epi64(a, b);
    v[2] = _mm512_unpacklo_epi64(c, d);
    v[3] = _mm512_unpackhi_epi64(c, d);
}

VF_INLINE void vb_make_quads(vb *v)
{
    vb a = _mm512_unpacklo_epi8(v[0], v[1]), b = _mm512_unpacklo_epi8(v[2], v[3]);
    vb c = _mm512_unpackhi_epi8(v[0], v[1]), d = _mm512_unpackhi_epi8(v[2], v[3]);
    v[0] = _mm512_unpacklo_epi16(a, b);
    v[1] = _mm512_unpackhi_epi16(a, b);
    v[2] = _mm512_unpacklo_epi16(c, d);
    v[3] = _mm512_unpackhi_epi16(c, d);
}
VF_INLINE vb vb_pack_quads(const vi *v)
{
    return _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
}
VF_INLINE vb vb_pack_lanes(const vi *v)
{
    vi order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    return _mm512_permutexvar_epi32(order, vb_pack_quads(v));
}
#define vb_store_part(p, v, k) _mm_storeu_si128((void *)(p), _mm512_extracti32x4_epi32(v, k))
VF_INLINE vb vb_limit(vb v, vb low, vb high) { return _mm512_min_epi8(_mm512_max_epi8(v, low), high); }

VF_INLINE vf vi_halfword(vi v, bool high)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(high ? _mm512_srli_epi32(v, 16) : v));
}

#endif
