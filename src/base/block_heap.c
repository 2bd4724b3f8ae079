/* A heap within a block: first fit, free neighbours are joined.
 *
 *   [ piece | free: size, next ......... | piece | piece | free ... ]
 *
 * A piece that was given has no header: whoever returns it says how large it was. */
#include "base/block_heap.h"

#include "base/context.h"

struct mica_free_piece {
    size_t bytes;
    mica_free_piece *next;
};

/* Every piece is a multiple of this, and begins at one. */
#define GRAIN MICA_ALIGN
_Static_assert(sizeof(mica_free_piece) <= GRAIN, "a free piece fits into the smallest one");

static void *take(void *user, size_t bytes, size_t alignment)
{
    mica_block_heap *heap = user;
    if (alignment > GRAIN || bytes > PTRDIFF_MAX - GRAIN)
        return NULL;
    size_t wanted = mica_align_up(bytes > 0 ? bytes : 1);
    for (mica_free_piece **link = &heap->first; *link != NULL; link = &(*link)->next) {
        mica_free_piece *piece = *link;
        if (piece->bytes < wanted)
            continue;
        if (piece->bytes == wanted) {
            *link = piece->next;
            return piece;
        }
        piece->bytes -= wanted; /* its end is given, so that the list stays as it is */
        return (char *)piece + piece->bytes;
    }
    return NULL;
}

static bool touches(const mica_free_piece *a, const mica_free_piece *b)
{
    return (const char *)a + a->bytes == (const char *)b;
}

static void give_back(void *user, void *block, size_t bytes, size_t alignment)
{
    (void)alignment;
    mica_block_heap *heap = user;
    mica_free_piece *piece = block, *before = NULL, *behind = heap->first;
    while (behind != NULL && behind < piece) {
        before = behind;
        behind = behind->next;
    }
    *piece = (mica_free_piece){mica_align_up(bytes > 0 ? bytes : 1), behind};
    if (behind != NULL && touches(piece, behind)) {
        piece->bytes += behind->bytes;
        piece->next = behind->next;
    }
    if (before == NULL) {
        heap->first = piece;
    } else if (touches(before, piece)) {
        before->bytes += piece->bytes;
        before->next = piece->next;
    } else {
        before->next = piece;
    }
}

mica_allocator mica_block_heap_begin(mica_block_heap *heap, void *block, size_t bytes)
{
    heap->first = block;
    *heap->first = (mica_free_piece){bytes / GRAIN * GRAIN, NULL};
    return (mica_allocator){take, give_back, heap};
}
