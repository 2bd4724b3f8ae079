/* Vectors of four lanes: NEON on AArch64. See vec.h for what each name means. */
#ifndef MICA_SRC_KERNEL_VEC_NEON_H
#define MICA_SRC_KERNEL_VEC_NEON_H

#include <arm_neon.h>

#define VF_NAME      neon
#define VF_LANES     4
#define VF_HAS_FMA   1
#define VF_REGISTERS 32

typedef float32x4_t vf;
typedef int32x4_t vi;
typedef uint32x4_t vm; /* all bits of a lane set or clear */

VF_INLINE vf vf_load(const float *p) { return vld1q_f32(p); }
VF_INLINE void vf_store(float *p, vf v) { vst1q_f32(p, v); }
VF_INLINE vf vf_load_tail(const float *p, size_t n)
{
    if (n >= 4)
        return vld1q_f32(p);
    vf v = vdupq_n_f32(0.0f);
    if (n > 0)
        v = vld1q_lane_f32(p, v, 0);
    if (n > 1)
        v = vld1q_lane_f32(p + 1, v, 1);
    if (n > 2)
        v = vld1q_lane_f32(p + 2, v, 2);
    return v;
}
VF_INLINE vf vf_load_where(const float *p, vm m)
{
    vf v = vdupq_n_f32(0.0f);
    if (vgetq_lane_u32(m, 0) != 0)
        v = vld1q_lane_f32(p, v, 0);
    if (vgetq_lane_u32(m, 1) != 0)
        v = vld1q_lane_f32(p + 1, v, 1);
    if (vgetq_lane_u32(m, 2) != 0)
        v = vld1q_lane_f32(p + 2, v, 2);
    if (vgetq_lane_u32(m, 3) != 0)
        v = vld1q_lane_f32(p + 3, v, 3);
    return v;
}
VF_INLINE void vf_store_tail(float *p, vf v, size_t n)
{
    if (n >= 4) {
        vst1q_f32(p, v);
        return;
    }
    if (n > 0)
        vst1q_lane_f32(p, v, 0);
    if (n > 1)
        vst1q_lane_f32(p + 1, v, 1);
    if (n > 2)
        vst1q_lane_f32(p + 2, v, 2);
}
VF_INLINE void vf_stream(float *p, vf v) { vst1q_f32(p, v); }
VF_INLINE void vf_stream_end(void) {}
VF_INLINE vf vf_gather(const float *p, ptrdiff_t s)
{
    vf v = vld1q_lane_f32(p, vdupq_n_f32(0.0f), 0);
    v = vld1q_lane_f32(p + s, v, 1);
    v = vld1q_lane_f32(p + 2 * s, v, 2);
    return vld1q_lane_f32(p + 3 * s, v, 3);
}
VF_INLINE void vf_scatter(float *p, ptrdiff_t s, vf v)
{
    vst1q_lane_f32(p, v, 0);
    vst1q_lane_f32(p + s, v, 1);
    vst1q_lane_f32(p + 2 * s, v, 2);
    vst1q_lane_f32(p + 3 * s, v, 3);
}
VF_INLINE void vf_unzip(vf a, vf b, vf *even, vf *odd)
{
    *even = vuzp1q_f32(a, b);
    *odd = vuzp2q_f32(a, b);
}
VF_INLINE void vf_pairs(vf a, vf b, vf *even, vf *odd) { vf_unzip(a, b, even, odd); }
VF_INLINE vf vf_in_order(vf v) { return v; }
VF_INLINE void vf_zip(vf even, vf odd, vf *a, vf *b)
{
    *a = vzip1q_f32(even, odd);
    *b = vzip2q_f32(even, odd);
}
VF_INLINE vf vf_set1(float x) { return vdupq_n_f32(x); }
VF_INLINE vf vf_zero(void) { return vdupq_n_f32(0.0f); }
VF_INLINE vf vf_keep(vf v) { return v; }

VF_INLINE vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
VF_INLINE vf vf_sub(vf a, vf b) { return vsubq_f32(a, b); }
VF_INLINE vf vf_mul(vf a, vf b) { return vmulq_f32(a, b); }
VF_INLINE vf vf_div(vf a, vf b) { return vdivq_f32(a, b); }
VF_INLINE vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
VF_INLINE vf vf_fnma(vf a, vf b, vf c) { return vfmsq_f32(c, a, b); }
VF_INLINE vf vf_two_product(vf a, vf b, vf *low)
{
    vf high = vmulq_f32(a, b);
    *low = vfmaq_f32(vnegq_f32(high), a, b);
    return high;
}
/* NEON's own minimum and maximum pass a NaN from either side. */
VF_INLINE vf vf_min(vf a, vf b) { return vminq_f32(a, b); }
VF_INLINE vf vf_max(vf a, vf b) { return vmaxq_f32(a, b); }
VF_INLINE vf vf_min_nan(vf a, vf b) { return vminq_f32(a, b); }
VF_INLINE vf vf_max_nan(vf a, vf b) { return vmaxq_f32(a, b); }

VF_INLINE vi vf_bits(vf v) { return vreinterpretq_s32_f32(v); }
VF_INLINE vf vf_of_bits(vi v) { return vreinterpretq_f32_s32(v); }

VF_INLINE vf vf_abs(vf a) { return vabsq_f32(a); }
VF_INLINE vf vf_neg(vf a) { return vnegq_f32(a); }
VF_INLINE vf vf_sqrt(vf a) { return vsqrtq_f32(a); }
VF_INLINE vf vf_copysign(vf x, vf sign) { return vbslq_f32(vdupq_n_u32(0x80000000u), sign, x); }
VF_INLINE vf vf_round(vf a) { return vrndnq_f32(a); }
VF_INLINE vf vf_floor(vf a) { return vrndmq_f32(a); }
VF_INLINE vf vf_ceil(vf a) { return vrndpq_f32(a); }
VF_INLINE vf vf_trunc(vf a) { return vrndq_f32(a); }

VF_INLINE vm vf_lt(vf a, vf b) { return vcltq_f32(a, b); }
VF_INLINE vm vf_le(vf a, vf b) { return vcleq_f32(a, b); }
VF_INLINE vm vf_eq(vf a, vf b) { return vceqq_f32(a, b); }
VF_INLINE vm vf_ne(vf a, vf b) { return vmvnq_u32(vceqq_f32(a, b)); }
VF_INLINE vm vf_ge(vf a, vf b) { return vcgeq_f32(a, b); }
VF_INLINE vm vf_gt(vf a, vf b) { return vcgtq_f32(a, b); }
VF_INLINE vm vf_isnan(vf a) { return vmvnq_u32(vceqq_f32(a, a)); }
VF_INLINE vm vm_and(vm a, vm b) { return vandq_u32(a, b); }
VF_INLINE vm vm_or(vm a, vm b) { return vorrq_u32(a, b); }
VF_INLINE vm vm_not(vm a) { return vmvnq_u32(a); }
VF_INLINE bool vm_any(vm m) { return vmaxvq_u32(m) != 0; }
VF_INLINE bool vm_all(vm m) { return vminvq_u32(m) != 0; }
VF_INLINE void vm_store_bytes(uint8_t *p, const vm m[4])
{
    uint16x8_t a = vcombine_u16(vmovn_u32(m[0]), vmovn_u32(m[1]));
    uint16x8_t b = vcombine_u16(vmovn_u32(m[2]), vmovn_u32(m[3]));
    vst1q_u8(p, vandq_u8(vcombine_u8(vmovn_u16(a), vmovn_u16(b)), vdupq_n_u8(1)));
}
VF_INLINE vf vf_select(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }

/* Lane i takes lane i + 2, then i + 1. */
VF_INLINE float vf_sum(vf v)
{
    float32x2_t two = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
VF_INLINE float vf_hmin(vf v) { return vminvq_f32(v); }
VF_INLINE float vf_hmax(vf v) { return vmaxvq_f32(v); }

VF_INLINE vi vi_load(const int32_t *p) { return vld1q_s32(p); }
VF_INLINE void vi_store(int32_t *p, vi v) { vst1q_s32(p, v); }
VF_INLINE vi vi_load_tail(const int32_t *p, size_t n) { return vf_bits(vf_load_tail((const void *)p, n)); }
VF_INLINE void vi_store_tail(int32_t *p, vi v, size_t n) { vf_store_tail((void *)p, vf_of_bits(v), n); }
VF_INLINE vi vi_set1(int32_t x) { return vdupq_n_s32(x); }
VF_INLINE vi vi_iota(void)
{
    static const int32_t lanes[4] = {0, 1, 2, 3};
    return vld1q_s32(lanes);
}
VF_INLINE vi vi_add(vi a, vi b) { return vaddq_s32(a, b); }
VF_INLINE vi vi_sub(vi a, vi b) { return vsubq_s32(a, b); }
VF_INLINE vi vi_mul(vi a, vi b) { return vmulq_s32(a, b); }
VF_INLINE vi vi_mulhi_u(vi a, vi b)
{
    uint32x4_t x = vreinterpretq_u32_s32(a), y = vreinterpretq_u32_s32(b);
    uint64x2_t low = vmull_u32(vget_low_u32(x), vget_low_u32(y)), high = vmull_high_u32(x, y);
    return vreinterpretq_s32_u32(vuzp2q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high)));
}
VF_INLINE vi vi_mulhi(vi a, vi b)
{
    int64x2_t low = vmull_s32(vget_low_s32(a), vget_low_s32(b)), high = vmull_high_s32(a, b);
    return vuzp2q_s32(vreinterpretq_s32_s64(low), vreinterpretq_s32_s64(high));
}
VF_INLINE vi vi_min(vi a, vi b) { return vminq_s32(a, b); }
VF_INLINE vi vi_max(vi a, vi b) { return vmaxq_s32(a, b); }
VF_INLINE vi vi_and(vi a, vi b) { return vandq_s32(a, b); }
VF_INLINE vi vi_or(vi a, vi b) { return vorrq_s32(a, b); }
VF_INLINE vi vi_xor(vi a, vi b) { return veorq_s32(a, b); }
#define vi_shl(a, k) vshlq_n_s32(a, k)
#define vi_shr(a, k) vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), k))
#define vi_sar(a, k) vshrq_n_s32(a, k)
VF_INLINE vm vi_eq(vi a, vi b) { return vceqq_s32(a, b); }
VF_INLINE vm vi_gt(vi a, vi b) { return vcgtq_s32(a, b); }
VF_INLINE vi vi_select(vm m, vi a, vi b) { return vbslq_s32(m, a, b); }
VF_INLINE vm vm_first(size_t n) { return vcgtq_s32(vdupq_n_s32((int32_t)n), vi_iota()); }
VF_INLINE vf vf_from_vi(vi v) { return vcvtq_f32_s32(v); }
VF_INLINE vi vi_from_vf(vf v) { return vcvtnq_s32_f32(v); }
VF_INLINE vf vf_pow2i(vi n) { return vf_of_bits(vi_shl(vi_add(n, vi_set1(127)), 23)); }

VF_INLINE vf vf_load_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
VF_INLINE void vf_store_f16(uint16_t *p, vf v) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v))); }
VF_INLINE vf vf_load_i8(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
}
VF_INLINE vf vf_load_bf16(const uint16_t *p)
{
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(p)), 16));
}
VF_INLINE void vf_store_bf16(uint16_t *p, vf v)
{
    uint32x4_t bits = vreinterpretq_u32_f32(v), top = vshrq_n_u32(bits, 16);
    uint32x4_t odd = vandq_u32(top, vdupq_n_u32(1));
    uint32x4_t rounded = vshrq_n_u32(vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd), 16);
    uint32x4_t quiet = vorrq_u32(top, vdupq_n_u32(0x40)); /* a NaN stays one */
    vst1_u16(p, vmovn_u32(vbslq_u32(vf_isnan(v), quiet, rounded)));
}

VF_INLINE void vf_transpose(vf *rows)
{
    float32x4x2_t a = vtrnq_f32(rows[0], rows[1]), b = vtrnq_f32(rows[2], rows[3]);
    rows[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    rows[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    rows[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    rows[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

/* The halves of two rows are added, then the lanes of four. */
VF_INLINE vf vf_sums(const vf *rows)
{
    vf half[2];
    for (int i = 0; i < 2; i++)
        half[i] = vaddq_f32(vcombine_f32(vget_low_f32(rows[2 * i]), vget_low_f32(rows[2 * i + 1])),
                            vcombine_f32(vget_high_f32(rows[2 * i]), vget_high_f32(rows[2 * i + 1])));
    return vpaddq_f32(half[0], half[1]);
}

#endif
