/* What remains of the vocabulary after bias, penalties and limits, against a plain reference that sorts everything; and
 * what is drawn from it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { MOST = 3000, RECENT = 40 };

/* ---- The reference ---- */

typedef struct entry {
    int32_t token;
    double logit, p, key;
} entry;

static int by_key(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->token < y->token ? -1 : x->token > y->token;
}

static void softmax(entry *e, int count, double temperature)
{
    double top = -INFINITY, sum = 0;
    for (int i = 0; i < count; i++)
        top = fmax(top, e[i].logit);
    for (int i = 0; i < count; i++)
        sum += e[i].p = exp((e[i].logit - top) / temperature);
    for (int i = 0; i < count; i++)
        e[i].p /= sum;
}

/* Those with the smallest keys whose probabilities reach p. *margin gets how far the cut is from another one. */
static int cut(entry *e, int count, double p, double *margin)
{
    double sum = 0;
    int kept = 0;
    qsort(e, (size_t)count, sizeof *e, by_key);
    while (kept < count && sum < p) {
        *margin = fmin(*margin, fabs(sum + e[kept].p - p));
        sum += e[kept++].p;
    }
    if (kept < count && kept > 0) /* keys so near that rounding decides */
        *margin = fmin(*margin, (e[kept].key - e[kept - 1].key) / (1 + fabs(e[kept].key)));
    return kept;
}

static int limit_plainly(entry *e, int count, const mica_sampling *s, double *margin)
{
    for (int i = 0; i < count; i++)
        e[i].key = -e[i].logit;
    qsort(e, (size_t)count, sizeof *e, by_key);
    if (s->top_k > 0 && s->top_k < count)
        count = s->top_k;
    while (count > 0 && e[count - 1].logit == -INFINITY)
        count--;
    if (s->typical_p > 0 && s->typical_p < 1) {
        double entropy = 0;
        softmax(e, count, 1);
        for (int i = 0; i < count; i++)
            entropy -= e[i].p > 0 ? e[i].p * log(e[i].p) : 0;
        for (int i = 0; i < count; i++)
            e[i].key = fabs(-log(e[i].p) - entropy);
        count = cut(e, count, (double)s->typical_p, margin);
    }
    for (int i = 0; i < count; i++)
        e[i].key = -e[i].logit;
    if (s->top_p > 0 && s->top_p < 1) {
        softmax(e, count, 1);
        count = cut(e, count, (double)s->top_p, margin);
    }
    qsort(e, (size_t)count, sizeof *e, by_key);
    double least = e[0].logit + log((double)s->min_p);
    while (count > 1 && s->min_p > 0 && e[count - 1].logit < least) {
        *margin = fmin(*margin, least - e[count - 1].logit);
        count--;
    }
    return count;
}

/* All that remain, with probabilities, most likely first. */
static int remain(entry *e, const float *logits, int count, const mica_sampling *s, double *margin)
{
    for (int i = 0; i < count; i++) {
        int times = 0;
        float logit = logits[i];
        for (size_t k = 0; k < s->bias_count; k++)
            logit += s->bias[k].token == i ? s->bias[k].bias : 0;
        for (size_t k = 0; k < s->recent_count; k++)
            times += s->recent[k] == i;
        if (times > 0) {
            float by = s->repeat_penalty != 0 ? s->repeat_penalty : 1;
            logit = logit > 0 ? logit / by : logit * by;
            logit -= (float)times * s->frequency_penalty + s->presence_penalty;
        }
        e[i] = (entry){.token = i, .logit = (double)logit};
    }
    *margin = 1;
    int kept = limit_plainly(e, count, s, margin);
    softmax(e, kept, (double)s->temperature);
    return kept;
}

/* ---- Random cases ---- */

typedef struct random_case {
    float logits[MOST];
    int count;
    mica_sampling s;
    int32_t recent[RECENT];
    mica_logit_bias bias[4];
} random_case;

static void make_case(random_case *c, test_random *r)
{
    static const int counts[] = {1, 2, 3, 17, 100, 500, MOST};
    c->count = counts[test_int(r, 0, 6)];
    double spread = test_uniform(r, 0.2, 6);
    bool ties = test_chance(r, 20), bans = test_chance(r, 20);
    for (int i = 0; i < c->count; i++) {
        double logit = spread * test_normal(r);
        c->logits[i] = bans && i > 0 && test_chance(r, 50) ? -INFINITY
                       : ties                              ? (float)floor(logit)
                                                           : (float)logit;
    }
    c->s = (mica_sampling){.temperature = (float)test_uniform(r, 0.2, 2)};
    if (test_chance(r, 50))
        c->s.top_k = test_int(r, 1, c->count + 2);
    if (test_chance(r, 40))
        c->s.typical_p = (float)test_uniform(r, 0.01, 1);
    if (test_chance(r, 50))
        c->s.top_p = (float)test_uniform(r, 0.01, 1);
    if (test_chance(r, 40))
        c->s.min_p = (float)test_uniform(r, 0, 0.6);
    if (test_chance(r, 40)) {
        for (int i = 0; i < RECENT; i++)
            c->recent[i] = test_int(r, 0, c->count - 1);
        c->s.recent = c->recent;
        c->s.recent_count = (size_t)test_int(r, 0, RECENT);
        c->s.repeat_penalty = test_chance(r, 50) ? (float)test_uniform(r, 0.5, 2) : 0;
        c->s.presence_penalty = test_chance(r, 50) ? (float)test_uniform(r, -2, 2) : 0;
        c->s.frequency_penalty = test_chance(r, 50) ? (float)test_uniform(r, -1, 1) : 0;
    }
    if (test_chance(r, 30)) {
        for (int i = 0; i < 4; i++)
            c->bias[i] = (mica_logit_bias){test_int(r, 0, c->count - 1), (float)test_normal(r)};
        if (c->count > 100)
            c->bias[3].bias = -INFINITY;
        c->s.bias = c->bias;
        c->s.bias_count = 4;
    }
}

/* The same tokens with the same probabilities, most likely first. Those that are equally likely but for rounding may
 * change places. */
static bool same(const entry *wanted, int kept, const mica_likely *got, size_t count)
{
    static double p[MOST];
    memset(p, 0, sizeof p);
    bool equal = (size_t)kept == count;
    for (int i = 0; i < kept; i++)
        p[wanted[i].token] = wanted[i].p;
    for (int i = 0; equal && i < kept; i++) {
        double is = exp((double)got[i].log_probability);
        equal = p[got[i].token] > 0 && fabs(is - p[got[i].token]) < 1e-5 * is + 1e-37 &&
                (i == 0 || got[i].log_probability <= got[i - 1].log_probability);
    }
    return equal;
}

TEST(sample_limits_as_the_reference)
{
    static random_case c;
    static entry wanted[MOST];
    static mica_likely got[MOST];
    mica_context *ctx = test_context(1);
    test_random r = test_seed(41);
    int near = 0;
    for (int n = 0; n < 3000; n++) {
        make_case(&c, &r);
        mica_tensor row = mica_1d(c.logits, c.count);
        double margin;
        int kept = remain(wanted, c.logits, c.count, &c.s, &margin);
        size_t count = MOST;
        if (!CHECK_OK(ctx, mica_sample_probabilities(ctx, got, &count, &row, &c.s)))
            return;
        /* A kernel may give a token no chance at all where that is below 1e-38. */
        while (kept > 0 && (size_t)kept > count && wanted[kept - 1].p < 1e-37)
            kept--;
        bool equal = same(wanted, kept, got, count);
        if (!equal && margin < 1e-6)
            near++; /* a sum so near to the limit that rounding decides */
        else
            CHECK_MSG(equal, "case %d: %d logits: %zu tokens remain, wanted %d", n, c.count, count, kept);
        int32_t token;
        mica_random dice = mica_random_stream((uint64_t)n, 0);
        CHECK_OK(ctx, mica_sample(ctx, &token, &row, &dice, &c.s));
        bool there = false;
        for (size_t i = 0; i < count; i++)
            there |= got[i].token == token;
        CHECK(there && dice.position == 1);
    }
    CHECK_MSG(near < 30, "%d cases near a limit", near);
}

/* Chi-square of 8,000 draws against the probabilities: the seeds are fixed, so this never fails by chance. */
TEST(sample_draws_fit_the_probabilities)
{
    static random_case c;
    static mica_likely got[MOST];
    static int seen[MOST];
    mica_context *ctx = test_context(1);
    test_random r = test_seed(5);
    for (int n = 0; n < 24; n++) {
        do
            make_case(&c, &r);
        while ((c.count == MOST) != (n < 4)); /* those take long */
        if (n < 2)
            c.s = (mica_sampling){.temperature = 1};
        mica_tensor row = mica_1d(c.logits, c.count);
        mica_random dice = mica_random_stream(7, (uint64_t)n);
        size_t count = MOST;
        enum { DRAWS = 8000 };
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < DRAWS; i++) {
            int32_t token = -1;
            if (!CHECK_OK(ctx, mica_sample(ctx, &token, &row, &dice, &c.s)))
                return;
            seen[token]++;
        }
        CHECK_OK(ctx, mica_sample_probabilities(ctx, got, &count, &row, &c.s));
        double chi = 0, rest = 0, rest_seen = 0;
        int degrees = 0;
        for (size_t i = 0; i < count; i++) {
            double wanted = exp((double)got[i].log_probability) * DRAWS, is = seen[got[i].token];
            if (wanted >= 10) {
                chi += (is - wanted) * (is - wanted) / wanted;
                degrees++;
            } else {
                rest += wanted;
                rest_seen += is;
            }
        }
        if (rest >= 10) {
            chi += (rest_seen - rest) * (rest_seen - rest) / rest;
            degrees++;
        }
        degrees -= degrees > 0;
        CHECK_MSG(chi <= degrees + 4 * sqrt(2.0 * degrees) + 1e-3, "case %d: chi-square %g of %d", n, chi,
                  degrees);
    }
}

/* ---- Edges ---- */

TEST(sample_takes_the_lowest_of_ties)
{
    mica_context *ctx = test_context(1);
    float logits[200];
    for (int i = 0; i < 200; i++)
        logits[i] = i % 7 == 3 ? 2.0f : 1.0f;
    mica_tensor row = mica_1d(logits, 200);
    int32_t token;
    CHECK_OK(ctx, mica_sample(ctx, &token, &row, NULL, NULL));
    CHECK(token == 3);
    mica_likely likely[31];
    CHECK_OK(ctx, mica_log_probabilities(ctx, NULL, 0, likely, 31, &row));
    for (int i = 0; i < 31; i++)
        CHECK(likely[i].token == (i < 29 ? 7 * i + 3 : i - 29));
    size_t count = 31;
    CHECK_OK(ctx, mica_sample_probabilities(ctx, likely, &count, &row,
                                            &(mica_sampling){.temperature = 1, .top_k = 5}));
    CHECK(count == 5 && likely[4].token == 31);
    CHECK_ERROR(ctx, mica_sample_probabilities(ctx, likely, &count, &row, &(mica_sampling){.temperature = 1}),
                MICA_ERR_ARGUMENT, "argument error: sample: more than 5 tokens remain");
}

TEST(sample_of_one_token)
{
    mica_context *ctx = test_context(1);
    float logits[3] = {-INFINITY, -1e30f, -INFINITY};
    mica_random dice = mica_random_stream(1, 1);
    static const mica_sampling ways[] = {{0},
                                         {.temperature = 1},
                                         {.temperature = 1, .top_k = 1},
                                         {.temperature = 1e-30f, .top_p = 1e-30f, .typical_p = 1e-30f},
                                         {.temperature = 3e38f, .min_p = 1, .typical_p = 0.5f}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        mica_tensor three = mica_1d(logits, 3), one = mica_1d(logits + 1, 1);
        int32_t token = -1;
        CHECK_OK(ctx, mica_sample(ctx, &token, &three, &dice, &ways[i]));
        CHECK(token == 1);
        CHECK_OK(ctx, mica_sample(ctx, &token, &one, &dice, &ways[i]));
        CHECK(token == 0);
        mica_likely likely;
        size_t count = 1;
        CHECK_OK(ctx, mica_sample_probabilities(ctx, &likely, &count, &three, &ways[i]));
        CHECK(count == 1 && likely.token == 1 && likely.log_probability == 0);
    }
}

TEST(sample_bans_and_forces)
{
    mica_context *ctx = test_context(1);
    float logits[4] = {5, 4, 3, 2};
    mica_tensor row = mica_1d(logits, 4);
    mica_sampling s = {.bias = (mica_logit_bias[]){{0, -INFINITY}, {3, 100}}, .bias_count = 1};
    int32_t token;
    CHECK_OK(ctx, mica_sample(ctx, &token, &row, NULL, &s));
    CHECK(token == 1);
    s.bias_count = 2;
    CHECK_OK(ctx, mica_sample(ctx, &token, &row, NULL, &s));
    CHECK(token == 3);
    s = (mica_sampling){.recent = (int32_t[]){0, 1, 1, 1}, .recent_count = 4, .frequency_penalty = 0.9f};
    CHECK_OK(ctx, mica_sample(ctx, &token, &row, NULL, &s));
    CHECK(token == 0); /* 4.1, 1.3, 3, 2 */
    s.presence_penalty = 1.5f;
    CHECK_OK(ctx, mica_sample(ctx, &token, &row, NULL, &s));
    CHECK(token == 2);
    CHECK(logits[0] == 5 && logits[1] == 4); /* they are the caller's */
}

TEST(log_probabilities_are_the_models)
{
    enum { COUNT = 5000, N = 50 };
    static float logits[COUNT];
    mica_context *ctx = test_context(1);
    test_random r = test_seed(3);
    double top = -INFINITY, sum = 0;
    for (int i = 0; i < COUNT; i++) {
        logits[i] = (float)(4 * test_normal(&r));
        top = fmax(top, (double)logits[i]);
    }
    for (int i = 0; i < COUNT; i++)
        sum += exp((double)logits[i] - top);
    mica_likely likely[N];
    float chosen;
    mica_tensor row = mica_1d(logits, COUNT);
    CHECK_OK(ctx, mica_log_probabilities(ctx, &chosen, 77, likely, N, &row));
    CHECK(fabs((double)chosen - ((double)logits[77] - top - log(sum))) < 1e-5);
    for (int i = 0; i < N; i++) {
        double log_p = (double)logits[likely[i].token] - top - log(sum);
        int above = 0;
        for (int k = 0; k < COUNT; k++)
            above += logits[k] > logits[likely[i].token];
        CHECK_MSG(above == i && fabs((double)likely[i].log_probability - log_p) < 1e-5, "%d: %d above", i,
                  above);
    }
}

/* A measured call says what it takes; with a byte less it says so; it allocates nothing; the same seed gives the same
 * token on every instruction set's kernels that are at hand here, and every time. */
TEST(sample_needs_what_it_measures)
{
    static random_case c;
    test_random r = test_seed(12);
    mica_context *measuring = test_context(1);
    for (int n = 0; n < 24; n++) {
        make_case(&c, &r);
        mica_tensor row = mica_1d(c.logits, c.count), shape = mica_1d(NULL, c.count);
        mica_random dice = mica_random_stream(3, 0), again = dice;
        int32_t token = -1, second = -1;
        mica_measure_begin(measuring);
        CHECK_OK(measuring, mica_sample(measuring, &token, &shape, &dice, &c.s));
        size_t bytes = mica_measure_end(measuring);
        CHECK(token == -1 && dice.position == 0 && bytes <= 16 * (size_t)c.count + 64);
        static _Alignas(64) char memory[16 * MOST + 64];
        mica_context *ctx;
        CHECK(mica_context_create(
                  &ctx, &(mica_context_opts){.workspace = memory, .workspace_bytes = bytes}) == MICA_OK);
        test_heap before = test_heap_now();
        if (bytes > 0) {
            CHECK_OK(ctx, mica_sample(ctx, &token, &row, &dice, &c.s));
            CHECK_OK(ctx, mica_sample(ctx, &second, &row, &again, &c.s));
            CHECK(token == second && token >= 0);
        }
        if (test_heap_counted())
            CHECK(test_heap_now().calls == before.calls);
        mica_context_destroy(ctx);
        if (bytes > 64) {
            CHECK(mica_context_create(&ctx, &(mica_context_opts){.workspace = memory,
                                                                 .workspace_bytes = bytes - 1}) == MICA_OK);
            CHECK(mica_sample(ctx, &token, &row, &dice, &c.s) == MICA_ERR_WORKSPACE);
            mica_context_destroy(ctx);
        }
    }
}
