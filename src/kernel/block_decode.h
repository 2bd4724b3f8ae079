/* One block of each format into floats; included by block.c and quant.c alone.
 *
 * The fields are listed above each function in memory order. Loops have constant bounds and no branches,
 * so that the compiler vectorizes them. */
#ifndef MICA_SRC_KERNEL_BLOCK_DECODE_H
#define MICA_SRC_KERNEL_BLOCK_DECODE_H

/* A little-endian f16 at any address. The exponent's bias differs by 112; scaling by 2^112 also makes subnormals
 * normal. */
VF_INLINE float half_at(const uint8_t *p)
{
    uint32_t bits = (uint32_t)p[0] | (uint32_t)p[1] << 8, rest = (bits & 0x7fffu) << 13;
    float value;
    memcpy(&value, &rest, sizeof value);
    value *= 0x1p112f;
    memcpy(&rest, &value, sizeof rest);
    rest |= value >= 0x1p16f ? 0x7f800000u : 0u; /* infinity and NaN */
    rest |= (bits & 0x8000u) << 16;
    memcpy(&value, &rest, sizeof value);
    return value;
}

VF_INLINE uint32_t four_bytes_at(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ---- Blocks of 32 values ---- */

/* d, 16 bytes: low nibbles are the first half of the values, high ones the second */
VF_INLINE void decode_Q4_0(float *restrict v, const uint8_t *restrict block)
{
    float d = half_at(block);
    const uint8_t *q = block + 2;
    for (int j = 0; j < 16; j++)
        v[j] = d * (float)((q[j] & 15) - 8);
    for (int j = 0; j < 16; j++)
        v[16 + j] = d * (float)((q[j] >> 4) - 8);
}

/* d, m, 16 bytes */
VF_INLINE void decode_Q4_1(float *restrict v, const uint8_t *restrict block)
{
    float d = half_at(block), m = half_at(block + 2);
    const uint8_t *q = block + 4;
    for (int j = 0; j < 16; j++)
        v[j] = d * (float)(q[j] & 15) + m;
    for (int j = 0; j < 16; j++)
        v[16 + j] = d * (float)(q[j] >> 4) + m;
}

/* d, 4 bytes of fifth bits (bit j: value j), 16 bytes */
VF_INLINE void decode_Q5_0(float *restrict v, const uint8_t *restrict block)
{
    float d = half_at(block);
    uint32_t fifth = four_bytes_at(block + 2);
    const uint8_t *q = block + 6;
    for (int j = 0; j < 16; j++)
        v[j] = d * (float)((int)((q[j] & 15u) | (fifth >> j & 1u) << 4) - 16);
    for (int j = 0; j < 16; j++)
        v[16 + j] = d * (float)((int)(((uint32_t)q[j] >> 4) | (fifth >> (16 + j) & 1u) << 4) - 16);
}

/* d, m, 4 bytes of fifth bits, 16 bytes */
VF_INLINE void decode_Q5_1(float *restrict v, const uint8_t *restrict block)
{
    float d = half_at(block), m = half_at(block + 2);
    uint32_t fifth = four_bytes_at(block + 4);
    const uint8_t *q = block + 8;
    for (int j = 0; j < 16; j++)
        v[j] = d * (float)(int)((q[j] & 15u) | (fifth >> j & 1u) << 4) + m;
    for (int j = 0; j < 16; j++)
        v[16 + j] = d * (float)(int)(((uint32_t)q[j] >> 4) | (fifth >> (16 + j) & 1u) << 4) + m;
}

/* d, 32 signed bytes */
VF_INLINE void decode_Q8_0(float *restrict v, const uint8_t *restrict block)
{
    float d = half_at(block);
    for (int j = 0; j < 32; j++)
        v[j] = d * (float)(int8_t)block[2 + j];
}

static const int8_t uneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* Nibbles of 16 bytes that number values of the table above. */
VF_INLINE void decode_uneven(float *restrict v, float d, const uint8_t *restrict q)
{
    for (int j = 0; j < 16; j++)
        v[j] = d * (float)uneven[q[j] & 15];
    for (int j = 0; j < 16; j++)
        v[16 + j] = d * (float)uneven[q[j] >> 4];
}

/* d, 16 bytes */
VF_INLINE void decode_IQ4_NL(float *restrict v, const uint8_t *restrict block)
{
    decode_uneven(v, half_at(block), block + 2);
}

/* ---- Blocks of 256 values: groups of 16 or 32 with small scales of their own ---- */

/* 16 bytes of scales (low nibble) and minima (high), 64 bytes, d, dmin. Each 32 bytes hold 128 values: the lowest
 * two bits of all, then the next two. */
VF_INLINE void decode_Q2_K(float *restrict v, const uint8_t *restrict block)
{
    const uint8_t *scales = block, *q = block + 16;
    float d = half_at(block + 80), dmin = half_at(block + 82);
    for (int group = 0; group < 16; group++) {
        int shift = group / 2 % 4 * 2;
        const uint8_t *from = q + group / 8 * 32 + group % 2 * 16;
        float scale = d * (float)(scales[group] & 15), least = dmin * (float)(scales[group] >> 4);
        for (int j = 0; j < 16; j++)
            v[group * 16 + j] = scale * (float)(from[j] >> shift & 3) - least;
    }
}

/* Scale `group` of the 16 with six bits in twelve bytes, as Q3_K packs them. */
VF_INLINE int scale_of_sixteen(const uint8_t *s, int group)
{
    int low = group < 8 ? s[group] & 15 : s[group - 8] >> 4;
    return low | (s[8 + group % 4] >> (group / 4 * 2) & 3) << 4;
}

/* 32 bytes of third bits (bit g of byte j: value j of the g-th 32), 64 bytes as in Q2_K, 12 of scales, d. A third
 * bit that is not set takes 4 away. */
VF_INLINE void decode_Q3_K(float *restrict v, const uint8_t *restrict block)
{
    const uint8_t *third = block, *q = block + 32, *scales = block + 96;
    float d = half_at(block + 108);
    for (int group = 0; group < 16; group++) {
        int shift = group / 2 % 4 * 2, bit = group / 2;
        const uint8_t *from = q + group / 8 * 32 + group % 2 * 16, *high = third + group % 2 * 16;
        float scale = d * (float)(scale_of_sixteen(scales, group) - 32);
        for (int j = 0; j < 16; j++)
            v[group * 16 + j] = scale * (float)((from[j] >> shift & 3) + (high[j] >> bit & 1) * 4 - 4);
    }
}

/* Scale and minimum `group` of the eight with six bits each in twelve bytes, as Q4_K and Q5_K pack them. */
VF_INLINE void scale_of_eight(const uint8_t *s, int group, int *scale, int *least)
{
    if (group < 4) {
        *scale = s[group] & 63;
        *least = s[group + 4] & 63;
    } else {
        *scale = (s[group + 4] & 15) | s[group - 4] >> 6 << 4;
        *least = s[group + 4] >> 4 | s[group] >> 6 << 4;
    }
}

/* d, dmin, 12 bytes of scales, 128 bytes: 32 hold 64 values, the low nibbles first */
VF_INLINE void decode_Q4_K(float *restrict v, const uint8_t *restrict block)
{
    const uint8_t *q = block + 16;
    float d = half_at(block), dmin = half_at(block + 2);
    for (int group = 0; group < 8; group++) {
        int s, m, shift = group % 2 * 4;
        scale_of_eight(block + 4, group, &s, &m);
        const uint8_t *from = q + group / 2 * 32;
        float scale = d * (float)s, least = dmin * (float)m;
        for (int j = 0; j < 32; j++)
            v[group * 32 + j] = scale * (float)(from[j] >> shift & 15) - least;
    }
}

/* d, dmin, 12 bytes of scales, 32 of fifth bits (bit g of byte j: value j of group g), 128 bytes as in Q4_K */
VF_INLINE void decode_Q5_K(float *restrict v, const uint8_t *restrict block)
{
    const uint8_t *fifth = block + 16, *q = block + 48;
    float d = half_at(block), dmin = half_at(block + 2);
    for (int group = 0; group < 8; group++) {
        int s, m, shift = group % 2 * 4;
        scale_of_eight(block + 4, group, &s, &m);
        const uint8_t *from = q + group / 2 * 32;
        float scale = d * (float)s, least = dmin * (float)m;
        for (int j = 0; j < 32; j++)
            v[group * 32 + j] = scale * (float)((from[j] >> shift & 15) | (fifth[j] >> group & 1) << 4) -
                                least;
    }
}

/* 128 bytes of low nibbles, 64 of high pairs of bits, 16 signed scales, d. Each half of the values: 64 bytes of
 * nibbles, first all low ones, and 32 of pairs, the lowest first. */
VF_INLINE void decode_Q6_K(float *restrict v, const uint8_t *restrict block)
{
    const uint8_t *low = block, *high = block + 128, *scales = block + 192;
    float d = half_at(block + 208);
    for (int group = 0; group < 16; group++) {
        int half = group / 8, quarter = group / 2 % 4, side = group % 2 * 16;
        const uint8_t *from = low + half * 64 + quarter % 2 * 32 + side, *pairs = high + half * 32 + side;
        int low_shift = quarter / 2 * 4, high_shift = quarter * 2;
        float scale = d * (float)(int8_t)scales[group];
        for (int j = 0; j < 16; j++)
            v[group * 16 + j] =
                scale * (float)(((from[j] >> low_shift & 15) | (pairs[j] >> high_shift & 3) << 4) - 32);
    }
}

/* d, 2 bytes of high scale bits, 4 of low ones, 128 bytes: 16 for each 32 values as in IQ4_NL */
VF_INLINE void decode_IQ4_XS(float *restrict v, const uint8_t *restrict block)
{
    float d = half_at(block);
    int high = block[2] | block[3] << 8;
    for (int group = 0; group < 8; group++) {
        int scale = (block[4 + group / 2] >> (group % 2 * 4) & 15) | (high >> (group * 2) & 3) << 4;
        decode_uneven(v + group * 32, d * (float)(scale - 32), block + 8 + group * 16);
    }
}

#endif
