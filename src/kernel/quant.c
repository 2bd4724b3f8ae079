/* Products with block-quantized weights; compiled once per instruction set. */
#include "kernel/quant.h"
#include "kernel/vec.h"

#include "kernel/block_decode.h"

#if VF_LANES > 1
#include "kernel/vec_bytes.h"
#else
#define VB_WIDE_OFFSET 128
#endif

/* group, offset of u, least values, eight bits */
#define TYPES(X)                        \
    X(Q4_0, 32, 8, 0, 0)                \
    X(Q4_1, 32, 0, 1, 0)                \
    X(Q5_0, 32, 16, 0, 0)               \
    X(Q5_1, 32, 0, 1, 0)                \
    X(Q8_0, 32, VB_WIDE_OFFSET, 0, 1)   \
    X(Q2_K, 16, 0, 1, 0)                \
    X(Q3_K, 16, 4, 0, 0)                \
    X(Q4_K, 32, 0, 1, 0)                \
    X(Q5_K, 32, 0, 1, 0)                \
    X(Q6_K, 16, 32, 0, 0)               \
    X(IQ4_NL, 32, VB_WIDE_OFFSET, 0, 1) \
    X(IQ4_XS, 32, VB_WIDE_OFFSET, 0, 1)

#define NAMED(code, group, offset, least, wide) \
    enum { GROUP_##code = group, LEAST_##code = least, WIDE_##code = wide };
TYPES(NAMED)
#define TYPE(code, group, offset, least, wide) [MICA_##code] = {group, offset, least, wide},
static const mica_quant_type types[MICA_DTYPE_COUNT] = {TYPES(TYPE)};

#if VF_LANES == 1
VF_INLINE void vi_store_bytes(int8_t *p, vi v) { *p = (int8_t)v; }
#endif

enum { PIECES = MICA_QUANT_BLOCK / VF_LANES }; /* vectors of a block */

/* 32 values to bytes, which are whole[] as floats too; returns their scale. */
VF_INLINE float round_block(int8_t *a, vf *whole, const float *x)
{
    vf value[PIECES], size = vf_zero();
    for (int k = 0; k < PIECES; k++) {
        value[k] = vf_load(x + k * VF_LANES);
        size = vf_max_nan(size, vf_abs(value[k]));
    }
    float most = vf_hmax(size), factor = 0.0f, scale = 0.0f;
    if (most >= 0x1p-100f) {
        factor = 127.0f / most;
        scale = most / 127.0f;
    }
    if (!(most <=
          3.40282347e38f)) { /* an infinity, or a NaN: what they are times 0 is no number of eight bits */
        scale = NAN;
        for (int k = 0; k < PIECES; k++)
            value[k] = vf_zero();
    }
    for (int k = 0; k < PIECES; k++) {
        whole[k] = vf_round(vf_mul(value[k], vf_set1(factor)));
        vi_store_bytes(a + k * VF_LANES, vi_from_vf(whole[k]));
    }
    return scale;
}

/* What a tile has for each group of a row's block: sums of up to 32 bytes are exact in floats. */
VF_INLINE void store_sums(uint8_t *more, size_t distance, const vf *whole, float scale,
                          const mica_quant_type *type)
{
    int pieces = type->group / VF_LANES;
    for (int g = 0; g < MICA_QUANT_BLOCK / type->group; g++) {
        vf all = whole[g * pieces];
        for (int k = 1; k < pieces; k++)
            all = vf_add(all, whole[g * pieces + k]);
        float sum = vf_sum(all), least = scale * sum;
        int32_t start = -type->offset * (int32_t)sum;
        memcpy(more + (size_t)g * distance, type->least ? (const void *)&least : (const void *)&start,
               sizeof start);
    }
}

VF_INLINE void round_tile(uint8_t *tile, const float *x, ptrdiff_t x_stride, size_t rows, size_t blocks,
                          const mica_quant_type *type)
{
    size_t record = mica_quant_tile_bytes(rows, type->group);
    for (size_t r = 0; r < rows; r++) {
        const float *from = x + (ptrdiff_t)r * x_stride;
        for (size_t b = 0; b < blocks; b++) {
            uint8_t *start = tile + b * record, *scales = start + rows * MICA_QUANT_BLOCK;
            vf whole[PIECES];
            float scale = round_block((int8_t *)start + r * MICA_QUANT_BLOCK, whole,
                                      from + b * MICA_QUANT_BLOCK);
            memcpy(scales + r * sizeof scale, &scale, sizeof scale);
            store_sums(scales + (rows + r) * sizeof scale, rows * sizeof scale, whole, scale, type);
        }
    }
}

static void round_rows(uint8_t *tile, const float *x, ptrdiff_t x_stride, size_t rows, size_t blocks,
                       const mica_quant_type *type)
{
    mica_quant_type known = *type;
    known.group = 32; /* a constant for the compiler */
    if (type->group == 32)
        round_tile(tile, x, x_stride, rows, blocks, &known);
    else
        round_tile(tile, x, x_stride, rows, blocks, type);
}

#if VF_LANES > 1
#include "kernel/quant_parts.h"
#include "kernel/quant_vector.h"
#else
#include "kernel/quant_plain.h"
#endif

const mica_quant_kernels VF_VARIANT_SYMBOL(mica_quant_kernels) = {
    .type = types,
    .round = round_rows,
#define UNPACK(code, name, bytes, block, type) [MICA_##code] = unpack_##code,
    .unpack = {MICA_DTYPE_BLOCK_LIST(UNPACK)},
    .product = product,
#if VF_LANES > 1
    .width = VB_PANEL * VF_LANES,
    .tile = VB_TILE,
#define VECTOR(code, name, bytes, block, type) [MICA_##code] = vector_##code,
    .vector = {MICA_DTYPE_BLOCK_LIST(VECTOR)},
#else
    .width = 1,
    .tile = PLAIN_TILE,
#endif
};
