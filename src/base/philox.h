/* The random number at a position of a stream: shared by base/random.c and kernel/random.c.
 *
 * Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) maps a counter of four
 * words and a key of two to four random words. Our use of it:
 *
 *     key      seed: low word, high word
 *     counter  block number: low word, high word with the domain in its top bits; stream: low word, high word
 *
 * Positions go in groups of 64, made of 16 blocks. The first words of the 16 blocks are positions 0 to 15 of
 * the group, their second words positions 16 to 31, and so on:
 *
 *                    block 16g   16g + 1   ...   16g + 15
 *         word 0         64g     64g + 1         64g + 15
 *         word 1         64g + 16     ...
 *         word 2         64g + 32     ...
 *         word 3         64g + 48     ...        64g + 63
 *
 * so that a vector of up to 16 lanes makes one block in each lane and stores its words as they come.
 *
 * Normal numbers come in pairs from two words of the same block (Box-Muller): word 0 with 1, and 2 with 3. They
 * have a domain of their own, so a normal and a uniform number drawn from one stream never share a word.
 *
 * Sixteen bits, which are enough to decide by, are half a word, of a third domain: a group of 64 words has 128
 * positions, the first 64 of them its lower halves and the others its upper halves. */
#ifndef MICA_SRC_BASE_PHILOX_H
#define MICA_SRC_BASE_PHILOX_H

#include <stdint.h>

#define MICA_PHILOX_MULTIPLIER_0 0xd2511f53u
#define MICA_PHILOX_MULTIPLIER_1 0xcd9e8d57u
#define MICA_PHILOX_WEYL_0       0x9e3779b9u /* the golden ratio */
#define MICA_PHILOX_WEYL_1       0xbb67ae85u /* sqrt(3) - 1 */
#define MICA_PHILOX_ROUNDS       10

#define MICA_RANDOM_GROUP  64u /* positions */
#define MICA_RANDOM_BLOCKS 16u /* Philox blocks of a group */

/* Block numbers are below 2^62: the two top bits are free. */
#define MICA_RANDOM_NORMAL ((uint64_t)1 << 63)
#define MICA_RANDOM_HALVES ((uint64_t)1 << 62)

void mica_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

#endif
