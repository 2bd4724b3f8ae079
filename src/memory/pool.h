/* A pool's internals, for pool.c and scope.c.
 *
 * The memory of one buffer, in one heap block:
 *
 *     [ mica_buffer: the pool's record, rounded up | the renter's bytes: the capacity of its class ]
 *
 * Every buffer, rented or not, is in the pool's hash table, keyed by its address. That is how a pointer is
 * identified: the pool only ever accesses its own records, never the memory before a pointer passed to it. */
#ifndef MICA_SRC_MEMORY_POOL_H
#define MICA_SRC_MEMORY_POOL_H

#include <mica/memory.h>

#include "base/context.h"
#include "memory/lock.h"

typedef struct mica_scope_record mica_scope_record;

typedef struct mica_buffer {
    struct mica_buffer *chain;           /* the next with the same hash */
    struct mica_buffer *next, *previous; /* in its scope; `next` also among the unused of its class */
    mica_scope_record *scope;            /* NULL when not rented in one */
    unsigned size_class;
    bool rented;
} mica_buffer;

/* Scopes form trees. Records are never given back before the pool is, so a stale handle may look at one. */
struct mica_scope_record {
    uint64_t serial;                    /* of the scope that has this record; 0 when none has */
    mica_scope_record *outer, *inner;   /* inner: the first of those nested in this one */
    mica_scope_record *next, *previous; /* the others nested in `outer`; `next` also among the unused */
    mica_buffer *buffers;
};

typedef struct mica_scope_slab {
    struct mica_scope_slab *next;
    mica_scope_record record[15];
} mica_scope_slab;

/* Classes: 2^8 to 2^18 bytes in powers of two, then four to each doubling. */
#define MICA_POOL_SMALLEST_BITS 8u
#define MICA_POOL_FINE_BITS     18u
#define MICA_POOL_MOST_BYTES    (SIZE_MAX / 4)
#define MICA_POOL_CLASSES                                  \
    ((MICA_POOL_FINE_BITS - MICA_POOL_SMALLEST_BITS + 1) + \
     4 * ((unsigned)sizeof(size_t) * 8 - 2 - MICA_POOL_FINE_BITS))

typedef struct mica_pool_class {
    mica_buffer *unused; /* the last returned first: it is most likely still in the cache */
    size_t count;
} mica_pool_class;

#define MICA_POOL_FIRST_BUCKETS 64

struct mica_pool {
    mica_lock lock; /* guards all that follows, but for what never changes */

    mica_allocator allocator; /* never changes, as limit and clear */
    size_t limit;
    bool clear;

    mica_heap_stats heap;
    mica_pool_stats stats; /* peak_bytes is of `held` */
    size_t buffers, held;  /* rented, pooled and on their way, and their bytes */

    mica_pool_class size_class[MICA_POOL_CLASSES];

    mica_buffer **bucket; /* a power of two of them */
    unsigned bucket_bits;
    mica_buffer *first_bucket[MICA_POOL_FIRST_BUCKETS];

    uint64_t last_serial;
    mica_scope_record *unused_scopes;
    mica_scope_slab *more_slabs;
    mica_scope_slab first_slab;
};

/* The smallest class that holds this many bytes, and what a class holds. bytes <= MICA_POOL_MOST_BYTES. */
unsigned mica_pool_class_of(size_t bytes);
size_t mica_pool_class_bytes(unsigned size_class);

/* Everything below: with the lock held. */

/* NULL, with an error that names `call`, when refused. */
mica_buffer *mica_buffer_rent(mica_context *ctx, mica_pool *pool, size_t bytes, bool *fresh,
                              const char *call);

/* The buffer at this address, or NULL. */
mica_buffer *mica_buffer_find(const mica_pool *pool, const void *data);

/* Ends the rent of a buffer and takes it out of its scope: it is then on its way to mica_buffers_shelve. */
void mica_buffer_detach(mica_pool *pool, mica_buffer *buffer);

/* Puts detached buffers, linked by `next`, on their shelves. Drops the lock while it clears them. */
void mica_buffers_shelve(mica_pool *pool, mica_buffer *list);

void mica_scope_link(mica_scope_record *scope, mica_buffer *buffer);
void mica_scope_unlink(mica_buffer *buffer);
void mica_scope_slab_add(mica_pool *pool, mica_scope_slab *slab);

/* The renter's bytes. */
/* What a record takes. */
#define MICA_BUFFER_RECORD ((sizeof(mica_buffer) + MICA_ALIGN - 1) / MICA_ALIGN * MICA_ALIGN)

static inline void *mica_buffer_data(mica_buffer *buffer) { return (char *)buffer + MICA_BUFFER_RECORD; }

/* The renter's bytes, cleared if the pool clears and they are new: without the lock, as clearing takes long. */
void *mica_buffer_hand_out(const mica_pool *pool, mica_buffer *buffer, bool fresh);

#endif
