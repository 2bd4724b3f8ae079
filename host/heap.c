/* Counts the heap calls of the whole process by standing in front of the C library's. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "host/heap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEAP_COUNTED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HEAP_COUNTED 0
#endif
#endif
#if !defined(HEAP_COUNTED)
#if defined(__GLIBC__)
#define HEAP_COUNTED 1
#else
#define HEAP_COUNTED 0
#endif
#endif

static _Atomic uint64_t calls, frees, bytes_asked;

bool heap_counted(void) { return HEAP_COUNTED; }

heap_counts heap_now(void) { return (heap_counts){calls, frees, bytes_asked}; }

#if HEAP_COUNTED
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);
void *memalign(size_t alignment, size_t bytes);

static void count(size_t bytes)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes_asked, bytes, memory_order_relaxed);
}

void *malloc(size_t bytes)
{
    count(bytes);
    return __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes)
{
    count(number * bytes);
    return __libc_calloc(number, bytes);
}

void *realloc(void *block, size_t bytes)
{
    count(bytes);
    return __libc_realloc(block, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    count(bytes);
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    *block = memalign(alignment, bytes);
    return *block != NULL ? 0 : ENOMEM;
}

void free(void *block)
{
    if (block != NULL)
        atomic_fetch_add_explicit(&frees, 1, memory_order_relaxed);
    __libc_free(block);
}
#endif
