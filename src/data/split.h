/* Which samples belong to which part of a set. */
#ifndef MICA_SRC_DATA_SPLIT_H
#define MICA_SRC_DATA_SPLIT_H

#include <mica/data.h>

/* Samples are dealt into pools: the training pool, that of tests, and that of validation or one for each fold. */
typedef struct mica_dealing {
    const mica_data_split *split;
    mica_random random;
    mica_index count, dealt; /* samples in all, and those done */
    mica_index whole[2];     /* in_order: all of validation, and all of test */
    /* Of the pools, in the order of their draw; training has what remains. */
    mica_index left[MICA_MOST_FOLDS + 1];
    int pools;
} mica_dealing;

/* Fails for shares and folds that cannot be; `op` is who was asked. */
mica_status mica_split_check(mica_context *ctx, const char *op, const mica_data_split *split,
                             mica_index count);

/* Then one call for each sample, in order: whether it is in split->part. */
void mica_dealing_begin(mica_dealing *dealing, const mica_data_split *split, mica_index count);
bool mica_dealing_next(mica_dealing *dealing);

/* How many samples the part has. */
mica_index mica_split_samples(const mica_data_split *split, mica_index count);

#endif
