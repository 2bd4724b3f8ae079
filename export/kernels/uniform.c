/* Numbers from low to high, evenly distributed. */
#ifndef KERNEL_UNIFORM
#define KERNEL_UNIFORM

#include "philox.c"

static void uniform(float *y, int count, float low, float high, uint64_t seed, uint64_t stream)
{
    for (int i = 0; i < count; i++) {
        uint32_t words[4] = {(uint32_t)(i / 64 * 16 + i % 16), 0, (uint32_t)stream, (uint32_t)(stream >> 32)};
        philox(words, (uint32_t)seed, (uint32_t)(seed >> 32));
        y[i] = low + (high - low) * ((float)(words[i % 64 / 16] >> 8) * 0x1p-24f);
    }
}

#endif /* KERNEL_UNIFORM */
