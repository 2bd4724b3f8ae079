/* Positions in row-major tensors, for references. */
#ifndef MICA_TESTS_OPS_OP_INDEX_H
#define MICA_TESTS_OPS_OP_INDEX_H

#include "ops/op_case.h"

/* The index of element i of t in row-major order, and back. */
static inline void op_unravel(const mica_tensor *t, size_t i, mica_index *index)
{
    for (int k = t->rank - 1; k >= 0; k--) {
        index[k] = (mica_index)(i % (size_t)t->dim[k]);
        i /= (size_t)t->dim[k];
    }
}

static inline size_t op_ravel(const mica_tensor *t, const mica_index *index)
{
    size_t i = 0;
    for (int k = 0; k < t->rank; k++)
        i = i * (size_t)t->dim[k] + (size_t)index[k];
    return i;
}

/* Any dtype without blocks, f32 more often than others. */
static inline mica_dtype op_random_dtype(test_random *r)
{
    return test_chance(r, 40) ? MICA_F32 : (mica_dtype)test_int(r, 0, MICA_U64);
}

#endif
