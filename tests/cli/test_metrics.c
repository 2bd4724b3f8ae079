/* Metrics against scikit-learn's numbers, and against the formulas written out. */
#include <math.h>
#include <stdlib.h>

#include "cli/model/metrics.h"
#include "golden/golden.h"
#include "test.h"

static bool near(double got, double wanted, double tolerance)
{
    return fabs(got - wanted) <= tolerance * fmax(1, fabs(wanted));
}

static const float *floats(const golden_case *c, const char *name, size_t *count)
{
    const mica_tensor *t = golden_find(c, name);
    *count = t != NULL ? mica_tensor_count(t) : 0;
    CHECK_MSG(t != NULL, "%s %s has no %s", c->op, c->note, name);
    return t != NULL ? t->data : NULL;
}

static const int32_t *integers(const golden_case *c, const char *name, size_t *count)
{
    return (const int32_t *)(const void *)floats(c, name, count);
}

/* In one piece, and in pieces put together. */
static void check_regression(const golden_case *c)
{
    size_t count, other;
    const float *truth = floats(c, "truth", &count), *said = floats(c, "said", &other);
    for (size_t piece = 1; piece <= count && count == other; piece += 6) {
        error_sums all = {0};
        for (size_t at = 0; at < count; at += piece) {
            error_sums some = {0};
            for (size_t i = at; i < at + piece && i < count; i++)
                error_sums_add(&some, (double)truth[i], (double)said[i], 0);
            error_sums_merge(&all, &some);
        }
        CHECK_MSG(near(error_rmse(&all), golden_value(c, "rmse", 0, NAN), 1e-12), "%s: rmse %.17g", c->note,
                  error_rmse(&all));
        CHECK_MSG(near(error_mae(&all), golden_value(c, "mae", 0, NAN), 1e-12), "%s: mae", c->note);
        CHECK_MSG(near(error_r2(&all), golden_value(c, "r2", 0, NAN), 1e-9), "%s: r2 %.17g", c->note,
                  error_r2(&all));
        double squares = 0;
        for (size_t i = 0; i < count; i++)
            squares += (double)truth[i] * (double)truth[i];
        CHECK_MSG(near(error_baseline(&all), sqrt(squares / (double)count), 1e-12), "%s: baseline", c->note);
    }
}

static void check_classes(const golden_case *c)
{
    size_t count, other;
    int classes = (int)golden_value(c, "classes", 0, 0);
    const int32_t *truth = integers(c, "truth", &count), *said = integers(c, "said", &other);
    const float *precision = floats(c, "precision", &other), *recall = floats(c, "recall", &other),
                *f1 = floats(c, "f1", &other);
    const int32_t *support = integers(c, "support", &other);
    uint64_t *confusion = calloc((size_t)classes * (size_t)classes, sizeof *confusion);
    REQUIRE(confusion != NULL && other == (size_t)classes);
    for (size_t i = 0; i < count; i++)
        confusion[truth[i] * classes + said[i]]++;
    int common = most_common_class(confusion, classes);
    for (int k = 0; k < classes; k++) {
        class_score s = class_score_of(confusion, classes, k);
        CHECK_MSG(s.count == (uint64_t)support[k] && near(s.precision, (double)precision[k], 1e-7) &&
                      near(s.recall, (double)recall[k], 1e-7) && near(s.f1, (double)f1[k], 1e-7),
                  "%s: class %d", c->note, k);
        CHECK(support[common] > support[k] || (support[common] == support[k] && common <= k));
    }
    CHECK_MSG(near(macro_f1(confusion, classes), golden_value(c, "macro", 0, NAN), 1e-12), "%s: macro f1",
              c->note);
    free(confusion);
}

static void check_ranking(const golden_case *c)
{
    size_t count, other, yes = 0, no = 0;
    const int32_t *truth = integers(c, "truth", &count);
    const float *value = floats(c, "value", &other);
    float positive[200], negative[200];
    REQUIRE(count == other && count <= 200);
    double wins = 0;
    for (size_t i = 0; i < count; i++) {
        if (truth[i])
            positive[yes++] = value[i];
        else
            negative[no++] = value[i];
    }
    for (size_t i = 0; i < yes; i++)
        for (size_t k = 0; k < no; k++)
            wins += positive[i] > negative[k] ? 1 : positive[i] == negative[k] ? 0.5 : 0;
    double got = area_under_roc(positive, yes, negative, no);
    CHECK_MSG(near(got, golden_value(c, "auc", 0, NAN), 1e-12), "%s: auc %.17g", c->note, got);
    CHECK_MSG(got == wins / (double)(yes * no), "%s: auc by pairs", c->note);
}

TEST(metrics_golden)
{
    golden_file file = golden_load("metrics");
    size_t kinds[3] = {0, 0, 0};
    for (size_t i = 0; i < file.count; i++) {
        const golden_case *c = &file.cases[i];
        kinds[c->op[0] == 'c' ? 1 : c->op[1] == 'a' ? 2 : 0]++;
        if (c->op[0] == 'c')
            check_classes(c);
        else if (c->op[1] == 'a')
            check_ranking(c);
        else
            check_regression(c);
    }
    CHECK(kinds[0] == 3 && kinds[1] == 3 && kinds[2] == 3);
    golden_free(&file);
}

TEST(metrics_of_little)
{
    error_sums s = {0};
    CHECK(isnan(error_rmse(&s)) && isnan(error_mae(&s)) && isnan(error_r2(&s)) && isnan(error_baseline(&s)));
    error_sums_add(&s, 3, 5, 3);
    CHECK(error_rmse(&s) == 2 && error_mae(&s) == 2 && error_baseline(&s) == 0 && isnan(error_r2(&s)));
    error_sums_add(&s, 3, 3, 3);
    CHECK(error_r2(&s) == 0); /* a truth that does not vary */
    s = (error_sums){0};
    for (int i = 0; i < 3; i++)
        error_sums_add(&s, 0.1, 0.1, 0);
    CHECK(error_r2(&s) == 1);

    uint64_t none[4] = {0};
    CHECK(isnan(macro_f1(none, 2)) && most_common_class(none, 2) == 0);
    float one[] = {1, NAN}, two[] = {1, 1};
    CHECK(isnan(area_under_roc(one, 0, two, 2)) && isnan(area_under_roc(two, 2, one, 0)) &&
          isnan(area_under_roc(one, 2, two, 2)) && isnan(area_under_roc(two, 2, one, 2)));
    CHECK(area_under_roc(one, 1, two, 2) == 0.5);
}
