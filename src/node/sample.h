/* Random calls: what samples of several families have in common. */
#ifndef MICA_SRC_NODE_SAMPLE_H
#define MICA_SRC_NODE_SAMPLE_H

#include "node/entry.h"

static inline bool mica_sample_chance(mica_op_sample *s) { return mica_op_sample_int(s, 0, 1) == 1; }

static inline void mica_sample_range(mica_op_sample *s, int in, double low, double high)
{
    s->low[in] = low;
    s->high[in] = high;
}

/* Draws a small shape of rank `low` to `high`. */
static inline int mica_sample_dims(mica_op_sample *s, int low, int high, mica_index *dims)
{
    int rank = (int)mica_op_sample_int(s, low, high);
    for (int k = 0; k < rank; k++)
        dims[k] = mica_op_sample_int(s, 1, 5);
    return rank;
}

/* Input `in` has a shape that is broadcast to dims: some axes of size 1, some leading ones missing. */
static inline void mica_sample_repeated(mica_op_sample *s, int in, int rank, const mica_index *dims)
{
    mica_index own[MICA_MAX_RANK];
    int missing = mica_op_sample_int(s, 0, 3) == 0 ? (int)mica_op_sample_int(s, 0, rank) : 0;
    for (int k = missing; k < rank; k++)
        own[k - missing] = mica_op_sample_int(s, 0, 3) == 0 ? 1 : dims[k];
    mica_op_sample_shape(s, in, rank - missing, own);
}

/* All inputs are broadcast to one shape. */
static inline void mica_sample_broadcast(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 3, dims);
    for (int k = 0; k < s->ins; k++)
        mica_sample_repeated(s, k, rank, dims);
}

/* The only input is of a random shape, with values in this range. */
static inline void mica_sample_one(mica_op_sample *s, double low, double high)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 3, dims);
    mica_op_sample_shape(s, 0, rank, dims);
    mica_sample_range(s, 0, low, high);
}

/* The only input is of one sign, away from 0. */
static inline void mica_sample_away(mica_op_sample *s)
{
    if (mica_sample_chance(s))
        mica_sample_one(s, 0.2, 1.0);
    else
        mica_sample_one(s, -1.0, -0.2);
}

#endif
