/* Argmax and argmin, along an axis or over the whole tensor. */
#include <mica/ops/reduce.h>

#include "base/parallel.h"
#include "ops/reduce.h"
#include "ops/typed.h"

/* Columns that are looked at side by side, and elements gathered at a time. */
#define WIDTH 256
/* Elements in one block of parallel work, about. */
#define BLOCK ((size_t)32768)
/* Elements after which a row's extreme is looked up anew: what is searched for its place stays in cache. */
#define CHUNK ((size_t)4096)

typedef struct arg_job {
    const mica_reduce_kernels *kernels;
    bool largest;
    mica_walk lines; /* operand 0: a, operand 1: dst; one position per line */
    mica_index n, stride;
    bool columns;
    size_t units, units_per_block, panels;
} arg_job;

/* The extreme of elements seen so far, and where it was. */
typedef struct extreme {
    float value;
    size_t position;
    bool found;
} extreme;

static bool better(const extreme *e, float value, bool largest)
{
    if (!e->found)
        return true;
    if (e->value != e->value)
        return false;
    return value != value || (largest ? value > e->value : value < e->value);
}

/* Looks at n contiguous elements, which start at number `position`. */
static void look_at(extreme *e, const arg_job *job, const float *x, size_t n, size_t position)
{
    const mica_reduce_kernel *kernel = job->largest ? &MICA_KERNEL_OF(job->kernels, reduce, max)
                                                    : &MICA_KERNEL_OF(job->kernels, reduce, min);
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t length = n - i < CHUNK ? n - i : CHUNK;
        double value = kernel->start;
        kernel->row(&value, x + i, length, 0.0f);
        if (better(e, (float)value, job->largest))
            *e = (extreme){
                (float)value,
                position + i + MICA_KERNEL_OF(job->kernels, reduce, find)(x + i, length, (float)value), true};
    }
}

/* Looks at n elements, `stride` apart. */
static void look_along(extreme *e, const arg_job *job, const float *x, size_t n, mica_index stride,
                       size_t position)
{
    float stage[WIDTH];
    if (stride == 1) {
        look_at(e, job, x, n, position);
        return;
    }
    for (size_t i = 0; i < n; i += WIDTH) {
        size_t length = n - i < WIDTH ? n - i : WIDTH;
        for (size_t j = 0; j < length; j++)
            stage[j] = x[(mica_index)(i + j) * stride];
        look_at(e, job, stage, length, position + i);
    }
}

static void store_index(const mica_walk *lines, const mica_walk_place *c, size_t index)
{
    mica_index offset = mica_walk_offset(lines, c, 1);
    if (lines->dtype[1] == MICA_I32)
        ((int32_t *)(void *)lines->data[1])[offset] = (int32_t)index;
    else
        ((int64_t *)(void *)lines->data[1])[offset] = (int64_t)index;
}

static const float *line_at(const arg_job *job, const mica_walk_place *c)
{
    return (const float *)(const void *)job->lines.data[0] + mica_walk_offset(&job->lines, c, 0);
}

static size_t block_end(const arg_job *job, size_t begin)
{
    return mica_least(begin + job->units_per_block, job->units);
}

static void line_block(void *work, size_t block, int thread)
{
    (void)thread;
    const arg_job *job = work;
    size_t begin = block * job->units_per_block;
    mica_walk_place c = mica_walk_at(&job->lines, begin);
    for (size_t i = begin; i < block_end(job, begin); i++) {
        extreme e = {0};
        look_along(&e, job, line_at(job, &c), (size_t)job->n, job->stride, 0);
        store_index(&job->lines, &c, e.position);
        mica_walk_advance(&job->lines, &c, 1);
    }
}

/* Lines side by side, contiguous across. */
static void panel_block(void *work, size_t block, int thread)
{
    (void)thread;
    const arg_job *job = work;
    size_t begin = block * job->units_per_block;
    size_t row = (size_t)job->lines.dim[job->lines.rank - 1];
    for (size_t unit = begin; unit < block_end(job, begin); unit++) {
        size_t first = unit % job->panels * WIDTH, columns = row - first < WIDTH ? row - first : WIDTH;
        mica_walk_place c = mica_walk_at(&job->lines, unit / job->panels * row + first);
        const float *x = line_at(job, &c);
        float best[WIDTH];
        int32_t index[WIDTH];
        for (size_t j = 0; j < columns; j++) {
            best[j] = x[j];
            index[j] = 0;
        }
        (job->largest ? MICA_KERNEL_OF(job->kernels, reduce, argmax_columns)
                      : MICA_KERNEL_OF(job->kernels, reduce, argmin_columns))(
            best, index, x + job->stride, job->stride, (size_t)job->n - 1, columns, 1);
        for (size_t j = 0; j < columns; j++) {
            store_index(&job->lines, &c, (size_t)index[j]);
            mica_walk_advance(&job->lines, &c, 1);
        }
    }
}

static void along_axis(mica_context *ctx, arg_job *job, const mica_tensor *a, const mica_tensor *kept,
                       int axis)
{
    mica_tensor lines = mica_reduce_part(a, ~(1u << axis));
    mica_walk_init(&job->lines, (const mica_tensor *[]){&lines, kept}, 2);
    if (job->lines.count == 0)
        return;
    job->n = a->dim[axis];
    job->stride = a->stride[axis];
    int last = job->lines.rank - 1;
    bool columns = job->stride != 1 && job->lines.count > 1 && job->lines.stride[0][last] == 1 &&
                   job->n <= INT32_MAX;
    size_t row = (size_t)job->lines.dim[last];
    job->panels = mica_div_up(row, WIDTH);
    job->units = columns ? job->lines.count / row * job->panels : job->lines.count;
    size_t elements = (size_t)job->n * (columns ? (row < WIDTH ? row : WIDTH) : 1);
    job->units_per_block = elements < BLOCK ? BLOCK / elements : 1;
    mica_parallel(ctx, mica_div_up(job->units, job->units_per_block), columns ? panel_block : line_block,
                  job);
}

/* All elements in row-major order, one run along the last axis after the other. */
static void over_all(const arg_job *job, const mica_tensor *a, const mica_tensor *dst)
{
    extreme e = {0};
    size_t count = mica_tensor_count(a);
    if (mica_tensor_contiguous(a)) {
        look_at(&e, job, a->data, count, 0);
    } else {
        unsigned last = 1u << (a->rank - 1);
        size_t n = (size_t)a->dim[a->rank - 1], position = 0;
        mica_tensor rows = mica_reduce_part(a, ~last);
        for (mica_iter it = mica_iter_begin(&rows, 0, NULL); it.valid; mica_iter_next(&it), position += n)
            look_along(&e, job, it.element, n, a->stride[a->rank - 1], position);
    }
    if (dst->dtype == MICA_I32)
        *(int32_t *)dst->data = (int32_t)e.position;
    else
        *(int64_t *)dst->data = (int64_t)e.position;
}

static mica_status arg(mica_context *ctx, const char *op, bool largest, const mica_tensor *dst,
                       const mica_tensor *a, int axis)
{
    bool all = axis == MICA_ALL_AXES, typed = !all && mica_typed_folds(a);
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_INDEX},
                       {"a", a, 0, typed ? MICA_DTYPES_TYPED : 0}};
    unsigned mask;
    mica_tensor kept;
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_reduce_axes(ctx, op, a, &axis, all ? 0 : 1, &mask));
    MICA_TRY(mica_reduce_shape(ctx, op, "dst", dst, "a", a, mask, &kept));
    mica_tensor reduced = mica_reduce_part(a, mask);
    size_t n = mica_tensor_count(&reduced);
    if (n == 0 && mica_tensor_count(&kept) > 0)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: a is %s: the axis is empty", op, MICA_SHAPE(a));
    if (n > INT32_MAX && dst->dtype == MICA_I32)
        return mica_fail(ctx, MICA_ERR_DTYPE, "%s: dst is i32, too small for positions in a %s", op,
                         MICA_SHAPE(a));
    MICA_START(ctx, op, 0, NULL);
    arg_job job = {.kernels = ctx->kernels->reduce, .largest = largest};
    if (typed)
        mica_typed_arg(ctx, largest, &kept, a, axis < 0 ? axis + a->rank : axis);
    else if (all)
        over_all(&job, a, dst);
    else
        along_axis(ctx, &job, a, &kept, axis < 0 ? axis + a->rank : axis);
    return MICA_OK;
}

mica_status mica_argmax(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, int axis)
{
    return arg(ctx, "argmax", true, dst, a, axis);
}

mica_status mica_argmin(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, int axis)
{
    return arg(ctx, "argmin", false, dst, a, axis);
}
