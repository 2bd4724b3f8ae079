/* Vectors of sixteen lanes: AVX-512 F, DQ, BW and VL. See vec.h for what each name means.
 *
 * MICA_AVX512_EMULATE takes the intrinsics from SIMDe instead, so that the tests can run these bodies on any
 * x86-64 with AVX2. */
#ifndef MICA_SRC_KERNEL_VEC_AVX512_H
#define MICA_SRC_KERNEL_VEC_AVX512_H

#if defined(MICA_AVX512_EMULATE)
#include "kernel/vec_avx512_emulate.h"
#else
#include <immintrin.h>
#endif

#define VF_NAME      avx512
#define VF_LANES     16
#define VF_HAS_FMA   1
#define VF_REGISTERS 32

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

VF_INLINE vm vm_first(size_t n) { return (vm)((1u << n) - 1u); }

VF_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
VF_INLINE void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
VF_INLINE vf vf_load_tail(const float *p, size_t n) { return _mm512_maskz_loadu_ps(vm_first(n), p); }
VF_INLINE vf vf_load_where(const float *p, vm m) { return _mm512_maskz_loadu_ps(m, p); }
/* Not by a mask: on some processors such a store is slow, and none that has one passes it on to a load that follows. */
VF_INLINE void vf_store_tail(float *p, vf v, size_t n)
{
    if (n >= 16) {
        _mm512_storeu_ps(p, v);
        return;
    }
    __m256 half = _mm512_castps512_ps256(v);
    if (n & 8) {
        _mm256_storeu_ps(p, half);
        if (n == 8)
            return;
        half = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
        p += 8;
    }
    __m128 part = _mm256_castps256_ps128(half);
    if (n & 4) {
        _mm_storeu_ps(p, part);
        part = _mm256_extractf128_ps(half, 1);
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
VF_INLINE void vf_stream(float *p, vf v) { _mm512_stream_ps(p, v); }
VF_INLINE void vf_stream_end(void) { _mm_sfence(); }
/* Plain loads: strides may exceed the 32-bit indices of the gather instruction. */
VF_INLINE vf vf_gather(const float *p, ptrdiff_t s)
{
    float lane[16];
    for (ptrdiff_t i = 0; i < 16; i++)
        lane[i] = p[i * s];
    return _mm512_loadu_ps(lane);
}
VF_INLINE void vf_scatter(float *p, ptrdiff_t s, vf v)
{
    float lane[16];
    _mm512_storeu_ps(lane, v);
    for (ptrdiff_t i = 0; i < 16; i++)
        p[i * s] = lane[i];
}
VF_INLINE void vf_unzip(vf a, vf b, vf *even, vf *odd)
{
    __m512i e = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *even = _mm512_permutex2var_ps(a, e, b);
    *odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(e, _mm512_set1_epi32(1)), b);
}
VF_INLINE void vf_pairs(vf a, vf b, vf *even, vf *odd) { vf_unzip(a, b, even, odd); }
VF_INLINE vf vf_in_order(vf v) { return v; }
VF_INLINE void vf_zip(vf even, vf odd, vf *a, vf *b)
{
    __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    *a = _mm512_permutex2var_ps(even, low, odd);
    *b = _mm512_permutex2var_ps(even, _mm512_add_epi32(low, _mm512_set1_epi32(8)), odd);
}
#define VF_LOOKUP 1
VF_INLINE vf vf_lookup(const float *table, vi index)
{
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table + 16));
}
VF_INLINE vf vf_set1(float x) { return _mm512_set1_ps(x); }
VF_INLINE vf vf_zero(void) { return _mm512_setzero_ps(); }
/* Compilers like to make a load part of each multiplication that uses it. */
VF_INLINE vf vf_keep(vf v)
{
#if !defined(MICA_AVX512_EMULATE)
    __asm__("" : "+v"(v));
#endif
    return v;
}

VF_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
VF_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
VF_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
VF_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
VF_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
VF_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
VF_INLINE vf vf_two_product(vf a, vf b, vf *low)
{
    vf high = _mm512_mul_ps(a, b);
    *low = _mm512_fmsub_ps(a, b, high);
    return high;
}
VF_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
VF_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }

#if !defined(MICA_AVX512_EMULATE)
#define VF_HALVES 1
typedef __m256 vh;
VF_INLINE vh vh_load(const float *p) { return _mm256_loadu_ps(p); }
VF_INLINE vh vh_set1(float x) { return _mm256_set1_ps(x); }
VF_INLINE void vh_store(float *p, vh v) { _mm256_storeu_ps(p, v); }
VF_INLINE vh vh_mul(vh a, vh b) { return _mm256_mul_ps(a, b); }
VF_INLINE vh vh_fma(vh a, vh b, vh c) { return _mm256_fmadd_ps(a, b, c); }
VF_INLINE vh vh_sums(const vh *v)
{
    vh low = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    vh high = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
    return _mm256_add_ps(_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31));
}
VF_INLINE vh vh_low(vf v) { return _mm512_castps512_ps256(v); }
VF_INLINE vf vf_of_low(vh v) { return _mm512_castps256_ps512(v); }
#endif

VF_INLINE vi vf_bits(vf v) { return _mm512_castps_si512(v); }
VF_INLINE vf vf_of_bits(vi v) { return _mm512_castsi512_ps(v); }

VF_INLINE vf vf_abs(vf a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a); }
VF_INLINE vf vf_neg(vf a) { return _mm512_xor_ps(_mm512_set1_ps(-0.0f), a); }
VF_INLINE vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
VF_INLINE vf vf_copysign(vf x, vf sign)
{
    const __m512i bit = _mm512_set1_epi32(INT32_MIN);
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(bit, _mm512_castps_si512(sign),
                                                         _mm512_castps_si512(x), 0xca)); /* bit ? : */
}
VF_INLINE vf vf_round(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
VF_INLINE vf vf_floor(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
VF_INLINE vf vf_ceil(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
VF_INLINE vf vf_trunc(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }

VF_INLINE vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
VF_INLINE vm vf_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
VF_INLINE vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
VF_INLINE vm vf_ne(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
VF_INLINE vm vf_ge(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
VF_INLINE vm vf_gt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
VF_INLINE vm vf_isnan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
VF_INLINE vm vm_and(vm a, vm b) { return (vm)(a & b); }
VF_INLINE vm vm_or(vm a, vm b) { return (vm)(a | b); }
VF_INLINE vm vm_not(vm a) { return (vm)~a; }
VF_INLINE bool vm_any(vm m) { return m != 0; }
VF_INLINE bool vm_all(vm m) { return m == 0xffff; }
VF_INLINE void vm_store_bytes(uint8_t *p, const vm m[4])
{
    for (int k = 0; k < 4; k++)
        _mm_storeu_si128((void *)(p + 16 * k), _mm512_cvtsepi32_epi8(_mm512_maskz_set1_epi32(m[k], 1)));
}
VF_INLINE vf vf_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }

VF_INLINE vf vf_min_nan(vf a, vf b) { return vf_select(vf_isnan(a), a, vf_min(a, b)); }
VF_INLINE vf vf_max_nan(vf a, vf b) { return vf_select(vf_isnan(a), a, vf_max(a, b)); }

/* The upper lanes folded down by `distance`, a constant 8, 4, 2 or 1. */
VF_INLINE vf vec_upper(vf v, int distance)
{
    if (distance == 8)
        return _mm512_shuffle_f32x4(v, v, 0x4e);
    if (distance == 4)
        return _mm512_shuffle_f32x4(v, v, 0xb1);
    return distance == 2 ? _mm512_shuffle_ps(v, v, 0x4e) : _mm512_shuffle_ps(v, v, 0xb1);
}
VF_INLINE float vf_sum(vf v)
{
    v = vf_add(v, vec_upper(v, 8));
    v = vf_add(v, vec_upper(v, 4));
    v = vf_add(v, vec_upper(v, 2));
    return _mm512_cvtss_f32(vf_add(v, vec_upper(v, 1)));
}
VF_INLINE float vf_hmin(vf v)
{
    v = vf_min_nan(v, vec_upper(v, 8));
    v = vf_min_nan(v, vec_upper(v, 4));
    v = vf_min_nan(v, vec_upper(v, 2));
    return _mm512_cvtss_f32(vf_min_nan(v, vec_upper(v, 1)));
}
VF_INLINE float vf_hmax(vf v)
{
    v = vf_max_nan(v, vec_upper(v, 8));
    v = vf_max_nan(v, vec_upper(v, 4));
    v = vf_max_nan(v, vec_upper(v, 2));
    return _mm512_cvtss_f32(vf_max_nan(v, vec_upper(v, 1)));
}

VF_INLINE vi vi_load(const int32_t *p) { return _mm512_loadu_si512((const void *)p); }
VF_INLINE void vi_store(int32_t *p, vi v) { _mm512_storeu_si512((void *)p, v); }
VF_INLINE vi vi_load_tail(const int32_t *p, size_t n) { return vf_bits(vf_load_tail((const void *)p, n)); }
VF_INLINE void vi_store_tail(int32_t *p, vi v, size_t n) { vf_store_tail((void *)p, vf_of_bits(v), n); }
VF_INLINE vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
VF_INLINE vi vi_iota(void) { return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0); }
VF_INLINE vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
VF_INLINE vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
VF_INLINE vi vi_mul(vi a, vi b) { return _mm512_mullo_epi32(a, b); }
VF_INLINE vi vi_mulhi_u(vi a, vi b)
{
    vi even = _mm512_mul_epu32(a, b);
    vi odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
    return _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
}
VF_INLINE vi vi_mulhi(vi a, vi b)
{
    vi even = _mm512_mul_epi32(a, b);
    vi odd = _mm512_mul_epi32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
    return _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
}
VF_INLINE vi vi_min(vi a, vi b) { return _mm512_min_epi32(a, b); }
VF_INLINE vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
VF_INLINE vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
VF_INLINE vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
VF_INLINE vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
#define vi_shl(a, k) _mm512_slli_epi32(a, k)
#define vi_shr(a, k) _mm512_srli_epi32(a, k)
#define vi_sar(a, k) _mm512_srai_epi32(a, k)
VF_INLINE vm vi_eq(vi a, vi b) { return _mm512_cmpeq_epi32_mask(a, b); }
VF_INLINE vm vi_gt(vi a, vi b) { return _mm512_cmpgt_epi32_mask(a, b); }
VF_INLINE vi vi_select(vm m, vi a, vi b) { return _mm512_mask_blend_epi32(m, b, a); }
VF_INLINE vf vf_from_vi(vi v) { return _mm512_cvtepi32_ps(v); }
VF_INLINE vi vi_from_vf(vf v) { return _mm512_cvtps_epi32(v); }
VF_INLINE vf vf_pow2i(vi n) { return vf_of_bits(vi_shl(vi_add(n, vi_set1(127)), 23)); }

VF_INLINE vf vf_load_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p)); }
VF_INLINE void vf_store_f16(uint16_t *p, vf v)
{
    _mm256_storeu_si256((void *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
VF_INLINE vf vf_load_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p)));
}
VF_INLINE vf vf_load_bf16(const uint16_t *p)
{
    return vf_of_bits(vi_shl(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p)), 16));
}
VF_INLINE void vf_store_bf16(uint16_t *p, vf v)
{
    vi bits = vf_bits(v), odd = vi_and(vi_shr(bits, 16), vi_set1(1));
    vi rounded = vi_shr(vi_add(vi_add(bits, vi_set1(0x7fff)), odd), 16);
    vi quiet = vi_or(vi_shr(bits, 16), vi_set1(0x40)); /* a NaN stays one */
    vi halves = vi_select(vf_isnan(v), quiet, rounded);
    _mm256_storeu_si256((void *)p, _mm512_cvtepi32_epi16(halves));
}

VF_INLINE void vf_transpose(vf *rows)
{
    /* Pairs of rows interleaved, then pairs of pairs: each 128-bit quarter holds a transposed 4 x 4. Then the
     * quarters are transposed as a 4 x 4 of their own. */
    vf a[16], b[16];
    for (int i = 0; i < 16; i += 2) {
        a[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
        a[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xee);
        b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        vf low01 = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88),
           low23 = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
        vf high01 = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xdd),
           high23 = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xdd);
        rows[i] = _mm512_shuffle_f32x4(low01, low23, 0x88);
        rows[i + 8] = _mm512_shuffle_f32x4(low01, low23, 0xdd);
        rows[i + 4] = _mm512_shuffle_f32x4(high01, high23, 0x88);
        rows[i + 12] = _mm512_shuffle_f32x4(high01, high23, 0xdd);
    }
}

/* The halves of two rows are added, then the quarters of four, then the pairs of lanes of eight, then their lanes. Of
 * two that are added, one is a mere choice of lanes: that is done beside multiplications, as moving lanes is not. */
VF_INLINE vf vf_sums(const vf *rows)
{
    const vi cross = _mm512_setr_epi32(4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27);
    vf half[8], quarter[4], pair[2];
    /* [a0 a1 a2 a3] and [b0 b1 b2 b3], in quarters: [a0+a2 a1+a3 b0+b2 b1+b3] */
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        const vf *two = rows + i % 2 * 4 + i / 2;
        half[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xff00, two[0], two[8]),
                                _mm512_shuffle_f32x4(two[0], two[8], 0x4e));
    }
    /* [a a' b b'] and [c c' d d']: [a+a' c+c' b+b' d+d'] */
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        quarter[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xf0f0, half[2 * i], half[2 * i + 1]),
                                   _mm512_permutex2var_ps(half[2 * i], cross, half[2 * i + 1]));
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        pair[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xcccc, quarter[2 * i], quarter[2 * i + 1]),
                                _mm512_shuffle_ps(quarter[2 * i], quarter[2 * i + 1], 0x4e));
    return _mm512_add_ps(_mm512_shuffle_ps(pair[0], pair[1], 0x88),
                         _mm512_shuffle_ps(pair[0], pair[1], 0xdd));
}

#endif
