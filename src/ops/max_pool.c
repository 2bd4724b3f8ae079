/* The largest of windows of one to three axes, and back: planes are [D, H, W], with 1 for axes that are not there. */
#include <mica/ops/pool.h>

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/contiguous.h"
#include "ops/index.h"

/* Elements read in a block of parallel work. */
#define BLOCK ((size_t)16384)
#define MOST  ((mica_index)INT32_MAX)

typedef struct job {
    mica_index in[3], out[3], kernel[3], stride[3], before[3], dilation[3];
    bool flat, column_major;
    size_t planes, per_block;
    float *y; /* in the backward: dx, written */
    const float *x;
    int64_t *indices;
} job;

static mica_index or_one(mica_index value) { return value != 0 ? value : 1; }

mica_index mica_max_pool_size(mica_index size, int axis, const mica_max_pool_opts *opts)
{
    if (axis < 0 || axis > 2 || size < 0)
        return -1;
    mica_index kernel = or_one(opts->kernel[axis]), stride = or_one(opts->stride[axis]);
    mica_index dilation = or_one(opts->dilation[axis]), before = opts->before[axis],
               after = opts->after[axis];
    if (kernel < 1 || stride < 1 || dilation < 1 || before < 0 || after < 0 || kernel > MOST ||
        stride > MOST || dilation > MOST || size > PTRDIFF_MAX / 4)
        return -1;
    mica_index reach = 0, padded = 0;
    if (__builtin_mul_overflow(kernel - 1, dilation, &reach) || __builtin_add_overflow(reach, 1, &reach) ||
        before >= reach || after >= reach || __builtin_add_overflow(size, before + after, &padded))
        return -1;
    mica_index room = padded - reach;
    if (room <= (opts->ceil_mode ? -stride : -1))
        return -1;
    mica_index count = room < 0 ? 1 : room / stride + (opts->ceil_mode && room % stride != 0) + 1;
    return opts->ceil_mode && (count - 1) * stride >= size + before ? count - 1 : count;
}

/* The last axes of `wide` and `narrow` are those of planes, all others are the same. */
static mica_status set_planes(mica_context *ctx, const char *op, job *j, const mica_arg *wide,
                              const mica_arg *narrow, const mica_max_pool_opts *opts)
{
    const mica_tensor *x = wide->tensor, *y = narrow->tensor;
    if (opts == NULL || opts->axes < 1 || opts->axes > 3)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: axes is %d: expected 1 to 3", op,
                         opts != NULL ? opts->axes : 0);
    MICA_TRY(mica_check_rank(ctx, op, wide->name, x, opts->axes, MICA_MAX_RANK));
    MICA_TRY(mica_check_rank(ctx, op, narrow->name, y, x->rank, x->rank));
    *j = (job){.planes = 1, .flat = opts->flat, .column_major = opts->column_major};
    for (int k = 0; k < x->rank - opts->axes; k++) {
        if (x->dim[k] != y->dim[k])
            return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s and %s %s: expected the same in dimension %d",
                             op, wide->name, MICA_SHAPE(x), narrow->name, MICA_SHAPE(y), k);
        j->planes *= (size_t)x->dim[k];
    }
    for (int k = 0; k < 3; k++) {
        int axis = k - (3 - opts->axes), at = x->rank - 3 + k;
        bool there = axis >= 0;
        j->in[k] = there ? x->dim[at] : 1;
        j->out[k] = there ? y->dim[at] : 1;
        j->kernel[k] = there ? or_one(opts->kernel[axis]) : 1;
        j->stride[k] = there ? or_one(opts->stride[axis]) : 1;
        j->dilation[k] = there ? or_one(opts->dilation[axis]) : 1;
        j->before[k] = there ? opts->before[axis] : 0;
    }
    return MICA_OK;
}

static mica_index volume(const mica_index size[3]) { return size[0] * size[1] * size[2]; }

static int64_t index_of(const job *j, size_t plane, mica_index d, mica_index h, mica_index w)
{
    mica_index at = j->column_major ? d + j->in[0] * (h + j->in[1] * w) : (d * j->in[1] + h) * j->in[2] + w;
    return (int64_t)at + (j->flat ? (int64_t)plane * volume(j->in) : 0);
}

/* Where in its plane, row-major, an element with this index lies; -1: nowhere. */
static mica_index place_of(const job *j, size_t plane, int64_t index)
{
    int64_t at = index - (j->flat ? (int64_t)plane * volume(j->in) : 0);
    if (index < 0 || at < 0 || at >= volume(j->in))
        return -1;
    if (!j->column_major)
        return (mica_index)at;
    mica_index d = (mica_index)at % j->in[0], rest = (mica_index)at / j->in[0];
    return (d * j->in[1] + rest % j->in[1]) * j->in[2] + rest / j->in[1];
}

/* The first position of a window inside the plane, and the end. */
static void span(const job *j, int k, mica_index at, mica_index *first, mica_index *end)
{
    mica_index start = at * j->stride[k] - j->before[k], step = j->dilation[k];
    *first = start >= 0 ? start : start + (-start + step - 1) / step * step;
    *end = mica_least_index(start + (j->kernel[k] - 1) * step + 1, j->in[k]);
}

static void window(const job *j, size_t plane, const mica_index at[3], float *best, int64_t *where)
{
    const float *x = j->x + plane * (size_t)volume(j->in);
    mica_index first[3], end[3];
    for (int k = 0; k < 3; k++)
        span(j, k, at[k], &first[k], &end[k]);
    *best = -INFINITY;
    *where = -1;
    for (mica_index d = first[0]; d < end[0]; d += j->dilation[0])
        for (mica_index h = first[1]; h < end[1]; h += j->dilation[1])
            for (mica_index w = first[2]; w < end[2]; w += j->dilation[2]) {
                float value = x[(d * j->in[1] + h) * j->in[2] + w];
                if (*where < 0 || value > *best || isnan(value)) {
                    *best = value;
                    *where = index_of(j, plane, d, h, w);
                }
            }
}

/* Rows of results. */
static void forward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t per_plane = (size_t)(j->out[0] * j->out[1]), width = (size_t)j->out[2];
    size_t end = mica_least((block + 1) * j->per_block, j->planes * per_plane);
    for (size_t row = block * j->per_block; row < end; row++) {
        mica_index rest = (mica_index)(row % per_plane);
        for (size_t i = 0; i < width; i++) {
            int64_t where;
            mica_index at[3] = {rest / j->out[1], rest % j->out[1], (mica_index)i};
            window(j, row / per_plane, at, &j->y[row * width + i], &where);
            if (j->indices != NULL)
                j->indices[row * width + i] = where;
        }
    }
}

mica_status mica_max_pool(mica_context *ctx, const mica_tensor *y, const mica_tensor *indices,
                          const mica_tensor *x, const mica_max_pool_opts *opts)
{
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0},
                       {"indices", indices, MICA_ARG_OUT | MICA_ARG_OPTIONAL, MICA_DTYPE_BIT(MICA_I64)},
                       {"x", x, 0, 0}};
    MICA_TRY(mica_check_args(ctx, "max_pool", args, 3));
    job j;
    MICA_TRY(set_planes(ctx, "max_pool", &j, &args[2], &args[0], opts));
    for (int k = 0; k < opts->axes; k++) {
        mica_index in = x->dim[x->rank - opts->axes + k], size = mica_max_pool_size(in, k, opts);
        if (size < 0)
            return mica_fail(
                ctx, MICA_ERR_ARGUMENT,
                "max_pool: a kernel of %td, stride %td, dilation %td, padding %td and %td do not fit x %s",
                opts->kernel[k], opts->stride[k], opts->dilation[k], opts->before[k], opts->after[k],
                MICA_SHAPE(x));
        if (size != y->dim[y->rank - opts->axes + k])
            return mica_fail(ctx, MICA_ERR_SHAPE, "max_pool: y is %s: expected %td in dimension %d for x %s",
                             MICA_SHAPE(y), size, y->rank - opts->axes + k, MICA_SHAPE(x));
    }
    if (indices != NULL)
        MICA_TRY(mica_check_same_shape(ctx, "max_pool", "indices", indices, "y", y));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 3);
    MICA_START(ctx, "max_pool", dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    j.y = dense.data[0];
    j.indices = dense.data[1];
    j.x = dense.data[2];
    size_t each = (size_t)(j.out[2] * volume(j.kernel)), rows = j.planes * (size_t)(j.out[0] * j.out[1]);
    j.per_block = each < BLOCK ? BLOCK / mica_most(each, 1) : 1;
    mica_parallel(ctx, mica_div_up(rows, j.per_block), forward_block, &j);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

static void backward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t in = (size_t)volume(j->in), out = (size_t)volume(j->out);
    size_t end = mica_least((block + 1) * j->per_block, j->planes);
    for (size_t plane = block * j->per_block; plane < end; plane++) {
        float *dx = j->y + plane * in;
        memset(dx, 0, in * sizeof *dx);
        for (size_t i = plane * out; i < (plane + 1) * out; i++) {
            mica_index at = place_of(j, plane, j->indices[i]);
            if (at >= 0)
                dx[at] += j->x[i];
        }
    }
}

mica_status mica_max_pool_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                   const mica_tensor *indices, const mica_max_pool_opts *opts)
{
    mica_arg args[] = {
        {"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, 0, 0}, {"indices", indices, 0, MICA_DTYPE_BIT(MICA_I64)}};
    MICA_TRY(mica_check_args(ctx, "max_pool_backward", args, 3));
    job j;
    MICA_TRY(set_planes(ctx, "max_pool_backward", &j, &args[0], &args[1], opts));
    MICA_TRY(mica_check_same_shape(ctx, "max_pool_backward", "indices", indices, "dy", dy));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 3);
    MICA_START(ctx, "max_pool_backward", dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    j.y = dense.data[0];
    j.x = dense.data[1];
    j.indices = dense.data[2];
    size_t each = (size_t)(volume(j.in) + volume(j.out));
    if (mica_tensor_count(dx) == 0)
        return MICA_OK;
    j.per_block = each < BLOCK ? BLOCK / mica_most(each, 1) : 1;
    mica_parallel(ctx, mica_div_up(j.planes, j.per_block), backward_block, &j);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_max_unpool(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                            const mica_tensor *indices)
{
    mica_arg args[] = {
        {"dst", dst, MICA_ARG_OUT, 0}, {"x", x, 0, 0}, {"indices", indices, 0, MICA_DTYPES_INDEX}};
    MICA_TRY(mica_check_args(ctx, "max_unpool", args, 3));
    MICA_TRY(mica_check_same_shape(ctx, "max_unpool", "indices", indices, "x", x));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 3);
    MICA_START(ctx, "max_unpool", dense.bytes, &scratch);
    mica_tensor flat = {.rank = 1, .dim = {(mica_index)mica_tensor_count(dst)}, .stride = {1}};
    MICA_TRY(mica_check_indices(ctx, "max_unpool", indices, &flat, "dst, as one row,", 0));
    mica_contiguous_load(&dense, scratch);
    float *out = dense.data[0];
    const float *in = dense.data[1];
    memset(out, 0, (size_t)flat.dim[0] * sizeof *out);
    for (size_t i = 0, count = mica_tensor_count(x); i < count; i++) {
        int64_t at = indices->dtype == MICA_I64 ? ((const int64_t *)dense.data[2])[i]
                                                : ((const int32_t *)dense.data[2])[i];
        out[at] = in[i];
    }
    mica_contiguous_store(&dense);
    return MICA_OK;
}
