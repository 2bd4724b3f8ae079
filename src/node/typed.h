/* What the entries of operations that are computed in several types share. */
#ifndef MICA_SRC_NODE_TYPED_H
#define MICA_SRC_NODE_TYPED_H

#include "node/entry.h"
#include "ops/typed.h"

/* Input `in` is f32, or of a type that there are loops for. */
static inline mica_status mica_infer_computed(mica_infer *i, int in, mica_typed_code code)
{
    mica_dtype dtype = i->in[in]->dtype;
    if (dtype == MICA_F32 || mica_typed_takes(code, i->in[in]))
        return MICA_OK;
    return mica_infer_fail(i, MICA_ERR_DTYPE, "is not computed in %s", mica_dtype_name(dtype));
}

/* The same of reductions and products. */
static inline mica_status mica_infer_folded(mica_infer *i, int in)
{
    mica_dtype dtype = i->in[in]->dtype;
    if (dtype == MICA_F32 || mica_typed_folds(i->in[in]))
        return MICA_OK;
    return mica_infer_fail(i, MICA_ERR_DTYPE, "is not computed in %s", mica_dtype_name(dtype));
}

/* Gradients are f32, and so is what they are computed from. */
static inline bool mica_grad_in_f32(mica_grad *g) { return mica_grad_shape(g, g->out[0]).dtype == MICA_F32; }

#endif
