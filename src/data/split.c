/* Parts of a set: every choice of so many samples is as likely, and none is stored. */
#include "data/split.h"

#include "base/context.h"
#include "data/streams.h"

/* To the nearest whole number. */
static mica_index share_of(double share, mica_index count)
{
    return (mica_index)((double)count * share + 0.5);
}

mica_status mica_split_check(mica_context *ctx, const char *op, const mica_data_split *split,
                             mica_index count)
{
    if ((unsigned)split->part > (unsigned)MICA_PART_TEST)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: part is %d", op, (int)split->part);
    if (!(split->validation >= 0 && split->validation <= 1))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: validation is %g, expected 0 to 1", op,
                         split->validation);
    if (!(split->test >= 0 && split->validation + split->test <= 1))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: test is %g, expected 0 to 1 with validation %g", op,
                         split->test, split->validation);
    if (split->folds < 0 || split->folds == 1 || split->folds > MICA_MOST_FOLDS)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: folds is %d, expected 2 to %d, or 0 for none", op,
                         split->folds, MICA_MOST_FOLDS);
    mica_index rest = count - share_of(split->test, count);
    if (split->folds > rest)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: folds is %d, but there are %td samples", op,
                         split->folds, rest);
    if (split->folds > 0 && (split->fold < 0 || split->fold >= split->folds))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: fold is %d of %d", op, split->fold, split->folds);
    if (split->folds > 0 && split->in_order)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: folds are drawn, in_order is not", op);
    if (split->gap < 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: gap is %td", op, split->gap);
    return MICA_OK;
}

/* A part in order loses its first `gap` samples. Where that is more than half of it, they come on top, if enough is
 * left for training: else a short series would have nothing to be tested on. */
static void widen(mica_index *part, mica_index gap, mica_index spare)
{
    if (*part > 0 && gap > *part / 2 && gap <= spare)
        *part += gap;
}

void mica_dealing_begin(mica_dealing *d, const mica_data_split *split, mica_index count)
{
    mica_index validation = split->folds > 0 ? 0 : share_of(split->validation, count),
               test = share_of(split->test, count);
    test = test < count - validation ? test : count - validation;
    if (split->in_order) {
        mica_index scored = validation + test; /* training keeps as many at least */
        widen(&test, split->gap, count - 2 * scored);
        widen(&validation, split->gap, count - validation - test - scored);
    }
    d->split = split;
    d->random = mica_random_stream(split->seed, MICA_STREAM_SPLIT);
    d->count = count;
    d->dealt = 0;
    d->whole[0] = validation;
    d->whole[1] = test;
    if (split->folds > 0) {
        d->pools = split->folds + 1;
        for (int i = 0; i < split->folds; i++)
            d->left[i] = (count - test) / split->folds + (i < (count - test) % split->folds);
    } else {
        d->pools = 2;
        d->left[0] = validation;
    }
    d->left[d->pools - 1] = test;
}

/* Dealt one by one, each with the chances that make the numbers come out. */
static mica_part drawn(mica_dealing *d)
{
    mica_index draw = (mica_index)mica_random_below(&d->random, (uint64_t)(d->count - d->dealt));
    int pool = 0;
    while (pool < d->pools && draw >= d->left[pool])
        draw -= d->left[pool++];
    if (pool == d->pools)
        return MICA_PART_TRAIN;
    d->left[pool]--;
    if (pool == d->pools - 1)
        return MICA_PART_TEST;
    return d->split->folds == 0 || pool == d->split->fold ? MICA_PART_VALIDATION : MICA_PART_TRAIN;
}

/* Samples of the gaps are in no part: MICA_PART_ALL. */
static mica_part by_place(const mica_dealing *d)
{
    mica_index test_at = d->count - d->whole[1], validation_at = test_at - d->whole[0], i = d->dealt,
               gap = d->split->gap;
    if (i >= test_at)
        return i - test_at < gap && test_at > 0 ? MICA_PART_ALL : MICA_PART_TEST;
    if (i >= validation_at)
        return i - validation_at < gap && validation_at > 0 ? MICA_PART_ALL : MICA_PART_VALIDATION;
    return MICA_PART_TRAIN;
}

bool mica_dealing_next(mica_dealing *d)
{
    mica_part part = d->split->in_order ? by_place(d) : drawn(d);
    d->dealt++;
    return d->split->part == MICA_PART_ALL || part == d->split->part;
}

mica_index mica_split_samples(const mica_data_split *split, mica_index count)
{
    mica_dealing d;
    mica_index samples = 0;
    if (split->part == MICA_PART_ALL)
        return count;
    mica_dealing_begin(&d, split, count);
    if (split->in_order || split->folds > 0) {
        for (mica_index i = 0; i < count; i++)
            samples += mica_dealing_next(&d);
        return samples;
    }
    return split->part == MICA_PART_VALIDATION ? d.whole[0]
           : split->part == MICA_PART_TEST     ? d.whole[1]
                                               : count - d.whole[0] - d.whole[1];
}
