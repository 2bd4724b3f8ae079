/* The gradient of max and min: dy goes to the position of the extreme. */
#include <mica/ops/reduce.h>

#include "base/parallel.h"
#include "ops/reduce.h"

/* Elements in one block of parallel work, about. */
#define BLOCK ((mica_index)32768)

typedef struct arg_backward_job {
    mica_walk lines; /* dx, dy, index; one position per line of dx */
    mica_index n, stride;
    size_t lines_per_block;
} arg_backward_job;

static int64_t index_at(const mica_walk *lines, const mica_walk_place *c)
{
    mica_index offset = mica_walk_offset(lines, c, 2);
    if (lines->dtype[2] == MICA_I32)
        return ((const int32_t *)(const void *)lines->data[2])[offset];
    return ((const int64_t *)(const void *)lines->data[2])[offset];
}

static void line_block(void *work, size_t block, int thread)
{
    (void)thread;
    const arg_backward_job *job = work;
    const mica_walk *w = &job->lines;
    size_t begin = block * job->lines_per_block;
    size_t end = w->count - begin < job->lines_per_block ? w->count : begin + job->lines_per_block;
    mica_walk_place c = mica_walk_at(w, begin);
    for (size_t i = begin; i < end; i++) {
        float *dx = (float *)(void *)w->data[0] + mica_walk_offset(w, &c, 0);
        const float *dy = (const float *)(const void *)w->data[1] + mica_walk_offset(w, &c, 1);
        for (mica_index j = 0; j < job->n; j++)
            dx[j * job->stride] = 0.0f;
        dx[(mica_index)index_at(w, &c) * job->stride] = *dy;
        mica_walk_advance(w, &c, 1);
    }
}

static mica_status check_indices(mica_context *ctx, const char *op, const arg_backward_job *job,
                                 const mica_tensor *dx, int axis)
{
    mica_walk_place c = mica_walk_at(&job->lines, 0);
    for (size_t i = 0; i < job->lines.count; i++) {
        int64_t index = index_at(&job->lines, &c);
        if (index < 0 || index >= job->n)
            return mica_fail(ctx, MICA_ERR_INDEX, "%s: index has %lld, outside axis %d of dx %s", op,
                             (long long)index, axis, MICA_SHAPE(dx));
        mica_walk_advance(&job->lines, &c, 1);
    }
    return MICA_OK;
}

mica_status mica_amax_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                               const mica_tensor *index, int axis)
{
    const char *op = "amax_backward";
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, 0, 0}, {"index", index, 0, MICA_DTYPES_INDEX}};
    mica_tensor dy_kept, index_kept;
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(mica_check_axis(ctx, op, axis, "dx", dx, &axis));
    MICA_TRY(mica_reduce_shape(ctx, op, "dy", dy, "dx", dx, 1u << axis, &dy_kept));
    MICA_TRY(mica_reduce_shape(ctx, op, "index", index, "dx", dx, 1u << axis, &index_kept));
    MICA_START(ctx, op, 0, NULL);
    arg_backward_job job = {.n = dx->dim[axis], .stride = dx->stride[axis]};
    mica_tensor lines = mica_reduce_part(dx, ~(1u << axis));
    mica_walk_init(&job.lines, (const mica_tensor *[]){&lines, &dy_kept, &index_kept}, 3);
    if (job.lines.count == 0)
        return MICA_OK;
    MICA_TRY(check_indices(ctx, op, &job, dx, axis));
    job.lines_per_block = (size_t)(job.n < BLOCK ? BLOCK / job.n : 1);
    mica_parallel(ctx, mica_div_up(job.lines.count, job.lines_per_block), line_block, &job);
    return MICA_OK;
}
