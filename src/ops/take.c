/* Whole slices by index: take, and index_add, which is its gradient.
 *
 * With the indexed axis taken away, a slice is a tensor [outer..., inner...] that lies the same way at every
 * index; one walk over it serves them all, moved to each index's place. */
#include <mica/ops/shape.h>

#include "base/parallel.h"
#include "ops/index.h"
#include "ops/move.h"
#include "ops/walk.h"

#define STAGE ((mica_index)256)   /* indices converted at a time */
#define BLOCK ((mica_index)16384) /* elements in a block of parallel work */
#define PIECE ((mica_index)128)   /* elements of a row that a block of additions takes */

/* `table` is indexed along the axis; `list` has index's axes in its place. */
static mica_status check_shapes(mica_context *ctx, const char *op, const mica_tensor *table,
                                const char *table_name, const mica_tensor *list, const char *list_name,
                                const mica_tensor *index, int axis)
{
    int rank = table->rank - 1 + index->rank;
    mica_index dims[2 * MICA_MAX_RANK];
    for (int k = 0; k < rank; k++)
        dims[k] = k < axis                 ? table->dim[k]
                  : k < axis + index->rank ? index->dim[k - axis]
                                           : table->dim[k - index->rank + 1];
    bool same = list->rank == rank;
    for (int k = 0; same && k < rank; k++)
        same = list->dim[k] == dims[k];
    if (same)
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s, which does not fit index %s along axis %d of %s %s",
                     op, list_name, MICA_SHAPE(list), MICA_SHAPE(index), axis, table_name, MICA_SHAPE(table));
}

typedef struct take_job {
    mica_walk walk; /* over one slice: operand 0 is written, 1 read */
    mica_tensor index;
    mica_index list_stride[MICA_MAX_RANK]; /* of index's axes in the list */
    mica_index table_stride;
    const mica_kernels *kernels;
    bool add; /* list to table; else table to list */
    mica_index count, rows, chunk, pieces;
} take_job;

/* t with axes first to first + count - 1 taken away, at their position 0. */
static mica_tensor without_axes(const mica_tensor *t, int first, int count)
{
    mica_tensor out = *t;
    out.rank -= count;
    for (int k = first; k < out.rank; k++) {
        out.dim[k] = t->dim[k + count];
        out.stride[k] = t->stride[k + count];
    }
    return out;
}

static void prepare(take_job *job, mica_context *ctx, const mica_tensor *table, const mica_tensor *list,
                    const mica_tensor *index, int axis, bool add)
{
    *job = (take_job){
        .index = *index, .table_stride = table->stride[axis], .kernels = ctx->kernels, .add = add};
    for (int k = 0; k < index->rank; k++)
        job->list_stride[k] = list->stride[axis + k];
    mica_tensor slice = without_axes(table, axis, 1), place = without_axes(list, axis, index->rank);
    const mica_tensor *operands[] = {add ? &slice : &place, add ? &place : &slice};
    mica_walk_init(&job->walk, operands, 2);
    job->count = (mica_index)mica_tensor_count(index);
    if (job->walk.count > 0)
        job->rows = (mica_index)job->walk.count / job->walk.dim[job->walk.rank - 1];
}

/* n elements of one row of a slice, from `column` on, at these places of the walk's operands. */
static void run_row(const take_job *job, const mica_index place[2], mica_index row, mica_index column,
                    mica_index n)
{
    const mica_walk *w = &job->walk;
    int last = w->rank - 1;
    mica_index offset[2] = {place[0] + column * w->stride[0][last], place[1] + column * w->stride[1][last]};
    for (int k = last - 1; k >= 0; k--) {
        mica_index i = row % w->dim[k];
        row /= w->dim[k];
        offset[0] += i * w->stride[0][k];
        offset[1] += i * w->stride[1][k];
    }
    mica_line line[2];
    for (int k = 0; k < 2; k++)
        line[k] = (mica_line){w->data[k] + offset[k] * (mica_index)mica_dtype_bytes(w->dtype[k]), w->dtype[k],
                              w->stride[k][last]};
    if (!job->add) {
        mica_move_line(job->kernels->convert, line[0], line[1], n);
        return;
    }
    float *to = line[0].data;
    const float *from = line[1].data;
    if (line[0].stride == 1 && line[1].stride == 1) {
        MICA_KERNEL(job->kernels, map, add)(to, (const float *[]){to, from}, (size_t)n, NULL);
        return;
    }
    for (mica_index j = 0; j < n; j++)
        to[j * line[0].stride] += from[j * line[1].stride];
}

/* Where index element `position` has its slice in the walk's operands, given its value. */
static void find_place(const take_job *job, mica_index position, int64_t value, mica_index place[2])
{
    mica_index list = 0;
    for (int k = job->index.rank - 1; k >= 0; k--) {
        list += position % job->index.dim[k] * job->list_stride[k];
        position /= job->index.dim[k];
    }
    place[job->add ? 1 : 0] = list;
    place[job->add ? 0 : 1] = (mica_index)value * job->table_stride;
}

/* Rows `row` to row_end - 1, columns from `column` on, of the slices of indices position to end - 1. */
static void run_slices(const take_job *job, mica_index position, mica_index end, mica_index row,
                       mica_index row_end, mica_index column, mica_index width)
{
    mica_tensor joined = mica_join_axes(&job->index);
    for (mica_index n; position < end; position += n) {
        int64_t values[STAGE];
        n = mica_least_index(STAGE, end - position);
        mica_fetch_run(job->kernels->convert, (mica_line){values, MICA_I64, 1}, &joined, position, n);
        for (mica_index i = 0; i < n; i++) {
            mica_index place[2];
            find_place(job, position + i, values[i], place);
            for (mica_index r = row; r < row_end; r++)
                run_row(job, place, r, column, width);
        }
    }
}

static void take_block(void *work, size_t block, int thread)
{
    (void)thread;
    const take_job *job = work;
    mica_index begin = (mica_index)block * job->chunk;
    run_slices(job, begin, mica_least_index(begin + job->chunk, job->count), 0, job->rows, 0,
               job->walk.dim[job->walk.rank - 1]);
}

/* A piece of some rows through all indices: blocks never meet, and each adds in the order of the indices. */
static void add_block(void *work, size_t block, int thread)
{
    (void)thread;
    const take_job *job = work;
    mica_index row = (mica_index)block / job->pieces * job->chunk,
               column = (mica_index)block % job->pieces * PIECE;
    run_slices(job, 0, job->count, row, mica_least_index(row + job->chunk, job->rows), column,
               mica_least_index(PIECE, job->walk.dim[job->walk.rank - 1] - column));
}

static void run_take(mica_context *ctx, take_job *job)
{
    if (job->walk.count == 0 || job->count == 0)
        return;
    mica_index length = job->walk.dim[job->walk.rank - 1];
    if (!job->add) {
        mica_index slice = (mica_index)job->walk.count;
        job->chunk = slice < BLOCK ? BLOCK / slice : 1;
        mica_parallel(ctx, mica_div_up((size_t)job->count, (size_t)job->chunk), take_block, job);
        return;
    }
    job->pieces = (length + PIECE - 1) / PIECE;
    mica_index per_row = job->count * mica_least_index(length, PIECE);
    job->chunk = per_row < BLOCK ? BLOCK / per_row : 1;
    mica_parallel(ctx, mica_div_up((size_t)job->rows, (size_t)job->chunk) * (size_t)job->pieces, add_block,
                  job);
}

/* Slices of a table that lies in blocks, one after another: each is a tensor that is copied. */
static void take_blocks(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                        const mica_tensor *index, int axis)
{
    take_job job = {.index = *index, .table_stride = src->stride[axis]};
    for (int k = 0; k < index->rank; k++)
        job.list_stride[k] = dst->stride[axis + k];
    mica_tensor slice = without_axes(src, axis, 1), place = without_axes(dst, axis, index->rank);
    mica_tensor joined = mica_join_axes(index);
    mica_index count = (mica_index)mica_tensor_count(index);
    for (mica_index i = 0; i < count; i++) {
        int64_t value;
        mica_index at[2];
        mica_fetch_run(ctx->kernels->convert, (mica_line){&value, MICA_I64, 1}, &joined, i, 1);
        find_place(&job, i, value, at);
        place.data = mica_element(dst, at[0]);
        slice.data = mica_element(src, at[1]);
        mica_move_blocks(ctx, &place, &slice);
    }
}

/* ---- Operations ---- */

mica_status mica_take(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                      const mica_tensor *index, int axis)
{
    const uint64_t any = MICA_DTYPES_ANY, in_blocks = MICA_DTYPES_BLOCKS;
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, any},
                       {"src", src, 0, any | in_blocks},
                       {"index", index, 0, MICA_DTYPES_INDEX}};
    MICA_TRY(mica_check_args(ctx, "take", args, 3));
    MICA_TRY(mica_check_axis(ctx, "take", axis, "src", src, &axis));
    bool blocks = mica_in_blocks(src->dtype);
    if (blocks && axis == src->rank - 1)
        return mica_fail(ctx, MICA_ERR_ARGUMENT,
                         "take: src %s lies in blocks (%s) along axis %d: expected another axis",
                         MICA_SHAPE(src), mica_dtype_name(src->dtype), axis);
    MICA_TRY(check_shapes(ctx, "take", src, "src", dst, "dst", index, axis));
    MICA_START(ctx, "take", 0, NULL);
    MICA_TRY(mica_check_indices(ctx, "take", index, src, "src", axis));
    if (blocks) {
        take_blocks(ctx, dst, src, index, axis);
        return MICA_OK;
    }
    take_job job;
    prepare(&job, ctx, src, dst, index, axis, false);
    run_take(ctx, &job);
    return MICA_OK;
}

/* dst[..., index[t], ...] += src[..., t, ...]; with `clear` dst is 0 before. */
static mica_status add_slices(mica_context *ctx, const char *op, const mica_tensor *dst, const char *dst_name,
                              const mica_tensor *src, const char *src_name, const mica_tensor *index,
                              int axis, bool clear)
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
    take_job job;
    prepare(&job, ctx, dst, src, index, axis, true);
    run_take(ctx, &job);
    return MICA_OK;
}

mica_status mica_index_add(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                           const mica_tensor *index, int axis)
{
    return add_slices(ctx, "index_add", dst, "dst", src, "src", index, axis, false);
}

mica_status mica_take_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                               const mica_tensor *index, int axis)
{
    return add_slices(ctx, "take_backward", dx, "dx", dy, "dy", index, axis, true);
}
