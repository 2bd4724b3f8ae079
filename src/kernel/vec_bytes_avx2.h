/* Bytes in vectors of 32: AVX2, with AVX-VNNI where the compiler's flags have it. See vec_bytes.h for what each name
 * means. */
#ifndef MICA_SRC_KERNEL_VEC_BYTES_AVX2_H
#define MICA_SRC_KERNEL_VEC_BYTES_AVX2_H

#define VB_TILE  4
#define VB_PANEL 1

typedef __m256i vb;

VF_INLINE __m128i vec_16_bytes(const uint8_t *p) { return _mm_loadu_si128((const void *)p); }
VF_INLINE vb vb_rows(const vb_source *s, int j, size_t at)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(vec_16_bytes(vb_row(s, j) + at)),
                                   vec_16_bytes(vb_row(s, j + 4) + at), 1);
}
VF_INLINE vb vb_load(const uint8_t *p) { return _mm256_loadu_si256((const void *)p); }
VF_INLINE void vb_store(uint8_t *p, vb v) { _mm256_storeu_si256((void *)p, v); }
VF_INLINE void vi_store_bytes(int8_t *p, vi v)
{
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((void *)p, _mm_packs_epi16(words, words));
}
VF_INLINE vb vb_set1(uint8_t x) { return _mm256_set1_epi8((char)x); }
VF_INLINE vb vb_repeat16(const uint8_t *p) { return _mm256_broadcastsi128_si256(vec_16_bytes(p)); }
VF_INLINE vb vb_repeat4(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
}
VF_INLINE vb vb_slide(const uint8_t *p)
{
    vb words = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const void *)p),
                                           _mm256_setr_epi32(0, 1, 2, 3, 1, 2, 3, 4));
    vb bytes = _mm256_broadcastsi128_si256(_mm_setr_epi32(0x03020100, 0x04030201, 0x05040302, 0x06050403));
    return _mm256_shuffle_epi8(words, bytes);
}
VF_INLINE vb vb_lookup(vb table, vb v) { return _mm256_shuffle_epi8(table, v); }
VF_INLINE vb vb_or_where(vb v, vb x, vb bits, vb more)
{
    vb none = _mm256_cmpeq_epi8(_mm256_and_si256(x, bits), _mm256_setzero_si256());
    return _mm256_or_si256(v, _mm256_andnot_si256(none, more));
}

#if defined(__AVXVNNI__)
#define VB_WIDE_OFFSET 128
VF_INLINE vi vi_dot(vi sum, vb u, vb a) { return _mm256_dpbusd_avx_epi32(sum, u, a); }
VF_INLINE vi vi_dot_wide(vi sum, vb w, vb a) { return _mm256_dpbusd_avx_epi32(sum, w, a); }
#define VB_HAS_PAIRS 100
VF_INLINE vi vi_dot_pairs(vi sum, vb a, vb b) { return _mm256_dpwssd_avx_epi32(sum, a, b); }
#else
#define VB_WIDE_OFFSET 0
VF_INLINE vi vi_dot(vi sum, vb u, vb a)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(u, a), _mm256_set1_epi16(1)));
}
/* Pairs of products of up to 128 * 127 fit 16 bits. */
VF_INLINE vi vi_dot_wide(vi sum, vb w, vb a)
{
    return vi_dot(sum, _mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
}
#define VB_HAS_PAIRS   40
VF_INLINE vi vi_dot_pairs(vi sum, vb a, vb b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
#endif

VF_INLINE void vb_turn_rows(vb *v)
{
    vb a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpacklo_epi32(v[2], v[3]);
    vb c = _mm256_unpackhi_epi32(v[0], v[1]), d = _mm256_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm256_unpacklo_epi64(a, b);
    v[1] = _mm256_unpackhi_epi64(a, b);
    v[2] = _mm256_unpacklo_epi64(c, d);
    v[3] = _mm256_unpackhi_epi64(c, d);
}

VF_INLINE void vb_make_quads(vb *v)
{
    vb a = _mm256_unpacklo_epi8(v[0], v[1]), b = _mm256_unpacklo_epi8(v[2], v[3]);
    vb c = _mm256_unpackhi_epi8(v[0], v[1]), d = _mm256_unpackhi_epi8(v[2], v[3]);
    v[0] = _mm256_unpacklo_epi16(a, b);
    v[1] = _mm256_unpackhi_epi16(a, b);
    v[2] = _mm256_unpacklo_epi16(c, d);
    v[3] = _mm256_unpackhi_epi16(c, d);
}
VF_INLINE vb vb_pack_quads(const vi *v)
{
    return _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
}
VF_INLINE vb vb_pack_lanes(const vi *v)
{
    return _mm256_permutevar8x32_epi32(vb_pack_quads(v), _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0));
}
VF_INLINE void vb_store_part(int8_t *p, vb v, int k)
{
    __m128i half = k < 2 ? _mm256_castsi256_si128(v) : _mm256_extracti128_si256(v, 1);
    _mm_storel_epi64((void *)p, k % 2 == 0 ? half : _mm_unpackhi_epi64(half, half));
}
VF_INLINE vb vb_limit(vb v, vb low, vb high) { return _mm256_min_epi8(_mm256_max_epi8(v, low), high); }

VF_INLINE vf vi_halfword(vi v, bool high)
{
    vi half = high ? _mm256_srli_epi32(v, 16) : _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    return _mm256_cvtph_ps(packed);
}

#endif
