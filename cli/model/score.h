/* How good a net is on a part of the data: more than mica_evaluate tells. */
#ifndef MICA_CLI_MODEL_SCORE_H
#define MICA_CLI_MODEL_SCORE_H

#include <signal.h>
#include <stdio.h>

#include <mica/netfile.h>

#include "cli/model/feed.h"
#include "cli/verb.h"

#define SCORE_MOST_MISTAKES 24
#define SCORE_MOST_CLASSES  1000 /* of a confusion table */

/* A sample as a picture, with what the net says. */
typedef struct scored_sample {
    mica_index number; /* in the part */
    int label, prediction;
    double probability, label_probability;
    unsigned char *pixels; /* [height, width, channels] of its own; NULL: it is no picture */
} scored_sample;

typedef struct score {
    double loss;     /* mean */
    double accuracy; /* NaN where there are no classes */
    double error;    /* regression: the root of the mean square; NaN elsewhere */
    mica_index samples;
    int classes;                              /* 0: no confusion table */
    uint64_t *confusion;                      /* [label][prediction] */
    scored_sample worst[SCORE_MOST_MISTAKES]; /* mistakes, the surest first */
    size_t worst_count;
    scored_sample first[SCORE_MOST_MISTAKES]; /* the first samples, right or wrong */
    size_t first_count;
    int width, height, channels; /* of pictures; 0: samples are none */
} score;

typedef struct score_opts {
    mica_index batch; /* that the net was built for */
    size_t show;      /* how many of the first samples to keep */
    bool mistakes;    /* whether to keep the worst */
    const normalization *normalization;
    const mica_tensor *sample;         /* the shape of one */
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

/* For score_net: makes the tables and samples of all ranks one, `show` being how many of the first samples there are to
 * be; and whether a mistake comes before another among the worst. */
int score_merge(score *s, const verb *v, size_t show);
bool mistake_before(const scored_sample *a, const scored_sample *b);

/* Probabilities of a row of outputs: softmax or sigmoid of logits, or as they are. */
void probabilities(float *out, const float *row, mica_index count, const mica_netfile_info *info);

/* Samples as text pictures, some beside each other, with what the net says below. */
void print_samples(FILE *to, const score *s, const scored_sample *samples, size_t count,
                   const char *const *class_names, int class_count);

#endif
