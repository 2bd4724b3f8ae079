/* Dropout's chances: as many elements stay as the rate says, independently of one another, and their expectation is
 * what it was. */
#include <math.h>
#include <stdlib.h>

#include "test.h"

#define COUNT ((size_t)1 << 18)
#define RUN   ((size_t)64)

/* Sums over a mask: what stays, the squares of how far each run of 64 is from what it should be, and how a decision
 * goes with the one that the other half of its word makes. */
static void check_mask(const uint8_t *mask, double rate, double keep)
{
    double stays = 0.0, squares = 0.0, pairs = 0.0;
    for (size_t i = 0; i < COUNT; i += RUN) {
        double run = 0.0;
        for (size_t k = i; k < i + RUN; k++) {
            run += mask[k];
            if (i / RUN % 2 == 0)
                pairs += ((double)mask[k] - keep) * ((double)mask[k + RUN] - keep);
        }
        stays += run;
        squares += (run - (double)RUN * keep) * (run - (double)RUN * keep);
    }
    double variance = keep * (1.0 - keep), n = (double)COUNT, runs = n / (double)RUN;
    CHECK_MSG(fabs(stays / n - keep) <= 4.5 * sqrt(variance / n), "rate %g: %g stay", rate, stays / n);
    CHECK_MSG(fabs(pairs / (n / 2.0)) <= 4.5 * variance / sqrt(n / 2.0), "rate %g: covariance %g", rate,
              pairs / (n / 2.0));
    /* The variance of a variance: 2 / runs of its square where runs are nearly normal, and more where few are kept or
     * dropped. */
    double spread = sqrt((2.0 + 1.0 / (variance * (double)RUN + 1e-30)) / runs);
    CHECK_MSG(fabs(squares / runs - variance * (double)RUN) <= 4.5 * spread * variance * (double)RUN,
              "rate %g: runs vary by %g, expected %g", rate, squares / runs, variance * (double)RUN);
}

TEST(dropout_keeps_what_the_rate_says)
{
    static const struct {
        float rate;
        double kept; /* of 65,536 */
    } cases[] = {{0.0f, 65536},   {1e-6f, 65536},  {2e-5f, 65535}, {0.1f, 58982},
                 {0.333f, 43713}, {0.5f, 32768},   {0.9f, 6554},   {0.9999f, 7},
                 {0.99999f, 1},   {0.9999999f, 1}, {1.0f, 0}};
    mica_context *ctx = test_context(2);
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    uint8_t *mask = malloc(COUNT);
    mica_index count = (mica_index)COUNT;
    for (size_t i = 0; i < COUNT; i++)
        x[i] = 1.0f;
    for (size_t j = 0; j < sizeof cases / sizeof cases[0]; j++) {
        mica_tensor in = mica_1d(x, count), out = mica_1d(y, count), m = mica_1d(NULL, count);
        m.data = mask, m.dtype = MICA_U8;
        mica_dropout_opts opts = {cases[j].rate, mica_random_stream(11, j)};
        CHECK_OK(ctx, mica_dropout(ctx, &out, &m, &in, &opts));
        double keep = cases[j].kept / 65536.0;
        check_mask(mask, (double)cases[j].rate, keep);
        float scale = 65536.0f / (float)cases[j].kept;
        size_t wrong = 0;
        for (size_t i = 0; i < COUNT; i++)
            wrong += mask[i] != 0 ? y[i] != scale : y[i] != 0.0f;
        CHECK_MSG(wrong == 0, "rate %g: %zu elements are not scaled by %g", (double)cases[j].rate, wrong,
                  (double)scale);
    }
    free(x), free(y), free(mask);
}
