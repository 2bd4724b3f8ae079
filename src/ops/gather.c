/* Elements by index: gather, and scatter_add, which is its gradient. */
#include <mica/ops/shape.h>

#include "base/parallel.h"
#include "ops/index.h"
#include "ops/move.h"

#define STAGE ((mica_index)256)   /* indices converted at a time */
#define BLOCK ((mica_index)16384) /* elements in a block of parallel work */

/* ---- Checks ---- */

mica_status mica_check_indices(mica_context *ctx, const char *op, const mica_tensor *index,
                               const mica_tensor *t, const char *name, int axis)
{
    mica_tensor joined = mica_join_axes(index);
    mica_index count = (mica_index)mica_tensor_count(index), n;
    for (mica_index position = 0; position < count; position += n) {
        int64_t values[STAGE];
        n = mica_least_index(STAGE, count - position);
        mica_fetch_run(ctx->kernels->convert, (mica_line){values, MICA_I64, 1}, &joined, position, n);
        for (mica_index i = 0; i < n; i++)
            if (values[i] < 0 || values[i] >= t->dim[axis])
                return mica_fail(ctx, MICA_ERR_INDEX,
                                 "%s: index %s holds %lld at element %td; axis %d of %s %s has size %td", op,
                                 MICA_SHAPE(index), (long long)values[i], position + i, axis, name,
                                 MICA_SHAPE(t), t->dim[axis]);
    }
    return MICA_OK;
}

/* For element-wise indexing: `each` has index's shape, and except along the axis index fits into `whole`. */
static mica_status check_shapes(mica_context *ctx, const char *op, const mica_tensor *whole,
                                const char *whole_name, const mica_tensor *each, const char *each_name,
                                const mica_tensor *index, int axis)
{
    bool fits = index->rank == whole->rank;
    for (int k = 0; fits && k < index->rank; k++)
        fits = k == axis || index->dim[k] <= whole->dim[k];
    if (!fits)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: index is %s, which does not fit into %s %s along axes other than %d", op,
                         MICA_SHAPE(index), whole_name, MICA_SHAPE(whole), axis);
    return mica_check_same_shape(ctx, op, each_name, each, "index", index);
}

/* ---- Runs along the last axis ---- */

/* Element j of a run goes with place j * step + index[j] * stride of the whole, from `base` on. */
typedef struct gather_job {
    mica_tensor each, index, whole;
    int axis;
    const mica_convert_kernels *convert;
    bool scatter;
    int across;              /* scatter: the axis along which blocks are cut */
    mica_index chunk, count; /* elements, or places along `across`, in a block; elements in all */
} gather_job;

static void gather_run(void *dst, mica_index dst_stride, const void *src, mica_index step, mica_index stride,
                       const int64_t *index, mica_index n, size_t bytes)
{
#define GATHER(type)                   \
    for (mica_index j = 0; j < n; j++) \
        ((type *)dst)[j * dst_stride] = ((const type *)src)[j * step + (mica_index)index[j] * stride];
    if (bytes == 4) {
        GATHER(uint32_t)
    } else if (bytes == 8) {
        GATHER(uint64_t)
    } else if (bytes == 2) {
        GATHER(uint16_t)
    } else {
        GATHER(uint8_t)
    }
#undef GATHER
}

static void scatter_run(float *dst, mica_index step, mica_index stride, const int64_t *index,
                        const float *src, mica_index src_stride, mica_index n)
{
    for (mica_index j = 0; j < n; j++)
        dst[j * step + (mica_index)index[j] * stride] += src[j * src_stride];
}

/* Elements position to end - 1 of job->index in row-major order. */
static void run_elements(const gather_job *job, mica_index position, mica_index end)
{
    int last = job->index.rank - 1;
    mica_index length = job->index.dim[last], stride = job->whole.stride[job->axis], n;
    mica_index step = job->axis == last ? 0 : job->whole.stride[last];
    size_t bytes = mica_dtype_bytes(job->whole.dtype);
    for (; position < end; position += n) {
        mica_index rest = position, each = 0, index = 0, whole = 0;
        for (int k = last; k >= 0; k--) {
            mica_index i = rest % job->index.dim[k];
            rest /= job->index.dim[k];
            each += i * job->each.stride[k];
            index += i * job->index.stride[k];
            whole += k == job->axis ? 0 : i * job->whole.stride[k];
        }
        n = mica_least_index(mica_least_index(length - position % length, STAGE), end - position);
        int64_t values[STAGE];
        mica_line from = {mica_element(&job->index, index), job->index.dtype, job->index.stride[last]};
        mica_move_line(job->convert, (mica_line){values, MICA_I64, 1}, from, n);
        void *mine = mica_element(&job->each, each), *place = mica_element(&job->whole, whole);
        if (job->scatter)
            scatter_run(place, step, stride, values, mine, job->each.stride[last], n);
        else
            gather_run(mine, job->each.stride[last], place, step, stride, values, n, bytes);
    }
}

static void gather_block(void *work, size_t block, int thread)
{
    (void)thread;
    const gather_job *job = work;
    mica_index begin = (mica_index)block * job->chunk;
    run_elements(job, begin, mica_least_index(begin + job->chunk, job->count));
}

/* Two blocks never meet: they are apart along an axis that is not indexed. */
static void scatter_block(void *work, size_t block, int thread)
{
    (void)thread;
    gather_job job = *(const gather_job *)work;
    mica_index begin = (mica_index)block * job.chunk;
    mica_index size = mica_least_index(job.chunk, job.index.dim[job.across] - begin);
    mica_tensor *cut[] = {&job.each, &job.index, &job.whole};
    for (int k = 0; k < 3; k++) {
        cut[k]->data = mica_element(cut[k], begin * cut[k]->stride[job.across]);
        cut[k]->dim[job.across] = size;
    }
    run_elements(&job, 0, (mica_index)mica_tensor_count(&job.index));
}

static void run_scatter(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                        const mica_tensor *index, int axis)
{
    gather_job job = {.each = *src, .index = *index, .whole = *dst, .axis = axis, .scatter = true};
    job.convert = ctx->kernels->convert;
    job.count = (mica_index)mica_tensor_count(index);
    if (job.count == 0)
        return;
    job.across = axis == 0 ? index->rank - 1 : 0;
    for (int k = 0; k < index->rank; k++)
        if (k != axis && index->dim[k] > index->dim[job.across])
            job.across = k;
    if (job.across == axis) { /* of rank 1 */
        run_elements(&job, 0, job.count);
        return;
    }
    mica_index size = index->dim[job.across], per_place = job.count / size;
    job.chunk = per_place < BLOCK ? BLOCK / per_place : 1;
    mica_parallel(ctx, mica_div_up((size_t)size, (size_t)job.chunk), scatter_block, &job);
}

/* ---- Operations ---- */

mica_status mica_gather(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                        const mica_tensor *index, int axis)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY},
                       {"src", src, 0, MICA_DTYPES_ANY},
                       {"index", index, 0, MICA_DTYPES_INDEX}};
    MICA_TRY(mica_check_args(ctx, "gather", args, 3));
    MICA_TRY(mica_check_axis(ctx, "gather", axis, "src", src, &axis));
    MICA_TRY(check_shapes(ctx, "gather", src, "src", dst, "dst", index, axis));
    if (dst->dtype != src->dtype)
        return mica_fail(ctx, MICA_ERR_DTYPE, "gather: dst %s is %s, src %s is %s: expected the same",
                         MICA_SHAPE(dst), mica_dtype_name(dst->dtype), MICA_SHAPE(src),
                         mica_dtype_name(src->dtype));
    MICA_START(ctx, "gather", 0, NULL);
    MICA_TRY(mica_check_indices(ctx, "gather", index, src, "src", axis));
    gather_job job = {.each = *dst, .index = *index, .whole = *src, .axis = axis, .chunk = BLOCK};
    job.convert = ctx->kernels->convert;
    job.count = (mica_index)mica_tensor_count(index);
    mica_parallel(ctx, mica_div_up((size_t)job.count, (size_t)job.chunk), gather_block, &job);
    return MICA_OK;
}

/* dst[index[i]] += src[i]; with `clear` dst is 0 before. */
static mica_status scatter(mica_context *ctx, const char *op, const mica_tensor *dst, const char *dst_name,
                           const mica_tensor *src, const char *src_name, const mica_tensor *index, int axis,
                           bool clear)
{
    mica_arg args[] = {
        {dst_name, dst, MICA_ARG_OUT, 0}, {src_name, src, 0, 0}, {"index", index, 0, MICA_DTYPES_INDEX}};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(mica_check_axis(ctx, op, axis, dst_name, dst, &axis));
    MICA_TRY(check_shapes(ctx, op, dst, dst_name, src, src_name, index, axis));
    MICA_START(ctx, op, 0, NULL);
    MICA_TRY(mica_check_indices(ctx, op, index, dst, dst_name, axis));
    float zero = 0.0f;
    mica_tensor none = mica_0d(&zero);
    if (clear)
        mica_move(ctx, dst, &none);
    run_scatter(ctx, dst, src, index, axis);
    return MICA_OK;
}

mica_status mica_scatter_add(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                             const mica_tensor *index, int axis)
{
    return scatter(ctx, "scatter_add", dst, "dst", src, "src", index, axis, false);
}

mica_status mica_gather_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                 const mica_tensor *index, int axis)
{
    return scatter(ctx, "gather_backward", dx, "dx", dy, "dy", index, axis, true);
}
