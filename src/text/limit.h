/* What remains of the vocabulary after the limits of mica_sampling. */
#ifndef MICA_SRC_TEXT_LIMIT_H
#define MICA_SRC_TEXT_LIMIT_H

#include "text/likely.h"

/* A token that may be drawn: twelve bytes, as there may be as many as the vocabulary has. */
typedef struct mica_candidate {
    float weight; /* its probability as a share of the most likely token's */
    float key;    /* a limit keeps those with the smallest */
    int32_t token;
} mica_candidate;

/* What a call works on. */
typedef struct mica_drawing {
    mica_context *ctx;
    const mica_sampling *s;
    const float *logits; /* the model's, or `adjusted` */
    size_t count;
    float top;            /* the largest of the logits */
    float *adjusted;      /* [count]; also the weights where there are no limits */
    int32_t *times;       /* [count], while penalties are applied; the same bytes as `kept` */
    mica_candidate *kept; /* those that remain */
    size_t kept_count;
    double all; /* the weight of what can be drawn */
} mica_drawing;

/* Whether a total probability leaves anything out. */
static inline bool mica_is_limit(float p) { return p > 0 && p < 1; }

static inline float mica_logit_of(const mica_drawing *d, size_t i) { return d->logits[d->kept[i].token]; }

/* Makes the candidates that top_k, typical_p, top_p and min_p leave; their weights are those at temperature 1. */
void mica_limit(mica_drawing *d);

/* The sum of weights, and the largest logit of those that remain. */
double mica_weigh(const mica_candidate *c, size_t count);
float mica_largest_kept(const mica_drawing *d);

#endif
