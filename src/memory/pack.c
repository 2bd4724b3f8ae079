/* Greedy packing by several orders. Each span goes to the lowest place that is free for all of its life. */
#include "memory/pack.h"

#include <stdlib.h>
#include <string.h>

typedef enum order { BY_SIZE, BY_AREA, BY_START, BY_END, ORDERS } order;

static size_t lifetime(const mica_span *s) { return (size_t)(s->last - s->first) + 1; }

/* Whether a comes before b. Ties fall back on size, then on start, then on number, so that the result is
 * always the same. */
static bool before(const mica_span *spans, size_t a, size_t b, order by)
{
    const mica_span *x = &spans[a], *y = &spans[b];
    size_t area_x = x->bytes / MICA_ALIGN * lifetime(x), area_y = y->bytes / MICA_ALIGN * lifetime(y);
    if (by == BY_AREA && area_x != area_y)
        return area_x > area_y;
    if (by == BY_START && x->first != y->first)
        return x->first < y->first;
    if (by == BY_END && x->last != y->last)
        return x->last > y->last;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes;
    return x->first != y->first ? x->first < y->first : a < b;
}

/* Merge sort of numbers: stable, and without a global for the comparison. */
static void sort(const mica_span *spans, size_t *numbers, size_t *spare, size_t count, order by)
{
    if (count < 2)
        return;
    size_t half = count / 2, i = 0, j = half, k = 0;
    sort(spans, numbers, spare, half, by);
    sort(spans, numbers + half, spare, count - half, by);
    while (i < half || j < count)
        spare[k++] = j >= count || (i < half && !before(spans, numbers[j], numbers[i], by)) ? numbers[i++]
                                                                                            : numbers[j++];
    memcpy(numbers, spare, count * sizeof *numbers);
}

/* The lowest offset at which `s` overlaps nothing in placed[], which is sorted by offset. */
static size_t lowest_place(const mica_span *spans, const size_t *placed, size_t count, const mica_span *s)
{
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        const mica_span *other = &spans[placed[i]];
        if (other->last < s->first || other->first > s->last)
            continue;
        if (other->offset >= offset + s->bytes)
            break;
        if (other->offset + other->bytes > offset)
            offset = other->offset + other->bytes;
    }
    return offset;
}

static size_t pack_in_order(mica_span *spans, const size_t *numbers, size_t *placed, size_t count)
{
    size_t total = 0;
    for (size_t n = 0; n < count; n++) {
        mica_span *s = &spans[numbers[n]];
        s->offset = lowest_place(spans, placed, n, s);
        if (s->offset + s->bytes > total)
            total = s->offset + s->bytes;
        size_t at = n;
        for (; at > 0 && spans[placed[at - 1]].offset > s->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = numbers[n];
    }
    return total;
}

mica_status mica_pack(mica_context *ctx, mica_span *spans, size_t count, size_t *total)
{
    size_t bytes = 3 * count * sizeof(size_t) + 1;
    size_t *numbers = mica_allocate(ctx, bytes);
    if (numbers == NULL)
        return ctx->status;
    size_t *spare = numbers + count, *best = spare + count;
    *total = SIZE_MAX;
    for (order by = 0; by < ORDERS; by++) {
        for (size_t i = 0; i < count; i++)
            numbers[i] = i;
        sort(spans, numbers, spare, count, by);
        size_t got = pack_in_order(spans, numbers, spare, count);
        if (got < *total) {
            *total = got;
            for (size_t i = 0; i < count; i++)
                best[i] = spans[i].offset;
        }
    }
    for (size_t i = 0; i < count; i++)
        spans[i].offset = best[i];
    mica_release(ctx, numbers, bytes);
    return MICA_OK;
}

mica_status mica_pack_lower_bound(mica_context *ctx, const mica_span *spans, size_t count, int times,
                                  size_t *bound)
{
    /* change[t]: bytes that come alive at t less those that died before it. */
    size_t bytes = ((size_t)times + 1) * sizeof(ptrdiff_t);
    ptrdiff_t *change = mica_allocate(ctx, bytes);
    if (change == NULL)
        return ctx->status;
    memset(change, 0, bytes);
    for (size_t i = 0; i < count; i++) {
        change[spans[i].first] += (ptrdiff_t)spans[i].bytes;
        change[spans[i].last + 1] -= (ptrdiff_t)spans[i].bytes;
    }
    ptrdiff_t alive = 0, most = 0;
    for (int t = 0; t < times; t++) {
        alive += change[t];
        most = alive > most ? alive : most;
    }
    *bound = (size_t)most;
    mica_release(ctx, change, bytes);
    return MICA_OK;
}
