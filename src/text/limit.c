/* Limits. Nothing is sorted: tokens that cannot stay are left out by a threshold or a heap, and of the others a limit
 * takes the first ones by partitions. */
#include "text/limit.h"

#include <math.h>

#include "base/context.h"
#include "base/sort.h"

static bool before(const mica_candidate *a, const mica_candidate *b)
{
    return a->key != b->key ? a->key < b->key : a->token < b->token;
}

static int by_key(const void *a, const void *b) { return before(a, b) ? -1 : before(b, a) ? 1 : 0; }

static void swap(mica_candidate *a, mica_candidate *b)
{
    mica_candidate kept = *a;
    *a = *b;
    *b = kept;
}

/* Those that come before one of them, which is the middle one of three, are moved to the front; returns how many, and
 * that one stands behind them. */
static size_t partition(mica_candidate *c, size_t count)
{
    mica_candidate *a = c, *b = c + count / 2, *last = c + count - 1;
    if (before(b, a))
        swap(a, b);
    if (before(last, a))
        swap(a, last);
    if (before(b, last))
        swap(b, last); /* the middle one is the last now */
    size_t front = 0;
    for (size_t i = 0; i + 1 < count; i++)
        if (before(&c[i], last))
            swap(&c[i], &c[front++]);
    swap(&c[front], last);
    return front;
}

double mica_weigh(const mica_candidate *c, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)c[i].weight;
    return sum;
}

/* How many of the candidates, those with the smallest keys, weigh `mass` together; at least one. They are moved to the
 * front. Partitions that do not get on give way to sorting. */
static size_t first_of_mass(mica_candidate *c, size_t count, double mass)
{
    size_t kept = 0;
    for (int tries = 0; count - kept > 1 && tries < 64; tries++) {
        size_t front = partition(c + kept, count - kept);
        double weight = mica_weigh(c + kept, front);
        if (weight >= mass && front > 0) {
            count = kept + front;
            continue;
        }
        mass -= weight;
        kept += front;
        mass -= (double)c[kept++].weight;
        if (mass <= 0)
            return kept;
    }
    mica_sort(c + kept, count - kept, sizeof *c, by_key);
    while (kept < count && (mass > 0 || kept == 0))
        mass -= (double)c[kept++].weight;
    return kept;
}

/* What is possible at all joins the candidates. */
static void add_candidate(mica_drawing *d, int32_t token)
{
    float logit = d->logits[token];
    if (logit > -INFINITY)
        d->kept[d->kept_count++] = (mica_candidate){
            .weight = (float)exp((double)logit - (double)d->top), .key = -logit, .token = token};
}

float mica_largest_kept(const mica_drawing *d)
{
    float largest = -INFINITY;
    for (size_t i = 0; i < d->kept_count; i++)
        largest = mica_logit_of(d, i) > largest ? mica_logit_of(d, i) : largest;
    return largest;
}

/* The candidates are the top_k. */
static void collect_largest(mica_drawing *d)
{
    size_t most = (size_t)d->s->top_k;
    mica_likely *heap = (mica_likely *)(d->kept + most) - most; /* the end of their room */
    mica_pick_largest(d->ctx->kernels, heap, most, d->logits, d->count);
    for (size_t i = 0; i < most; i++)
        add_candidate(d, heap[i].token); /* never gets ahead of what is read */
}

/* The candidates are all that top_p and min_p can leave; `all` weigh together so much. */
static void collect_possible(mica_drawing *d, double all)
{
    const mica_sampling *s = d->s;
    double least = -INFINITY;
    if (!mica_is_limit(s->typical_p)) {
        /* Those below an even share of what top_p leaves out are left out together. */
        if (mica_is_limit(s->top_p))
            least = (double)d->top + log((1 - (double)s->top_p) * all / (double)d->count) - 1e-3;
        if (s->min_p > 0 && (double)d->top + log((double)s->min_p) - 1e-3 > least)
            least = (double)d->top + log((double)s->min_p) - 1e-3;
    }
    for (size_t i = 0; i < d->count; i++)
        if ((double)d->logits[i] >= least)
            add_candidate(d, (int32_t)i);
}

/* Keys become the distance of a token's surprise from the expected one. */
static void keep_typical(mica_drawing *d)
{
    double all = mica_weigh(d->kept, d->kept_count), expected = 0;
    for (size_t i = 0; i < d->kept_count; i++)
        expected += (double)d->kept[i].weight * ((double)d->top - (double)mica_logit_of(d, i));
    expected /= all; /* less the logarithm of `all`, as the surprises below */
    for (size_t i = 0; i < d->kept_count; i++)
        d->kept[i].key = (float)fabs((double)d->top - (double)mica_logit_of(d, i) - expected);
    d->kept_count = first_of_mass(d->kept, d->kept_count, (double)d->s->typical_p * all);
    for (size_t i = 0; i < d->kept_count; i++)
        d->kept[i].key = -mica_logit_of(d, i);
}

static void keep_likely(mica_drawing *d)
{
    double least = (double)mica_largest_kept(d) + log((double)d->s->min_p);
    size_t count = 0;
    for (size_t i = 0; i < d->kept_count; i++)
        if ((double)mica_logit_of(d, i) >= least)
            d->kept[count++] = d->kept[i];
    d->kept_count = count;
}

void mica_limit(mica_drawing *d)
{
    const mica_sampling *s = d->s;
    bool whole = s->top_k <= 0 || (size_t)s->top_k >= d->count;
    double all = 0;
    if (!whole) {
        collect_largest(d);
    } else {
        if (mica_is_limit(s->top_p) && !mica_is_limit(s->typical_p))
            all = mica_sum_of_exponentials(d->ctx->kernels, d->logits, d->count, d->top);
        collect_possible(d, all);
    }
    if (mica_is_limit(s->typical_p))
        keep_typical(d);
    if (mica_is_limit(s->top_p)) {
        if (all == 0)
            all = mica_weigh(d->kept, d->kept_count);
        d->kept_count = first_of_mass(d->kept, d->kept_count, (double)s->top_p * all);
    }
    if (s->min_p > 0)
        keep_likely(d);
}
