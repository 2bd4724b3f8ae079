/* A part of the data in batches, ready for a net. */
#ifndef MICA_CLI_MODEL_FEED_H
#define MICA_CLI_MODEL_FEED_H

#include "cli/model/data.h"

/* Shares of data that come without a test part of their own; those that have one give up only the first. */
#define SHARE_VALIDATION 0.1
#define SHARE_TEST       0.1

typedef struct feed_opts {
    mica_part part; /* MICA_PART_ALL: of samples that have a test part, the others */
    mica_index batch;
    mica_index length; /* of text: tokens of a window */
    uint64_t seed;     /* of the order */
    bool shuffled;
    double validation; /* share */
    int folds,
        fold; /* cross-validation: fold number `fold` is the validation part, and nothing is for tests; 0: not */
    const normalization *normalization;
    mica_transform transform; /* of samples; .run NULL: none */
} feed_opts;

typedef struct feed {
    mica_batches *batches;     /* NULL: text, or */
    mica_table_stream *stream; /* a table that is read in blocks */
    mica_text_source text;
    mica_source source;
    mica_index samples; /* of an epoch; 0: there is no such part */
    mica_index steps;   /* batches of an epoch */
} feed;

/* The feed stays where it is: its source points into it. */
mica_status feed_open(feed *out, mica_context *ctx, const data *d, const feed_opts *opts);
/* Leaves out what is no whole batch, for a net that takes no other: how many samples. */
mica_index feed_keep_whole(feed *f, mica_index batch);
void feed_close(mica_context *ctx, feed *f);

/* The share of the samples that tests get: none where the data have their own, or with folds. */
double test_share(const data *d, int folds);

#endif
