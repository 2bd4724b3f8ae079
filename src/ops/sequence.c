/* Parts that are moved as a whole: triangles of matrices, sequences in reverse, writing to a cache. */
#include <string.h>

#include "ops/combine.h"
#include "ops/index.h"
#include "ops/move.h"
#include "ops/reduce.h"

static mica_status check_same_dtype(mica_context *ctx, const char *op, const mica_tensor *dst,
                                    const mica_tensor *src)
{
    return mica_check_combine(ctx, op, MICA_SCATTER_SET, dst, src);
}

/* `n` places along an axis of t, from `first` on, at place b of the axis `batch`. */
static mica_tensor part_of(const mica_tensor *t, int batch, mica_index b, int axis, mica_index first,
                           mica_index n)
{
    mica_tensor part = *t;
    part.data = mica_element(t, b * t->stride[batch] + first * t->stride[axis]);
    part.dim[batch] = 1;
    part.dim[axis] = n;
    return part;
}

static int64_t number_at(const mica_tensor *vector, mica_index i)
{
    const void *p = mica_element(vector, i * vector->stride[0]);
    return vector->dtype == MICA_I32 ? *(const int32_t *)p : *(const int64_t *)p;
}

/* ---- Triangles ---- */

mica_status mica_trilu(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                       const mica_trilu_opts *opts)
{
    static const mica_trilu_opts upper = {.k = 0};
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY},
                       {"src", src, MICA_ARG_IN_PLACE, MICA_DTYPES_ANY}};
    opts = opts != NULL ? opts : &upper;
    MICA_TRY(mica_check_args(ctx, "trilu", args, 2));
    MICA_TRY(mica_check_rank(ctx, "trilu", "src", src, 2, MICA_MAX_RANK));
    MICA_TRY(mica_check_same_shape(ctx, "trilu", "dst", dst, "src", src));
    MICA_TRY(check_same_dtype(ctx, "trilu", dst, src));
    MICA_START(ctx, "trilu", 0, NULL);
    int row = src->rank - 2, column = src->rank - 1;
    size_t bytes = mica_dtype_bytes(dst->dtype);
    mica_move(ctx, dst, src);
    mica_tensor lines = mica_reduce_part(dst, ~(1u << column));
    for (mica_iter line = mica_iter_begin(&lines, 0, NULL); line.valid; mica_iter_next(&line)) {
        mica_index width = dst->dim[column], r = line.index[row], at = opts->lower ? r + 1 : r;
        /* the first column on the other side of the diagonal; overflow: beyond either end */
        if (__builtin_add_overflow(at, opts->k, &at))
            at = opts->k > 0 ? width : 0;
        at = at < 0 ? 0 : at > width ? width : at;
        for (mica_index c = opts->lower ? at : 0; c < (opts->lower ? width : at); c++)
            memset((char *)line.element + mica_offset_bytes(dst->dtype, c * dst->stride[column]), 0, bytes);
    }
    return MICA_OK;
}

/* ---- Sequences in reverse ---- */

static mica_status check_lengths(mica_context *ctx, const mica_tensor *lengths, const mica_tensor *src,
                                 int time)
{
    for (mica_index b = 0; b < lengths->dim[0]; b++)
        if (number_at(lengths, b) < 0 || number_at(lengths, b) > src->dim[time])
            return mica_fail(ctx, MICA_ERR_INDEX,
                             "reverse_sequence: lengths %s holds %lld at element %td; src is %s",
                             MICA_SHAPE(lengths), (long long)number_at(lengths, b), b, MICA_SHAPE(src));
    return MICA_OK;
}

mica_status mica_reverse_sequence(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                  const mica_tensor *lengths, const mica_reverse_sequence_opts *opts)
{
    static const mica_reverse_sequence_opts second = {.time = 1};
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY},
                       {"src", src, 0, MICA_DTYPES_ANY},
                       {"lengths", lengths, 0, MICA_DTYPES_INDEX}};
    int time, batch;
    opts = opts != NULL && (opts->time != 0 || opts->batch != 0) ? opts : &second;
    MICA_TRY(mica_check_args(ctx, "reverse_sequence", args, 3));
    MICA_TRY(mica_check_axis(ctx, "reverse_sequence", opts->time, "src", src, &time));
    MICA_TRY(mica_check_axis(ctx, "reverse_sequence", opts->batch, "src", src, &batch));
    MICA_TRY(mica_check_same_shape(ctx, "reverse_sequence", "dst", dst, "src", src));
    MICA_TRY(mica_check_shape(ctx, "reverse_sequence", "lengths", lengths, 1, &src->dim[batch], "src", src));
    MICA_TRY(check_same_dtype(ctx, "reverse_sequence", dst, src));
    if (time == batch)
        return mica_fail(ctx, MICA_ERR_AXIS, "reverse_sequence: axis %d of src %s is both time and batch",
                         time, MICA_SHAPE(src));
    MICA_START(ctx, "reverse_sequence", 0, NULL);
    MICA_TRY(check_lengths(ctx, lengths, src, time));
    for (mica_index b = 0; b < src->dim[batch]; b++) {
        mica_index n = (mica_index)number_at(lengths, b), rest = src->dim[time] - n;
        mica_tensor to = part_of(dst, batch, b, time, 0, n),
                    from = part_of(src, batch, b, time, n > 0 ? n - 1 : 0, n);
        from.stride[time] = -from.stride[time];
        if (n > 0)
            mica_move(ctx, &to, &from);
        to = part_of(dst, batch, b, time, n, rest);
        from = part_of(src, batch, b, time, n, rest);
        if (rest > 0)
            mica_move(ctx, &to, &from);
    }
    return MICA_OK;
}

/* ---- Writing to a cache ---- */

/* Every position is there. */
static mica_status check_starts(mica_context *ctx, const mica_tensor *start, const mica_tensor *dst,
                                const mica_tensor *src, int axis, bool circular)
{
    for (mica_index b = 0; start != NULL && b < start->dim[0]; b++) {
        int64_t first = number_at(start, b);
        if (first < 0 || (!circular && first > dst->dim[axis] - src->dim[axis]))
            return mica_fail(
                ctx, MICA_ERR_INDEX,
                "tensor_scatter: start %s holds %lld at element %td: src %s does not fit into dst %s there",
                MICA_SHAPE(start), (long long)first, b, MICA_SHAPE(src), MICA_SHAPE(dst));
    }
    return MICA_OK;
}

static void write_to_cache(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                           const mica_tensor *start, int axis)
{
    mica_index size = dst->dim[axis], n = src->dim[axis];
    for (mica_index b = 0; b < dst->dim[0] && n > 0; b++) {
        mica_index first = start != NULL ? (mica_index)(number_at(start, b) % size) : 0;
        mica_index here = n < size - first ? n : size - first; /* the others start over at 0 */
        mica_tensor to = part_of(dst, 0, b, axis, first, here), from = part_of(src, 0, b, axis, 0, here);
        mica_move(ctx, &to, &from);
        to = part_of(dst, 0, b, axis, 0, n - here);
        from = part_of(src, 0, b, axis, here, n - here);
        if (here < n)
            mica_move(ctx, &to, &from);
    }
}

mica_status mica_tensor_scatter(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                const mica_tensor *start, const mica_tensor_scatter_opts *opts)
{
    static const mica_tensor_scatter_opts usual = {.axis = -2};
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY},
                       {"src", src, 0, MICA_DTYPES_ANY},
                       {"start", start, MICA_ARG_OPTIONAL, MICA_DTYPES_INDEX}};
    int axis;
    opts = opts != NULL ? opts : &usual;
    MICA_TRY(mica_check_args(ctx, "tensor_scatter", args, 3));
    MICA_TRY(mica_check_axis(ctx, "tensor_scatter", opts->axis != 0 ? opts->axis : -2, "dst", dst, &axis));
    mica_tensor want = *dst;
    if (src->rank == dst->rank && src->dim[axis] <= dst->dim[axis])
        want.dim[axis] = src->dim[axis];
    MICA_TRY(mica_check_shape(ctx, "tensor_scatter", "src", src, dst->rank, want.dim, "dst", dst));
    if (start != NULL)
        MICA_TRY(mica_check_shape(ctx, "tensor_scatter", "start", start, 1, &dst->dim[0], "dst", dst));
    if (axis == 0)
        return mica_fail(ctx, MICA_ERR_AXIS,
                         "tensor_scatter: axis 0 of dst %s is the batch: expected another", MICA_SHAPE(dst));
    MICA_TRY(check_same_dtype(ctx, "tensor_scatter", dst, src));
    MICA_START(ctx, "tensor_scatter", 0, NULL);
    MICA_TRY(check_starts(ctx, start, dst, src, axis, opts->circular));
    if (mica_tensor_count(src) > 0)
        write_to_cache(ctx, dst, src, start, axis);
    return MICA_OK;
}
