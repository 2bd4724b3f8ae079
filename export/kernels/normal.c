/* Normally distributed numbers, by Box and Muller. */
#ifndef KERNEL_NORMAL
#define KERNEL_NORMAL

#include "log.c"
#include "philox.c"
#include "sin.c"
#include "sqrt.c"

static void normal(float *y, int count, float mean, float deviation, uint64_t seed, uint64_t stream)
{
    for (int i = 0; i < count; i++) {
        uint32_t words[4] = {(uint32_t)(i / 64 * 16 + i % 16), 0x80000000u, (uint32_t)stream,
                             (uint32_t)(stream >> 32)};
        philox(words, (uint32_t)seed, (uint32_t)(seed >> 32));
        int word = i % 64 / 16;
        float u = (float)(int32_t)(words[word & 2] >> 1) * 0x1p-31f + 0x1p-32f;
        float angle = (float)(words[(word & 2) + 1] >> 8) * (6.28318531f * 0x1p-24f);
        y[i] = mean + deviation * (sqrt_f(-2.0f * log_f(u)) * sin_from(angle, word % 2 == 0 ? 1 : 0));
    }
}

#endif /* KERNEL_NORMAL */
