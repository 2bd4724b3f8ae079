/* Bytes in vectors of 16: NEON, with dot products where the compiler's flags have them. See vec_bytes.h for what each
 * name means. */
#ifndef MICA_SRC_KERNEL_VEC_BYTES_NEON_H
#define MICA_SRC_KERNEL_VEC_BYTES_NEON_H

#define VB_TILE        8
#define VB_PANEL       1
#define VB_WIDE_OFFSET 0

typedef uint8x16_t vb;

VF_INLINE vb vb_rows(const vb_source *s, int j, size_t at) { return vld1q_u8(vb_row(s, j) + at); }
VF_INLINE vb vb_load(const uint8_t *p) { return vld1q_u8(p); }
VF_INLINE void vb_store(uint8_t *p, vb v) { vst1q_u8(p, v); }
VF_INLINE void vi_store_bytes(int8_t *p, vi v)
{
    int16x4_t words = vmovn_s32(v);
    int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    memcpy(p, &bytes, 4);
}
VF_INLINE vb vb_set1(uint8_t x) { return vdupq_n_u8(x); }
VF_INLINE vb vb_repeat16(const uint8_t *p) { return vld1q_u8(p); }
VF_INLINE vb vb_repeat4(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vreinterpretq_u8_u32(vdupq_n_u32(four));
}
VF_INLINE vb vb_slide(const uint8_t *p)
{
    static const uint8_t bytes[] = {0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6};
    return vqtbl1q_u8(vld1q_u8(p), vld1q_u8(bytes));
}
VF_INLINE vb vb_lookup(vb table, vb v) { return vqtbl1q_u8(table, v); }
VF_INLINE vb vb_or_where(vb v, vb x, vb bits, vb more)
{
    return vorrq_u8(v, vandq_u8(vtstq_u8(x, bits), more));
}

#if defined(__ARM_FEATURE_DOTPROD)
VF_INLINE vi vi_dot(vi sum, vb u, vb a)
{
    return vdotq_s32(sum, vreinterpretq_s8_u8(u), vreinterpretq_s8_u8(a));
}
#else
VF_INLINE vi vi_dot(vi sum, vb u, vb a)
{
    int8x16_t x = vreinterpretq_s8_u8(u), y = vreinterpretq_s8_u8(a);
    int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)));
    int32x4_t high = vpaddlq_s16(vmull_high_s8(x, y));
    return vaddq_s32(sum, vpaddq_s32(low, high));
}
#endif
VF_INLINE vi vi_dot_wide(vi sum, vb w, vb a) { return vi_dot(sum, w, a); }
#if defined(__ARM_FEATURE_DOTPROD)
#define VB_HAS_PAIRS 400
#else
#define VB_HAS_PAIRS 70
#endif
VF_INLINE vi vi_dot_pairs(vi sum, vb a, vb b)
{
    int16x8_t x = vreinterpretq_s16_u8(a), y = vreinterpretq_s16_u8(b);
    int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y));
    return vaddq_s32(sum, vpaddq_s32(low, vmull_high_s16(x, y)));
}

VF_INLINE void vb_turn_rows(vb *v)
{
    uint32x4_t r[4];
    for (int i = 0; i < 4; i++)
        r[i] = vreinterpretq_u32_u8(v[i]);
    uint64x2_t a = vreinterpretq_u64_u32(vzip1q_u32(r[0], r[1])),
               b = vreinterpretq_u64_u32(vzip1q_u32(r[2], r[3]));
    uint64x2_t c = vreinterpretq_u64_u32(vzip2q_u32(r[0], r[1])),
               d = vreinterpretq_u64_u32(vzip2q_u32(r[2], r[3]));
    v[0] = vreinterpretq_u8_u64(vzip1q_u64(a, b));
    v[1] = vreinterpretq_u8_u64(vzip2q_u64(a, b));
    v[2] = vreinterpretq_u8_u64(vzip1q_u64(c, d));
    v[3] = vreinterpretq_u8_u64(vzip2q_u64(c, d));
}

VF_INLINE void vb_make_quads(vb *v)
{
    uint16x8_t a = vreinterpretq_u16_u8(vzip1q_u8(v[0], v[1])),
               b = vreinterpretq_u16_u8(vzip1q_u8(v[2], v[3]));
    uint16x8_t c = vreinterpretq_u16_u8(vzip2q_u8(v[0], v[1])),
               d = vreinterpretq_u16_u8(vzip2q_u8(v[2], v[3]));
    v[0] = vreinterpretq_u8_u16(vzip1q_u16(a, b));
    v[1] = vreinterpretq_u8_u16(vzip2q_u16(a, b));
    v[2] = vreinterpretq_u8_u16(vzip1q_u16(c, d));
    v[3] = vreinterpretq_u8_u16(vzip2q_u16(c, d));
}
VF_INLINE vb vb_pack_quads(const vi *v)
{
    int16x8_t a = vcombine_s16(vqmovn_s32(v[0]), vqmovn_s32(v[1])),
              b = vcombine_s16(vqmovn_s32(v[2]), vqmovn_s32(v[3]));
    return vreinterpretq_u8_s8(vcombine_s8(vqmovn_s16(a), vqmovn_s16(b)));
}
VF_INLINE vb vb_pack_lanes(const vi *v) { return vb_pack_quads(v); }
VF_INLINE void vb_store_part(int8_t *p, vb v, int k)
{
    uint8_t all[16];
    vst1q_u8(all, v);
    memcpy(p, all + 4 * k, 4);
}
VF_INLINE vb vb_limit(vb v, vb low, vb high)
{
    int8x16_t least = vmaxq_s8(vreinterpretq_s8_u8(v), vreinterpretq_s8_u8(low));
    return vreinterpretq_u8_s8(vminq_s8(least, vreinterpretq_s8_u8(high)));
}

VF_INLINE vf vi_halfword(vi v, bool high)
{
    uint16x4_t half = vmovn_u32(vreinterpretq_u32_s32(high ? vshrq_n_s32(v, 16) : v));
    return vcvt_f32_f16(vreinterpret_f16_u16(half));
}

#endif
