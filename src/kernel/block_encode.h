/* 32 floats into one block of each plain format, as the reference does it; included by block.c alone.
 *
 * If a block's scale is so small that its reciprocal overflows, the quantized numbers are garbage, but harmless:
 * such a scale is 0 as f16. */
#ifndef MICA_SRC_KERNEL_BLOCK_ENCODE_H
#define MICA_SRC_KERNEL_BLOCK_ENCODE_H

VF_INLINE void put_half(uint8_t *p, float value)
{
    uint16_t bits;
    vf_store_f16_tail(&bits, vf_set1(value), 1);
    p[0] = (uint8_t)bits;
    p[1] = (uint8_t)(bits >> 8);
}

VF_INLINE float inverse_of(float d) { return d == 0.0f ? 0.0f : 1.0f / d; }

/* ---- Extremes, by bits: integers vectorise where the order of NaNs would keep floats from it ---- */

VF_INLINE float float_of(int32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The largest magnitude; a NaN if there is one. */
VF_INLINE int32_t most_of(const int32_t *bits)
{
    int32_t most = 0;
    for (int j = 0; j < 32; j++) {
        int32_t size = bits[j] & INT32_MAX;
        most = size > most ? size : most;
    }
    return most;
}

/* The first value of the largest magnitude. */
VF_INLINE float signed_most_of(const float *x)
{
    int32_t bits[32], first = 31;
    memcpy(bits, x, sizeof bits);
    int32_t most = most_of(bits);
    for (int32_t j = 31; j >= 0; j--)
        first = (bits[j] & INT32_MAX) == most ? j : first;
    return x[first];
}

/* Turns the bits of a float into an integer of the same order, and back. */
VF_INLINE int32_t ordered(int32_t bits) { return bits < 0 ? bits ^ INT32_MAX : bits; }

VF_INLINE void range_of(const float *x, float *least, float *most)
{
    int32_t bits[32], low = INT32_MAX, high = INT32_MIN;
    memcpy(bits, x, sizeof bits);
    for (int j = 0; j < 32; j++) {
        int32_t key = ordered(bits[j]);
        low = key < low ? key : low;
        high = key > high ? key : high;
    }
    *least = float_of(ordered(low));
    *most = float_of(ordered(high));
}

/* ---- Numbers of a few bits ---- */

/* q[j] = (x[j] - from) * inverse + shift, cut to a whole number from 0 to `last`; NaN becomes 0. */
VF_INLINE void cut(uint8_t *restrict q, const float *restrict x, float from, float inverse, float shift,
                   float last)
{
    for (int j = 0; j < 32; j++) {
        float value = (x[j] - from) * inverse + shift;
        value = value > 0.0f ? value : 0.0f;
        value = value < last ? value : last;
        q[j] = (uint8_t)(int)value;
    }
}

VF_INLINE void put_nibbles(uint8_t *restrict out, const uint8_t *restrict q)
{
    for (int j = 0; j < 16; j++)
        out[j] = (uint8_t)((q[j] & 15) | q[16 + j] << 4);
}

VF_INLINE void put_fifth_bits(uint8_t *restrict out, const uint8_t *restrict q)
{
    uint32_t bits = 0;
    for (int j = 0; j < 32; j++)
        bits |= (uint32_t)(q[j] >> 4) << j;
    for (int k = 0; k < 4; k++)
        out[k] = (uint8_t)(bits >> (8 * k));
}

/* ---- Blocks ---- */

VF_INLINE void encode_Q4_0(uint8_t *block, const float *x)
{
    uint8_t q[32];
    float d = signed_most_of(x) / -8.0f;
    cut(q, x, 0.0f, inverse_of(d), 8.5f, 15.0f);
    put_half(block, d);
    put_nibbles(block + 2, q);
}

VF_INLINE void encode_Q4_1(uint8_t *block, const float *x)
{
    uint8_t q[32];
    float least, most;
    range_of(x, &least, &most);
    float d = (most - least) / 15.0f;
    cut(q, x, least, inverse_of(d), 0.5f, 15.0f);
    put_half(block, d);
    put_half(block + 2, least);
    put_nibbles(block + 4, q);
}

VF_INLINE void encode_Q5_0(uint8_t *block, const float *x)
{
    uint8_t q[32];
    float d = signed_most_of(x) / -16.0f;
    cut(q, x, 0.0f, inverse_of(d), 16.5f, 31.0f);
    put_half(block, d);
    put_fifth_bits(block + 2, q);
    put_nibbles(block + 6, q);
}

VF_INLINE void encode_Q5_1(uint8_t *block, const float *x)
{
    uint8_t q[32];
    float least, most;
    range_of(x, &least, &most);
    float d = (most - least) / 31.0f;
    cut(q, x, least, inverse_of(d), 0.5f, 31.0f);
    put_half(block, d);
    put_half(block + 2, least);
    put_fifth_bits(block + 4, q);
    put_nibbles(block + 8, q);
}

/* Halves round away from zero. */
VF_INLINE void encode_Q8_0(uint8_t *block, const float *x)
{
    int32_t bits[32];
    memcpy(bits, x, sizeof bits);
    float d = float_of(most_of(bits)) / 127.0f, inverse = inverse_of(d);
    put_half(block, d);
    for (int j = 0; j < 32; j++) {
        float value = x[j] * inverse, size = fabsf(value);
        size = size < 127.0f ? size : 127.0f;
        int whole = (int)size;
        whole += size - (float)whole >= 0.5f;
        block[2 + j] = (uint8_t)(value < 0.0f ? -whole : whole);
    }
}

#endif
