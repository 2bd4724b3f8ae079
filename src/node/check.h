/* Shape checks and sampling shared by the entries. */
#ifndef MICA_SRC_NODE_CHECK_H
#define MICA_SRC_NODE_CHECK_H

#include <string.h>

#include "node/entry.h"
#include "node/sample.h"

/* Input `in`, if it is there, is f32 of this shape. */
static inline mica_status mica_infer_expect(mica_infer *i, int in, int rank, const mica_index *dims)
{
    const mica_tensor *t = i->in[in];
    mica_tensor want = {.dtype = MICA_F32, .rank = rank};
    for (int k = 0; k < rank; k++)
        want.dim[k] = dims[k];
    if (t == NULL || (t->dtype == MICA_F32 && mica_tensor_same_shape(t, &want)))
        return MICA_OK;
    char text[2][128];
    (void)mica_tensor_print_shape(text[0], sizeof text[0], &want);
    (void)mica_tensor_print_shape(text[1], sizeof text[1], t);
    return mica_infer_fail(i, MICA_ERR_SHAPE, "expected %s f32 %s, got %s %s", i->op->names[in], text[0],
                           mica_dtype_name(t->dtype), text[1]);
}

/* Input `in` holds indices. */
static inline mica_status mica_infer_indices(mica_infer *i, int in)
{
    mica_dtype dtype = i->in[in]->dtype;
    if (dtype == MICA_I32 || dtype == MICA_I64)
        return MICA_OK;
    return mica_infer_fail(i, MICA_ERR_DTYPE, "expected i32 or i64 indices, got %s", mica_dtype_name(dtype));
}

/* Input `in` is i32 of this shape: indices below `below`. */
static inline void mica_sample_indices(mica_op_sample *s, int in, int rank, const mica_index *dims,
                                       mica_index below)
{
    mica_op_sample_shape(s, in, rank, dims);
    s->in[in].dtype = MICA_I32;
    s->low[in] = 0.0;
    s->high[in] = (double)below;
}

#endif
