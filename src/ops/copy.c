/* Copying and converting. */
#include <mica/ops/copy.h>

#include "ops/check.h"
#include "ops/move.h"

mica_status mica_copy(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY},
                       {"src", src, MICA_ARG_IN_PLACE, MICA_DTYPES_ANY}};
    MICA_TRY(mica_check_args(ctx, "copy", args, 2));
    MICA_TRY(mica_check_broadcast(ctx, "copy", "src", src, "dst", dst));
    MICA_START(ctx, "copy", 0, NULL);
    mica_move(ctx, dst, src);
    return MICA_OK;
}
