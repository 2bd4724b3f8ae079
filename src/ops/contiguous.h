/* Arguments as plain contiguous arrays, for kernels that take no strides.
 *
 * A contiguous argument is used in place; any other is copied into scratch before the kernels
 * run and, if it is an output, copied back after them:
 *
 *     mica_contiguous dense;
 *     mica_contiguous_plan(&dense, args, count);              // the table that mica_check_args took
 *     MICA_START(ctx, op, dense.bytes + more, &scratch);
 *     char *rest = mica_contiguous_load(&dense, scratch);     // `more` bytes from here on
 *     ... kernels on dense.data[0], dense.data[1], ...   // NULL for an argument that was not given
 *     mica_contiguous_store(&dense);
 */
#ifndef MICA_SRC_OPS_CONTIGUOUS_H
#define MICA_SRC_OPS_CONTIGUOUS_H

#include "ops/check.h"

#define MICA_CONTIGUOUS_MOST 12

typedef struct mica_contiguous {
    int count;
    size_t bytes; /* of scratch, for the arguments that are copied; a multiple of MICA_ALIGN */
    void *data[MICA_CONTIGUOUS_MOST];
    const mica_arg *arg;
    unsigned copied;   /* bit k: argument k is; the others are used where they are */
    mica_tensor *copy; /* [count]: the copies; NULL: nobody asks for them as tensors */
} mica_contiguous;

/* args must live as long as *dense. */
void mica_contiguous_plan(mica_contiguous *dense, const mica_arg *args, int count);
/* For kernels that take strides for all axes but the last: only arguments whose last axis is not contiguous
 * are copied. `copies` is room for `count` tensors: mica_contiguous_tensor points to them. */
void mica_contiguous_plan_rows(mica_contiguous *dense, mica_tensor *copies, const mica_arg *args, int count);

/* Copies in, and returns the scratch that follows the copies. */
void *mica_contiguous_load(mica_contiguous *dense, void *scratch);

/* After mica_contiguous_plan_rows, argument k as the kernels are to see it: the argument itself, or its contiguous copy. */
const mica_tensor *mica_contiguous_tensor(const mica_contiguous *dense, int k);

/* Copies outputs back. */
void mica_contiguous_store(const mica_contiguous *dense);

#endif
