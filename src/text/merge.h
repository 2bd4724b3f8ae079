/* Merging neighbours, the best pair first, the leftmost of equals: a chain of symbols and a heap of pairs.
 *
 * Each merge takes one pair from the heap and puts at most two there, so that it never holds more than two for each
 * symbol, and n symbols cost n log n. */
#ifndef MICA_SRC_TEXT_MERGE_H
#define MICA_SRC_TEXT_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MICA_NO_SYMBOL UINT32_MAX

typedef struct mica_symbol {
    uint32_t previous, next; /* MICA_NO_SYMBOL: none */
    int32_t token;           /* -1: none */
    uint32_t start, length;  /* bytes; length 0: merged into the one before */
} mica_symbol;

/* A pair by what comes first (less is better), then by its left symbol. */
typedef struct mica_merge_heap {
    uint64_t *pair; /* order << 32 | left */
    size_t count;
} mica_merge_heap;

void mica_heap_push(mica_merge_heap *heap, uint32_t order, uint32_t left);
uint64_t mica_heap_pop(mica_merge_heap *heap);

/* Whether a pair merges: its order and the token it becomes. */
typedef bool mica_pair_fn(const void *user, const mica_symbol *left, const mica_symbol *right,
                          uint32_t *order, int32_t *token);

#define MICA_MERGE_SCRATCH(symbols) ((symbols) * (sizeof(mica_symbol) + 2 * sizeof(uint64_t)))

/* Merges a chain of `count` symbols, numbered as they stand, until no pair merges any more. pairs: [2 count]. */
void mica_merge_all(mica_symbol *symbol, size_t count, uint64_t *pairs, mica_pair_fn *pair, const void *user);

#endif
