/* Philox 4x32-10: four random words from a counter and a key. */
#ifndef KERNEL_PHILOX
#define KERNEL_PHILOX

#include <stdint.h>

static void philox(uint32_t c[4], uint32_t key_low, uint32_t key_high)
{
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xd2511f53u * c[0], b = (uint64_t)0xcd9e8d57u * c[2];
        uint32_t second = c[1], fourth = c[3];
        c[0] = (uint32_t)(b >> 32) ^ second ^ key_low;
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ fourth ^ key_high;
        c[3] = (uint32_t)a;
        key_low += 0x9e3779b9u;
        key_high += 0xbb67ae85u;
    }
}

#endif /* KERNEL_PHILOX */
