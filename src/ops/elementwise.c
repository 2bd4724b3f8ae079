/* Element-wise operations: checks, then the map kernels. */
#include <mica/ops/elementwise.h>

#include "ops/check.h"
#include "ops/walk.h"

static mica_status binary(mica_context *ctx, const char *op, mica_map_fn *fn, const mica_tensor *dst,
                          const mica_tensor *a, const mica_tensor *b)
{
    mica_arg args[] = {
        {"dst", dst, MICA_ARG_OUT, 0}, {"a", a, MICA_ARG_IN_PLACE, 0}, {"b", b, MICA_ARG_IN_PLACE, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(mica_check_broadcast(ctx, op, "a", a, "dst", dst));
    MICA_TRY(mica_check_broadcast(ctx, op, "b", b, "dst", dst));
    MICA_START(ctx, op, 0, NULL);
    mica_map_run(ctx, fn, NULL, dst, (const mica_tensor *[]){a, b}, 2);
    return MICA_OK;
}

mica_status mica_add(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, const mica_tensor *b)
{
    return binary(ctx, "add", ctx->kernels->map->add, dst, a, b);
}
