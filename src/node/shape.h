/* What entries that only move elements share. */
#ifndef MICA_SRC_NODE_SHAPE_H
#define MICA_SRC_NODE_SHAPE_H

#include "node/entry.h"

/* Output 0 has the shape of a view of input 0, or says why there is none. */
static inline mica_status mica_infer_as(mica_infer *i, mica_status status, const mica_tensor *view)
{
    if (status != MICA_OK)
        return mica_infer_pass_on(i, status);
    return mica_infer_out(i, 0, view->dtype, view->rank, view->dim);
}

/* out[k] = src, or out[k] += src; `dst` is out[k] or a view of it. */
static inline mica_status mica_put(const mica_call *c, int k, const mica_tensor *dst, const mica_tensor *src)
{
    return c->add >> k & 1u ? mica_add(c->ctx, dst, dst, src) : mica_copy(c->ctx, dst, src);
}

/* An axis of a tensor of this rank that infer found to be there. */
static inline int mica_axis_of(int axis, int rank) { return axis < 0 ? axis + rank : axis; }

/* A random shape of sizes 1 to 4. Returns its rank. */
static inline int mica_sample_dims(mica_op_sample *s, int least_rank, int most_rank, mica_index *dims)
{
    int rank = (int)mica_op_sample_int(s, least_rank, most_rank);
    for (int k = 0; k < rank; k++)
        dims[k] = mica_op_sample_int(s, 1, 4);
    return rank;
}

/* One of `rank` axes, which may count from the end. */
static inline int mica_sample_axis(mica_op_sample *s, int rank)
{
    return (int)mica_op_sample_int(s, -rank, rank - 1);
}

#endif
