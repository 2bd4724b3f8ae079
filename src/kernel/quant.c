/* Products with block-quantized weights; compiled once per instruction set. */
#include "kernel/quant.h"
#include "kernel/vec.h"

#include "kernel/block_decode.h"

/* group, offset of u, least values */
static const mica_quant_type types[MICA_DTYPE_COUNT] = {
    [MICA_Q4_0] = {32, 8, false},  [MICA_Q4_1] = {32, 0, true},      [MICA_Q5_0] = {32, 16, false},
    [MICA_Q5_1] = {32, 0, true},   [MICA_Q8_0] = {32, 128, false},   [MICA_Q2_K] = {16, 0, true},
    [MICA_Q3_K] = {16, 4, false},  [MICA_Q4_K] = {32, 0, true},      [MICA_Q5_K] = {32, 0, true},
    [MICA_Q6_K] = {16, 32, false}, [MICA_IQ4_NL] = {32, 128, false}, [MICA_IQ4_XS] = {32, 128, false},
};

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

#include "kernel/quant_plain.h"

#define WIDTH 1
#define TILE  4

const mica_quant_kernels VF_SYMBOL(mica_quant_kernels) = {
    .width = WIDTH,
    .tile = TILE,
    .type = types,
    .round = round_rows,
#define UNPACK(code, name, bytes, block, type) [MICA_##code] = unpack_##code,
    .unpack = {MICA_DTYPE_BLOCK_LIST(UNPACK)},
    .product = product,
};
