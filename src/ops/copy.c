/* Copying and converting. */
#include <mica/ops/copy.h>

#include "ops/check.h"
#include "ops/move.h"

mica_status mica_copy(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src)
{
    const unsigned any = MICA_DTYPES_ANY, blocks = MICA_DTYPES_BLOCKS;
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, any | blocks},
                       {"src", src, MICA_ARG_IN_PLACE, any | blocks}};
    MICA_TRY(mica_check_args(ctx, "copy", args, 2));
    MICA_TRY(mica_check_broadcast(ctx, "copy", "src", src, "dst", dst));
    MICA_START(ctx, "copy", 0, NULL);
    if (mica_in_blocks(dst->dtype) || mica_in_blocks(src->dtype))
        mica_move_blocks(ctx, dst, src);
    else
        mica_move(ctx, dst, src);
    return MICA_OK;
}
