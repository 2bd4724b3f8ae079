/* Walks several tensors of one shape in step, whatever their layouts.
 *
 * Axes that lie contiguously in all operands are joined, so that most walks end up with one or two axes. The
 * order in which elements are met is free: axes are sorted so that the first operand (the destination) is met
 * in memory order. */
#ifndef MICA_SRC_OPS_WALK_H
#define MICA_SRC_OPS_WALK_H

#include <mica/tensor.h>

#include "base/context.h"
#include "ops/check.h"

#define MICA_WALK_OPERANDS 5

typedef struct mica_walk {
    int operands;
    int rank;     /* at least 1: a scalar is one element on one axis */
    size_t count; /* elements */
    mica_index dim[MICA_MAX_RANK];
    mica_index stride[MICA_WALK_OPERANDS][MICA_MAX_RANK]; /* in elements */
    char *data[MICA_WALK_OPERANDS];
    mica_dtype dtype[MICA_WALK_OPERANDS];
} mica_walk;

/* Operand 0 gives the shape; the others broadcast to it (checked before). */
void mica_walk_init(mica_walk *walk, const mica_tensor *const *operands, int count);

/* A position in a walk. */
typedef struct mica_walk_place {
    mica_index index[MICA_MAX_RANK];
} mica_walk_place;

/* At the element of this number, counted along the walk. */
mica_walk_place mica_walk_at(const mica_walk *walk, size_t position);

/* Moves on along the last axis, by no more than what is left of it. */
static inline void mica_walk_advance(const mica_walk *walk, mica_walk_place *c, mica_index by)
{
    int i = walk->rank - 1;
    c->index[i] += by;
    while (i > 0 && c->index[i] == walk->dim[i]) {
        c->index[i] = 0;
        c->index[--i]++;
    }
}

/* Where an operand's element lies from its data on, in elements. */
static inline mica_index mica_walk_offset(const mica_walk *walk, const mica_walk_place *c, int operand)
{
    mica_index offset = 0;
    for (int i = 0; i < walk->rank; i++)
        offset += c->index[i] * walk->stride[operand][i];
    return offset;
}

/* dst = fn(src...), element by element: f32, u8 or bool tensors, sources broadcast to dst, any layout, all threads. */
void mica_map_run(mica_context *ctx, mica_map_fn *fn, const void *params, const mica_tensor *dst,
                  const mica_tensor *const *sources, int count);

/* A whole element-wise operation: args[0] is the destination, the others are sources that broadcast to it. */
mica_status mica_map_op(mica_context *ctx, const char *op, mica_map_fn *fn, const void *params,
                        const mica_arg *args, int count);
/* The same where an element is much work, so that fewer of them are worth a thread. */
mica_status mica_map_op_much(mica_context *ctx, const char *op, mica_map_fn *fn, const void *params,
                             const mica_arg *args, int count);

/* Its parts: the checks alone, and the run on the calling thread alone. */
mica_status mica_map_check(mica_context *ctx, const char *op, const mica_arg *args, int count);
void mica_map_run_here(mica_map_fn *fn, const void *params, const mica_arg *args, int count);

#endif
