/* Kernels of a cache of keys and values: writing to it, and attention over it.
 *
 * A page has the tokens of MICA_CACHE_PLACES places, and of each head
 *
 *     keys     [width][PAGE]             so that lanes are tokens
 *     values   [PAGE][value_stride]      so that lanes are features
 *
 * in f32 or f16; in q8_0 as signed bytes, with a scale in f16 for each token and 32 features behind them: [features /
 * 32][PAGE].
 *
 * The order of all sums follows from places alone. Places fall into segments. In a segment, a query's scores are
 * products summed feature by feature; their exponentials are taken relative to the segment's largest score, and the
 * values are summed token by token. Then the segments are joined, in order. So it does not matter which queries are
 * computed side by side, nor whether segments are computed one after the other. */
#ifndef MICA_SRC_KERNEL_CACHE_H
#define MICA_SRC_KERNEL_CACHE_H

#include <mica/tensor.h>

#define MICA_CACHE_PLACES  32  /* of a page: MICA_CACHE_PAGE of those who call this */
#define MICA_CACHE_SEGMENT 256 /* places */
#define MICA_CACHE_TILE    12  /* the most queries that are computed side by side */

typedef struct mica_cache_layout {
    mica_dtype type;
    size_t width, value_width;
    size_t value_stride;         /* value_width, rounded up to whole vectors */
    size_t key_head, value_head; /* bytes of a head in a page */
    size_t key_page, value_page; /* bytes of a page */
} mica_cache_layout;

/* Rows of one sequence at places one behind the other, of the heads that share a head of keys and values. */
typedef struct mica_cache_queries {
    const mica_cache_layout *layout;
    const uint8_t *keys, *values; /* of the head, in page 0 */
    const int32_t *table;         /* the sequence's pages */
    ptrdiff_t table_stride;
    size_t rows, group; /* there are rows * group queries */
    ptrdiff_t place;    /* of the first row */
    ptrdiff_t first;    /* places before it are not seen */
    ptrdiff_t window;   /* places that a row sees before it, and its own */
    ptrdiff_t end;      /* all see the places before it; 0: those up to their own */
    const float *q;     /* of the first of the heads, which lie one behind the other */
    float *y;
    ptrdiff_t q_row, y_row;
    float scale, cap; /* cap: 0: none */
    float *scratch;   /* mica_cache_floats(layout) */
} mica_cache_queries;

/* The places that a row sees: from *begin to *end - 1, none if that is less. */
static inline void mica_cache_seen(const mica_cache_queries *b, size_t row, ptrdiff_t *begin, ptrdiff_t *end)
{
    ptrdiff_t place = b->place + (ptrdiff_t)row;
    *begin = place - b->window + 1 > b->first ? place - b->window + 1 : b->first;
    *end = b->end > 0 ? b->end : place + 1;
}

/* What a query made of a segment, or of several: the sums of its values, its largest score, and the sum of the
 * exponentials. */
static inline size_t mica_cache_record(const mica_cache_layout *layout) { return layout->value_stride + 16; }

/* Queries [width][tile] | scores [tile][segment] | records of a segment, and of all [2][tile] */
static inline size_t mica_cache_floats(const mica_cache_layout *layout)
{
    return MICA_CACHE_TILE * (layout->width + MICA_CACHE_SEGMENT + 2 * mica_cache_record(layout));
}

typedef struct mica_cache_kernels {
    /* One token's key and value of a head: at place `slot` of its page. */
    void (*write_key)(const mica_cache_layout *layout, uint8_t *head, const float *key, size_t slot);
    void (*write_value)(const mica_cache_layout *layout, uint8_t *head, const float *value, size_t slot);

    void (*attend)(const mica_cache_queries *queries);

    /* The same in two steps: the segments, in any order, each with a record for each query; then y out of all
     * records of a query, which are `stride` floats apart. */
    void (*attend_segment)(const mica_cache_queries *queries, size_t segment, float *records);
    void (*join)(const mica_cache_queries *queries, size_t first_segment, const float *records,
                 size_t stride);
} mica_cache_kernels;

#endif
