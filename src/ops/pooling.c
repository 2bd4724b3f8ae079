/* Pooling: checks, then the kernels over planes. */
#include <mica/ops/pool.h>

#include "base/parallel.h"
#include "ops/contiguous.h"
#include "ops/pooling_last.h"
#include "tensor/tensor.h"

/* Output elements in one block of parallel work. */
#define BLOCK ((size_t)8192)

/* ---- Shapes ---- */

static mica_index or_default(mica_index value, mica_index otherwise)
{
    return value != 0 ? value : otherwise;
}

/* What is wrong with the options along an axis; NULL if nothing. */
static const char *flaw(const mica_pooling_opts *opts, int axis)
{
    mica_index kernel = opts->kernel[axis], dilation = or_default(opts->dilation[axis], 1);
    if (kernel < 1)
        return "kernel must be at least 1";
    if (opts->stride[axis] < 0)
        return "stride must not be negative";
    if (dilation < 1)
        return "dilation must not be negative";
    if (kernel > INT32_MAX || opts->stride[axis] > INT32_MAX || dilation > INT32_MAX)
        return "kernel, stride and dilation must be less than 2^31";
    if (opts->pad[axis] < 0 || opts->pad[axis] > ((kernel - 1) * dilation + 1) / 2)
        return "pad must be 0 to half of the dilated kernel";
    return NULL;
}

mica_index mica_pooling_size(mica_index size, int axis, const mica_pooling_opts *opts)
{
    if (opts == NULL || axis < 0 || axis > 1 || size < 1 || flaw(opts, axis) != NULL)
        return -1;
    mica_index dilation = or_default(opts->dilation[axis], 1), pad = opts->pad[axis];
    mica_index stride = or_default(opts->stride[axis], opts->kernel[axis]);
    mica_index room = size + 2 * pad - (opts->kernel[axis] - 1) * dilation - 1;
    room += opts->ceil_mode ? stride - 1 : 0; /* one window may be larger than all there is, as in PyTorch */
    if (room < 0)
        return -1;
    mica_index out = room / stride + 1;
    return opts->ceil_mode && (out - 1) * stride >= size + pad ? out - 1 : out;
}

/* A pooling call: the options brought to two axes, and the planes. */
typedef struct pool_job {
    mica_pool_shape shape;
    size_t planes;
    const mica_pool_kernels *kernels;
    float *out;
    int32_t *indices;
    const float *in;
    size_t per_block; /* rows or planes */
} pool_job;

/* Fills in sizes [in] and [out] from x and y of one rank, whose last `axes` axes are pooled; the others must
 * agree. */
static mica_status set_planes(mica_context *ctx, const char *op, pool_job *job, int axes, const char *x_name,
                              const mica_tensor *x, const char *y_name, const mica_tensor *y)
{
    MICA_TRY(mica_check_rank(ctx, op, x_name, x, axes, MICA_MAX_RANK));
    bool same = x->rank == y->rank;
    for (int i = 0; same && i < x->rank - axes; i++)
        same = x->dim[i] == y->dim[i];
    if (!same)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s, %s is %s: expected the same leading axes", op,
                         x_name, MICA_SHAPE(x), y_name, MICA_SHAPE(y));
    job->planes = 1;
    for (int i = 0; i < x->rank - axes; i++)
        job->planes *= (size_t)x->dim[i];
    job->shape.in[0] = job->shape.out[0] = 1;
    for (int k = 2 - axes; k < 2; k++) {
        job->shape.in[k] = x->dim[x->rank - 2 + k];
        job->shape.out[k] = y->dim[y->rank - 2 + k];
    }
    if (job->shape.in[0] * job->shape.in[1] > INT32_MAX)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s: a plane has more elements than an i32 can count",
                         op, x_name, MICA_SHAPE(x));
    job->kernels = ctx->kernels->pool;
    return MICA_OK;
}

/* The windows of the options over x, and that y has as many. */
static mica_status set_windows(mica_context *ctx, const char *op, pool_job *job, int axes,
                               const mica_pooling_opts *opts, const char *x_name, const mica_tensor *x,
                               const char *y_name, const mica_tensor *y)
{
    if (opts == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: opts is NULL, but a kernel size is needed", op);
    mica_pool_shape *s = &job->shape;
    for (int k = 0; k < 2; k++) {
        int from = k - (2 - axes); /* of the options; -1: a height of 1 */
        s->kernel[k] = s->stride[k] = s->dilation[k] = 1;
        s->pad[k] = 0;
        if (from < 0)
            continue;
        const char *wrong = flaw(opts, from);
        if (wrong != NULL)
            return mica_fail(ctx, MICA_ERR_ARGUMENT,
                             "%s: kernel %td, stride %td, pad %td, dilation %td along %s: %s", op,
                             opts->kernel[from], opts->stride[from], opts->pad[from], opts->dilation[from],
                             axes == 1 ? "the last axis" : (k == 0 ? "the height" : "the width"), wrong);
        s->kernel[k] = opts->kernel[from];
        s->stride[k] = or_default(opts->stride[from], opts->kernel[from]);
        s->pad[k] = opts->pad[from];
        s->dilation[k] = or_default(opts->dilation[from], 1);
    }
    s->exclude_pad = opts->exclude_pad;

    mica_index want[MICA_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        want[i] = x->dim[i];
    for (int i = 0; i < axes; i++) {
        mica_index size = mica_pooling_size(x->dim[x->rank - axes + i], i, opts);
        if (size < 0)
            return mica_fail(ctx, MICA_ERR_SHAPE, "%s: a window of %td does not fit into %s %s padded by %td",
                             op, opts->kernel[i], x_name, MICA_SHAPE(x), opts->pad[i]);
        want[x->rank - axes + i] = size;
    }
    return mica_check_shape(ctx, op, y_name, y, x->rank, want, x_name, x);
}

static size_t blocks_of(pool_job *job, size_t units, size_t elements_each)
{
    job->per_block = BLOCK / (elements_each > 0 ? elements_each : 1);
    job->per_block += job->per_block == 0;
    return mica_div_up(units, job->per_block);
}

static size_t block_end(const pool_job *job, size_t block, size_t units)
{
    return mica_least((block + 1) * job->per_block, units);
}

/* ---- Maximum ---- */

static void max_block(void *work, size_t block, int thread)
{
    (void)thread;
    const pool_job *job = work;
    MICA_KERNEL_OF(job->kernels, pool, max)
    (job->out, job->indices, job->in, block * job->per_block,
     block_end(job, block, job->planes * (size_t)job->shape.out[0]), &job->shape);
}

static mica_status max_pool(mica_context *ctx, const char *op, int axes, const mica_tensor *y,
                            const mica_tensor *indices, const mica_tensor *x, const mica_pooling_opts *opts)
{
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0},
                       {"indices", indices, MICA_ARG_OUT | MICA_ARG_OPTIONAL, MICA_DTYPE_BIT(MICA_I32)},
                       {"x", x, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    pool_job job;
    MICA_TRY(set_planes(ctx, op, &job, axes, "x", x, "y", y));
    MICA_TRY(set_windows(ctx, op, &job, axes, opts, "x", x, "y", y));
    if (indices != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "indices", indices, "y", y));
    if (indices == NULL && mica_pooling_is_last(y, x)) {
        MICA_START(ctx, op, 0, NULL);
        mica_pooling_last(ctx, y, x, &job.shape, true);
        return MICA_OK;
    }
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 3);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    job.out = dense.data[0];
    job.indices = dense.data[1];
    job.in = dense.data[2];
    size_t rows = job.planes * (size_t)job.shape.out[0];
    mica_parallel(ctx, blocks_of(&job, rows, (size_t)job.shape.out[1]), max_block, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_max_pool2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *indices,
                            const mica_tensor *x, const mica_pooling_opts *opts)
{
    return max_pool(ctx, "max_pool2d", 2, y, indices, x, opts);
}

mica_status mica_max_pool1d(mica_context *ctx, const mica_tensor *y, const mica_tensor *indices,
                            const mica_tensor *x, const mica_pooling_opts *opts)
{
    return max_pool(ctx, "max_pool1d", 1, y, indices, x, opts);
}

static void max_backward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const pool_job *job = work;
    size_t first = block * job->per_block, planes = block_end(job, block, job->planes) - first;
    size_t in = (size_t)(job->shape.in[0] * job->shape.in[1]);
    size_t out = (size_t)(job->shape.out[0] * job->shape.out[1]);
    MICA_KERNEL_OF(job->kernels, pool, max_backward)
    (job->out + first * in, job->in + first * out, job->indices + first * out, planes, &job->shape);
}

static mica_status max_pool_backward(mica_context *ctx, const char *op, int axes, const mica_tensor *dx,
                                     const mica_tensor *dy, const mica_tensor *indices)
{
    mica_arg args[] = {
        {"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, 0, 0}, {"indices", indices, 0, MICA_DTYPE_BIT(MICA_I32)}};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    pool_job job;
    MICA_TRY(set_planes(ctx, op, &job, axes, "dx", dx, "dy", dy));
    MICA_TRY(mica_check_same_shape(ctx, op, "indices", indices, "dy", dy));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 3);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    job.out = dense.data[0];
    job.in = dense.data[1];
    job.indices = dense.data[2];
    size_t in = (size_t)(job.shape.in[0] * job.shape.in[1]);
    if (in > 0)
        mica_parallel(ctx, blocks_of(&job, job.planes, in), max_backward_block, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_max_pool2d_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                     const mica_tensor *indices)
{
    return max_pool_backward(ctx, "max_pool2d_backward", 2, dx, dy, indices);
}

mica_status mica_max_pool1d_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                     const mica_tensor *indices)
{
    return max_pool_backward(ctx, "max_pool1d_backward", 1, dx, dy, indices);
}

/* ---- Averages: one output, one input, and a kernel over rows or planes ---- */

static void average_block(void *work, size_t block, int thread)
{
    (void)thread;
    const pool_job *job = work;
    MICA_KERNEL_OF(job->kernels, pool, average)
    (job->out, job->in, block * job->per_block,
     block_end(job, block, job->planes * (size_t)job->shape.out[0]), &job->shape);
}

typedef void plane_kernel(float *out, const float *in, size_t planes, const mica_pool_shape *s);

static void plane_block(const pool_job *job, size_t block, plane_kernel *kernel, bool backward)
{
    size_t first = block * job->per_block, planes = block_end(job, block, job->planes) - first;
    size_t in = (size_t)(job->shape.in[0] * job->shape.in[1]);
    size_t out = (size_t)(job->shape.out[0] * job->shape.out[1]);
    kernel(job->out + first * (backward ? in : out), job->in + first * (backward ? out : in), planes,
           &job->shape);
}

static void average_backward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const pool_job *job = work;
    plane_block(job, block, MICA_KERNEL_OF(job->kernels, pool, average_backward), true);
}

static void adaptive_block(void *work, size_t block, int thread)
{
    (void)thread;
    const pool_job *job = work;
    plane_block(job, block, MICA_KERNEL_OF(job->kernels, pool, adaptive), false);
}

static void adaptive_backward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const pool_job *job = work;
    plane_block(job, block, MICA_KERNEL_OF(job->kernels, pool, adaptive_backward), true);
}

/* Brings both arguments to contiguous planes and runs fn over `units` of `elements_each`. */
static mica_status run(mica_context *ctx, const char *op, pool_job *job, const mica_arg *args,
                       mica_block_fn *fn, size_t units, size_t elements_each)
{
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 2);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    job->out = dense.data[0];
    job->in = dense.data[1];
    if (mica_tensor_count(args[0].tensor) > 0)
        mica_parallel_sums(ctx, 16.0 * (double)(units * elements_each), blocks_of(job, units, elements_each),
                           fn, job); /* reading and writing bound it */
    mica_contiguous_store(&dense);
    return MICA_OK;
}

static mica_status average(mica_context *ctx, const char *op, int axes, const mica_tensor *y,
                           const mica_tensor *x, const mica_pooling_opts *opts)
{
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    pool_job job;
    MICA_TRY(set_planes(ctx, op, &job, axes, "x", x, "y", y));
    MICA_TRY(set_windows(ctx, op, &job, axes, opts, "x", x, "y", y));
    if (job.shape.dilation[0] != 1 || job.shape.dilation[1] != 1)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: average pooling has no dilation", op);
    if (mica_pooling_is_last(y, x)) {
        MICA_START(ctx, op, 0, NULL);
        mica_pooling_last(ctx, y, x, &job.shape, false);
        return MICA_OK;
    }
    return run(ctx, op, &job, args, average_block, job.planes * (size_t)job.shape.out[0],
               (size_t)job.shape.out[1]);
}

static mica_status average_backward(mica_context *ctx, const char *op, int axes, const mica_tensor *dx,
                                    const mica_tensor *dy, const mica_pooling_opts *opts)
{
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    pool_job job;
    MICA_TRY(set_planes(ctx, op, &job, axes, "dx", dx, "dy", dy));
    MICA_TRY(set_windows(ctx, op, &job, axes, opts, "dx", dx, "dy", dy));
    if (job.shape.dilation[0] != 1 || job.shape.dilation[1] != 1)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: average pooling has no dilation", op);
    return run(ctx, op, &job, args, average_backward_block, job.planes,
               (size_t)(job.shape.in[0] * job.shape.in[1]));
}

mica_status mica_avg_pool2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                            const mica_pooling_opts *opts)
{
    return average(ctx, "avg_pool2d", 2, y, x, opts);
}

mica_status mica_avg_pool1d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                            const mica_pooling_opts *opts)
{
    return average(ctx, "avg_pool1d", 1, y, x, opts);
}

mica_status mica_avg_pool2d_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                     const mica_pooling_opts *opts)
{
    return average_backward(ctx, "avg_pool2d_backward", 2, dx, dy, opts);
}

mica_status mica_avg_pool1d_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                     const mica_pooling_opts *opts)
{
    return average_backward(ctx, "avg_pool1d_backward", 1, dx, dy, opts);
}

/* ---- Adaptive and global averages ---- */

static mica_status check_parts(mica_context *ctx, const char *op, const pool_job *job, const char *x_name,
                               const mica_tensor *x, const char *y_name, const mica_tensor *y)
{
    for (int k = 0; k < 2; k++)
        if (job->shape.in[k] == 0 && job->shape.out[k] > 0)
            return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s: nothing to average for %s %s", op, x_name,
                             MICA_SHAPE(x), y_name, MICA_SHAPE(y));
    return MICA_OK;
}

static mica_status adaptive(mica_context *ctx, const char *op, int axes, const mica_tensor *y,
                            const mica_tensor *x)
{
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    pool_job job;
    MICA_TRY(set_planes(ctx, op, &job, axes, "x", x, "y", y));
    MICA_TRY(check_parts(ctx, op, &job, "x", x, "y", y));
    return run(ctx, op, &job, args, adaptive_block, job.planes, (size_t)(job.shape.in[0] * job.shape.in[1]));
}

static mica_status adaptive_backward(mica_context *ctx, const char *op, int axes, const mica_tensor *dx,
                                     const mica_tensor *dy)
{
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    pool_job job;
    MICA_TRY(set_planes(ctx, op, &job, axes, "dx", dx, "dy", dy));
    MICA_TRY(check_parts(ctx, op, &job, "dx", dx, "dy", dy));
    return run(ctx, op, &job, args, adaptive_backward_block, job.planes,
               (size_t)(job.shape.in[0] * job.shape.in[1]));
}

mica_status mica_adaptive_avg_pool2d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x)
{
    return adaptive(ctx, "adaptive_avg_pool2d", 2, y, x);
}

mica_status mica_adaptive_avg_pool1d(mica_context *ctx, const mica_tensor *y, const mica_tensor *x)
{
    return adaptive(ctx, "adaptive_avg_pool1d", 1, y, x);
}

mica_status mica_adaptive_avg_pool2d_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy)
{
    return adaptive_backward(ctx, "adaptive_avg_pool2d_backward", 2, dx, dy);
}

mica_status mica_adaptive_avg_pool1d_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy)
{
    return adaptive_backward(ctx, "adaptive_avg_pool1d_backward", 1, dx, dy);
}

/* [N, C, ...] as N * C planes of one row, and [N, C] or [N, C, 1, ...] as their means. */
static mica_status set_global(mica_context *ctx, const char *op, pool_job *job, const char *x_name,
                              const mica_tensor *x, const char *y_name, const mica_tensor *y)
{
    MICA_TRY(mica_check_rank(ctx, op, x_name, x, 2, MICA_MAX_RANK));
    mica_index want[MICA_MAX_RANK] = {x->dim[0], x->dim[1]}, size = 1;
    for (int i = 2; i < x->rank; i++) {
        want[i] = 1;
        size *= x->dim[i];
    }
    MICA_TRY(mica_check_shape(ctx, op, y_name, y, y->rank == 2 ? 2 : x->rank, want, x_name, x));
    job->planes = (size_t)(x->dim[0] * x->dim[1]);
    job->shape = (mica_pool_shape){.in = {1, size}, .out = {1, 1}};
    job->kernels = ctx->kernels->pool;
    if (job->planes == 0)
        return MICA_OK;
    return check_parts(ctx, op, job, x_name, x, y_name, y);
}

mica_status mica_global_avg_pool(mica_context *ctx, const mica_tensor *y, const mica_tensor *x)
{
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, 0, 0}};
    MICA_TRY(mica_check_args(ctx, "global_avg_pool", args, 2));
    pool_job job;
    MICA_TRY(set_global(ctx, "global_avg_pool", &job, "x", x, "y", y));
    if (mica_means_is_last(x)) {
        MICA_START(ctx, "global_avg_pool", 0, NULL);
        mica_means_last(ctx, y, x);
        return MICA_OK;
    }
    return run(ctx, "global_avg_pool", &job, args, adaptive_block, job.planes, (size_t)job.shape.in[1]);
}

mica_status mica_global_avg_pool_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy)
{
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, 0, 0}};
    MICA_TRY(mica_check_args(ctx, "global_avg_pool_backward", args, 2));
    pool_job job;
    MICA_TRY(set_global(ctx, "global_avg_pool_backward", &job, "dx", dx, "dy", dy));
    return run(ctx, "global_avg_pool_backward", &job, args, adaptive_backward_block, job.planes,
               (size_t)job.shape.in[1]);
}
