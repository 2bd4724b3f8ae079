/* An allocator that refuses at a chosen call, and the loop over all calls. */
#include "oom.h"

#include <stdlib.h>

/* Kept in front of every block, to compare with what comes back. */
typedef struct oom_header {
    size_t bytes, alignment;
} oom_header;

static void *oom_allocate(void *user, size_t bytes, size_t alignment)
{
    oom_heap *heap = user;
    if (++heap->calls == heap->refuse || bytes > SIZE_MAX / 2)
        return NULL;
    size_t whole = (bytes + 2 * alignment - 1) & ~(alignment - 1);
    char *block = aligned_alloc(alignment, whole);
    if (block == NULL)
        return NULL;
    *(oom_header *)(void *)block = (oom_header){bytes, alignment};
    heap->blocks++;
    heap->bytes += bytes;
    return block + alignment;
}

static void oom_release(void *user, void *block, size_t bytes, size_t alignment)
{
    oom_heap *heap = user;
    char *start = (char *)block - alignment;
    const oom_header *header = (oom_header *)(void *)start;
    CHECK(header->bytes == bytes && header->alignment == alignment);
    heap->blocks--;
    heap->bytes -= bytes;
    free(start);
}

mica_allocator oom_allocator(oom_heap *heap) { return (mica_allocator){oom_allocate, oom_release, heap}; }

int test_oom(oom_fn *work, void *argument)
{
    for (int refuse = 1; refuse < 1000; refuse++) {
        oom_heap heap = {.refuse = refuse};
        mica_allocator allocator = oom_allocator(&heap);
        mica_status status = work(&allocator, argument);
        CHECK_MSG(heap.blocks == 0 && heap.bytes == 0, "call %d refused: %d blocks, %zu bytes left", refuse,
                  heap.blocks, heap.bytes);
        if (heap.calls < refuse) {
            CHECK_MSG(status == MICA_OK, "nothing refused: %s", mica_status_text(status));
            return heap.calls;
        }
        /* A refusal may be survived, but if not, it is told as what it is. */
        CHECK_MSG(status == MICA_ERR_MEMORY || status == MICA_OK, "call %d refused: %s", refuse,
                  mica_status_text(status));
    }
    CHECK_MSG(false, "still allocating after 1000 calls");
    return -1;
}
