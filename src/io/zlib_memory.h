/* zlib's memory comes from the context: for files that include zlib.h. */
#ifndef MICA_SRC_IO_ZLIB_MEMORY_H
#define MICA_SRC_IO_ZLIB_MEMORY_H

#include "base/context.h"

/* zlib does not tell how large a block was when it gives it back: the size stands in front of it. `user` is the
 * context. */
static inline void *mica_zlib_allocate(void *user, unsigned count, unsigned size)
{
    size_t bytes = (size_t)count * size + MICA_ALIGN;
    char *block = mica_allocate(user, bytes);
    if (block == NULL)
        return NULL;
    *(size_t *)(void *)block = bytes;
    return block + MICA_ALIGN;
}

static inline void mica_zlib_release(void *user, void *address)
{
    char *block = (char *)address - MICA_ALIGN;
    mica_release(user, block, *(size_t *)(void *)block);
}

#endif
