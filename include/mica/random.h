/* Random numbers without state: Philox 4x32-10, a function from a counter to random bits.
 *
 * What stands at a position of a stream depends on the seed, the stream and the position, and on nothing
 * else: any part of a sequence can be made alone, in any order, by any number of threads. The operations that
 * fill tensors (mica_uniform, mica_normal, mica_dropout, ...) read the same streams: their element i is what
 * the calls below give at position i. Uniform numbers are the same bits everywhere; normal ones agree within
 * rounding. */
#ifndef MICA_RANDOM_H
#define MICA_RANDOM_H

#include <mica/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A place in a stream. A value: copy it to come back to the place, set `position` to go anywhere. Each seed
 * has 2^64 streams that are independent of one another, and each stream 2^64 positions. */
typedef struct mica_random {
    uint64_t seed;
    uint64_t stream;
    uint64_t position;
} mica_random;

/* The start of a stream: the same as (mica_random){seed, stream, 0}. */
MICA_API mica_random mica_random_stream(uint64_t seed, uint64_t stream);

/* A generator for somebody else, independent of this one: its seed is drawn from *r (two positions). */
MICA_API mica_random mica_random_split(mica_random *r);

/* Goes `count` positions ahead, at no cost. */
MICA_API void mica_random_skip(mica_random *r, uint64_t count);

/* Each of these reads one position and steps over it. */
MICA_API uint32_t mica_random_bits(mica_random *r);
MICA_API uint32_t mica_random_bits16(mica_random *r); /* sixteen bits, not of those that the others read */
MICA_API float mica_random_uniform(mica_random *r);   /* in [0, 1): a multiple of 2^-24 */
MICA_API float mica_random_normal(mica_random *r);    /* mean 0, variance 1 */

/* A whole number below n, each with exactly the same chance; 0 for n = 0. Reads one position for n up to 2^32
 * and two above, and sometimes as many again. */
MICA_API uint64_t mica_random_below(mica_random *r, uint64_t n);

/* Writes 0 to n - 1 in random order, each order with the same chance (as far as the seeds go). */
MICA_API void mica_random_permutation_i32(mica_random *r, int32_t *out, int32_t n);
MICA_API void mica_random_permutation_i64(mica_random *r, int64_t *out, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
