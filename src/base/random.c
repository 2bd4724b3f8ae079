/* Random numbers one at a time. */
#include <math.h>

#include <mica/random.h>

#include "base/philox.h"

void mica_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < MICA_PHILOX_ROUNDS; round++) {
        uint64_t product0 = (uint64_t)MICA_PHILOX_MULTIPLIER_0 * c0;
        uint64_t product1 = (uint64_t)MICA_PHILOX_MULTIPLIER_1 * c2;
        c0 = (uint32_t)(product1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)product1;
        c2 = (uint32_t)(product0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)product0;
        k0 += MICA_PHILOX_WEYL_0;
        k1 += MICA_PHILOX_WEYL_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The block that a group's position lies in, and which of its words the position is. */
static unsigned block_at(uint32_t words[4], const mica_random *r, uint64_t group, uint64_t position,
                         uint64_t domain)
{
    uint64_t block = (group * MICA_RANDOM_BLOCKS + position % MICA_RANDOM_BLOCKS) | domain;
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)r->stream,
                                 (uint32_t)(r->stream >> 32)};
    const uint32_t key[2] = {(uint32_t)r->seed, (uint32_t)(r->seed >> 32)};
    mica_philox(words, counter, key);
    return (unsigned)(position / MICA_RANDOM_BLOCKS);
}

static unsigned word_at(uint32_t words[4], const mica_random *r, uint64_t domain)
{
    return block_at(words, r, r->position / MICA_RANDOM_GROUP, r->position % MICA_RANDOM_GROUP, domain);
}

mica_random mica_random_stream(uint64_t seed, uint64_t stream) { return (mica_random){seed, stream, 0}; }

mica_random mica_random_split(mica_random *r)
{
    uint64_t low = mica_random_bits(r);
    uint64_t high = mica_random_bits(r);
    return mica_random_stream(high << 32 | low, r->stream);
}

void mica_random_skip(mica_random *r, uint64_t count) { r->position += count; }

uint32_t mica_random_bits(mica_random *r)
{
    uint32_t words[4];
    unsigned word = word_at(words, r, 0);
    r->position++;
    return words[word];
}

uint32_t mica_random_bits16(mica_random *r)
{
    uint32_t words[4];
    uint64_t groups = r->position /
                      MICA_RANDOM_GROUP; /* two of each number: lower halves, then upper halves */
    unsigned word = block_at(words, r, groups / 2, r->position % MICA_RANDOM_GROUP, MICA_RANDOM_HALVES);
    r->position++;
    return groups % 2 == 0 ? words[word] & 0xffffu : words[word] >> 16;
}

float mica_random_uniform(mica_random *r) { return (float)(mica_random_bits(r) >> 8) * 0x1p-24f; }

float mica_random_normal(mica_random *r)
{
    uint32_t words[4];
    unsigned word = word_at(words, r, MICA_RANDOM_NORMAL);
    r->position++;
    const uint32_t *pair = &words[word & 2u];
    /* As the kernel does, in float: (0, 1], so that its logarithm is finite. */
    float u = (float)(int32_t)(pair[0] >> 1) * 0x1p-31f + 0x1p-32f;
    double radius = sqrt(-2.0 * log((double)u));
    double angle = 6.283185307179586 * 0x1p-24 * (double)(pair[1] >> 8);
    return (float)(radius * (word % 2 == 0 ? cos(angle) : sin(angle)));
}

/* Lemire's method: the high half of x * n, where the low half tells whether x is one too many. */
static uint32_t below_32(mica_random *r, uint32_t n)
{
    uint64_t product = (uint64_t)mica_random_bits(r) * n;
    if ((uint32_t)product < n) {
        uint32_t surplus = (0u - n) % n; /* 2^32 mod n */
        while ((uint32_t)product < surplus)
            product = (uint64_t)mica_random_bits(r) * n;
    }
    return (uint32_t)(product >> 32);
}

uint64_t mica_random_below(mica_random *r, uint64_t n)
{
    if (n == 0)
        return 0;
    if (n <= UINT32_MAX)
        return below_32(r, (uint32_t)n);
    if (n == (uint64_t)1 << 32)
        return mica_random_bits(r);
    uint64_t surplus = (0u - n) % n; /* 2^64 mod n */
    uint64_t x;
    do {
        uint64_t low = mica_random_bits(r);
        x = (uint64_t)mica_random_bits(r) << 32 | low;
    } while (x < surplus);
    return x % n;
}

/* Fisher and Yates, from the inside out: element i goes to a random place among the first i + 1, and what
 * stood there moves to the end. */
void mica_random_permutation_i32(mica_random *r, int32_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t place = (int32_t)mica_random_below(r, (uint64_t)i + 1);
        out[i] = out[place];
        out[place] = i;
    }
}

void mica_random_permutation_i64(mica_random *r, int64_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t place = (int64_t)mica_random_below(r, (uint64_t)i + 1);
        out[i] = out[place];
        out[place] = i;
    }
}
