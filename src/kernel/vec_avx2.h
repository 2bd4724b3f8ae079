/* Vectors of eight lanes: AVX2 with FMA and F16C. See vec.h for what each name means. */
#ifndef MICA_SRC_KERNEL_VEC_AVX2_H
#define MICA_SRC_KERNEL_VEC_AVX2_H

#include <immintrin.h>

#define VF_NAME      avx2
#define VF_LANES     8
#define VF_HAS_FMA   1
#define VF_REGISTERS 16

typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm; /* all bits of a lane set or clear */

/* Eight entries from 8 - n on are the mask of the first n lanes. */
static const int32_t vec_tail_masks[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

VF_INLINE __m256i vec_tail_mask(size_t n)
{
    return _mm256_loadu_si256((const void *)(vec_tail_masks + 8 - n));
}

VF_INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
VF_INLINE void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
VF_INLINE vf vf_load_tail(const float *p, size_t n) { return _mm256_maskload_ps(p, vec_tail_mask(n)); }
VF_INLINE vf vf_load_where(const float *p, vm m) { return _mm256_maskload_ps(p, _mm256_castps_si256(m)); }
/* By fours, twos and ones: a masked store is microcoded on several AMD cores. */
VF_INLINE void vf_store_tail(float *p, vf v, size_t n)
{
    if (n >= 8) {
        _mm256_storeu_ps(p, v);
        return;
    }
    __m128 part = _mm256_castps256_ps128(v);
    if (n & 4) {
        _mm_storeu_ps(p, part);
        part = _mm256_extractf128_ps(v, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((void *)p, part);
        part = _mm_movehl_ps(part, part);
        p += 2;
    }
    if (n & 1)
        _mm_store_ss(p, part);
}
VF_INLINE void vf_stream(float *p, vf v) { _mm256_stream_ps(p, v); }
VF_INLINE void vf_stream_end(void) { _mm_sfence(); }
/* Plain loads: strides may exceed the 32-bit indices of the gather instruction, which is no faster. */
VF_INLINE vf vf_gather(const float *p, ptrdiff_t s)
{
    return _mm256_setr_ps(p[0], p[s], p[2 * s], p[3 * s], p[4 * s], p[5 * s], p[6 * s], p[7 * s]);
}
VF_INLINE void vf_scatter(float *p, ptrdiff_t s, vf v)
{
    float lane[8];
    _mm256_storeu_ps(lane, v);
    for (ptrdiff_t i = 0; i < 8; i++)
        p[i * s] = lane[i];
}
VF_INLINE void vf_pairs(vf a, vf b, vf *even, vf *odd)
{
    *even = _mm256_shuffle_ps(a, b, 0x88);
    *odd = _mm256_shuffle_ps(a, b, 0xdd);
}
VF_INLINE vf vf_in_order(vf v) { return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8)); }
VF_INLINE void vf_unzip(vf a, vf b, vf *even, vf *odd)
{
    vf_pairs(a, b, even, odd);
    *even = vf_in_order(*even);
    *odd = vf_in_order(*odd);
}
VF_INLINE void vf_zip(vf even, vf odd, vf *a, vf *b)
{
    vf low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
    *a = _mm256_permute2f128_ps(low, high, 0x20);
    *b = _mm256_permute2f128_ps(low, high, 0x31);
}
VF_INLINE vf vf_set1(float x) { return _mm256_set1_ps(x); }
VF_INLINE vf vf_zero(void) { return _mm256_setzero_ps(); }
VF_INLINE vf vf_keep(vf v) { return v; }

VF_INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
VF_INLINE vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
VF_INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
VF_INLINE vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
VF_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
VF_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
VF_INLINE vf vf_two_product(vf a, vf b, vf *low)
{
    vf high = _mm256_mul_ps(a, b);
    *low = _mm256_fmsub_ps(a, b, high);
    return high;
}
VF_INLINE vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
VF_INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }

VF_INLINE vi vf_bits(vf v) { return _mm256_castps_si256(v); }
VF_INLINE vf vf_of_bits(vi v) { return _mm256_castsi256_ps(v); }

VF_INLINE vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
VF_INLINE vf vf_neg(vf a) { return _mm256_xor_ps(_mm256_set1_ps(-0.0f), a); }
VF_INLINE vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
VF_INLINE vf vf_copysign(vf x, vf sign)
{
    return _mm256_or_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x),
                        _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}
VF_INLINE vf vf_round(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
VF_INLINE vf vf_floor(vf a) { return _mm256_floor_ps(a); }
VF_INLINE vf vf_ceil(vf a) { return _mm256_ceil_ps(a); }
VF_INLINE vf vf_trunc(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }

VF_INLINE vm vf_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
VF_INLINE vm vf_le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
VF_INLINE vm vf_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
VF_INLINE vm vf_ne(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_NEQ_UQ); }
VF_INLINE vm vf_ge(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
VF_INLINE vm vf_gt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
VF_INLINE vm vf_isnan(vf a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
VF_INLINE vm vm_and(vm a, vm b) { return _mm256_and_ps(a, b); }
VF_INLINE vm vm_or(vm a, vm b) { return _mm256_or_ps(a, b); }
VF_INLINE vm vm_not(vm a) { return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1))); }
VF_INLINE bool vm_any(vm m) { return _mm256_movemask_ps(m) != 0; }
VF_INLINE bool vm_all(vm m) { return _mm256_movemask_ps(m) == 0xff; }
VF_INLINE vm vm_first(size_t n) { return _mm256_castsi256_ps(vec_tail_mask(n)); }
VF_INLINE void vm_store_bytes(uint8_t *p, const vm m[4])
{
    /* Packing keeps to 128-bit halves: what comes out are the four lower halves, then the four upper ones. */
    __m256i a = _mm256_packs_epi32(_mm256_castps_si256(m[0]), _mm256_castps_si256(m[1]));
    __m256i b = _mm256_packs_epi32(_mm256_castps_si256(m[2]), _mm256_castps_si256(m[3]));
    __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), order);
    _mm256_storeu_si256((void *)p, _mm256_abs_epi8(bytes));
}
VF_INLINE vf vf_select(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }

VF_INLINE vf vf_min_nan(vf a, vf b) { return vf_select(vf_isnan(a), a, vf_min(a, b)); }
VF_INLINE vf vf_max_nan(vf a, vf b) { return vf_select(vf_isnan(a), a, vf_max(a, b)); }

/* Lane i takes lane i + 4, then i + 2, then i + 1. */
VF_INLINE float vf_sum(vf v)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
/* The upper lanes folded down by `distance`: what vf_hmin and vf_hmax fold with the whole. */
VF_INLINE vf vec_upper(vf v, int distance)
{
    if (distance == 4)
        return _mm256_permute2f128_ps(v, v, 0x01);
    return distance == 2 ? _mm256_permute_ps(v, 0x4e) : _mm256_permute_ps(v, 0xb1);
}
VF_INLINE float vf_hmin(vf v)
{
    v = vf_min_nan(v, vec_upper(v, 4));
    v = vf_min_nan(v, vec_upper(v, 2));
    return _mm256_cvtss_f32(vf_min_nan(v, vec_upper(v, 1)));
}
VF_INLINE float vf_hmax(vf v)
{
    v = vf_max_nan(v, vec_upper(v, 4));
    v = vf_max_nan(v, vec_upper(v, 2));
    return _mm256_cvtss_f32(vf_max_nan(v, vec_upper(v, 1)));
}

VF_INLINE vi vi_load(const int32_t *p) { return _mm256_loadu_si256((const void *)p); }
VF_INLINE void vi_store(int32_t *p, vi v) { _mm256_storeu_si256((void *)p, v); }
VF_INLINE vi vi_load_tail(const int32_t *p, size_t n) { return _mm256_maskload_epi32(p, vec_tail_mask(n)); }
VF_INLINE void vi_store_tail(int32_t *p, vi v, size_t n) { vf_store_tail((void *)p, vf_of_bits(v), n); }
VF_INLINE vi vi_set1(int32_t x) { return _mm256_set1_epi32(x); }
VF_INLINE vi vi_iota(void) { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
VF_INLINE vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
VF_INLINE vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
VF_INLINE vi vi_mul(vi a, vi b) { return _mm256_mullo_epi32(a, b); }
VF_INLINE vi vi_mulhi_u(vi a, vi b)
{
    vi even = _mm256_mul_epu32(a, b);
    vi odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}
VF_INLINE vi vi_mulhi(vi a, vi b)
{
    vi even = _mm256_mul_epi32(a, b);
    vi odd = _mm256_mul_epi32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}
VF_INLINE vi vi_min(vi a, vi b) { return _mm256_min_epi32(a, b); }
VF_INLINE vi vi_max(vi a, vi b) { return _mm256_max_epi32(a, b); }
VF_INLINE vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
VF_INLINE vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
VF_INLINE vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
#define vi_shl(a, k) _mm256_slli_epi32(a, k)
#define vi_shr(a, k) _mm256_srli_epi32(a, k)
#define vi_sar(a, k) _mm256_srai_epi32(a, k)
VF_INLINE vm vi_eq(vi a, vi b) { return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)); }
VF_INLINE vm vi_gt(vi a, vi b) { return _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b)); }
VF_INLINE vi vi_select(vm m, vi a, vi b) { return vf_bits(vf_select(m, vf_of_bits(a), vf_of_bits(b))); }
VF_INLINE vf vf_from_vi(vi v) { return _mm256_cvtepi32_ps(v); }
VF_INLINE vi vi_from_vf(vf v) { return _mm256_cvtps_epi32(v); }
VF_INLINE vf vf_pow2i(vi n) { return vf_of_bits(vi_shl(vi_add(n, vi_set1(127)), 23)); }

VF_INLINE vf vf_load_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const void *)p)); }
VF_INLINE void vf_store_f16(uint16_t *p, vf v)
{
    _mm_storeu_si128((void *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
VF_INLINE vf vf_load_i8(const int8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p)));
}
VF_INLINE vf vf_load_bf16(const uint16_t *p)
{
    return vf_of_bits(vi_shl(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p)), 16));
}
VF_INLINE void vf_store_bf16(uint16_t *p, vf v)
{
    vi bits = vf_bits(v), odd = vi_and(vi_shr(bits, 16), vi_set1(1));
    vi rounded = vi_shr(vi_add(vi_add(bits, vi_set1(0x7fff)), odd), 16);
    vi quiet = vi_or(vi_shr(bits, 16), vi_set1(0x40)); /* a NaN stays one */
    vi halves = vi_select(vf_isnan(v), quiet, rounded);
    __m128i low = _mm256_castsi256_si128(halves), high = _mm256_extracti128_si256(halves, 1);
    _mm_storeu_si128((void *)p, _mm_packus_epi32(low, high));
}

VF_INLINE void vf_transpose(vf *rows)
{
    /* Pairs of rows interleaved, then pairs of pairs: each 128-bit half holds a transposed 4 x 4. Then halves
     * are exchanged. */
    vf a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
        b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        rows[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        rows[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}

/* The halves of two rows are added, then the pairs of lanes of four, then their lanes. */
VF_INLINE vf vf_sums(const vf *rows)
{
    vf half[4], pair[2];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        half[i] = _mm256_add_ps(_mm256_permute2f128_ps(rows[i], rows[i + 4], 0x20),
                                _mm256_permute2f128_ps(rows[i], rows[i + 4], 0x31));
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        pair[i] = _mm256_add_ps(_mm256_shuffle_ps(half[2 * i], half[2 * i + 1], 0x44),
                                _mm256_shuffle_ps(half[2 * i], half[2 * i + 1], 0xee));
    return _mm256_add_ps(_mm256_shuffle_ps(pair[0], pair[1], 0x88),
                         _mm256_shuffle_ps(pair[0], pair[1], 0xdd));
}

#endif
