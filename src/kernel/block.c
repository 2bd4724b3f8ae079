/* The table of block formats; compiled once per instruction set. */
#include "kernel/block.h"
#include "kernel/vec.h"

#include "kernel/block_decode.h"
#include "kernel/block_encode.h"
#include "kernel/block_fit.h"
#include "kernel/block_encode_k.h"

#define DECODE_ALL(code, name, bytes, block, type)                                     \
    static void decode_all_##code(float *values, const uint8_t *blocks, size_t count)  \
    {                                                                                  \
        for (size_t i = 0; i < count; i++)                                             \
            decode_##code(values + i * (size_t)(block), blocks + i * (size_t)(bytes)); \
    }
MICA_DTYPE_BLOCK_LIST(DECODE_ALL)

#define ENCODE_ALL(code, bytes, block)                                                 \
    static void encode_all_##code(uint8_t *blocks, const float *values, size_t count)  \
    {                                                                                  \
        for (size_t i = 0; i < count; i++)                                             \
            encode_##code(blocks + i * (size_t)(bytes), values + i * (size_t)(block)); \
    }
ENCODE_ALL(Q4_0, 18, 32)
ENCODE_ALL(Q4_1, 20, 32)
ENCODE_ALL(Q5_0, 22, 32)
ENCODE_ALL(Q5_1, 24, 32)
ENCODE_ALL(Q8_0, 34, 32)
ENCODE_ALL(Q2_K, 84, 256)
ENCODE_ALL(Q3_K, 110, 256)
ENCODE_ALL(Q4_K, 144, 256)
ENCODE_ALL(Q5_K, 176, 256)
ENCODE_ALL(Q6_K, 210, 256)
ENCODE_ALL(IQ4_XS, 136, 256)

static void encode_all_IQ4_NL(uint8_t *blocks, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i += GROUPS)
        encode_some_IQ4_NL(blocks + i * 18, values + i * 32, count - i < GROUPS ? (int)(count - i) : GROUPS);
}

const mica_block_kernels VF_SYMBOL(mica_block_kernels) = {
#define DECODE_ENTRY(code, name, bytes, block, type) [MICA_##code] = decode_all_##code,
    .decode = {MICA_DTYPE_BLOCK_LIST(DECODE_ENTRY)},
#define ENCODE_ENTRY(code, name, bytes, block, type) [MICA_##code] = encode_all_##code,
    .encode = {MICA_DTYPE_BLOCK_LIST(ENCODE_ENTRY)},
};
