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

/* The largest size of 32 values; NaN where one is. */
VF_INLINE float largest_size(const float *x)
{
    vf most = vf_abs(vf_load(x));
    for (int j = VF_LANES; j < MICA_QUANT_BLOCK; j += VF_LANES)
        most = vf_max_nan(most, vf_abs(vf_load(x + j)));
    return vf_hmax(most);
}

/* 32 values to bytes; returns their scale. */
VF_INLINE float round_block(int8_t *a, const float *x)
{
    float most = largest_size(x);
    int32_t whole[MICA_QUANT_BLOCK] = {0};
    float scale = 0.0f;
    if (!(most <= 3.40282347e38f)) /* an infinity, or a NaN */
        scale = NAN;
    else if (most >= 0x1p-100f) {
        vf factor = vf_set1(127.0f / most);
        for (int j = 0; j < MICA_QUANT_BLOCK; j += VF_LANES)
            vi_store(whole + j, vi_from_vf(vf_mul(vf_load(x + j), factor)));
        scale = most / 127.0f;
    }
    for (int j = 0; j < MICA_QUANT_BLOCK; j++)
        a[j] = (int8_t)whole[j];
    return scale;
}

static void round_rows(uint8_t *tile, const float *x, ptrdiff_t x_stride, size_t rows, size_t blocks,
                       const mica_quant_type *type)
{
    size_t record = mica_quant_tile_bytes(rows, type->group);
    for (size_t r = 0; r < rows; r++) {
        const float *from = x + (ptrdiff_t)r * x_stride;
        for (size_t b = 0; b < blocks; b++) {
            int8_t *a = (int8_t *)(tile + b * record + r * MICA_QUANT_BLOCK);
            uint8_t *scales = tile + b * record + rows * MICA_QUANT_BLOCK,
                    *more = scales + rows * sizeof(float);
            float scale = round_block(a, from + b * MICA_QUANT_BLOCK);
            memcpy(scales + r * sizeof scale, &scale, sizeof scale);
            for (int g = 0; g < MICA_QUANT_BLOCK / type->group; g++) {
                int32_t sum = 0;
                for (int j = 0; j < type->group; j++)
                    sum += a[g * type->group + j];
                float least = scale * (float)sum;
                int32_t start = -type->offset * sum;
                memcpy(more + ((size_t)g * rows + r) * sizeof start,
                       type->least ? (void *)&least : (void *)&start, sizeof start);
            }
        }
    }
}

#if VF_LANES > 1
#include "kernel/quant_parts.h"
#include "kernel/quant_vector.h"
#else
#include "kernel/quant_plain.h"
#endif

const mica_quant_kernels VF_VARIANT_SYMBOL(mica_quant_kernels) = {
    .width = VF_LANES,
    .type = types,
    .round = round_rows,
#define UNPACK(code, name, bytes, block, type) [MICA_##code] = unpack_##code,
    .unpack = {MICA_DTYPE_BLOCK_LIST(UNPACK)},
    .product = product,
#if VF_LANES > 1
    .tile = VB_TILE,
#define VECTOR(code, name, bytes, block, type) [MICA_##code] = vector_##code,
    .vector = {MICA_DTYPE_BLOCK_LIST(VECTOR)},
#else
    .tile = PLAIN_TILE,
#endif
};
