/* One element of each of up to fourteen rows: what a tile broadcasts in every iteration of its loop.
 *
 * Rows are a stride apart that is known at run time only. Left to itself, the compiler keeps an offset for
 * each row, runs out of registers, and moves them through vector registers, at the cost of a
 * multiplication each. Two pointers and three multiples of the stride are enough: addresses double and
 * quadruple by themselves. */
#ifndef MICA_SRC_KERNEL_LINES_H
#define MICA_SRC_KERNEL_LINES_H

#include "kernel/vec.h"

enum { LINES_HALF = 7, LINES_MOST = 14 };

typedef struct lines {
    const char *low, *high; /* at row 0 and at row LINES_HALF */
    ptrdiff_t once, thrice, five_times, next;
} lines;

/* What the compiler does not know it neither takes apart nor keeps multiples of. And a function on its own has all
 * registers to itself. Tiles of sixteen registers have few rows, and need neither. */
#if VF_REGISTERS >= 32
#define LINES_OPAQUE(x) __asm__("" : "+r"(x))
#define LINES_ALONE     __attribute__((noinline))
#else
#define LINES_OPAQUE(x) ((void)(x))
#define LINES_ALONE
#endif

/* Rows `stride` bytes apart, that are gone along in steps of `next` bytes. */
VF_INLINE lines lines_of_bytes(const void *first, ptrdiff_t stride, ptrdiff_t next)
{
    const char *low = first;
    lines l = {low, low + LINES_HALF * stride, stride, 3 * stride, 5 * stride, next};
    LINES_OPAQUE(l.high);
    LINES_OPAQUE(l.five_times);
    return l;
}

/* Rows `stride` apart, whose elements are `next` apart, both in floats. */
VF_INLINE lines lines_at(const float *first, ptrdiff_t stride, ptrdiff_t next)
{
    return lines_of_bytes(first, stride * (ptrdiff_t)sizeof(float), next * (ptrdiff_t)sizeof(float));
}

/* Called at the beginning of a turn, so that no multiple is kept from one turn to the next. */
VF_INLINE void lines_forget(lines *l)
{
    LINES_OPAQUE(l->once);
    LINES_OPAQUE(l->thrice);
}

/* Where row i is now; i is a constant where this is inlined. */
VF_INLINE const void *lines_place(const lines *l, size_t i)
{
    const char *from = i < LINES_HALF ? l->low : l->high;
    const ptrdiff_t offset[LINES_HALF] = {0,           l->once,       2 * l->once,  l->thrice,
                                          4 * l->once, l->five_times, 2 * l->thrice};
    return from + offset[i % LINES_HALF];
}

/* The element there. */
VF_INLINE float lines_get(const lines *l, size_t i) { return *(const float *)lines_place(l, i); }

VF_INLINE void lines_step(lines *l)
{
    l->low += l->next;
    l->high += l->next;
}

#endif
