/* Random numbers for made-up sensors: the same on every machine. */
#ifndef CHANCE_H
#define CHANCE_H

#include <stdint.h>

typedef struct chance {
    uint32_t state; /* not 0 */
} chance;

/* From 0 to 1, Marsaglia's xorshift. */
static inline float chance_next(chance *c)
{
    c->state ^= c->state << 13;
    c->state ^= c->state >> 17;
    c->state ^= c->state << 5;
    return (float)(c->state >> 8) * (1.0f / 16777216.0f);
}

static inline float chance_between(chance *c, float low, float high)
{
    return low + (high - low) * chance_next(c);
}

/* About normal, with deviation 1: the sum of twelve. */
static inline float chance_noise(chance *c)
{
    float sum = -6.0f;
    for (int i = 0; i < 12; i++)
        sum += chance_next(c);
    return sum;
}

#endif
