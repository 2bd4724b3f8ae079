/* How good a net is on a part of the data: more than mica_evaluate tells. */
#ifndef MICA_CLI_MODEL_SCORE_H
#define MICA_CLI_MODEL_SCORE_H

#include <signal.h>
#include <stdio.h>

#include <mica/netfile.h>

#include "cli/model/feed.h"
#include "cli/model/units.h"
#include "cli/picture/report.h"
#include "cli/verb.h"

#define SCORE_MOST_MISTAKES 24
#define SCORE_MOST_CLASSES  1000              /* of a confusion table */
#define SCORE_MOST_RANKED   ((size_t)1 << 24) /* values of an AUC, which are all kept; of more there is none */
#define SCORE_MOST_TARGETS  64                /* that are scored one by one; more of them only together */
#define SCORE_MOST_PAIRS    2000              /* samples that are kept to draw */
#define SCORE_PAIR_TARGETS  6                 /* and the first targets of each */

/* A sample as a picture, with what the net says. */
typedef struct scored_sample {
    mica_index number; /* in the part */
    int label, prediction;
    double probability, label_probability;
    unsigned char *pixels; /* [height, width, channels] of its own; NULL: it is no picture */
} scored_sample;

/* In the target's own unit. */
typedef struct target_score {
    double rmse, mae, r2;
    double baseline; /* the RMSE of a forecast's baseline, or of always saying the mean */
} target_score;

/* What cannot be said of a net is NaN. */
typedef struct score {
    mica_task task; /* MICA_TASK_BINARY: also of a net with two classes */
    double loss;    /* mean */
    mica_index samples;

    double accuracy;
    double f1;           /* the mean of all classes'; that of the second one of MICA_TASK_BINARY */
    double auc;          /* MICA_TASK_BINARY */
    int common;          /* the most common class, */
    double common_share; /* and its share of the samples */

    target_score numbers; /* of a regression: the mean of its targets */
    target_score each[SCORE_MOST_TARGETS];
    int target_count; /* of `each`; 0: they are too many */

    int classes;                              /* 0: no confusion table */
    uint64_t *confusion;                      /* [label][prediction] */
    scored_sample worst[SCORE_MOST_MISTAKES]; /* mistakes, the surest first */
    size_t worst_count;
    scored_sample first[SCORE_MOST_MISTAKES]; /* the first samples, right or wrong */
    size_t first_count;
    int width, height, channels; /* of pictures; 0: samples are none */

    report_pair *pairs; /* [pair_samples][pair_targets] of every so many samples; NULL: not kept */
    mica_index pair_samples, pair_stride;
    int pair_targets;
} score;

typedef struct score_opts {
    mica_index batch; /* that the net was built for */
    size_t show;      /* how many of the first samples to keep */
    bool mistakes;    /* whether to keep the worst */
    bool pairs;       /* whether to keep pairs: the first of a forecast, which is drawn as a curve */
    const normalization *normalization;
    const mica_tensor *sample;         /* the shape of one */
    const target_units *units;         /* NULL: as they are */
    const forecast_shape *forecast;    /* NULL: it is none */
    volatile const sig_atomic_t *stop; /* ends early when it is not 0; NULL: never */
    const char *saved;                 /* for who stops it: where the net is */
} score_opts;

/* The net was built with its loss. Says what is wrong, and returns what the program ends with. `out` is to be freed in
 * any case.
 *
 * All ranks of a job come here, with the same net and data, and all get the same score, whose bits do not depend on how
 * many they are: batches go to ranks by turns, and what is found out is added in their order. */
int score_net(score *out, const verb *v, mica_net *net, const mica_netfile_info *info, const feed *f,
              const score_opts *opts);
void score_free(score *s);

/* The rank that a batch is for: by turns; where steps depend on those before, 0 for all. */
int rank_of_batch(const mica_net *net, mica_index number);

/* Samples as text pictures, some beside each other, with what the net says below. */
void print_samples(FILE *to, const score *s, const scored_sample *samples, size_t count,
                   const char *const *class_names, int class_count);

#endif
