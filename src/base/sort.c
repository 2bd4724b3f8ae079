/* Heap sort. */
#include "base/sort.h"

#include <assert.h>
#include <string.h>

static void swap(char *a, char *b, size_t size)
{
    char kept[MICA_SORT_LARGEST];
    memcpy(kept, a, size);
    memcpy(a, b, size);
    memcpy(b, kept, size);
}

/* Lets the element at `at` sink until neither child comes after it. */
static void sink(char *base, size_t at, size_t count, size_t size, mica_compare_fn *compare)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && compare(base + child * size, base + (child + 1) * size) < 0)
            child++;
        if (compare(base + at * size, base + child * size) >= 0)
            return;
        swap(base + at * size, base + child * size, size);
    }
}

void mica_sort(void *elements, size_t count, size_t size, mica_compare_fn *compare)
{
    assert(size <= MICA_SORT_LARGEST);
    char *base = elements;
    for (size_t at = count / 2; at > 0; at--)
        sink(base, at - 1, count, size, compare);
    for (size_t left = count; left > 1; left--) {
        swap(base, base + (left - 1) * size, size);
        sink(base, 0, left - 1, size, compare);
    }
}
