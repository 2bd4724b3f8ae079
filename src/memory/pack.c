/* Greedy packing: places spans in some order, each at the lowest offset that is free for its whole lifetime. Several
 * orders are tried: by time first, since that is fast; then by size, if there are not too many spans; then the best
 * one is improved by local search, moving spans that end at the top to the front. All of it stops when the
 * lower bound is reached. */
#include "memory/pack.h"

#include <string.h>

typedef enum order { BY_SIZE, BY_AREA, BY_START, BY_END, ORDERS } order;

static size_t lifetime(const mica_span *s) { return (size_t)(s->last - s->first) + 1; }

/* Whether a comes before b. In orders of time, what lives longer comes before what begins (or ends) with it: so
 * scratch goes on top of what stays. Ties fall back on size, then on start, then on number, so that the result is
 * always the same. */
static bool before(const mica_span *spans, size_t a, size_t b, order by)
{
    const mica_span *x = &spans[a], *y = &spans[b];
    size_t area_x = x->bytes / MICA_ALIGN * lifetime(x), area_y = y->bytes / MICA_ALIGN * lifetime(y);
    if (by == BY_AREA && area_x != area_y)
        return area_x > area_y;
    if (by == BY_START && x->first != y->first)
        return x->first < y->first;
    if ((by == BY_START || by == BY_END) && x->last != y->last)
        return x->last > y->last;
    if (by == BY_END && x->first != y->first)
        return x->first < y->first;
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

/* ---- Placing by time: spans come alive in order, and die ----
 *
 * Everything that lives when a span comes alive overlaps it in time, so the memory between is a list of holes. The
 * lowest that is large enough is what a search through all spans would find, in nearly linear time: there are few
 * holes. Backwards in time the same holds, by the ends. */

typedef struct hole {
    size_t offset, bytes;
} hole;

/* Sorted by offset; no two touch. The last has no end. */
typedef struct holes {
    hole *hole; /* room for one more than there are spans */
    size_t count;
} holes;

static size_t take_lowest(holes *h, size_t bytes)
{
    size_t i = 0;
    while (h->hole[i].bytes < bytes)
        i++;
    size_t offset = h->hole[i].offset;
    h->hole[i].offset += bytes;
    h->hole[i].bytes -= bytes;
    if (h->hole[i].bytes == 0)
        memmove(h->hole + i, h->hole + i + 1, (--h->count - i) * sizeof *h->hole);
    return offset;
}

static void give_back(holes *h, size_t offset, size_t bytes)
{
    size_t low = 0, high = h->count; /* the first hole behind: the last hole always is */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (h->hole[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    hole *next = h->hole + low;
    bool joins_next = offset + bytes == next->offset;
    bool joins_last = low > 0 && next[-1].offset + next[-1].bytes == offset;
    if (joins_last && joins_next) {
        next[-1].bytes += bytes + next->bytes;
        memmove(next, next + 1, (--h->count - low) * sizeof *next);
    } else if (joins_last) {
        next[-1].bytes += bytes;
    } else if (joins_next) {
        next->offset = offset;
        next->bytes += bytes;
    } else {
        memmove(next + 1, next, (h->count++ - low) * sizeof *next);
        *next = (hole){offset, bytes};
    }
}

/* Places spans in the order of numbers[], by start; or with `back`, by end, the last first. dying[]: the same spans
 * in the order in which they die, that is by end, or by start, each from its own end. */
static size_t pack_in_time(mica_span *spans, const size_t *numbers, const size_t *dying, holes *h,
                           size_t count, bool back)
{
    size_t total = 0, dead = 0;
    h->count = 1;
    h->hole[0] = (hole){0, SIZE_MAX};
    for (size_t n = 0; n < count; n++) {
        mica_span *s = &spans[numbers[n]];
        for (; dead < count; dead++) {
            const mica_span *d = &spans[dying[count - 1 - dead]];
            if (back ? d->first <= s->last : d->last >= s->first)
                break;
            if (d->bytes > 0)
                give_back(h, d->offset, d->bytes);
        }
        s->offset = take_lowest(h, s->bytes);
        if (s->offset + s->bytes > total)
            total = s->offset + s->bytes;
    }
    return total;
}

/* ---- Placing in any order ---- */

/* A span that has its place: what the search looks at, side by side. */
typedef struct placed {
    size_t offset, end;
    int first, last;
} placed;

/* The lowest offset at which `s` overlaps nothing in at[], which is sorted by offset. *rank is where it goes
 * there. */
static size_t lowest_place(const placed *at, size_t count, const mica_span *s, size_t *rank)
{
    size_t offset = 0, i = 0;
    for (; i < count; i++) {
        if (at[i].last < s->first || at[i].first > s->last)
            continue;
        if (at[i].offset >= offset + s->bytes)
            break;
        if (at[i].end > offset)
            offset = at[i].end;
    }
    while (i > 0 && at[i - 1].offset > offset)
        i--;
    while (i < count && at[i].offset <= offset)
        i++;
    *rank = i;
    return offset;
}

static size_t pack_in_order(mica_span *spans, const size_t *numbers, placed *at, size_t count)
{
    size_t total = 0;
    for (size_t n = 0; n < count; n++) {
        mica_span *s = &spans[numbers[n]];
        size_t rank;
        s->offset = lowest_place(at, n, s, &rank);
        size_t end = s->offset + s->bytes;
        total = end > total ? end : total;
        memmove(at + rank + 1, at + rank, (n - rank) * sizeof *at);
        at[rank] = (placed){s->offset, end, s->first, s->last};
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

/* Bound the work, whatever the number of spans: tries times spans squared. Beyond ANY_ORDER spans only orders of
 * time are tried, which are nearly linear; and up to ONE_ORDER spans, if those lost more than one part in LOSS, the
 * order by size. */
#define ANY_ORDER     ((size_t)3000)
#define ONE_ORDER     ((size_t)6000)
#define LOSS          ((size_t)256)
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

static void improve(mica_span *spans, size_t *numbers, placed *at, size_t count, best_pack *best)
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
        total = pack_in_order(spans, numbers, at, count);
        fruitless = keep_if_better(best, spans, numbers, count, total) ? 0 : fruitless + 1;
    }
}

/* Working memory: [ numbers | spare | the best's numbers | its offsets | holes or places ] */
typedef struct workroom {
    size_t *numbers, *spare;
    holes holes;
    placed *at;
} workroom;

static void sort_by(const mica_span *spans, size_t *numbers, size_t *spare, size_t count, order by)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = i;
    sort(spans, numbers, spare, count, by);
}

/* By start, then by end: each gives the order of dying to the other. */
static void try_times(mica_span *spans, workroom *w, size_t count, best_pack *best)
{
    size_t *starts = w->numbers, *ends = w->spare, *spare = best->offsets;
    sort_by(spans, starts, spare, count, BY_START);
    sort_by(spans, ends, spare, count, BY_END);
    size_t total = pack_in_time(spans, starts, ends, &w->holes, count, false);
    (void)keep_if_better(best, spans, starts, count, total);
    if (best->total == best->bound)
        return;
    total = pack_in_time(spans, ends, starts, &w->holes, count, true);
    (void)keep_if_better(best, spans, ends, count, total);
}

static void try_order(mica_span *spans, workroom *w, size_t count, best_pack *best, order by)
{
    if (best->total == best->bound)
        return;
    sort_by(spans, w->numbers, w->spare, count, by);
    size_t total = pack_in_order(spans, w->numbers, w->at, count);
    (void)keep_if_better(best, spans, w->numbers, count, total);
}

static void try_all(mica_span *spans, workroom *w, size_t count, best_pack *best)
{
    try_times(spans, w, count, best);
    if (count <= ANY_ORDER) {
        try_order(spans, w, count, best, BY_SIZE);
        try_order(spans, w, count, best, BY_AREA);
        improve(spans, w->numbers, w->at, count, best);
    } else if (count <= ONE_ORDER && best->total - best->bound > best->bound / LOSS) {
        try_order(spans, w, count, best, BY_SIZE);
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
    size_t each = 4 * sizeof(size_t) + (sizeof(placed) > sizeof(hole) ? sizeof(placed) : sizeof(hole));
    size_t bytes = (count + 1) * each;
    size_t *numbers = mica_allocate(ctx, bytes);
    if (numbers == NULL)
        return ctx->status;
    best.numbers = numbers + 2 * count;
    best.offsets = numbers + 3 * count;
    workroom w = {.numbers = numbers,
                  .spare = numbers + count,
                  .holes = {.hole = (hole *)(numbers + 4 * count)},
                  .at = (placed *)(numbers + 4 * count)};
    try_all(spans, &w, count, &best);
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
