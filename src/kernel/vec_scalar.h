/* Vectors of one lane: plain C for any machine. See vec.h for what each name means. */
#ifndef MICA_SRC_KERNEL_VEC_SCALAR_H
#define MICA_SRC_KERNEL_VEC_SCALAR_H

#define VF_NAME      scalar
#define VF_LANES     1
#define VF_HAS_FMA   0
#define VF_REGISTERS 16

typedef float vf;
typedef int32_t vi;
typedef bool vm;

VF_INLINE vf vf_load(const float *p) { return *p; }
VF_INLINE void vf_store(float *p, vf v) { *p = v; }
VF_INLINE vf vf_load_tail(const float *p, size_t n) { return n > 0 ? *p : 0.0f; }
VF_INLINE vf vf_load_where(const float *p, vm m) { return m ? *p : 0.0f; }
VF_INLINE void vf_store_tail(float *p, vf v, size_t n)
{
    if (n > 0)
        *p = v;
}
VF_INLINE void vf_stream(float *p, vf v) { *p = v; }
VF_INLINE void vf_stream_end(void) {}
VF_INLINE vf vf_gather(const float *p, ptrdiff_t s)
{
    (void)s;
    return *p;
}
VF_INLINE void vf_scatter(float *p, ptrdiff_t s, vf v)
{
    (void)s;
    *p = v;
}
VF_INLINE void vf_unzip(vf a, vf b, vf *even, vf *odd)
{
    *even = a;
    *odd = b;
}
VF_INLINE void vf_pairs(vf a, vf b, vf *even, vf *odd) { vf_unzip(a, b, even, odd); }
VF_INLINE vf vf_in_order(vf v) { return v; }
VF_INLINE void vf_zip(vf even, vf odd, vf *a, vf *b)
{
    *a = even;
    *b = odd;
}
VF_INLINE vf vf_set1(float x) { return x; }
VF_INLINE vf vf_zero(void) { return 0.0f; }
VF_INLINE vf vf_keep(vf v) { return v; }

VF_INLINE vf vf_add(vf a, vf b) { return a + b; }
VF_INLINE vf vf_sub(vf a, vf b) { return a - b; }
VF_INLINE vf vf_mul(vf a, vf b) { return a * b; }
VF_INLINE vf vf_div(vf a, vf b) { return a / b; }
VF_INLINE vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
VF_INLINE vf vf_fnma(vf a, vf b, vf c) { return c - a * b; }
VF_INLINE vf vf_two_product(vf a, vf b, vf *low)
{
    double exact = (double)a * (double)b; /* 24 + 24 bits fit */
    vf high = a * b;
    *low = (float)(exact - (double)high);
    return high;
}
VF_INLINE vf vf_min(vf a, vf b) { return a < b ? a : b; }
VF_INLINE vf vf_max(vf a, vf b) { return a > b ? a : b; }
VF_INLINE vf vf_min_nan(vf a, vf b) { return a != a ? a : vf_min(a, b); }
VF_INLINE vf vf_max_nan(vf a, vf b) { return a != a ? a : vf_max(a, b); }

VF_INLINE vi vf_bits(vf v)
{
    vi bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
VF_INLINE vf vf_of_bits(vi bits)
{
    vf v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

VF_INLINE vf vf_abs(vf a) { return fabsf(a); }
VF_INLINE vf vf_neg(vf a) { return -a; }
VF_INLINE vf vf_sqrt(vf a) { return sqrtf(a); }
VF_INLINE vf vf_copysign(vf x, vf sign) { return copysignf(x, sign); }
VF_INLINE vf vf_round(vf a)
{
    /* Adding 2^23 leaves no fraction bits: the addition itself rounds, ties to even. */
    const float magic = 0x1p23f;
    float magnitude = fabsf(a);
    if (!(magnitude < magic))
        return a;
    return copysignf(magnitude + magic - magic, a);
}
VF_INLINE vf vf_floor(vf a) { return floorf(a); }
VF_INLINE vf vf_ceil(vf a) { return ceilf(a); }
VF_INLINE vf vf_trunc(vf a) { return truncf(a); }

VF_INLINE vm vf_lt(vf a, vf b) { return a < b; }
VF_INLINE vm vf_le(vf a, vf b) { return a <= b; }
VF_INLINE vm vf_eq(vf a, vf b) { return a == b; }
VF_INLINE vm vf_ne(vf a, vf b) { return a != b; }
VF_INLINE vm vf_ge(vf a, vf b) { return a >= b; }
VF_INLINE vm vf_gt(vf a, vf b) { return a > b; }
VF_INLINE vm vf_isnan(vf a) { return a != a; }
VF_INLINE vm vm_and(vm a, vm b) { return a && b; }
VF_INLINE vm vm_or(vm a, vm b) { return a || b; }
VF_INLINE vm vm_not(vm a) { return !a; }
VF_INLINE bool vm_any(vm m) { return m; }
VF_INLINE bool vm_all(vm m) { return m; }
VF_INLINE vm vm_first(size_t n) { return n > 0; }
VF_INLINE void vm_store_bytes(uint8_t *p, const vm m[4])
{
    for (int k = 0; k < 4; k++)
        p[k] = m[k];
}
VF_INLINE vf vf_select(vm m, vf a, vf b) { return m ? a : b; }
VF_INLINE float vf_sum(vf v) { return v; }
VF_INLINE float vf_hmin(vf v) { return v; }
VF_INLINE float vf_hmax(vf v) { return v; }

VF_INLINE vi vi_load(const int32_t *p) { return *p; }
VF_INLINE void vi_store(int32_t *p, vi v) { *p = v; }
VF_INLINE vi vi_load_tail(const int32_t *p, size_t n) { return n > 0 ? *p : 0; }
VF_INLINE void vi_store_tail(int32_t *p, vi v, size_t n)
{
    if (n > 0)
        *p = v;
}
VF_INLINE vi vi_set1(int32_t x) { return x; }
VF_INLINE vi vi_iota(void) { return 0; }
/* Wrapping arithmetic, so through unsigned. */
VF_INLINE vi vi_add(vi a, vi b) { return (vi)((uint32_t)a + (uint32_t)b); }
VF_INLINE vi vi_sub(vi a, vi b) { return (vi)((uint32_t)a - (uint32_t)b); }
VF_INLINE vi vi_mul(vi a, vi b) { return (vi)((uint32_t)a * (uint32_t)b); }
VF_INLINE vi vi_mulhi_u(vi a, vi b) { return (vi)(((uint64_t)(uint32_t)a * (uint32_t)b) >> 32); }
VF_INLINE vi vi_and(vi a, vi b) { return a & b; }
VF_INLINE vi vi_or(vi a, vi b) { return a | b; }
VF_INLINE vi vi_xor(vi a, vi b) { return a ^ b; }
#define vi_shl(a, k) ((vi)((uint32_t)(a) << (k)))
#define vi_shr(a, k) ((vi)((uint32_t)(a) >> (k)))
#define vi_sar(a, k) ((vi)((a) >> (k)))
VF_INLINE vm vi_eq(vi a, vi b) { return a == b; }
VF_INLINE vm vi_gt(vi a, vi b) { return a > b; }
VF_INLINE vi vi_select(vm m, vi a, vi b) { return m ? a : b; }
VF_INLINE vf vf_from_vi(vi v) { return (float)v; }
VF_INLINE vi vi_from_vf(vf v) { return fabsf(v) < 0x1p31f ? (int32_t)vf_round(v) : INT32_MIN; }
VF_INLINE vf vf_pow2i(vi n) { return vf_of_bits(vi_shl(vi_add(n, 127), 23)); }

VF_INLINE vf vf_load_f16(const uint16_t *p)
{
    uint32_t sign = (uint32_t)(*p & 0x8000u) << 16, rest = *p & 0x7fffu;
    if (rest >= 0x7c00u) /* infinity, NaN (made quiet, as the hardware does) */
        return vf_of_bits(
            (vi)(sign | 0x7f800000u | (rest & 0x3ffu) << 13 | (rest > 0x7c00u ? 0x400000u : 0u)));
    /* The exponent's bias differs by 112; scaling by 2^112 also makes subnormals normal. */
    return vf_of_bits((vi)(vf_bits(vf_of_bits((vi)(rest << 13)) * 0x1p112f) | (vi)sign));
}
VF_INLINE void vf_store_f16(uint16_t *p, vf v)
{
    uint32_t bits = (uint32_t)vf_bits(v), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        *p = (uint16_t)(sign | 0x7e00u | (rest >> 13 & 0x3ffu)); /* a quiet NaN */
    else if (rest >= 0x477ff000u)
        *p = (uint16_t)(sign | 0x7c00u); /* 65520 and above round to infinity */
    else if (rest < 0x38800000u) {
        /* Subnormal: adding 0.5 puts the last f16 bit at the last f32 bit, and rounds there. */
        float shifted = vf_of_bits((vi)rest) + 0.5f;
        *p = (uint16_t)(sign | (uint32_t)(vf_bits(shifted) - vf_bits(0.5f)));
    } else {
        uint32_t odd = rest >> 13 & 1u;
        *p = (uint16_t)(sign | (rest - (112u << 23) + 0xfffu + odd) >> 13);
    }
}
VF_INLINE vf vf_load_i8(const int8_t *p) { return (float)*p; }
VF_INLINE vf vf_load_bf16(const uint16_t *p) { return vf_of_bits((vi)((uint32_t)*p << 16)); }
VF_INLINE void vf_store_bf16(uint16_t *p, vf v)
{
    uint32_t bits = (uint32_t)vf_bits(v);
    if (v != v)
        *p = (uint16_t)(bits >> 16 | 0x40u); /* a quiet NaN */
    else
        *p = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

VF_INLINE void vf_transpose(vf *rows) { (void)rows; }
VF_INLINE vf vf_sums(const vf *rows) { return rows[0]; }

#endif
