/* Allocator hooks with their counters, for use without a context
 * (the context itself, a pool shared by threads). */
#ifndef MICA_SRC_BASE_ALLOCATE_H
#define MICA_SRC_BASE_ALLOCATE_H

#include "base/context.h"

extern const mica_allocator mica_system_allocator;

/* Both count in *stats. Every block is aligned to MICA_ALIGN. */
void *mica_heap_take(const mica_allocator *allocator, mica_heap_stats *stats, size_t bytes);
void mica_heap_return(const mica_allocator *allocator, mica_heap_stats *stats, void *block, size_t bytes);

#endif
