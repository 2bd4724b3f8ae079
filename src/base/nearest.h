/* "Did you mean": the closest match in a list of words. */
#ifndef MICA_SRC_BASE_NEAREST_H
#define MICA_SRC_BASE_NEAREST_H

#include <stddef.h>

/* The one of `names` (every `stride` bytes a const char *) that was probably meant by word[length]; NULL if none is
 * near. */
const char *mica_nearest(const char *word, size_t length, const void *names, size_t count, size_t stride);

#endif
