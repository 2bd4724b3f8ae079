/* Metrics from sums and tables. */
#include "cli/model/metrics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- Numbers ---- */

/* The mean and spread as Welford has them: sums of squares would cancel where the mean is large. */
void error_sums_add(error_sums *s, double truth, double prediction, double baseline)
{
    double error = prediction - truth, from_baseline = baseline - truth, before = truth - s->mean;
    s->count++;
    s->squares += error * error;
    s->absolute += fabs(error);
    s->baseline += from_baseline * from_baseline;
    s->mean += before / (double)s->count;
    s->spread += before * (truth - s->mean);
}

void error_sums_merge(error_sums *into, const error_sums *from)
{
    if (from->count == 0)
        return;
    double a = (double)into->count, b = (double)from->count, apart = from->mean - into->mean;
    into->count += from->count;
    into->squares += from->squares;
    into->absolute += from->absolute;
    into->baseline += from->baseline;
    into->mean += apart * b / (a + b);
    into->spread += from->spread + apart * apart * a * b / (a + b);
}

static double mean_of(double sum, int64_t count) { return count > 0 ? sum / (double)count : (double)NAN; }

double error_rmse(const error_sums *s) { return sqrt(mean_of(s->squares, s->count)); }
double error_mae(const error_sums *s) { return mean_of(s->absolute, s->count); }
double error_baseline(const error_sums *s) { return sqrt(mean_of(s->baseline, s->count)); }

double error_r2(const error_sums *s)
{
    if (s->count < 2)
        return (double)NAN;
    if (s->spread > 0)
        return 1 - s->squares / s->spread;
    return s->squares > 0 ? 0 : s->squares == 0 ? 1 : (double)NAN;
}

/* ---- Classes ---- */

static double share(uint64_t part, uint64_t whole) { return whole > 0 ? (double)part / (double)whole : 0; }

/* Samples that are of the class, and those that were said to be. */
static void count_class(uint64_t *labels, uint64_t *predictions, const uint64_t *confusion, int classes,
                        int class)
{
    size_t n = (size_t)classes, c = (size_t) class;
    *labels = *predictions = 0;
    for (size_t i = 0; i < n; i++) {
        *labels += confusion[c * n + i];
        *predictions += confusion[i * n + c];
    }
}

class_score class_score_of(const uint64_t *confusion, int classes, int class)
{
    uint64_t right = confusion[(size_t) class * (size_t)classes + (size_t) class], labels, predictions;
    count_class(&labels, &predictions, confusion, classes, class);
    return (class_score){.count = labels,
                         .precision = share(right, predictions),
                         .recall = share(right, labels),
                         .f1 = share(2 * right, labels + predictions)};
}

double macro_f1(const uint64_t *confusion, int classes)
{
    double sum = 0;
    int occurring = 0;
    for (int c = 0; c < classes; c++) {
        uint64_t labels, predictions;
        count_class(&labels, &predictions, confusion, classes, c);
        if (labels + predictions == 0)
            continue;
        sum += class_score_of(confusion, classes, c).f1;
        occurring++;
    }
    return occurring > 0 ? sum / occurring : (double)NAN;
}

int most_common_class(const uint64_t *confusion, int classes)
{
    int best = 0;
    uint64_t most = 0;
    for (int c = 0; c < classes; c++) {
        uint64_t labels, predictions;
        count_class(&labels, &predictions, confusion, classes, c);
        if (labels > most) {
            most = labels;
            best = c;
        }
    }
    return best;
}

/* ---- Ranking ---- */

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static bool has_nan(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (isnan(values[i]))
            return true;
    return false;
}

double area_under_roc(float *positive, size_t positives, float *negative, size_t negatives)
{
    if (positives == 0 || negatives == 0 || has_nan(positive, positives) || has_nan(negative, negatives))
        return (double)NAN;
    qsort(positive, positives, sizeof *positive, by_value);
    qsort(negative, negatives, sizeof *negative, by_value);
    uint64_t halves = 0; /* two for each pair in order, one for each tie: whole numbers, and exact */
    size_t below = 0, up_to = 0;
    for (size_t i = 0; i < positives; i++) {
        while (below < negatives && negative[below] < positive[i])
            below++;
        while (up_to < negatives && negative[up_to] <= positive[i])
            up_to++;
        halves += (uint64_t)below + (uint64_t)up_to;
    }
    return (double)halves / (2.0 * (double)positives * (double)negatives);
}
