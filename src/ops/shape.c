/* One tensor rearranged: a view, and a copy of it. */
#include <mica/ops/shape.h>

#include "ops/check.h"
#include "ops/move.h"

static mica_status begin(mica_context *ctx, const char *op, const mica_tensor *dst, const mica_tensor *src)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY}, {"src", src, 0, MICA_DTYPES_ANY}};
    return mica_check_args(ctx, op, args, 2);
}

/* dst = view, which was made of src. */
static mica_status copy_view(mica_context *ctx, const char *op, const mica_tensor *dst,
                             const mica_tensor *view, const mica_tensor *src)
{
    MICA_TRY(mica_check_shape(ctx, op, "dst", dst, view->rank, view->dim, "src", src));
    MICA_START(ctx, op, 0, NULL);
    mica_move(ctx, dst, view);
    return MICA_OK;
}

/* dst = src in row-major order, where dst must have the shape dims[rank]. */
static mica_status copy_in_order(mica_context *ctx, const char *op, const mica_tensor *dst, int rank,
                                 const mica_index *dims, const mica_tensor *src)
{
    MICA_TRY(mica_check_shape(ctx, op, "dst", dst, rank, dims, "src", src));
    MICA_START(ctx, op, 0, NULL);
    mica_move_in_order(ctx, dst, src);
    return MICA_OK;
}

mica_status mica_reshape(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src)
{
    MICA_TRY(begin(ctx, "reshape", dst, src));
    if (mica_tensor_count(dst) != mica_tensor_count(src))
        return mica_fail(ctx, MICA_ERR_SHAPE, "reshape: src is %s (%zu elements), dst is %s (%zu elements)",
                         MICA_SHAPE(src), mica_tensor_count(src), MICA_SHAPE(dst), mica_tensor_count(dst));
    return copy_in_order(ctx, "reshape", dst, dst->rank, dst->dim, src);
}

mica_status mica_slice(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                       const mica_slice_opts *opts)
{
    MICA_TRY(begin(ctx, "slice", dst, src));
    mica_slice_opts o = opts != NULL ? *opts : (mica_slice_opts){0};
    MICA_TRY(mica_check_axis(ctx, "slice", o.axis, "src", src, &o.axis));
    mica_index dims[MICA_MAX_RANK], size = src->dim[o.axis];
    for (int k = 0; k < src->rank; k++)
        dims[k] = k == o.axis && dst->rank == src->rank ? dst->dim[k] : src->dim[k];
    MICA_TRY(mica_check_shape(ctx, "slice", "dst", dst, src->rank, dims, "src", src));

    mica_index step = o.step == 0 ? 1 : o.step, start = o.start < 0 ? o.start + size : o.start;
    mica_index count = dims[o.axis];
    /* How many positions there are from start on. */
    mica_index room = start < 0 || start >= size ? 0
                      : step > 0                 ? (size - 1 - start) / step + 1
                      : step < -start            ? 1
                                                 : start / -step + 1;
    if (count > room)
        return mica_fail(
            ctx, MICA_ERR_SHAPE,
            "slice: dst is %s, but starting at %td with step %td, axis %d of src %s has %td positions",
            MICA_SHAPE(dst), o.start, step, o.axis, MICA_SHAPE(src), room);
    MICA_START(ctx, "slice", 0, NULL);
    if (mica_tensor_count(dst) == 0)
        return MICA_OK;
    mica_tensor view = *src;
    view.data = mica_element(src, start * src->stride[o.axis]);
    view.dim[o.axis] = count;
    view.stride[o.axis] = count > 1 ? src->stride[o.axis] * step : 1;
    mica_move(ctx, dst, &view);
    return MICA_OK;
}

mica_status mica_transpose(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src, int axis_a,
                           int axis_b)
{
    MICA_TRY(begin(ctx, "transpose", dst, src));
    MICA_TRY(mica_check_axis(ctx, "transpose", axis_a, "src", src, &axis_a));
    MICA_TRY(mica_check_axis(ctx, "transpose", axis_b, "src", src, &axis_b));
    mica_tensor view;
    MICA_TRY(mica_view_transpose(ctx, &view, src, axis_a, axis_b));
    return copy_view(ctx, "transpose", dst, &view, src);
}

mica_status mica_permute(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src, const int *axes)
{
    MICA_TRY(begin(ctx, "permute", dst, src));
    if (axes == NULL && src->rank > 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "permute: axes is NULL");
    unsigned seen = 0;
    for (int k = 0; k < src->rank; k++) {
        int axis;
        MICA_TRY(mica_check_axis(ctx, "permute", axes[k], "src", src, &axis));
        if (seen >> axis & 1u)
            return mica_fail(ctx, MICA_ERR_AXIS, "permute: axis %d of src %s is listed twice", axis,
                             MICA_SHAPE(src));
        seen |= 1u << axis;
    }
    mica_tensor view;
    MICA_TRY(mica_view_permute(ctx, &view, src, axes));
    return copy_view(ctx, "permute", dst, &view, src);
}

mica_status mica_broadcast_to(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src)
{
    MICA_TRY(begin(ctx, "broadcast_to", dst, src));
    MICA_TRY(mica_check_broadcast(ctx, "broadcast_to", "src", src, "dst", dst));
    MICA_START(ctx, "broadcast_to", 0, NULL);
    mica_move(ctx, dst, src);
    return MICA_OK;
}

mica_status mica_squeeze(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src, int axis)
{
    MICA_TRY(begin(ctx, "squeeze", dst, src));
    if (axis != MICA_ALL_AXES) {
        MICA_TRY(mica_check_axis(ctx, "squeeze", axis, "src", src, &axis));
        if (src->dim[axis] != 1)
            return mica_fail(ctx, MICA_ERR_SHAPE,
                             "squeeze: axis %d of src %s has size %td, not 1 (dst is %s)", axis,
                             MICA_SHAPE(src), src->dim[axis], MICA_SHAPE(dst));
    }
    mica_tensor view;
    MICA_TRY(mica_view_squeeze(ctx, &view, src, axis));
    return copy_view(ctx, "squeeze", dst, &view, src);
}

mica_status mica_unsqueeze(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src, int axis)
{
    MICA_TRY(begin(ctx, "unsqueeze", dst, src));
    if (!mica_axis_resolve(&axis, src->rank + 1))
        return mica_fail(ctx, MICA_ERR_AXIS,
                         "unsqueeze: axis %d is out of range for dst, which has rank %d for src %s", axis,
                         src->rank + 1, MICA_SHAPE(src));
    mica_index dims[MICA_MAX_RANK + 1];
    for (int k = 0; k < src->rank + 1; k++)
        dims[k] = k < axis ? src->dim[k] : k == axis ? 1 : src->dim[k - 1];
    return copy_in_order(ctx, "unsqueeze", dst, src->rank + 1, dims, src);
}

mica_status mica_flatten(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src, int first,
                         int last)
{
    MICA_TRY(begin(ctx, "flatten", dst, src));
    mica_index dims[MICA_MAX_RANK] = {1};
    int rank = src->rank == 0; /* a scalar becomes one element on one axis */
    if (src->rank > 0) {
        MICA_TRY(mica_check_axis(ctx, "flatten", first, "src", src, &first));
        MICA_TRY(mica_check_axis(ctx, "flatten", last, "src", src, &last));
        if (first > last)
            return mica_fail(ctx, MICA_ERR_AXIS, "flatten: first axis %d of src %s comes after last axis %d",
                             first, MICA_SHAPE(src), last);
    }
    for (int k = 0; k < src->rank; k++) {
        if (k > first && k <= last)
            dims[rank - 1] *= src->dim[k];
        else
            dims[rank++] = src->dim[k];
    }
    return copy_in_order(ctx, "flatten", dst, rank, dims, src);
}

mica_status mica_flip(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src, int axis)
{
    MICA_TRY(begin(ctx, "flip", dst, src));
    MICA_TRY(mica_check_axis(ctx, "flip", axis, "src", src, &axis));
    mica_tensor view;
    MICA_TRY(mica_view_flip(ctx, &view, src, axis));
    return copy_view(ctx, "flip", dst, &view, src);
}
