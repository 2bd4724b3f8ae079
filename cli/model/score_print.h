/* Scores in words and as JSON: by what the net is for, in the unit of its targets, with the names of its classes. */
#ifndef MICA_CLI_MODEL_SCORE_PRINT_H
#define MICA_CLI_MODEL_SCORE_PRINT_H

#include "cli/model/names.h"
#include "cli/model/score.h"

/* Whose score it is. */
typedef struct scored_net {
    const meaning *meaning;
    const mica_netfile_info *info;
} scored_net;

/* "96.67 % of 30 samples, loss 0.1028, F1 0.967; always versicolor: 36.67 %", without a line end. */
void put_score_line(FILE *to, const score *s, scored_net net);
/* How good each target or class is: a table each, or nothing. */
void put_score_tables(FILE *to, const score *s, scored_net net);

/* What a regression is held against, behind "always ": "the mean", or the forecast's own. */
const char *score_baseline_name(scored_net net);

/* "regression", "classes", "binary", "text" */
const char *score_task_name(const score *s);
/* {"rmse": 54.1, "mae": 43.2, "r2": 0.51, "loss": 0.49} */
void put_json_metrics(FILE *to, const score *s);
/* , "baseline": ..., "targets": [...], "classes": [...], "confusion": [...], "per_class": [...]: what there is */
void put_json_details(FILE *to, const score *s, scored_net net);

/* "RMSE", 54.1; "accuracy", 0.967: the one number that a score comes to; NaN: there is none. */
typedef struct main_metric {
    const char *name;
    double value;
    bool share; /* of 1: to be shown in percent */
} main_metric;
main_metric main_metric_of(const score *s);

#endif
