/* Comparisons and choices. */
#include <mica/ops/compare.h>

#include "ops/check.h"
#include "ops/typed.h"
#include "ops/walk.h"

#define COMPARE_OP(name)                                                                     \
    mica_status mica_##name(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, \
                            const mica_tensor *b)                                            \
    {                                                                                        \
        mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_MASK},                     \
                           {"a", a, MICA_ARG_IN_PLACE, 0},                                   \
                           {"b", b, MICA_ARG_IN_PLACE, 0}};                                  \
        if (mica_typed_takes(MICA_TYPED_##name, a))                                          \
            return mica_typed_op(ctx, #name, MICA_TYPED_##name, args, 3);                    \
        return mica_map_op(ctx, #name, MICA_KERNEL(ctx->kernels, map, name), NULL, args, 3); \
    }
MICA_MAP_COMPARE(COMPARE_OP)

#define CLASSIFY_OP(name)                                                                                 \
    mica_status mica_##name(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a)              \
    {                                                                                                     \
        mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_MASK}, {"a", a, MICA_ARG_IN_PLACE, 0}}; \
        return mica_map_op(ctx, #name, MICA_KERNEL(ctx->kernels, map, name), NULL, args, 2);              \
    }
MICA_MAP_CLASSIFY(CLASSIFY_OP)

mica_status mica_where(mica_context *ctx, const mica_tensor *dst, const mica_tensor *cond,
                       const mica_tensor *a, const mica_tensor *b)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0},
                       {"cond", cond, MICA_ARG_IN_PLACE, MICA_DTYPES_MASK},
                       {"a", a, MICA_ARG_IN_PLACE, 0},
                       {"b", b, MICA_ARG_IN_PLACE, 0}};
    if (mica_typed_chooses(a))
        return mica_typed_where(ctx, "where", args);
    return mica_map_op(ctx, "where", MICA_KERNEL(ctx->kernels, map, where), NULL, args, 4);
}

mica_status mica_where_backward(mica_context *ctx, const mica_tensor *da, const mica_tensor *db,
                                const mica_tensor *dy, const mica_tensor *cond)
{
    const char *op = "where_backward";
    mica_arg args[] = {{"da", da, MICA_ARG_OUT | MICA_ARG_OPTIONAL, 0},
                       {"db", db, MICA_ARG_OUT | MICA_ARG_OPTIONAL, 0},
                       {"dy", dy, MICA_ARG_IN_PLACE, 0},
                       {"cond", cond, 0, MICA_DTYPES_MASK}};
    MICA_TRY(mica_check_args(ctx, op, args, 4));
    if (da != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "da", da, "dy", dy));
    if (db != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "db", db, "dy", dy));
    MICA_TRY(mica_check_broadcast(ctx, op, "cond", cond, "dy", dy));
    MICA_START(ctx, op, 0, NULL);
    const mica_tensor *sources[] = {dy, cond};
    bool da_last = da != NULL && da->data == dy->data; /* it overwrites what db needs */
    for (int turn = 0; turn < 2; turn++) {
        bool a = (turn == 1) == da_last;
        if ((a ? da : db) != NULL)
            mica_map_run(ctx,
                         a ? MICA_KERNEL(ctx->kernels, map, where_true)
                           : MICA_KERNEL(ctx->kernels, map, where_false),
                         NULL, a ? da : db, sources, 2);
    }
    return MICA_OK;
}
