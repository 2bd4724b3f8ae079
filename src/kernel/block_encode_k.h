/* Blocks with groups, and blocks of uneven levels, out of floats; included by block.c alone. The layouts are those of
 * block_decode.h, the numbers come from block_fit.h. */
#ifndef MICA_SRC_KERNEL_BLOCK_ENCODE_K_H
#define MICA_SRC_KERNEL_BLOCK_ENCODE_K_H

/* ---- Values to groups, and back to levels ---- */

/* The power of two next to the largest magnitude, or one that is safe to divide by. False if a value is not finite. */
VF_INLINE bool unit_of(const float *x, int n, float *unit)
{
    int32_t most = 0;
    for (int i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    int32_t exponent = most >> 23, least = 127 - 60;
    *unit = float_of((exponent < least ? least : exponent) << 23);
    return exponent < 255;
}

VF_INLINE void put_group(groups *out, int g, const float *x, int n, float unit)
{
    float inverse = 1.0f / unit;
    for (int j = 0; j < n; j++)
        out->x[j * GROUPS + g] = x[j] * inverse;
}

/* The levels of all values, less the lowest, in the order of the block; uneven ones as they are. */
VF_INLINE void levels(const format *f, const groups *in, const found *at, int8_t *q)
{
    for (int g = 0; g < f->groups; g += VF_LANES) {
        vf scale = vf_mul(vf_load(at->scale + g), vf_set1(at->d));
        vf least = vf_mul(vf_load(at->least + g), vf_set1(at->dmin)), inverse = ratio(vf_set1(1.0f), scale);
        for (int j = 0; j < f->length; j++) {
            int32_t lanes[VF_LANES];
            vf value = vf_load(in->x + g + j * GROUPS), raised = f->has_least ? vf_add(value, least) : value;
            vf level = level_of(f, vf_mul(raised, inverse));
            vi_store(lanes, vi_from_vf(level));
            for (int k = 0; k < VF_LANES && g + k < f->groups; k++)
                q[(g + k) * f->length + j] = (int8_t)(lanes[k] - (f->uneven ? 0 : (int32_t)f->low));
        }
    }
}

/* A block that decodes to NaNs, whose scale is at d. */
VF_INLINE void spoil(uint8_t *block, size_t size, size_t d)
{
    memset(block, 0, size);
    block[d + 1] = 0x7e;
}

/* Everything but the layout. False if no block can hold the values: one is not finite, or the scale too large. */
VF_INLINE bool quantize(const format *f, const float *x, found *at, void *q)
{
    groups in = {.unit = 1.0f};
    if (!unit_of(x, f->groups * f->length, &in.unit))
        return false;
    for (int g = 0; g < f->groups; g++)
        put_group(&in, g, x + g * f->length, f->length, in.unit);
    *at = search(f, &in);
    levels(f, &in, at, q);
    at->d *= in.unit;
    at->dmin *= in.unit;
    return at->error < (double)INFINITY;
}

/* ---- Blocks ---- */

static const format format_Q2_K = {.groups = 16,
                                   .length = 16,
                                   .top = 3,
                                   .has_least = true,
                                   .scale_top = 15,
                                   .first = -0.9f,
                                   .step = 0.15f,
                                   .starts = 13};
static const format format_Q3_K = {.groups = 16,
                                   .length = 16,
                                   .low = -4,
                                   .top = 3,
                                   .scale_low = -32,
                                   .scale_top = 31,
                                   .first = 0.7f,
                                   .step = 0.05f,
                                   .starts = 11};
static const format format_Q4_K = {.groups = 8,
                                   .length = 32,
                                   .top = 15,
                                   .has_least = true,
                                   .scale_top = 63,
                                   .first = -2.0f,
                                   .step = 0.3f,
                                   .starts = 11};
static const format format_Q5_K = {.groups = 8,
                                   .length = 32,
                                   .top = 31,
                                   .has_least = true,
                                   .scale_top = 63,
                                   .first = -3.0f,
                                   .step = 0.4f,
                                   .starts = 13};
static const format format_Q6_K = {.groups = 16,
                                   .length = 16,
                                   .low = -32,
                                   .top = 31,
                                   .scale_low = -128,
                                   .scale_top = 127,
                                   .first = 0.8f,
                                   .step = 0.02f,
                                   .starts = 14};
static const format format_IQ4_XS = {.groups = 8,
                                     .length = 32,
                                     .uneven = true,
                                     .low = -127,
                                     .top = 113,
                                     .scale_low = -32,
                                     .scale_top = 31,
                                     .first = 0.7f,
                                     .step = 0.06f,
                                     .starts = 8};
static const format format_IQ4_NL = {.groups = GROUPS,
                                     .length = 32,
                                     .uneven = true,
                                     .low = -127,
                                     .top = 113,
                                     .first = 0.7f,
                                     .step = 0.06f,
                                     .starts = 8};

/* Two bits of each value: those of values 32 apart share a byte. */
VF_INLINE void put_pairs(uint8_t *out, const uint8_t *q, int shift)
{
    for (int j = 0; j < 64; j++) {
        const uint8_t *from = q + j / 32 * 128 + j % 32;
        out[j] = (uint8_t)((from[0] >> shift & 3) | (from[32] >> shift & 3) << 2 |
                           (from[64] >> shift & 3) << 4 | (from[96] >> shift & 3) << 6);
    }
}

/* Bit g of byte j: bit `shift` of value j of the g-th 32. */
VF_INLINE void put_single_bits(uint8_t *out, const uint8_t *q, int shift)
{
    for (int j = 0; j < 32; j++) {
        int bits = 0;
        for (int g = 0; g < 8; g++)
            bits |= (q[g * 32 + j] >> shift & 1) << g;
        out[j] = (uint8_t)bits;
    }
}

VF_INLINE void encode_Q2_K(uint8_t *block, const float *x)
{
    uint8_t q[256];
    found at;
    if (!quantize(&format_Q2_K, x, &at, q)) {
        spoil(block, 84, 80);
        return;
    }
    for (int g = 0; g < 16; g++)
        block[g] = (uint8_t)((int)at.scale[g] | (int)at.least[g] << 4);
    put_pairs(block + 16, q, 0);
    put_half(block + 80, at.d);
    put_half(block + 82, at.dmin);
}

VF_INLINE void encode_Q3_K(uint8_t *block, const float *x)
{
    uint8_t q[256];
    found at;
    if (!quantize(&format_Q3_K, x, &at, q)) {
        spoil(block, 110, 108);
        return;
    }
    put_single_bits(block, q, 2);
    put_pairs(block + 32, q, 0);
    int scale[16];
    for (int g = 0; g < 16; g++)
        scale[g] = (int)at.scale[g] + 32;
    for (int g = 0; g < 8; g++)
        block[96 + g] = (uint8_t)((scale[g] & 15) | (scale[g + 8] & 15) << 4);
    for (int g = 0; g < 4; g++)
        block[104 + g] = (uint8_t)(scale[g] >> 4 | scale[g + 4] >> 4 << 2 | scale[g + 8] >> 4 << 4 |
                                   scale[g + 12] >> 4 << 6);
    put_half(block + 108, at.d);
}

/* d, dmin, and six bits of eight scales and minima. */
VF_INLINE void put_eight(uint8_t *block, const found *at)
{
    put_half(block, at->d);
    put_half(block + 2, at->dmin);
    for (int g = 0; g < 4; g++) {
        int scale = (int)at->scale[g], least = (int)at->least[g];
        int scale_4 = (int)at->scale[g + 4], least_4 = (int)at->least[g + 4];
        block[4 + g] = (uint8_t)(scale | scale_4 >> 4 << 6);
        block[8 + g] = (uint8_t)(least | least_4 >> 4 << 6);
        block[12 + g] = (uint8_t)((scale_4 & 15) | (least_4 & 15) << 4);
    }
}

/* 32 bytes for 64 values: low nibbles, then high ones. */
VF_INLINE void put_nibbles_of_64(uint8_t *out, const uint8_t *q)
{
    for (int j = 0; j < 128; j++) {
        const uint8_t *from = q + j / 32 * 64 + j % 32;
        out[j] = (uint8_t)((from[0] & 15) | (from[32] & 15) << 4);
    }
}

VF_INLINE void encode_Q4_K(uint8_t *block, const float *x)
{
    uint8_t q[256];
    found at;
    if (!quantize(&format_Q4_K, x, &at, q)) {
        spoil(block, 144, 0);
        return;
    }
    put_eight(block, &at);
    put_nibbles_of_64(block + 16, q);
}

VF_INLINE void encode_Q5_K(uint8_t *block, const float *x)
{
    uint8_t q[256];
    found at;
    if (!quantize(&format_Q5_K, x, &at, q)) {
        spoil(block, 176, 0);
        return;
    }
    put_eight(block, &at);
    put_single_bits(block + 16, q, 4);
    put_nibbles_of_64(block + 48, q);
}

VF_INLINE void encode_Q6_K(uint8_t *block, const float *x)
{
    uint8_t q[256];
    found at;
    if (!quantize(&format_Q6_K, x, &at, q)) {
        spoil(block, 210, 208);
        return;
    }
    for (int j = 0; j < 128;
         j++) { /* each half of the values: nibbles of 128, those of values 64 apart in a byte */
        const uint8_t *from = q + j / 64 * 128 + j % 64;
        block[j] = (uint8_t)((from[0] & 15) | (from[64] & 15) << 4);
    }
    put_pairs(block + 128, q, 4);
    for (int g = 0; g < 16; g++)
        block[192 + g] = (uint8_t)(int8_t)at.scale[g];
    put_half(block + 208, at.d);
}

/* The number of a value in the uneven table. */
VF_INLINE uint8_t uneven_number(int8_t value)
{
    int number = 0;
    for (int k = 1; k < 16; k++)
        number += value >= uneven[k];
    return (uint8_t)number;
}

VF_INLINE void put_uneven(uint8_t *out, const int8_t *values)
{
    uint8_t numbers[32];
    for (int j = 0; j < 32; j++)
        numbers[j] = uneven_number(values[j]);
    put_nibbles(out, numbers);
}

VF_INLINE void encode_IQ4_XS(uint8_t *block, const float *x)
{
    int8_t q[256];
    found at;
    if (!quantize(&format_IQ4_XS, x, &at, q)) {
        spoil(block, 136, 0);
        return;
    }
    put_half(block, at.d);
    int high = 0, low[8];
    for (int g = 0; g < 8; g++) {
        int scale = (int)at.scale[g] + 32;
        high |= scale >> 4 << (2 * g);
        low[g] = scale & 15;
        put_uneven(block + 8 + g * 16, q + g * 32);
    }
    block[2] = (uint8_t)high;
    block[3] = (uint8_t)(high >> 8);
    for (int k = 0; k < 4; k++)
        block[4 + k] = (uint8_t)(low[2 * k] | low[2 * k + 1] << 4);
}

/* Up to GROUPS blocks, which are groups that have nothing in common. */
VF_INLINE void encode_some_IQ4_NL(uint8_t *blocks, const float *x, int count)
{
    const format *f = &format_IQ4_NL;
    groups in = {.unit = 1.0f};
    found at = {.d = 1.0f};
    float unit[GROUPS];
    bool finite[GROUPS];
    for (int g = 0; g < count; g++) {
        finite[g] = unit_of(x + g * 32, 32, &unit[g]);
        if (finite[g])
            put_group(&in, g, x + g * 32, 32, unit[g]);
    }
    for (int g = 0; g < count; g += VF_LANES)
        vf_store(at.scale + g, fit_lane(f, in.x + g).scale);
    for (int g = 0; g < count; g++)
        at.scale[g] = as_half(at.scale[g], unit[g]);
    int8_t q[GROUPS * 32];
    levels(f, &in, &at, q);
    for (int g = 0; g < count; g++) {
        uint8_t *block = blocks + g * 18;
        if (!finite[g] || !isfinite(at.scale[g])) {
            spoil(block, 18, 0);
            continue;
        }
        put_half(block, at.scale[g] * unit[g]);
        put_uneven(block + 2, q + g * 32);
    }
}

#endif
