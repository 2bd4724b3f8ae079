/* Products with block-quantized weights in plain C, a weight row at a time; included by quant.c alone. */
#ifndef MICA_SRC_KERNEL_QUANT_PLAIN_H
#define MICA_SRC_KERNEL_QUANT_PLAIN_H

#define PLAIN_TILE 4

/* a * b + c rounded once, whatever the machine has: the product is exact in double, and a sum that was rounded is made
 * odd in its last bit, so that rounding it again goes the way rounding once would. */
VF_INLINE float fused(float a, float b, float c)
{
    double product = (double)a * (double)b, sum = product + (double)c;
    double part = sum - product, error = (product - (sum - part)) + ((double)c - part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (!(bits & 1u) && (error > 0.0 || error < 0.0)) {
        bits += (error > 0.0) == (sum > 0.0) ? 1u : UINT64_MAX;
        memcpy(&sum, &bits, sizeof sum);
    }
    return (float)sum;
}

/* ---- Unpacking: one block of each type. The layouts stand in block_decode.h. ---- */

VF_INLINE void plain_nibbles(uint8_t *u, const uint8_t *q)
{
    for (int j = 0; j < 16; j++) {
        u[j] = q[j] & 15;
        u[16 + j] = q[j] >> 4;
    }
}

VF_INLINE void plain_fifth_bits(uint8_t *u, uint32_t fifth)
{
    for (int j = 0; j < 32; j++)
        u[j] = (uint8_t)(u[j] | (fifth >> j & 1u) << 4);
}

VF_INLINE void plain_uneven(uint8_t *u, const uint8_t *q)
{
    for (int j = 0; j < 16; j++) {
        u[j] = (uint8_t)(uneven[q[j] & 15] + 128);
        u[16 + j] = (uint8_t)(uneven[q[j] >> 4] + 128);
    }
}

VF_INLINE void plain_Q4_0(uint8_t *u, float *d, float *m, const uint8_t *block)
{
    (void)m;
    *d = half_at(block);
    plain_nibbles(u, block + 2);
}

VF_INLINE void plain_Q4_1(uint8_t *u, float *d, float *m, const uint8_t *block)
{
    *d = half_at(block);
    *m = half_at(block + 2);
    plain_nibbles(u, block + 4);
}

VF_INLINE void plain_Q5_0(uint8_t *u, float *d, float *m, const uint8_t *block)
{
    (void)m;
    *d = half_at(block);
    plain_nibbles(u, block + 6);
    plain_fifth_bits(u, four_bytes_at(block + 2));
}

VF_INLINE void plain_Q5_1(uint8_t *u, float *d, float *m, const uint8_t *block)
{
    *d = half_at(block);
    *m = half_at(block + 2);
    plain_nibbles(u, block + 8);
    plain_fifth_bits(u, four_bytes_at(block + 4));
}

VF_INLINE void plain_Q8_0(uint8_t *u, float *d, float *m, const uint8_t *block)
{
    (void)m;
    *d = half_at(block);
    for (int j = 0; j < 32; j++)
        u[j] = block[2 + j] ^ 128;
}

VF_INLINE void plain_IQ4_NL(uint8_t *u, float *d, float *m, const uint8_t *block)
{
    (void)m;
    *d = half_at(block);
    plain_uneven(u, block + 2);
}

VF_INLINE void plain_Q2_K(uint8_t *u, float *d, float *m, const uint8_t *block)
{
    const uint8_t *q = block + 16;
    float scale = half_at(block + 80), least = half_at(block + 82);
    for (int group = 0; group < 16; group++) {
        const uint8_t *from = q + group / 8 * 32 + group % 2 * 16;
        d[group] = scale * (float)(block[group] & 15);
        m[group] = -(least * (float)(block[group] >> 4));
        for (int j = 0; j < 16; j++)
            u[group * 16 + j] = from[j] >> (group / 2 % 4 * 2) & 3;
    }
}

VF_INLINE void plain_Q3_K(uint8_t *u, float *d, float *m, const uint8_t *block)
{
    (void)m;
    const uint8_t *third = block, *q = block + 32, *scales = block + 96;
    float scale = half_at(block + 108);
    for (int group = 0; group < 16; group++) {
        const uint8_t *from = q + group / 8 * 32 + group % 2 * 16, *high = third + group % 2 * 16;
        d[group] = scale * (float)(scale_of_sixteen(scales, group) - 32);
        for (int j = 0; j < 16; j++)
            u[group * 16 + j] = (uint8_t)((from[j] >> (group / 2 % 4 * 2) & 3) | (high[j] >> group / 2 & 1)
                                                                                     << 2);
    }
}

/* Scales and least values of Q4_K and Q5_K. */
VF_INLINE void plain_eight_scales(float *d, float *m, const uint8_t *block)
{
    float scale = half_at(block), least = half_at(block + 2);
    for (int group = 0; group < 8; group++) {
        int s, l;
        scale_of_eight(block + 4, group, &s, &l);
        d[group] = scale * (float)s;
        m[group] = -(least * (float)l);
    }
}

VF_INLINE void plain_Q4_K(uint8_t *u, float *d, float *m, const uint8_t *block)
{
    plain_eight_scales(d, m, block);
    for (int group = 0; group < 8; group++)
        for (int j = 0; j < 32; j++)
            u[group * 32 + j] = block[16 + group / 2 * 32 + j] >> (group % 2 * 4) & 15;
}

VF_INLINE void plain_Q5_K(uint8_t *u, float *d, float *m, const uint8_t *block)
{
    plain_eight_scales(d, m, block);
    for (int group = 0; group < 8; group++)
        for (int j = 0; j < 32; j++)
            u[group * 32 + j] = (uint8_t)((block[48 + group / 2 * 32 + j] >> (group % 2 * 4) & 15) |
                                          (block[16 + j] >> group & 1) << 4);
}

VF_INLINE void plain_Q6_K(uint8_t *u, float *d, float *m, const uint8_t *block)
{
    (void)m;
    float scale = half_at(block + 208);
    for (int group = 0; group < 16; group++) {
        int half = group / 8, quarter = group / 2 % 4, side = group % 2 * 16;
        const uint8_t *from = block + half * 64 + quarter % 2 * 32 + side;
        const uint8_t *pairs = block + 128 + half * 32 + side;
        d[group] = scale * (float)(int8_t)block[192 + group];
        for (int j = 0; j < 16; j++)
            u[group * 16 + j] = (uint8_t)((from[j] >> (quarter / 2 * 4) & 15) | (pairs[j] >> quarter * 2 & 3)
                                                                                    << 4);
    }
}

VF_INLINE void plain_IQ4_XS(uint8_t *u, float *d, float *m, const uint8_t *block)
{
    (void)m;
    float scale = half_at(block);
    int high = block[2] | block[3] << 8;
    for (int group = 0; group < 8; group++) {
        int s = (block[4 + group / 2] >> (group % 2 * 4) & 15) | (high >> (group * 2) & 3) << 4;
        d[group] = scale * (float)(s - 32);
        plain_uneven(u + group * 32, block + 8 + group * 16);
    }
}

#define PLAIN_UNPACK(code, name, bytes, block, type)                                                   \
    static void unpack_##code(const mica_quant_panel *panel, const uint8_t *w, ptrdiff_t row_bytes,    \
                              size_t blocks)                                                           \
    {                                                                                                  \
        (void)row_bytes; /* there is one row */                                                        \
        size_t groups = (size_t)((block) / types[MICA_##code].group);                                  \
        for (size_t i = 0; i < blocks * MICA_QUANT_BLOCK / (block); i++)                               \
            plain_##code(panel->u + i * (block), panel->scale + i * groups, panel->least + i * groups, \
                         w + i * (bytes));                                                             \
    }
MICA_DTYPE_BLOCK_LIST(PLAIN_UNPACK)

/* ---- The product ---- */

/* One row of a tile times one weight row. */
VF_INLINE float plain_row(const mica_quant_product *p, size_t r, int group, bool least)
{
    size_t rows = p->rows, groups = (size_t)(MICA_QUANT_BLOCK / group);
    float y = 0.0f;
    for (size_t b = 0; b < p->blocks; b++) {
        const uint8_t *record = p->tile + b * mica_quant_tile_bytes(rows, group);
        const int8_t *a = (const int8_t *)record + r * MICA_QUANT_BLOCK;
        const uint8_t *scales = record + rows * MICA_QUANT_BLOCK, *more = scales + rows * sizeof(float);
        float d;
        memcpy(&d, scales + r * sizeof d, sizeof d);
        for (size_t g = 0; g < groups; g++) {
            const uint8_t *u = p->panel.u + b * MICA_QUANT_BLOCK + g * (size_t)group;
            int32_t dot = 0;
            for (int j = 0; j < group; j++)
                dot += u[j] * a[g * (size_t)group + (size_t)j];
            float scale = p->panel.scale[b * groups + g];
            if (least) {
                float sum;
                memcpy(&sum, more + (g * rows + r) * sizeof sum, sizeof sum);
                y = fused((float)dot, scale * d, y);
                y = fused(p->panel.least[b * groups + g], sum, y);
            } else {
                int32_t start;
                memcpy(&start, more + (g * rows + r) * sizeof start, sizeof start);
                y = fused((float)(dot + start), scale * d, y);
            }
        }
    }
    return y;
}

static void product(const mica_quant_product *p, const mica_quant_type *type)
{
    for (size_t r = 0; r < p->rows; r++) {
        float y = type->least ? type->group == 32 ? plain_row(p, r, 32, true) : plain_row(p, r, 16, true)
                  : type->group == 32 ? plain_row(p, r, 32, false)
                                      : plain_row(p, r, 16, false);
        p->y[(ptrdiff_t)r * p->y_stride] = p->bias != NULL ? y + *p->bias : y;
    }
}

#endif
