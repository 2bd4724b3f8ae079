/* Views: another struct over the same elements. */
#include "tensor/tensor.h"

/* What every view starts with: a sound tensor and somewhere to put the view. */
static mica_status begin(mica_context *ctx, const char *op, const mica_tensor *out, const mica_tensor *t)
{
    if (out == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: out is NULL", op);
    return mica_tensor_check(ctx, op, "t", t);
}

static mica_status find_axis(mica_context *ctx, const char *op, int *axis, const mica_tensor *t)
{
    int given = *axis;
    if (mica_axis_resolve(axis, t->rank))
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_AXIS, "%s: axis %d of a tensor of rank %d %s", op, given, t->rank,
                     MICA_SHAPE(t));
}

/* Hands out a view of t that begins `offset` elements after it, unless that would cut a block. */
static mica_status finish(mica_context *ctx, const char *op, mica_tensor *out, const mica_tensor *t,
                          mica_index offset, mica_tensor view)
{
    mica_index block = (mica_index)mica_dtype_block(t->dtype);
    char text[MICA_SHAPE_TEXT];
    bool inside = offset % block != 0 && mica_tensor_count(&view) > 0; /* of a block */
    if (block > 1 && (inside || mica_tensor_flaw(&view, text) != NULL))
        return mica_fail(
            ctx, MICA_ERR_SHAPE,
            "%s: t %s is %s: a view %s with strides %s starting at element %td would split its blocks of %td",
            op, MICA_SHAPE(t), mica_dtype_name(t->dtype), MICA_SHAPE(&view),
            mica_shape_text_of(view.rank, view.stride).text, offset, block);
    view.data = t->data != NULL ? mica_element(t, offset) : NULL;
    *out = view;
    return MICA_OK;
}

static void remove_axis(mica_tensor *t, int axis)
{
    t->rank--;
    for (int k = axis; k < t->rank; k++) {
        t->dim[k] = t->dim[k + 1];
        t->stride[k] = t->stride[k + 1];
    }
    t->dim[t->rank] = t->stride[t->rank] = 0;
}

/* dims as a contiguous tensor of t's dtype, without data: checks them, and is where a view's shape is built. */
static mica_status shaped(mica_context *ctx, const char *op, mica_tensor *out, const mica_tensor *t, int rank,
                          const mica_index *dims)
{
    if (rank < 0 || rank > MICA_MAX_RANK)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: rank is %d, expected 0 to %d", op, rank, MICA_MAX_RANK);
    if (dims == NULL && rank > 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: dims is NULL", op);
    mica_tensor v = {.dtype = t->dtype, .rank = rank};
    for (int k = 0; k < rank; k++)
        v.dim[k] = dims[k];
    mica_tensor_set_strides(&v);
    char text[MICA_SHAPE_TEXT];
    const char *flaw = mica_tensor_flaw(&v, text);
    if (flaw != NULL)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: the shape %s %s", op, mica_shape_text_of(rank, dims).text,
                         flaw);
    *out = v;
    return MICA_OK;
}

/* ---- Reshape ---- */

/* Copies dims to `sizes` with a -1 among them replaced by what t's count leaves for it. */
static mica_status infer_size(mica_context *ctx, mica_index *sizes, const mica_tensor *t, int rank,
                              const mica_index *dims)
{
    size_t known = 1;
    int open = -1;
    for (int k = 0; k < rank; k++) {
        sizes[k] = dims[k];
        if (dims[k] == -1 && open >= 0)
            return mica_fail(ctx, MICA_ERR_SHAPE, "view_reshape: dims %s have more than one -1",
                             mica_shape_text_of(rank, dims).text);
        if (dims[k] == -1)
            open = k;
        else
            known *= dims[k] > 0 ? (size_t)dims[k] : 0;
    }
    if (open < 0)
        return MICA_OK;
    size_t count = mica_tensor_count(t);
    if (known == 0 || count % known != 0)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "view_reshape: t is %s (%zu elements), which dims %s do not divide", MICA_SHAPE(t),
                         count, mica_shape_text_of(rank, dims).text);
    sizes[open] = (mica_index)(count / known);
    return MICA_OK;
}

/* Strides for v's shape over t's elements, where there are any: both shapes are cut into the smallest groups
 * of axes with equal counts, and within a group t's axes must follow one another like one long axis. */
static bool fit_strides(mica_tensor *v, const mica_tensor *t)
{
    int from = 0, to = 0;
    while (to < v->rank || from < t->rank) {
        mica_index have = from < t->rank ? t->dim[from] : 1, want = to < v->rank ? v->dim[to] : 1;
        int from_end = from + (from < t->rank), to_end = to + (to < v->rank);
        while (have != want) {
            if (have < want)
                have *= t->dim[from_end++];
            else
                want *= v->dim[to_end++];
        }
        mica_index stride = 1,
                   next = 0; /* of the group's innermost axis; what the axis outside it must have */
        bool started = false;
        for (int k = from_end - 1; k >= from; k--) {
            if (t->dim[k] == 1)
                continue;
            if (started && t->stride[k] != next)
                return false;
            if (!started)
                stride = t->stride[k];
            started = true;
            next = t->stride[k] * t->dim[k];
        }
        for (int k = to_end - 1; k >= to; k--) {
            v->stride[k] = stride;
            stride *= v->dim[k];
        }
        from = from_end, to = to_end;
    }
    return true;
}

bool mica_tensor_refit(mica_tensor *out, const mica_tensor *t, int rank, const mica_index *dims)
{
    mica_tensor v = {.data = t->data, .dtype = t->dtype, .rank = rank};
    for (int k = 0; k < rank; k++)
        v.dim[k] = dims[k];
    mica_tensor_set_strides(&v);
    if (mica_tensor_count(t) > 0 && !fit_strides(&v, t))
        return false;
    *out = v;
    return true;
}

mica_status mica_view_reshape(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int rank,
                              const mica_index *dims)
{
    MICA_TRY(begin(ctx, "view_reshape", out, t));
    mica_index sizes[MICA_MAX_RANK];
    if (rank >= 0 && rank <= MICA_MAX_RANK && dims != NULL) {
        MICA_TRY(infer_size(ctx, sizes, t, rank, dims));
        dims = sizes;
    }
    mica_tensor v;
    MICA_TRY(shaped(ctx, "view_reshape", &v, t, rank, dims));
    if (mica_tensor_count(&v) != mica_tensor_count(t))
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "view_reshape: t is %s (%zu elements), dims are %s (%zu elements)", MICA_SHAPE(t),
                         mica_tensor_count(t), MICA_SHAPE(&v), mica_tensor_count(&v));
    if (!mica_tensor_refit(&v, t, rank, dims))
        return mica_fail(
            ctx, MICA_ERR_SHAPE,
            "view_reshape: t is %s with strides %s, which cannot be viewed as %s without a copy (mica_reshape copies)",
            MICA_SHAPE(t), mica_shape_text_of(t->rank, t->stride).text, MICA_SHAPE(&v));
    return finish(ctx, "view_reshape", out, t, 0, v);
}

mica_status mica_view_flatten(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int first, int last)
{
    MICA_TRY(begin(ctx, "view_flatten", out, t));
    mica_index dims[MICA_MAX_RANK] = {1};
    if (t->rank == 0 && (first == 0 || first == -1) && (last == 0 || last == -1))
        return mica_view_reshape(ctx, out, t, 1, dims);
    MICA_TRY(find_axis(ctx, "view_flatten", &first, t));
    MICA_TRY(find_axis(ctx, "view_flatten", &last, t));
    if (first > last)
        return mica_fail(ctx, MICA_ERR_AXIS, "view_flatten: first axis %d comes after last axis %d", first,
                         last);
    int rank = 0;
    for (int k = 0; k < t->rank; k++) {
        if (k > first && k <= last)
            dims[rank - 1] *= t->dim[k];
        else
            dims[rank++] = t->dim[k];
    }
    mica_tensor v;
    if (!mica_tensor_refit(&v, t, rank, dims))
        return mica_fail(
            ctx, MICA_ERR_SHAPE,
            "view_flatten: axes %d to %d of %s with strides %s cannot be merged without a copy (mica_flatten copies)",
            first, last, MICA_SHAPE(t), mica_shape_text_of(t->rank, t->stride).text);
    return finish(ctx, "view_flatten", out, t, 0, v);
}

/* ---- Slices ---- */

/* A Python slice bound brought into the range that a walk in this direction can start or stop at. */
static mica_index clamp_bound(mica_index position, mica_index size, mica_index step)
{
    mica_index low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    if (position < 0)
        position += size;
    return position < low ? low : position > high ? high : position;
}

mica_status mica_view_slice(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis,
                            mica_index start, mica_index stop, mica_index step)
{
    MICA_TRY(begin(ctx, "view_slice", out, t));
    MICA_TRY(find_axis(ctx, "view_slice", &axis, t));
    if (step == 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "view_slice: step is 0");
    mica_index size = t->dim[axis], end = step > 0 ? size : -1;
    start = clamp_bound(start, size, step);
    stop = stop == MICA_END ? end : clamp_bound(stop, size, step);
    size_t distance = step > 0 ? (stop > start ? (size_t)(stop - start) : 0)
                               : (start > stop ? (size_t)(start - stop) : 0);
    size_t stride = step > 0 ? (size_t)step : 0 - (size_t)step;
    size_t count = distance == 0 ? 0 : (distance - 1) / stride + 1;

    mica_tensor v = *t;
    v.dim[axis] = (mica_index)count;
    /* With fewer than two elements the stride is never used, and might overflow. */
    v.stride[axis] = count > 1 ? t->stride[axis] * step : t->stride[axis];
    return finish(ctx, "view_slice", out, t, count > 0 ? start * t->stride[axis] : 0, v);
}

mica_status mica_view_select(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis,
                             mica_index position)
{
    MICA_TRY(begin(ctx, "view_select", out, t));
    MICA_TRY(find_axis(ctx, "view_select", &axis, t));
    mica_index size = t->dim[axis], at = position < 0 ? position + size : position;
    if (at < 0 || at >= size)
        return mica_fail(ctx, MICA_ERR_INDEX,
                         "view_select: position %td of axis %d, which has size %td, in %s", position, axis,
                         size, MICA_SHAPE(t));
    mica_tensor v = *t;
    remove_axis(&v, axis);
    return finish(ctx, "view_select", out, t, mica_tensor_count(t) > 0 ? at * t->stride[axis] : 0, v);
}

mica_status mica_view_flip(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis)
{
    MICA_TRY(begin(ctx, "view_flip", out, t));
    MICA_TRY(find_axis(ctx, "view_flip", &axis, t));
    return mica_view_slice(ctx, out, t, axis, -1, MICA_END, -1);
}

/* ---- Axes in another order, more or fewer of them ---- */

mica_status mica_view_transpose(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis_a,
                                int axis_b)
{
    MICA_TRY(begin(ctx, "view_transpose", out, t));
    MICA_TRY(find_axis(ctx, "view_transpose", &axis_a, t));
    MICA_TRY(find_axis(ctx, "view_transpose", &axis_b, t));
    mica_tensor v = *t;
    v.dim[axis_a] = t->dim[axis_b], v.stride[axis_a] = t->stride[axis_b];
    v.dim[axis_b] = t->dim[axis_a], v.stride[axis_b] = t->stride[axis_a];
    return finish(ctx, "view_transpose", out, t, 0, v);
}

mica_status mica_view_permute(mica_context *ctx, mica_tensor *out, const mica_tensor *t, const int *axes)
{
    MICA_TRY(begin(ctx, "view_permute", out, t));
    if (axes == NULL && t->rank > 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "view_permute: axes is NULL");
    mica_tensor v = *t;
    unsigned seen = 0;
    for (int k = 0; k < t->rank; k++) {
        int axis = axes[k];
        MICA_TRY(find_axis(ctx, "view_permute", &axis, t));
        if (seen >> axis & 1u)
            return mica_fail(ctx, MICA_ERR_AXIS,
                             "view_permute: axis %d is listed twice for a tensor of rank %d %s", axis,
                             t->rank, MICA_SHAPE(t));
        seen |= 1u << axis;
        v.dim[k] = t->dim[axis];
        v.stride[k] = t->stride[axis];
    }
    return finish(ctx, "view_permute", out, t, 0, v);
}

mica_status mica_view_broadcast(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int rank,
                                const mica_index *dims)
{
    MICA_TRY(begin(ctx, "view_broadcast", out, t));
    mica_tensor v;
    MICA_TRY(shaped(ctx, "view_broadcast", &v, t, rank, dims));
    v.data = t->data;
    int missing = rank - t->rank;
    bool fits = missing >= 0;
    for (int k = 0; k < rank && fits; k++) {
        mica_index size = k < missing ? 1 : t->dim[k - missing];
        fits = size == 1 || size == v.dim[k];
        v.stride[k] = k < missing || size != v.dim[k] ? 0 : t->stride[k - missing];
    }
    if (!fits)
        return mica_fail(ctx, MICA_ERR_SHAPE, "view_broadcast: t is %s, which does not broadcast to %s",
                         MICA_SHAPE(t), MICA_SHAPE(&v));
    return finish(ctx, "view_broadcast", out, t, 0, v);
}

mica_status mica_view_squeeze(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis)
{
    MICA_TRY(begin(ctx, "view_squeeze", out, t));
    mica_tensor v = *t;
    if (axis == MICA_ALL_AXES) {
        for (int k = v.rank - 1; k >= 0; k--)
            if (v.dim[k] == 1)
                remove_axis(&v, k);
    } else {
        MICA_TRY(find_axis(ctx, "view_squeeze", &axis, t));
        if (t->dim[axis] != 1)
            return mica_fail(ctx, MICA_ERR_SHAPE, "view_squeeze: axis %d of %s has size %td, not 1", axis,
                             MICA_SHAPE(t), t->dim[axis]);
        remove_axis(&v, axis);
    }
    return finish(ctx, "view_squeeze", out, t, 0, v);
}

mica_status mica_view_unsqueeze(mica_context *ctx, mica_tensor *out, const mica_tensor *t, int axis)
{
    MICA_TRY(begin(ctx, "view_unsqueeze", out, t));
    if (t->rank == MICA_MAX_RANK)
        return mica_fail(ctx, MICA_ERR_SHAPE, "view_unsqueeze: t %s already has %d axes", MICA_SHAPE(t),
                         MICA_MAX_RANK);
    int at = axis;
    if (!mica_axis_resolve(&at, t->rank + 1))
        return mica_fail(ctx, MICA_ERR_AXIS,
                         "view_unsqueeze: axis %d is out of range for a result of rank %d from %s", axis,
                         t->rank + 1, MICA_SHAPE(t));
    mica_tensor v = *t;
    for (int k = v.rank++; k > at; k--) {
        v.dim[k] = v.dim[k - 1];
        v.stride[k] = v.stride[k - 1];
    }
    v.dim[at] = 1;
    v.stride[at] = at + 1 < v.rank ? v.dim[at + 1] * v.stride[at + 1] : 1;
    return finish(ctx, "view_unsqueeze", out, t, 0, v);
}
