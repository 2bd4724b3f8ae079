/* Out of memory at every allocation: runs a piece of work with an allocator that refuses the first call, then
 * with one that refuses the second, and so on until it runs through without a refusal. */
#ifndef MICA_TESTS_OOM_H
#define MICA_TESTS_OOM_H

#include "test.h"

/* Does its work through the allocator, gives everything back, and returns the first failure. */
typedef mica_status oom_fn(const mica_allocator *allocator, void *argument);

/* Checks after every run that no block is left and that each came back with the size and alignment it was
 * asked for with; that a failure is MICA_ERR_MEMORY; and that the last run succeeds. Returns the allocations
 * of that one. */
int test_oom(oom_fn *work, void *argument);

/* The allocator by itself: counts its blocks, and refuses call number `refuse` (0: none). */
typedef struct oom_heap {
    int refuse;
    int calls;
    int blocks; /* not yet given back */
    size_t bytes;
} oom_heap;

mica_allocator oom_allocator(oom_heap *heap);

#endif
