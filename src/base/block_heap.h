/* A heap within a block of the caller's: what a context that was placed there allocates from, without any other. */
#ifndef MICA_SRC_BASE_BLOCK_HEAP_H
#define MICA_SRC_BASE_BLOCK_HEAP_H

#include <mica/base.h>

/* A free piece of the block; pieces are linked in the order of their addresses. */
typedef struct mica_free_piece mica_free_piece;

typedef struct mica_block_heap {
    mica_free_piece *first;
} mica_block_heap;

/* Bytes below which a block is no use. */
#define MICA_BLOCK_HEAP_LEAST ((size_t)256)

/* Takes over the block. The allocator points to the heap, which must not move. */
mica_allocator mica_block_heap_begin(mica_block_heap *heap, void *block, size_t bytes);

#endif
