/* Heap sort: in place, without recursion or allocation (the C library's qsort may allocate), and O(n log n) for
 * any input. */
#ifndef MICA_SRC_BASE_SORT_H
#define MICA_SRC_BASE_SORT_H

#include <stddef.h>

/* Negative, 0 or positive as a comes before, with or after b. */
typedef int mica_compare_fn(const void *a, const void *b);

/* Sorts count elements of `size` bytes, at most MICA_SORT_LARGEST. */
void mica_sort(void *elements, size_t count, size_t size, mica_compare_fn *compare);

#define MICA_SORT_LARGEST 256

#endif
