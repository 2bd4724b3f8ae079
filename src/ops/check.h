/* What every operation does before it accesses data: check its arguments, and take its scratch.
 *
 * An operation reads:
 *
 *     mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"a", a, MICA_ARG_IN_PLACE, 0}};
 *     MICA_TRY(mica_check_args(ctx, "square", args, 2));                     // null, dtype, overlap
 *     MICA_TRY(mica_check_same_shape(ctx, "square", "a", a, "dst", dst));    // what its shapes must be
 *     MICA_START(ctx, "square", scratch_bytes, &scratch);                    // returns here while measuring
 *     ... runs; nothing can fail from here on
 */
#ifndef MICA_SRC_OPS_CHECK_H
#define MICA_SRC_OPS_CHECK_H

#include <mica/tensor.h>

#include "base/context.h"
#include "kernel/kernels.h"
#include "tensor/tensor.h"

enum {
    MICA_ARG_OUT = 1,      /* is written: no two of its indices may name one element */
    MICA_ARG_IN_PLACE = 2, /* an input that may be exactly an output */
    MICA_ARG_OPTIONAL = 4, /* may be NULL */
};

#define MICA_DTYPE_BIT(dtype) ((uint64_t)1 << (dtype))
#define MICA_DTYPES_INDEX     (MICA_DTYPE_BIT(MICA_I32) | MICA_DTYPE_BIT(MICA_I64))
#define MICA_DTYPES_MASK      (MICA_DTYPE_BIT(MICA_F32) | MICA_DTYPE_BIT(MICA_U8) | MICA_DTYPE_BIT(MICA_BOOL))

/* Every plain type; and those that come in blocks, which an operation has to ask for. */
#define MICA_DTYPE_OR_BIT(code, name, bytes, block, type) | MICA_DTYPE_BIT(MICA_##code)
#define MICA_DTYPES_ANY                                   (0u MICA_DTYPE_PLAIN_LIST(MICA_DTYPE_OR_BIT))
#define MICA_DTYPES_BLOCKS                                (0u MICA_DTYPE_BLOCK_LIST(MICA_DTYPE_OR_BIT))
#define MICA_DTYPES_ALL                                   (MICA_DTYPE_BIT(MICA_DTYPE_COUNT) - 1)

typedef struct mica_arg {
    const char *name; /* as in the public header, for messages */
    const mica_tensor *tensor;
    unsigned flags;
    uint64_t dtypes; /* MICA_DTYPE_BITs that it may have; 0: f32 only */
} mica_arg;

/* Every tensor is valid and of an allowed dtype, outputs can be written to, and no output overlaps another
 * argument except exactly, where that argument is MICA_ARG_IN_PLACE. While measuring, data may be NULL and
 * overlap does not count. */
mica_status mica_check_args(mica_context *ctx, const char *op, const mica_arg *args, int count);

mica_status mica_check_same_shape(mica_context *ctx, const char *op, const char *name, const mica_tensor *t,
                                  const char *like_name, const mica_tensor *like);

/* t has the shape dims[rank], which follows from `because` (an argument with its shape, named in the
 * message). */
mica_status mica_check_shape(mica_context *ctx, const char *op, const char *name, const mica_tensor *t,
                             int rank, const mica_index *dims, const char *because_name,
                             const mica_tensor *because);

mica_status mica_check_rank(mica_context *ctx, const char *op, const char *name, const mica_tensor *t,
                            int low, int high);

/* t can be broadcast to the shape of `to`. */
mica_status mica_check_broadcast(mica_context *ctx, const char *op, const char *name, const mica_tensor *t,
                                 const char *to_name, const mica_tensor *to);

/* Turns an axis that may count from the end into 0 .. rank - 1. */
mica_status mica_check_axis(mica_context *ctx, const char *op, int axis, const char *name,
                            const mica_tensor *t, int *out);

/* Internal: the call was only measured. MICA_START turns it into MICA_OK. */
#define MICA_MEASURED ((mica_status)MICA_STATUS_COUNT)

/* Hands out `bytes` of the workspace, aligned to MICA_ALIGN. `scratch` may be NULL where bytes is 0. */
mica_status mica_op_start(mica_context *ctx, const char *op, size_t bytes, void **scratch);

#define MICA_START(ctx, op, bytes, scratch)                                          \
    do {                                                                             \
        mica_status mica_start_status = mica_op_start(ctx, op, bytes, scratch);      \
        if (mica_start_status != MICA_OK)                                            \
            return mica_start_status == MICA_MEASURED ? MICA_OK : mica_start_status; \
    } while (0)

#endif
