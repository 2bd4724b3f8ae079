/* Drawing a token from logits. */
#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "text/limit.h"

static const char op[] = "sample";
static const mica_sampling greedy = {0};

/* ---- What is asked for ---- */

static bool punishes(const mica_sampling *s)
{
    return s->recent_count > 0 && ((s->repeat_penalty != 0 && s->repeat_penalty != 1) ||
                                   s->presence_penalty != 0 || s->frequency_penalty != 0);
}
static bool adjusts(const mica_sampling *s) { return s->bias_count > 0 || punishes(s); }
static bool limited(const mica_sampling *s, size_t count)
{
    return (s->top_k > 0 && (size_t)s->top_k < count) || mica_is_limit(s->typical_p) ||
           mica_is_limit(s->top_p) || s->min_p > 0;
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
static void plan(const mica_drawing *d, size_t *first, size_t *second)
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

static void punish(mica_drawing *d)
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

static mica_status adjust(mica_drawing *d)
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

/* ---- Drawing ---- */

/* A number below 1, by which one of the tokens is chosen. */
static double throw_dice(mica_random *dice) { return (double)mica_random_bits(dice) * 0x1p-32; }

/* Weights at the temperature of what remains, and their sum. */
static void weigh_kept(mica_drawing *d)
{
    double temperature = (double)d->s->temperature, largest = (double)mica_largest_kept(d);
    for (size_t i = 0; i < d->kept_count; i++)
        d->kept[i].weight = (float)exp(((double)mica_logit_of(d, i) - largest) / temperature);
    d->all = mica_weigh(d->kept, d->kept_count);
}

/* The same of all tokens, in place of the adjusted logits. */
static void weigh_all(mica_drawing *d)
{
    const mica_kernels *k = d->ctx->kernels;
    float *w = d->adjusted;
    MICA_KERNEL(k, map, sub_scalar)(w, (const float *[]){d->logits}, d->count, &d->top);
    MICA_KERNEL(k, map, div_scalar)(w, (const float *[]){w}, d->count, &d->s->temperature);
    MICA_KERNEL(k, map, exp)(w, (const float *[]){w}, d->count, NULL);
    d->all = 0;
    MICA_KERNEL(k, reduce, sum).row(&d->all, w, d->count, 0);
}

static int32_t draw_kept(const mica_drawing *d, mica_random *dice)
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
static int32_t draw_any(const mica_drawing *d, mica_random *dice)
{
    enum { STRETCH = 1024 };
    const mica_reduce_kernels *reduce = d->ctx->kernels->reduce;
    const float *w = d->adjusted;
    double point = throw_dice(dice) * d->all;
    size_t i = 0, token = MICA_KERNEL_OF(reduce, reduce, find)(
                      w, d->count, 1); /* the likeliest, should rounding leave none */
    for (; i + STRETCH < d->count; i += STRETCH) {
        double sum = 0;
        MICA_KERNEL_OF(reduce, reduce, sum).row(&sum, w + i, STRETCH, 0);
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
static mica_status begin(mica_drawing *d, const mica_tensor *logits)
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
        mica_limit(d);
        weigh_kept(d);
    } else if (d->s->temperature > 0) {
        weigh_all(d);
    }
    return MICA_OK;
}

static size_t likeliest(const mica_drawing *d)
{
    return MICA_KERNEL(d->ctx->kernels, reduce, find)(d->logits, d->count, d->top);
}

mica_status mica_sample(mica_context *ctx, int32_t *token, const mica_tensor *logits, mica_random *dice,
                        const mica_sampling *sampling)
{
    mica_drawing d = {.ctx = ctx, .s = sampling != NULL ? sampling : &greedy};
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
    mica_drawing d = {.ctx = ctx, .s = sampling != NULL ? sampling : &greedy};
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
