/* Greedy packing: spans in some order, each to the lowest place that is free for all of its life. Several
 * orders are tried; then the best one is changed a little, again and again, by letting a span that ends at
 * the top go earlier. All of it stops when the lower bound is reached. */
#include "memory/pack.h"

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

/* The best order so far, and what it led to. */
typedef struct best_pack {
    size_t *numbers, *offsets;
    size_t total, bound;
} best_pack;

static bool keep_if_better(best_pack *best, const mica_span *spans, const size_t *numbers, size_t count,
                           size_t total)
{
    if (total >= best->total)
        return false;
    best->total = total;
    memcpy(best->numbers, numbers, count * sizeof *numbers);
    for (size_t i = 0; i < count; i++)
        best->offsets[i] = spans[i].offset;
    return true;
}

/* Bounds the work of improving, whatever the number of spans: tries times spans squared. */
#define IMPROVE_WORK  ((size_t)12000000)
#define MOST_TRIES    ((size_t)1000)
#define RESTART_AFTER 24 /* changes without gain before going back to the best order */

/* Position in the order of a span that ends at `total`. */
static size_t position_of_top(const mica_span *spans, const size_t *numbers, size_t total)
{
    size_t at = 0;
    while (spans[numbers[at]].offset + spans[numbers[at]].bytes != total)
        at++;
    return at;
}

static void improve(mica_span *spans, size_t *numbers, size_t *spare, size_t count, best_pack *best)
{
    size_t tries = IMPROVE_WORK / (count * count);
    tries = tries < MOST_TRIES ? tries : MOST_TRIES;
    uint32_t draw = 1; /* of a fixed sequence: a plan is always the same */
    for (size_t t = 0, fruitless = RESTART_AFTER, total = 0; t < tries && best->total > best->bound; t++) {
        if (fruitless == RESTART_AFTER) {
            memcpy(numbers, best->numbers, count * sizeof *numbers);
            for (size_t i = 0; i < count; i++)
                spans[i].offset = best->offsets[i];
            total = best->total;
            fruitless = 0;
        }
        draw = draw * 1664525u + 1013904223u;
        size_t from = position_of_top(spans, numbers, total), to = from > 0 ? (draw >> 8) % from : 0;
        size_t moved = numbers[from];
        memmove(numbers + to + 1, numbers + to, (from - to) * sizeof *numbers);
        numbers[to] = moved;
        total = pack_in_order(spans, numbers, spare, count);
        fruitless = keep_if_better(best, spans, numbers, count, total) ? 0 : fruitless + 1;
    }
}

mica_status mica_pack(mica_context *ctx, mica_span *spans, size_t count, size_t *total)
{
    *total = 0;
    if (count == 0)
        return MICA_OK;
    int times = 0;
    for (size_t i = 0; i < count; i++)
        times = spans[i].last >= times ? spans[i].last + 1 : times;
    best_pack best = {.total = SIZE_MAX};
    MICA_TRY(mica_pack_lower_bound(ctx, spans, count, times, &best.bound));
    size_t bytes = 4 * count * sizeof(size_t);
    size_t *numbers = mica_allocate(ctx, bytes);
    if (numbers == NULL)
        return ctx->status;
    size_t *spare = numbers + count;
    best.numbers = spare + count;
    best.offsets = best.numbers + count;
    for (order by = 0; by < ORDERS && best.total > best.bound; by++) {
        for (size_t i = 0; i < count; i++)
            numbers[i] = i;
        sort(spans, numbers, spare, count, by);
        size_t got = pack_in_order(spans, numbers, spare, count);
        (void)keep_if_better(&best, spans, numbers, count, got);
    }
    improve(spans, numbers, spare, count, &best);
    for (size_t i = 0; i < count; i++)
        spans[i].offset = best.offsets[i];
    *total = best.total;
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
