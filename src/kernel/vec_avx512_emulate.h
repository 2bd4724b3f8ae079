/* AVX-512 intrinsics out of SIMDe, and those that SIMDe 0.7.4 lacks or gets wrong: for tests on machines
 * without AVX-512. */
#ifndef MICA_SRC_KERNEL_VEC_AVX512_EMULATE_H
#define MICA_SRC_KERNEL_VEC_AVX512_EMULATE_H

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <simde/x86/avx512.h>
#pragma GCC diagnostic pop

/* The lower and upper half. */
typedef union emulate_512 {
    __m512 ps;
    __m512i epi;
    __m256 half_ps[2];
    __m256i half_epi[2];
    float f32[16];
} emulate_512;

#undef __mmask16
#define __mmask16 uint16_t

VF_INLINE float emulate_cvtss_f32(__m512 v) { return ((emulate_512){.ps = v}).f32[0]; }
VF_INLINE __m512 emulate_maskz_loadu_ps(__mmask16 mask, const float *p)
{
    emulate_512 r;
    for (int i = 0; i < 16; i++)
        r.f32[i] = mask >> i & 1 ? p[i] : 0.0f;
    return r.ps;
}
/* SIMDe's name for it takes a mask. */
VF_INLINE __m512i emulate_madd_epi16(__m512i a, __m512i b)
{
    emulate_512 x = {.epi = a}, y = {.epi = b}, r;
    for (int k = 0; k < 2; k++)
        r.half_epi[k] = _mm256_madd_epi16(x.half_epi[k], y.half_epi[k]);
    return r.epi;
}
VF_INLINE void emulate_stream_ps(float *p, __m512 v)
{
    emulate_512 r = {.ps = v};
    _mm256_stream_ps(p, r.half_ps[0]);
    _mm256_stream_ps(p + 8, r.half_ps[1]);
}
/* SIMDe's ignores the mode once it also asks for no exceptions. */
VF_INLINE __m256 emulate_round_half(__m256 v, int mode)
{
    switch (mode & 3) {
    case _MM_FROUND_TO_NEG_INF:
        return _mm256_floor_ps(v);
    case _MM_FROUND_TO_POS_INF:
        return _mm256_ceil_ps(v);
    case _MM_FROUND_TO_ZERO:
        return _mm256_round_ps(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    default:
        return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
}
VF_INLINE __m512 emulate_roundscale_ps(__m512 v, int mode)
{
    emulate_512 r = {.ps = v};
    r.half_ps[0] = emulate_round_half(r.half_ps[0], mode);
    r.half_ps[1] = emulate_round_half(r.half_ps[1], mode);
    return r.ps;
}
VF_INLINE __m512i emulate_srai_epi32(__m512i v, int k)
{
    emulate_512 r = {.epi = v};
    r.half_epi[0] = _mm256_srai_epi32(r.half_epi[0], k);
    r.half_epi[1] = _mm256_srai_epi32(r.half_epi[1], k);
    return r.epi;
}
VF_INLINE __m512i emulate_mullo_epi32(__m512i a, __m512i b)
{
    emulate_512 r = {.epi = a}, other = {.epi = b};
    r.half_epi[0] = _mm256_mullo_epi32(r.half_epi[0], other.half_epi[0]);
    r.half_epi[1] = _mm256_mullo_epi32(r.half_epi[1], other.half_epi[1]);
    return r.epi;
}
VF_INLINE __m512i emulate_cvtepi8_epi32(__m128i v)
{
    emulate_512 r;
    r.half_epi[0] = _mm256_cvtepi8_epi32(v);
    r.half_epi[1] = _mm256_cvtepi8_epi32(_mm_srli_si128(v, 8));
    return r.epi;
}
VF_INLINE __m512 emulate_cvtepi32_ps(__m512i v)
{
    emulate_512 r = {.epi = v};
    r.half_ps[0] = _mm256_cvtepi32_ps(r.half_epi[0]);
    r.half_ps[1] = _mm256_cvtepi32_ps(r.half_epi[1]);
    return r.ps;
}
VF_INLINE __m512i emulate_cvtps_epi32(__m512 v)
{
    emulate_512 r = {.ps = v};
    r.half_epi[0] = _mm256_cvtps_epi32(r.half_ps[0]);
    r.half_epi[1] = _mm256_cvtps_epi32(r.half_ps[1]);
    return r.epi;
}
VF_INLINE __m512i emulate_cvtepu16_epi32(__m256i v)
{
    emulate_512 r;
    r.half_epi[0] = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(v));
    r.half_epi[1] = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1));
    return r.epi;
}
VF_INLINE __m256i emulate_cvtepi32_epi16(__m512i v)
{
    emulate_512 r = {.epi = v};
    const __m256i low = _mm256_set1_epi32(0xffff);
    __m256i packed = _mm256_packus_epi32(_mm256_and_si256(r.half_epi[0], low),
                                         _mm256_and_si256(r.half_epi[1], low));
    return _mm256_permute4x64_epi64(packed, 0xd8);
}
VF_INLINE __m512 emulate_cvtph_ps(__m256i v)
{
    emulate_512 r;
    r.half_ps[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(v));
    r.half_ps[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1));
    return r.ps;
}
VF_INLINE __m256i emulate_cvtps_ph(__m512 v)
{
    emulate_512 r = {.ps = v};
    __m128i low = _mm256_cvtps_ph(r.half_ps[0], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m128i high = _mm256_cvtps_ph(r.half_ps[1], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* The compiler's own header, which SIMDe includes, has some of these as macros. */
#undef _mm512_roundscale_ps
#undef _mm512_cvtss_f32
#undef _mm512_maskz_loadu_ps
#undef _mm512_stream_ps
#undef _mm512_madd_epi16
#undef _mm512_srai_epi32
#undef _mm512_mullo_epi32
#undef _mm512_cvtepi8_epi32
#undef _mm512_cvtepi32_ps
#undef _mm512_cvtps_epi32
#undef _mm512_cvtepu16_epi32
#undef _mm512_cvtepi32_epi16
#undef _mm512_cvtph_ps
#undef _mm512_cvtps_ph
#undef _mm512_shuffle_f32x4

#define _mm512_roundscale_ps(v, mode)  emulate_roundscale_ps(v, mode)
#define _mm512_cvtss_f32(v)            emulate_cvtss_f32(v)
#define _mm512_maskz_loadu_ps(mask, p) emulate_maskz_loadu_ps(mask, p)
#define _mm512_stream_ps(p, v)         emulate_stream_ps(p, v)
#define _mm512_madd_epi16(a, b)        emulate_madd_epi16(a, b)
#define _mm512_srai_epi32(v, k)        emulate_srai_epi32(v, k)
#define _mm512_mullo_epi32(a, b)       emulate_mullo_epi32(a, b)
#define _mm512_cvtepi8_epi32(v)        emulate_cvtepi8_epi32(v)
#define _mm512_cvtepi32_ps(v)          emulate_cvtepi32_ps(v)
#define _mm512_cvtps_epi32(v)          emulate_cvtps_epi32(v)
#define _mm512_cvtepu16_epi32(v)       emulate_cvtepu16_epi32(v)
#define _mm512_cvtepi32_epi16(v)       emulate_cvtepi32_epi16(v)
#define _mm512_cvtph_ps(v)             emulate_cvtph_ps(v)
#define _mm512_cvtps_ph(v, mode)       emulate_cvtps_ph(v)
#define _mm512_shuffle_f32x4(a, b, k)  simde_mm512_shuffle_f32x4(a, b, k)

#endif
