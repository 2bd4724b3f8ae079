/* Memory of the exported program: when each value lives, which takes over whose memory, and where each lies.
 *
 *     block:  [ learned | gradients | more state of the optimizer | kept | arena: everything else, by lifetime ]
 *     whole:  [ integers, by lifetime ]     an array of their own, as C lets no memory be both
 */
#include <stdlib.h>
#include <string.h>

#include "export/graph.h"

/* Memory for one value, or for several that take over from one another. */
typedef struct span {
    size_t size; /* in elements of four bytes */
    int first, last;
    bool whole;
    size_t offset;
    bool gone;
} span;

static bool is_packed(const value *v) { return v->home == VALUE_ARENA || v->home == VALUE_INPUT; }

/* Bytes lie in the block of floats. */
static size_t words_of(const graph *g, const value *v)
{
    size_t size = value_size(g, v);
    return v->dtype == MICA_U8 || v->dtype == MICA_I8 ? (size + 3) / 4 : size;
}

/* ---- Lifetimes ---- */

static void use(graph *g, int number, int time)
{
    if (number == NONE)
        return;
    value *v = &g->values[g->values[number].root];
    v->first = v->first == NONE || time < v->first ? time : v->first;
    v->last = time > v->last ? time : v->last;
}

static void find_lifetimes(graph *g)
{
    for (int i = 0; i < g->value_count; i++)
        g->values[i].first = g->values[i].last = NONE;
    g->run_count = 0;
    for (int n = 0; n < g->call_count; n++) {
        call *c = &g->calls[n];
        g->run_count += c->runs;
        for (int i = 0; i < c->ins; i++)
            use(g, c->in[i], n);
        for (int k = 0; k < c->outs; k++)
            use(g, c->out[k], n);
        use(g, c->scratch, n);
    }
    int end = g->call_count - 1;
    for (int i = 0; i < g->value_count; i++) {
        value *v = &g->values[i];
        if (v->home == VALUE_INPUT)
            use(g, i, 0);
        if (v->output)
            use(g, i, g->run_count - 1);
        if (g->samples > 1 && v->output) /* of all samples, while one of them runs */
            use(g, i, 0);
        if (g->samples > 1 && v->home == VALUE_INPUT)
            use(g, i, end);
    }
}

/* ---- Taking over ---- */

/* Whether output k of call number n may lie where its input i is. */
static bool takes_over(const graph *g, const span *spans, int n, int k, int i)
{
    const call *c = &g->calls[n];
    if (c->in[i] == NONE || !(c->in_place[k] >> i & 1u))
        return false;
    const value *from = root_of(g, c->in[i]), *to = root_of(g, c->out[k]);
    if (!is_packed(from) || !is_packed(to) || from == to || to->first != n || from->group == to->group)
        return false;
    for (int other = 0; other < c->ins; other++) /* it must not be read as something else, too */
        if (other != i && c->in[other] != NONE && root_of(g, c->in[other]) == from)
            return false;
    return spans[from->group].last == n && from->border == to->border && from->dtype == to->dtype &&
           words_of(g, from) == words_of(g, to) && spans[to->group].first == n;
}

static void join(graph *g, span *spans, int from, int to)
{
    spans[from].last = spans[to].last;
    spans[to].gone = true;
    for (int i = 0; i < g->value_count; i++)
        if (g->values[i].group == to)
            g->values[i].group = from;
}

static void take_over(graph *g, span *spans)
{
    for (int n = 0; n < g->call_count; n++)
        for (int k = 0; k < g->calls[n].outs; k++)
            for (int i = 0; i < g->calls[n].ins && g->calls[n].out[k] != NONE; i++)
                if (takes_over(g, spans, n, k, i)) {
                    join(g, spans, root_of(g, g->calls[n].in[i])->group,
                         root_of(g, g->calls[n].out[k])->group);
                    break;
                }
}

/* ---- Packing ---- */

static bool meet(const span *a, const span *b) { return a->first <= b->last && b->first <= a->last; }

/* The lowest offset at which nothing that is placed lies at the same time. */
static size_t lowest(const span *spans, const int *order, int placed, const span *s)
{
    size_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int p = 0; p < placed; p++) {
            const span *other = &spans[order[p]];
            if (meet(s, other) && at < other->offset + other->size && other->offset < at + s->size) {
                at = other->offset + other->size;
                moved = true;
            }
        }
    }
    return at;
}

static size_t pack_in_order(span *spans, const int *order, int count)
{
    size_t total = 0;
    for (int p = 0; p < count; p++) {
        span *s = &spans[order[p]];
        s->offset = lowest(spans, order, p, s);
        total = s->offset + s->size > total ? s->offset + s->size : total;
    }
    return total;
}

/* By what the order of a try goes: what is largest comes first. */
static double weight_of(const span *s, int rule)
{
    double size = (double)s->size, life = (double)(s->last - s->first + 1);
    return rule == 0 ? size : rule == 1 ? size * life : rule == 2 ? life * 1e9 + size : -(double)s->first;
}

static void sort(const span *spans, int *order, int count, int rule)
{
    for (int i = 1; i < count; i++) /* few, and stable */
        for (int p = i; p > 0 && weight_of(&spans[order[p]], rule) > weight_of(&spans[order[p - 1]], rule);
             p--) {
            int swapped = order[p];
            order[p] = order[p - 1];
            order[p - 1] = swapped;
        }
}

/* Tries several orders, then swaps of neighbours of the best. */
static bool pack(span *spans, int count, bool whole, size_t *total)
{
    int *order = malloc((size_t)(count + 1) * sizeof *order),
        *best = malloc((size_t)(count + 1) * sizeof *best);
    int placed = 0;
    if (order == NULL || best == NULL) {
        free(order);
        free(best);
        return false;
    }
    for (int i = 0; i < count; i++)
        if (!spans[i].gone && spans[i].whole == whole && spans[i].size > 0)
            order[placed++] = i;
    *total = (size_t)-1;
    for (int rule = 0; rule < 4; rule++) {
        sort(spans, order, placed, rule);
        size_t bytes = pack_in_order(spans, order, placed);
        if (bytes < *total) {
            *total = bytes;
            memcpy(best, order, (size_t)placed * sizeof *order);
        }
    }
    for (int i = 0; i + 1 < placed && placed <= 200; i++)
        for (int j = i + 1; j < placed; j++) {
            memcpy(order, best, (size_t)placed * sizeof *order);
            order[i] = best[j];
            order[j] = best[i];
            size_t bytes = pack_in_order(spans, order, placed);
            if (bytes < *total) {
                *total = bytes;
                memcpy(best, order, (size_t)placed * sizeof *order);
            }
        }
    *total = pack_in_order(spans, best, placed);
    free(order);
    free(best);
    return true;
}

/* ---- The block ---- */

/* Floats of what learns: parameters, gradients, the optimizer's state, and how far its means are on their way. */
static size_t learning_count(const graph *g)
{
    return g->learned_count * (2 + g->states) + (g->learned_count > 0 ? g->states : 0);
}

/* Parameters next to one another, their gradients in the same order, and what is kept. */
static void place_lasting(graph *g)
{
    size_t learned = 0, kept = 0;
    for (int i = 0; i < g->value_count; i++) {
        value *v = &g->values[i];
        if (v->root == i && v->home == VALUE_LEARNED) {
            v->offset = learned;
            learned += v->count;
        }
    }
    g->learned_count = learned;
    for (int i = 0; i < g->value_count; i++) {
        value *v = &g->values[i];
        if (v->root == i && v->home == VALUE_GRADIENT)
            v->offset = learned + g->values[v->of].offset;
        if (v->root == i && v->home == VALUE_KEPT) {
            v->offset = learning_count(g) + kept;
            kept += words_of(g, v);
        }
    }
    g->kept_count = kept;
}

static void place_packed(graph *g, const span *spans)
{
    size_t before = learning_count(g) + g->kept_count;
    for (int i = 0; i < g->value_count; i++) {
        value *v = &g->values[i];
        if (is_packed(v) && v->root == i && v->group != NONE)
            v->offset = spans[v->group].offset + (spans[v->group].whole ? 0 : before);
    }
    for (int i = 0; i < g->value_count; i++)
        g->values[i].offset = root_of(g, i)->offset;
    g->block_count = before + g->arena_count;
}

bool graph_plan(graph *g)
{
    find_lifetimes(g);
    span *spans = calloc((size_t)g->value_count + 1, sizeof *spans);
    if (spans == NULL)
        return false;
    for (int i = 0; i < g->value_count; i++) {
        value *v = &g->values[i];
        bool used = is_packed(v) && v->root == i && v->first != NONE;
        v->group = used ? i : NONE;
        spans[i] = (span){.gone = !used};
        if (used)
            spans[i] = (span){
                .size = words_of(g, v), .first = v->first, .last = v->last, .whole = v->dtype == MICA_I32};
    }
    take_over(g, spans);
    place_lasting(g);
    bool packed = pack(spans, g->value_count, false, &g->arena_count) &&
                  pack(spans, g->value_count, true, &g->whole_count);
    if (packed)
        place_packed(g, spans);
    free(spans);
    return packed;
}
