/* Small arithmetic with sizes. */
#ifndef MICA_SRC_BASE_SIZE_H
#define MICA_SRC_BASE_SIZE_H

#include <stddef.h>
#include <stdint.h>

static inline size_t mica_least(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t mica_most(size_t a, size_t b) { return a > b ? a : b; }
static inline ptrdiff_t mica_least_index(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

/* a / b. Processors divide 32 bits several times as fast as 64, and most sizes fit. */
static inline size_t mica_quotient(size_t a, size_t b)
{
#if SIZE_MAX > UINT32_MAX
    if ((a | b) <= UINT32_MAX)
        return (uint32_t)a / (uint32_t)b;
#endif
    return a / b;
}

static inline size_t mica_div_up(size_t a, size_t b) { return mica_quotient(a + b - 1, b); }
static inline size_t mica_round_up(size_t n, size_t multiple) { return mica_div_up(n, multiple) * multiple; }

/* The greatest common divisor of two numbers of at least 0. */
static inline int64_t mica_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
