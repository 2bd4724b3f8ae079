/* Drawing a token from logits. */
#include <math.h>

#include <mica/text.h>

#include "base/sort.h"
#include "ops/check.h"
#include "tensor/tensor.h"

/* A token with its logit and then, relative to the likeliest, its probability. */
typedef struct candidate {
    float weight;
    int32_t token;
} candidate;

static int by_weight(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->token < y->token ? -1 : x->token > y->token;
}

static mica_status check(mica_context *ctx, const char *op, const int32_t *token, const mica_tensor *logits,
                         const mica_random *dice, const mica_sampling *s)
{
    mica_arg args[] = {{"logits", logits, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 1));
    MICA_TRY(mica_check_rank(ctx, op, "logits", logits, 1, 1));
    if (token == NULL || (dice == NULL && s->temperature > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", op, token == NULL ? "token" : "dice");
    if (logits->dim[0] < 1 || logits->dim[0] > INT32_MAX || logits->stride[0] != 1)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: logits are %s: expected a contiguous row of at least 1",
                         op, MICA_SHAPE(logits));
    if (!(s->temperature >= 0) || s->top_k < 0 || !(s->top_p >= 0 && s->top_p <= 1) ||
        !(s->min_p >= 0 && s->min_p <= 1) || !(s->repeat_penalty >= 0))
        return mica_fail(
            ctx, MICA_ERR_ARGUMENT,
            "%s: temperature %g, top_k %d, top_p %g, min_p %g, repeat_penalty %g: one is out of range", op,
            (double)s->temperature, (int)s->top_k, (double)s->top_p, (double)s->min_p,
            (double)s->repeat_penalty);
    for (size_t i = 0; i < s->recent_count; i++)
        if (s->recent[i] < 0 || s->recent[i] >= logits->dim[0])
            return mica_fail(ctx, MICA_ERR_INDEX, "%s: recent[%zu] is token %d, logits are %s", op, i,
                             (int)s->recent[i], MICA_SHAPE(logits));
    const float *x = logits->data;
    for (mica_index i = 0; x != NULL && i < logits->dim[0]; i++)
        if (isnan(x[i]) || x[i] == INFINITY)
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the logit of token %td is %g", op, i, (double)x[i]);
    return MICA_OK;
}

/* Each token once, however often it was used. */
static void punish_repeats(candidate *c, const mica_sampling *s, const float *logits)
{
    if (s->repeat_penalty == 0 || s->repeat_penalty == 1)
        return;
    for (size_t i = 0; i < s->recent_count; i++) {
        float logit = logits[s->recent[i]];
        c[s->recent[i]].weight = logit > 0 ? logit / s->repeat_penalty : logit * s->repeat_penalty;
    }
}

/* Logits, likeliest first, become probabilities as shares of the first one's. */
static void weigh(candidate *c, int32_t count, float temperature)
{
    float top = c[0].weight;
    for (int32_t i = 0; i < count; i++)
        c[i].weight = top == -INFINITY
                          ? 1.0f
                          : (float)exp(((double)c[i].weight - (double)top) / (double)temperature);
}

/* How many of the likeliest stay. */
static int32_t limit(const candidate *c, int32_t count, const mica_sampling *s)
{
    int32_t kept = s->top_k > 0 && s->top_k < count ? s->top_k : count;
    if (s->top_p > 0 && s->top_p < 1) {
        double all = 0, sum = 0;
        for (int32_t i = 0; i < kept; i++)
            all += (double)c[i].weight;
        int32_t i = 0;
        while (i < kept && sum < (double)s->top_p * all)
            sum += (double)c[i++].weight;
        kept = i;
    }
    while (kept > 1 && c[kept - 1].weight < s->min_p)
        kept--;
    return kept;
}

static int32_t draw(const candidate *c, int32_t count, mica_random *dice)
{
    double all = 0, sum = 0;
    for (int32_t i = 0; i < count; i++)
        all += (double)c[i].weight;
    double point = (double)mica_random_uniform(dice) * all;
    int32_t i = 0;
    for (; i < count - 1; i++) {
        sum += (double)c[i].weight;
        if (point < sum)
            break;
    }
    while (i > 0 && c[i].weight == 0) /* rounding may end on one that cannot be */
        i--;
    return c[i].token;
}

mica_status mica_sample(mica_context *ctx, int32_t *token, const mica_tensor *logits, mica_random *dice,
                        const mica_sampling *sampling)
{
    static const char op[] = "sample";
    static const mica_sampling likeliest = {0};
    const mica_sampling *s = sampling != NULL ? sampling : &likeliest;
    candidate *c;
    MICA_TRY(check(ctx, op, token, logits, dice, s));
    int32_t count = (int32_t)logits->dim[0];
    void *scratch;
    MICA_START(ctx, op, (size_t)count * sizeof *c, &scratch);
    c = scratch;
    for (int32_t i = 0; i < count; i++)
        c[i] = (candidate){((const float *)logits->data)[i], i};
    punish_repeats(c, s, logits->data);
    mica_sort(c, (size_t)count, sizeof *c, by_weight);
    if (s->temperature == 0) {
        *token = c[0].token;
        return MICA_OK;
    }
    weigh(c, count, s->temperature);
    *token = draw(c, limit(c, count, s), dice);
    return MICA_OK;
}
