/* Heap calls of the whole process: malloc and its kin, by all threads. Linking heap.c is enough to count.
 *
 * The library counts what it asks for itself; this counts what really happened, so that neither a bug in
 * that counter nor a library call that allocates behind our back stays unseen. */
#ifndef MICA_HOST_HEAP_H
#define MICA_HOST_HEAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct heap_counts {
    uint64_t calls; /* malloc, calloc, realloc, aligned_alloc, posix_memalign, memalign */
    uint64_t frees;
    uint64_t bytes;
} heap_counts;

/* False under sanitizers, which have an allocator of their own: then the counts stay 0. */
bool heap_counted(void);
heap_counts heap_now(void);

#endif
