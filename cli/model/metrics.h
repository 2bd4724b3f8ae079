/* How good predictions are: sums that can be put together from parts, and what comes of them. */
#ifndef MICA_CLI_MODEL_METRICS_H
#define MICA_CLI_MODEL_METRICS_H

#include <stddef.h>
#include <stdint.h>

/* ---- Numbers ---- */

typedef struct error_sums {
    int64_t count;
    double squares, absolute; /* of prediction - truth */
    double mean, spread;      /* of the truth: its mean, and the squares of its distances from it */
    double baseline;          /* the squares of its distances from what a baseline says */
} error_sums;

void error_sums_add(error_sums *s, double truth, double prediction, double baseline);
/* As if those of `from` had been added after those of `into`. */
void error_sums_merge(error_sums *into, const error_sums *from);

/* Roots of mean squares, the mean of absolute errors: NaN of nothing. R² is the share of the spread that is explained:
 * of a truth that does not vary, 1 if every prediction is right, else 0; NaN of fewer than two. */
double error_rmse(const error_sums *s);
double error_mae(const error_sums *s);
double error_r2(const error_sums *s);
double error_baseline(const error_sums *s);

/* ---- Classes: of a table [label][prediction] of counts ---- */

typedef struct class_score {
    uint64_t count;               /* samples of this class */
    double precision, recall, f1; /* 0 where there is nothing to divide by */
} class_score;

class_score class_score_of(const uint64_t *confusion, int classes, int class);
/* The mean F1 of the classes that occur, as labels or as predictions; NaN: none does. */
double macro_f1(const uint64_t *confusion, int classes);
/* The class with most samples, the first of several. */
int most_common_class(const uint64_t *confusion, int classes);

/* The area under the ROC curve: how often a sample that is positive has a higher value than one that is not, where a
 * tie counts one half. Sorts both. NaN if either has none, or a value is NaN. */
double area_under_roc(float *positive, size_t positives, float *negative, size_t negatives);

#endif
