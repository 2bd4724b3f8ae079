/* Packing: the offsets of buffers in one block, from their sizes and lifetimes. */
#ifndef MICA_SRC_MEMORY_PACK_H
#define MICA_SRC_MEMORY_PACK_H

#include "base/context.h"

typedef struct mica_span {
    size_t bytes;    /* a multiple of MICA_ALIGN */
    int first, last; /* alive from time first to time last, both included */
    size_t offset;   /* the answer */
} mica_span;

/* Gives every span an offset, so that no two that are alive at the same time overlap. The smallest of several
 * tries is kept, always the same one for the same spans. *total is the end of the last byte. Allocates and
 * frees working memory. */
mica_status mica_pack(mica_context *ctx, mica_span *spans, size_t count, size_t *total);

/* The most bytes alive at once: no packing takes less. `times` is one more than the largest `last`. */
mica_status mica_pack_lower_bound(mica_context *ctx, const mica_span *spans, size_t count, int times,
                                  size_t *bound);

#endif
