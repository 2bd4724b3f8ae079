/* What score_net is made of. */
#ifndef MICA_CLI_MODEL_SCORE_PARTS_H
#define MICA_CLI_MODEL_SCORE_PARTS_H

#include "cli/model/metrics.h"
#include "cli/model/score.h"

/* What a batch adds to the score. Kept for each, as they are added in the order of batches, whoever scored them. */
typedef struct tally {
    double loss;
    int64_t right, rows, samples;
    error_sums each[]; /* of every target */
} tally;

/* The batch as it was before the forward, which may use its memory again. */
typedef struct kept_batch {
    float *inputs;    /* [batch, elements]; NULL: not kept */
    int32_t *targets; /* [batch, targets_each]; NULL: they are no class numbers */
    float *numbers;   /* the same for targets that are numbers */
    mica_index elements, targets_each;
} kept_batch;

/* A score in the making. */
typedef struct scoring {
    score *s;
    const verb *v;
    mica_net *net;
    const mica_netfile_info *info;
    const feed *f;
    const score_opts *opts;
    kept_batch k;
    char *tallies; /* [batches] of tally_bytes */
    size_t tally_bytes;
    int groups; /* of targets, each with its own error_sums */
    /* What the net gives for yes: of samples that are from the front on, of others from the end. */
    float *ranked;
    size_t yes, no, room;
    float *scratch;  /* [classes] */
    float *baseline; /* [targets_each], of one sample */
} scoring;

tally *tally_of(const scoring *sc, mica_index batch);

/* ---- score_numbers.c ---- */

/* The batch whose samples are numbered from `first` on: outputs that are numbers, or each a yes or no. */
void score_numbers(scoring *sc, tally *t, const mica_tensor *y, mica_index first, mica_index count);
mica_index score_yes_no(scoring *sc, const mica_tensor *y, mica_index count);
/* Keeps what the net gives for yes, of a sample that is or is not. */
void keep_ranked(scoring *sc, float value, bool yes);

/* ---- score_merge.c ---- */

/* Makes the tables, lists and samples of all ranks one. */
int score_merge(scoring *sc);
/* Whether a mistake comes before another among the worst. */
bool mistake_before(const scored_sample *a, const scored_sample *b);

/* ---- score_keep.c ---- */

/* Whether samples are pictures, and of what size. */
void find_picture(score *s, const mica_tensor *sample);
/* A normalized sample [channels, H, W] as bytes [H, W, channels]; NULL: it is no picture. */
unsigned char *pixels_of(const score *s, const float *x, const normalization *n);
/* Puts a mistake where it belongs among the worst, if it does. */
void keep_mistake(score *s, scored_sample m, const float *x, const normalization *n);

#endif
