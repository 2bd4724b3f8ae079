/* Merging neighbours. */
#include "text/merge.h"

void mica_heap_push(mica_merge_heap *heap, uint32_t order, uint32_t left)
{
    uint64_t key = (uint64_t)order << 32 | left, *pair = heap->pair;
    size_t i = heap->count++;
    for (; i > 0 && pair[(i - 1) / 2] > key; i = (i - 1) / 2)
        pair[i] = pair[(i - 1) / 2];
    pair[i] = key;
}

uint64_t mica_heap_pop(mica_merge_heap *heap)
{
    uint64_t *pair = heap->pair, best = pair[0], key = pair[--heap->count];
    size_t count = heap->count, i = 0;
    for (size_t child = 1; child < count; child = 2 * i + 1) {
        if (child + 1 < count && pair[child + 1] < pair[child])
            child++;
        if (pair[child] >= key)
            break;
        pair[i] = pair[child];
        i = child;
    }
    pair[i] = key;
    return best;
}

typedef struct merging {
    mica_symbol *symbol;
    mica_merge_heap heap;
    mica_pair_fn *pair;
    const void *user;
} merging;

static void consider(merging *m, uint32_t left)
{
    uint32_t order;
    int32_t token;
    if (left == MICA_NO_SYMBOL || m->symbol[left].next == MICA_NO_SYMBOL)
        return;
    if (m->pair(m->user, &m->symbol[left], &m->symbol[m->symbol[left].next], &order, &token))
        mica_heap_push(&m->heap, order, left);
}

void mica_merge_all(mica_symbol *symbol, size_t count, uint64_t *pairs, mica_pair_fn *pair, const void *user)
{
    merging m = {.symbol = symbol, .heap = {.pair = pairs}, .pair = pair, .user = user};
    for (size_t i = 0; i < count; i++) {
        symbol[i].previous = i > 0 ? (uint32_t)(i - 1) : MICA_NO_SYMBOL;
        symbol[i].next = i + 1 < count ? (uint32_t)(i + 1) : MICA_NO_SYMBOL;
    }
    for (size_t i = 0; i + 1 < count; i++)
        consider(&m, (uint32_t)i);
    while (m.heap.count > 0) {
        uint64_t best = mica_heap_pop(&m.heap);
        uint32_t left = (uint32_t)best, order;
        int32_t token;
        /* What it was put there for may have been merged since: then the pair there now is another. */
        mica_symbol *l = &symbol[left];
        if (l->length == 0 || l->next == MICA_NO_SYMBOL)
            continue;
        mica_symbol *r = &symbol[l->next];
        if (!pair(user, l, r, &order, &token) || order != best >> 32)
            continue;
        l->token = token;
        l->length += r->length;
        r->length = 0;
        l->next = r->next;
        if (l->next != MICA_NO_SYMBOL)
            symbol[l->next].previous = left;
        consider(&m, l->previous);
        consider(&m, left);
    }
}
