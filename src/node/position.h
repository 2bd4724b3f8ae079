/* The position of a sequence in a table of positions. */
#ifndef MICA_SRC_NODE_POSITION_H
#define MICA_SRC_NODE_POSITION_H

#include "node/check.h"

/* The position of row 0, by the option of that name. While measuring all sizes stand at their largest, which need not
 * fit together; the position changes nothing about what is measured. */
static inline mica_status mica_call_position(const mica_call *c, mica_index *first, int position)
{
    if (position < 0 || position > c->sizes)
        return mica_fail(c->ctx, MICA_ERR_ARGUMENT,
                         "%s: position is %d: expected 0, or 1 + the number of one of %d sizes", c->op->name,
                         position, c->sizes);
    *first = position > 0 && !mica_call_measuring(c) ? c->size[position - 1] : 0;
    return MICA_OK;
}

/* Input 0 is a sequence f32 [..., T, C], input 1 a table f32 [positions, ...] with a row for each of the T. */
static inline mica_status mica_infer_sequence(mica_infer *i)
{
    const mica_tensor *x = i->in[0], *table = i->in[1];
    if (x->dtype != MICA_F32 || x->rank < 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 [..., T, C] of rank 2 or more");
    if (table->dtype != MICA_F32 || table->rank != 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected a table f32 [positions, features]");
    if (x->dim[x->rank - 2] > table->dim[0])
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected at most %td positions, got %td", table->dim[0],
                               x->dim[x->rank - 2]);
    return MICA_OK;
}

#endif
