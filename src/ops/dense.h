/* Arguments as plain contiguous arrays, for kernels that take no strides.
 *
 * An argument that lies contiguously is used where it is; any other is copied into scratch before the kernels
 * run and, if it is an output, copied back after them:
 *
 *     mica_dense dense;
 *     mica_dense_plan(&dense, args, count);              // the table that mica_check_args took
 *     MICA_START(ctx, op, dense.bytes + more, &scratch);
 *     char *rest = mica_dense_load(&dense, scratch);     // `more` bytes from here on
 *     ... kernels on dense.data[0], dense.data[1], ...   // NULL for an argument that was not given
 *     mica_dense_store(&dense);
 */
#ifndef MICA_SRC_OPS_DENSE_H
#define MICA_SRC_OPS_DENSE_H

#include "ops/check.h"

#define MICA_DENSE_MOST 12

typedef struct mica_dense {
    int count;
    size_t bytes; /* of scratch, for the arguments that are copied; a multiple of MICA_ALIGN */
    void *data[MICA_DENSE_MOST];
    mica_tensor copy[MICA_DENSE_MOST]; /* the contiguous copy; rank -1: used where it is */
    mica_arg arg[MICA_DENSE_MOST];
} mica_dense;

void mica_dense_plan(mica_dense *dense, const mica_arg *args, int count);
/* For kernels that take strides for all axes but the last: only arguments whose last axis is not contiguous
 * are copied. */
void mica_dense_plan_rows(mica_dense *dense, const mica_arg *args, int count);

/* Copies in, and returns the scratch that follows the copies. */
void *mica_dense_load(mica_dense *dense, void *scratch);

/* Argument k as the kernels are to see it: the argument itself, or its contiguous copy. */
const mica_tensor *mica_dense_tensor(const mica_dense *dense, int k);

/* Copies outputs back. */
void mica_dense_store(const mica_dense *dense);

#endif
