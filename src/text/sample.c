/* Drawing a token from logits. Nothing is sorted: tokens that cannot stay are left out by a threshold or a heap, and of
 * the others a limit takes the first ones by partitions. */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "base/sort.h"
#include "ops/check.h"
#include "text/likely.h"

/* A token that may be drawn: twelve bytes, as there may be as many as the vocabulary has. */
typedef struct candidate {
    float weight; /* its probability as a share of the most likely token's */
    float key;    /* a limit keeps those with the smallest */
    int32_t token;
} candidate;

/* What a call works on. */
typedef struct drawing {
    mica_context *ctx;
    const mica_sampling *s;
    const float *logits; /* the model's, or `adjusted` */
    size_t count;
    float top;       /* the largest of the logits */
    float *adjusted; /* [count]; also the weights where there are no limits */
    int32_t *times;  /* [count], while penalties are applied; the same bytes as `kept` */
    candidate *kept; /* those that remain */
    size_t kept_count;
    double all; /* the weight of what can be drawn */
} drawing;

static const char op[] = "sample";
static const mica_sampling greedy = {0};

/* ---- What is asked for ---- */

static bool limits(float p) { return p > 0 && p < 1; }
static bool punishes(const mica_sampling *s)
{
    return s->recent_count > 0 && ((s->repeat_penalty != 0 && s->repeat_penalty != 1) ||
                                   s->presence_penalty != 0 || s->frequency_penalty != 0);
}
static bool adjusts(const mica_sampling *s) { return s->bias_count > 0 || punishes(s); }
static bool limited(const mica_sampling *s, size_t count)
{
    return (s->top_k > 0 && (size_t)s->top_k < count) || limits(s->typical_p) || limits(s->top_p) ||
           s->min_p > 0;
}

static mica_status check_tokens(mica_context *ctx, const mica_tensor *logits, const mica_sampling *s)
{
    for (size_t i = 0; i < s->recent_count; i++)
        if (s->recent[i] < 0 || s->recent[i] >= logits->dim[0])
            return mica_fail(ctx, MICA_ERR_INDEX, "%s: recent[%zu] is token %d, logits are %s", op, i,
                             (int)s->recent[i], MICA_SHAPE(logits));
    for (size_t i = 0; i < s->bias_count; i++) {
        if (s->bias[i].token < 0 || s->bias[i].token >= logits->dim[0])
            return mica_fail(ctx, MICA_ERR_INDEX, "%s: bias[%zu] is for token %d, logits are %s", op, i,
                             (int)s->bias[i].token, MICA_SHAPE(logits));
        if (isnan(s->bias[i].bias) || s->bias[i].bias == INFINITY)
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: bias[%zu] is %g", op, i, (double)s->bias[i].bias);
    }
    return MICA_OK;
}

static mica_status check(mica_context *ctx, const mica_tensor *logits, const mica_sampling *s)
{
    MICA_TRY(mica_check_logits(ctx, op, logits));
    const struct {
        const char *name;
        float value, least, most;
    } ranges[] = {
        {"temperature", s->temperature, 0, 3.4e38f},
        {"top_k", (float)s->top_k, 0, 3.4e38f},
        {"typical_p", s->typical_p, 0, 1},
        {"top_p", s->top_p, 0, 1},
        {"min_p", s->min_p, 0, 1},
        {"repeat_penalty", s->repeat_penalty, 0, 3.4e38f},
        {"presence_penalty", s->presence_penalty, -3.4e38f, 3.4e38f},
        {"frequency_penalty", s->frequency_penalty, -3.4e38f, 3.4e38f},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (!(ranges[i].value >= ranges[i].least && ranges[i].value <= ranges[i].most))
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is %g: expected %s", op, ranges[i].name,
                             (double)ranges[i].value,
                             ranges[i].most <= 1    ? "0 to 1"
                             : ranges[i].least == 0 ? "0 or more"
                                                    : "a finite number");
    if ((s->recent_count > 0 && s->recent == NULL) || (s->bias_count > 0 && s->bias == NULL))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", op,
                         s->recent_count > 0 && s->recent == NULL ? "recent" : "bias");
    return check_tokens(ctx, logits, s);
}

/* The bytes of `adjusted`, and of `kept`, which `times` shares. */
static void plan(const drawing *d, size_t *first, size_t *second)
{
    const mica_sampling *s = d->s;
    bool drawn = s->temperature > 0, few = limited(s, d->count);
    size_t candidates = drawn && few ? d->count : 0;
    if (candidates > 0 && s->top_k > 0 && (size_t)s->top_k < candidates)
        candidates = (size_t)s->top_k;
    *first = adjusts(s) || (drawn && !few) ? mica_align_up(d->count * sizeof *d->adjusted) : 0;
    *second = candidates * sizeof *d->kept;
    if (punishes(s) && *second < d->count * sizeof *d->times)
        *second = d->count * sizeof *d->times;
}

/* ---- Bias and penalties ---- */

static void punish(drawing *d)
{
    const mica_sampling *s = d->s;
    float divisor = s->repeat_penalty != 0 ? s->repeat_penalty : 1;
    for (size_t i = 0; i < s->recent_count; i++)
        d->times[s->recent[i]] = 0;
    for (size_t i = 0; i < s->recent_count; i++)
        d->times[s->recent[i]]++;
    for (size_t i = 0; i < s->recent_count; i++) {
        int32_t *times = &d->times[s->recent[i]];
        float *logit = &d->adjusted[s->recent[i]];
        if (*times == 0) /* it has had its penalty */
            continue;
        *logit = *logit > 0 ? *logit / divisor : *logit * divisor;
        *logit -= (float)*times * s->frequency_penalty + s->presence_penalty;
        *times = 0;
    }
}

static mica_status adjust(drawing *d)
{
    const mica_sampling *s = d->s;
    if (!adjusts(s))
        return MICA_OK;
    memcpy(d->adjusted, d->logits, d->count * sizeof *d->adjusted);
    for (size_t i = 0; i < s->bias_count; i++)
        d->adjusted[s->bias[i].token] += s->bias[i].bias;
    if (punishes(s))
        punish(d);
    d->logits = d->adjusted;
    return mica_top_logit(d->ctx, op, "logit with bias and penalties", &d->top, d->logits, d->count);
}

/* ---- Limits ---- */

static bool before(const candidate *a, const candidate *b)
{
    return a->key != b->key ? a->key < b->key : a->token < b->token;
}

static int by_key(const void *a, const void *b) { return before(a, b) ? -1 : before(b, a) ? 1 : 0; }

static void swap(candidate *a, candidate *b)
{
    candidate kept = *a;
    *a = *b;
    *b = kept;
}

/* Those that come before one of them, which is the middle one of three, are moved to the front; returns how many, and
 * that one stands behind them. */
static size_t partition(candidate *c, size_t count)
{
    candidate *a = c, *b = c + count / 2, *last = c + count - 1;
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

static double weigh(const candidate *c, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)c[i].weight;
    return sum;
}

/* How many of the candidates, those with the smallest keys, weigh `mass` together; at least one. They are moved to the
 * front. Partitions that do not get on give way to sorting. */
static size_t first_of_mass(candidate *c, size_t count, double mass)
{
    size_t kept = 0;
    for (int tries = 0; count - kept > 1 && tries < 64; tries++) {
        size_t front = partition(c + kept, count - kept);
        double weight = weigh(c + kept, front);
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

static float logit_of(const drawing *d, size_t i) { return d->logits[d->kept[i].token]; }

/* What is possible at all joins the candidates. */
static void add_candidate(drawing *d, int32_t token)
{
    float logit = d->logits[token];
    if (logit > -INFINITY)
        d->kept[d->kept_count++] = (candidate){
            .weight = (float)exp((double)logit - (double)d->top), .key = -logit, .token = token};
}

static float largest_kept(const drawing *d)
{
    float largest = -INFINITY;
    for (size_t i = 0; i < d->kept_count; i++)
        largest = logit_of(d, i) > largest ? logit_of(d, i) : largest;
    return largest;
}

/* The candidates are the top_k. */
static void collect_largest(drawing *d)
{
    size_t most = (size_t)d->s->top_k;
    mica_likely *heap = (mica_likely *)(d->kept + most) - most; /* the end of their room */
    mica_pick_largest(d->ctx->kernels, heap, most, d->logits, d->count);
    for (size_t i = 0; i < most; i++)
        add_candidate(d, heap[i].token); /* never gets ahead of what is read */
}

/* The candidates are all that top_p and min_p can leave; `all` weigh together so much. */
static void collect_possible(drawing *d, double all)
{
    const mica_sampling *s = d->s;
    double least = -INFINITY;
    if (!limits(s->typical_p)) {
        /* Those below an even share of what top_p leaves out are left out together. */
        if (limits(s->top_p))
            least = (double)d->top + log((1 - (double)s->top_p) * all / (double)d->count) - 1e-3;
        if (s->min_p > 0 && (double)d->top + log((double)s->min_p) - 1e-3 > least)
            least = (double)d->top + log((double)s->min_p) - 1e-3;
    }
    for (size_t i = 0; i < d->count; i++)
        if ((double)d->logits[i] >= least)
            add_candidate(d, (int32_t)i);
}

/* Keys become the distance of a token's surprise from the expected one. */
static void keep_typical(drawing *d)
{
    double all = weigh(d->kept, d->kept_count), expected = 0;
    for (size_t i = 0; i < d->kept_count; i++)
        expected += (double)d->kept[i].weight * ((double)d->top - (double)logit_of(d, i));
    expected /= all; /* less the logarithm of `all`, as the surprises below */
    for (size_t i = 0; i < d->kept_count; i++)
        d->kept[i].key = (float)fabs((double)d->top - (double)logit_of(d, i) - expected);
    d->kept_count = first_of_mass(d->kept, d->kept_count, (double)d->s->typical_p * all);
    for (size_t i = 0; i < d->kept_count; i++)
        d->kept[i].key = -logit_of(d, i);
}

static void keep_likely(drawing *d)
{
    double least = (double)largest_kept(d) + log((double)d->s->min_p);
    size_t count = 0;
    for (size_t i = 0; i < d->kept_count; i++)
        if ((double)logit_of(d, i) >= least)
            d->kept[count++] = d->kept[i];
    d->kept_count = count;
}

static void limit(drawing *d)
{
    const mica_sampling *s = d->s;
    bool whole = s->top_k <= 0 || (size_t)s->top_k >= d->count;
    double all = 0;
    if (!whole) {
        collect_largest(d);
    } else {
        if (limits(s->top_p) && !limits(s->typical_p))
            all = mica_sum_of_exponentials(d->ctx->kernels, d->logits, d->count, d->top);
        collect_possible(d, all);
    }
    if (limits(s->typical_p))
        keep_typical(d);
    if (limits(s->top_p)) {
        if (all == 0)
            all = weigh(d->kept, d->kept_count);
        d->kept_count = first_of_mass(d->kept, d->kept_count, (double)s->top_p * all);
    }
    if (s->min_p > 0)
        keep_likely(d);
}

/* ---- Drawing ---- */

/* A number below 1, by which one of the tokens is chosen. */
static double throw_dice(mica_random *dice) { return (double)mica_random_bits(dice) * 0x1p-32; }

/* Weights at the temperature of what remains, and their sum. */
static void weigh_kept(drawing *d)
{
    double temperature = (double)d->s->temperature, largest = (double)largest_kept(d);
    for (size_t i = 0; i < d->kept_count; i++)
        d->kept[i].weight = (float)exp(((double)logit_of(d, i) - largest) / temperature);
    d->all = weigh(d->kept, d->kept_count);
}

/* The same of all tokens, in place of the adjusted logits. */
static void weigh_all(drawing *d)
{
    const mica_kernels *k = d->ctx->kernels;
    float *w = d->adjusted;
    k->map->sub_scalar(w, (const float *[]){d->logits}, d->count, &d->top);
    k->map->div_scalar(w, (const float *[]){w}, d->count, &d->s->temperature);
    k->map->exp(w, (const float *[]){w}, d->count, NULL);
    d->all = 0;
    k->reduce->sum.row(&d->all, w, d->count, 0);
}

static int32_t draw_kept(const drawing *d, mica_random *dice)
{
    double point = throw_dice(dice) * d->all;
    int32_t token = d->kept[0].token;
    for (size_t i = 0; i < d->kept_count && point >= 0; i++) {
        if (d->kept[i].weight > 0) /* rounding must not end on one that cannot be */
            token = d->kept[i].token;
        point -= (double)d->kept[i].weight;
    }
    return token;
}

/* In the tokens' order, a stretch at a time. */
static int32_t draw_any(const drawing *d, mica_random *dice)
{
    enum { STRETCH = 1024 };
    const mica_reduce_kernels *reduce = d->ctx->kernels->reduce;
    const float *w = d->adjusted;
    double point = throw_dice(dice) * d->all;
    size_t i = 0, token = reduce->find(w, d->count, 1); /* the likeliest, should rounding leave none */
    for (; i + STRETCH < d->count; i += STRETCH) {
        double sum = 0;
        reduce->sum.row(&sum, w + i, STRETCH, 0);
        if (point < sum)
            break;
        point -= sum;
    }
    for (; i < d->count && point >= 0; i++) {
        if (w[i] > 0)
            token = i;
        point -= (double)w[i];
    }
    return (int32_t)token;
}

/* Checks, adjusts and limits. Returns MICA_MEASURED where the call is only measured. */
static mica_status begin(drawing *d, const mica_tensor *logits)
{
    MICA_TRY(check(d->ctx, logits, d->s));
    d->logits = logits->data;
    d->count = (size_t)logits->dim[0];
    size_t first, second;
    void *scratch = NULL;
    plan(d, &first, &second);
    MICA_TRY(mica_op_start(d->ctx, op, first + second, &scratch));
    d->adjusted = scratch;
    void *rest = second > 0 ? (char *)scratch + first : NULL;
    d->kept = rest;
    d->times = rest;
    MICA_TRY(mica_top_logit(d->ctx, op, "logit", &d->top, d->logits, d->count));
    MICA_TRY(adjust(d));
    if (d->s->temperature > 0 && limited(d->s, d->count)) {
        limit(d);
        weigh_kept(d);
    } else if (d->s->temperature > 0) {
        weigh_all(d);
    }
    return MICA_OK;
}

static size_t likeliest(const drawing *d)
{
    return d->ctx->kernels->reduce->find(d->logits, d->count, d->top);
}

mica_status mica_sample(mica_context *ctx, int32_t *token, const mica_tensor *logits, mica_random *dice,
                        const mica_sampling *sampling)
{
    drawing d = {.ctx = ctx, .s = sampling != NULL ? sampling : &greedy};
    if (token == NULL || (dice == NULL && d.s->temperature > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", op, token == NULL ? "token" : "dice");
    mica_status status = begin(&d, logits);
    if (status != MICA_OK)
        return status == MICA_MEASURED ? MICA_OK : status;
    if (d.s->temperature == 0)
        *token = (int32_t)likeliest(&d);
    else
        *token = limited(d.s, d.count) ? draw_kept(&d, dice) : draw_any(&d, dice);
    return MICA_OK;
}

mica_status mica_sample_probabilities(mica_context *ctx, mica_likely *out, size_t *count,
                                      const mica_tensor *logits, const mica_sampling *sampling)
{
    drawing d = {.ctx = ctx, .s = sampling != NULL ? sampling : &greedy};
    if (out == NULL || count == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", op, out == NULL ? "out" : "count");
    mica_status status = begin(&d, logits);
    if (status != MICA_OK)
        return status == MICA_MEASURED ? MICA_OK : status;
    bool drawn = d.s->temperature > 0, few = drawn && limited(d.s, d.count);
    size_t many = few ? d.kept_count : drawn ? d.count : 1, written = 0;
    for (size_t i = 0; i < many; i++) {
        float weight = few ? d.kept[i].weight : drawn ? d.adjusted[i] : 1.0f;
        if (weight > 0 && written == *count)
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: more than %zu tokens remain", op, *count);
        if (weight > 0)
            out[written++] = (mica_likely){
                .token = few     ? d.kept[i].token
                         : drawn ? (int32_t)i
                                 : (int32_t)likeliest(&d),
                .log_probability = (float)log((double)weight / (drawn ? d.all : 1))};
    }
    *count = written;
    mica_sort_likely(out, written);
    return MICA_OK;
}
