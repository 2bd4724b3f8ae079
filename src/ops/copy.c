/* Copying and converting. */
#include <mica/ops/copy.h>

#include "base/parallel.h"
#include "ops/check.h"
#include "ops/move.h"

mica_status mica_copy(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src)
{
    const uint64_t any = MICA_DTYPES_ANY, blocks = MICA_DTYPES_BLOCKS;
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

/* ---- With options ---- */

#define BLOCK  ((mica_index)4096) /* elements in a block of parallel work */
#define STAGE  ((mica_index)256)  /* converted at a time */
#define WIDEST 8                  /* bytes of the widest element */

typedef struct cast_job {
    mica_tensor dst, src; /* joined */
    mica_index count;
    const mica_convert_kernels *convert;
    mica_cast_opts opts;
} cast_job;

static void cast_block(void *work, size_t block, int thread)
{
    (void)thread;
    const cast_job *job = work;
    mica_index position = (mica_index)block * BLOCK, end = position + BLOCK;
    if (end > job->count)
        end = job->count;
    for (mica_index n; position < end; position += n) {
        _Alignas(WIDEST) char before[STAGE * WIDEST], after[STAGE * WIDEST];
        mica_line from = {before, job->src.dtype, 1}, to = {after, job->dst.dtype, 1};
        n = end - position < STAGE ? end - position : STAGE;
        mica_fetch_run(job->convert, from, &job->src, position, n);
        MICA_KERNEL_OF(job->convert, convert, cast)
        (after, to.dtype, before, from.dtype, (size_t)n, &job->opts);
        mica_move_run(job->convert, &job->dst, position, to, n);
    }
}

mica_status mica_cast(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                      const mica_cast_opts *opts)
{
    if (opts == NULL || (dst != NULL && src != NULL && dst->dtype == src->dtype))
        return mica_copy(ctx, dst, src);
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY}, {"src", src, 0, MICA_DTYPES_ANY}};
    MICA_TRY(mica_check_args(ctx, "copy", args, 2));
    MICA_TRY(mica_check_broadcast(ctx, "copy", "src", src, "dst", dst));
    mica_tensor wide = *src;
    MICA_TRY(mica_view_broadcast(ctx, &wide, src, dst->rank, dst->dim));
    MICA_START(ctx, "copy", 0, NULL);
    cast_job job = {mica_join_axes(dst), mica_join_axes(&wide), (mica_index)mica_tensor_count(dst),
                    ctx->kernels->convert, *opts};
    mica_parallel(ctx, mica_div_up((size_t)job.count, (size_t)BLOCK), cast_block, &job);
    return MICA_OK;
}
