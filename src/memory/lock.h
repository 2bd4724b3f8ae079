/* A mutex, or nothing in a build without threads. */
#ifndef MICA_SRC_MEMORY_LOCK_H
#define MICA_SRC_MEMORY_LOCK_H

#include <stdbool.h>

#if defined(MICA_NO_THREADS)

typedef struct mica_lock {
    char nothing;
} mica_lock;

static inline bool mica_lock_init(mica_lock *lock)
{
    lock->nothing = 0;
    return true;
}
static inline void mica_lock_destroy(mica_lock *lock) { (void)lock; }
static inline void mica_lock_take(mica_lock *lock) { (void)lock; }
static inline void mica_lock_drop(mica_lock *lock) { (void)lock; }

#else

#include <pthread.h>

typedef struct mica_lock {
    pthread_mutex_t mutex;
} mica_lock;

static inline bool mica_lock_init(mica_lock *lock) { return pthread_mutex_init(&lock->mutex, NULL) == 0; }
static inline void mica_lock_destroy(mica_lock *lock) { (void)pthread_mutex_destroy(&lock->mutex); }
static inline void mica_lock_take(mica_lock *lock) { (void)pthread_mutex_lock(&lock->mutex); }
static inline void mica_lock_drop(mica_lock *lock) { (void)pthread_mutex_unlock(&lock->mutex); }

#endif
#endif
