/* y = x / the share that is kept, or 0, by 16 random bits each, from position `first` on: the same in the forward and
 * the backward of a step. y may be x. */
#ifndef KERNEL_DROPOUT
#define KERNEL_DROPOUT

#include <stddef.h>

#include "philox.c"

static void dropout(float *y, uint8_t *mask /* or NULL */, const float *x, int first, int count,
                    int kept /* of 65,536 */, uint64_t seed, uint64_t stream)
{
    float scale = kept > 0 ? 65536.0f / (float)kept : 0.0f;
    for (int group = first / 128; group * 128 < first + count; group++)
        for (int block = 0; block < 16; block++) { /* four words, for eight elements 16 apart */
            uint32_t words[4] = {(uint32_t)(group * 16 + block), 0x40000000u, (uint32_t)stream,
                                 (uint32_t)(stream >> 32)};
            philox(words, (uint32_t)seed, (uint32_t)(seed >> 32));
            for (int k = 0; k < 8; k++) {
                int i = group * 128 + k * 16 + block - first;
                int stays = (int)(k < 4 ? words[k] & 0xffffu : words[k - 4] >> 16) < kept;
                if (i < 0 || i >= count)
                    continue;
                if (mask != NULL)
                    mask[i] = (uint8_t)stays;
                y[i] = stays ? x[i] * scale : 0.0f;
            }
        }
}

#endif /* KERNEL_DROPOUT */
