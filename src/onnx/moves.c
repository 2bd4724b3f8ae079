#include "onnx/moves.h"

#include <string.h>

#include "onnx/state.h"

/* ---- Constants ---- */

void *mica_onnx_room(mica_onnx_importing *n, size_t count, size_t size)
{
    size_t bytes;
    if (n->failed)
        return NULL;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        (void)mica_onnx_unsupported(n, "%zu elements", count);
        return NULL;
    }
    if (!mica_onnx_may_compute(n, bytes))
        return NULL;
    void *room = mica_onnx_import_memory(n->import, bytes > 0 ? bytes : 1);
    if (room == NULL) {
        n->import->status = n->import->ctx->status;
        n->failed = true;
    }
    return room;
}

mica_onnx_ref mica_onnx_fresh(mica_onnx_importing *n, mica_dtype dtype, int rank, const mica_index *dims,
                              void **data)
{
    mica_onnx_held held = {.known = true};
    *data = NULL;
    if (n->failed)
        return 0;
    if (mica_tensor_init(n->import->ctx, &held.shape, NULL, dtype, rank, dims) != MICA_OK)
        return mica_onnx_bad(n, "%s", mica_error(n->import->ctx));
    *data = held.shape.data = mica_onnx_room(n, mica_tensor_bytes(&held.shape), 1);
    return *data != NULL ? mica_onnx_hold(n->import, &held) : 0;
}

mica_onnx_ref mica_onnx_zeros(mica_onnx_importing *n, mica_dtype dtype, int rank, const mica_index *dims)
{
    void *data;
    mica_onnx_ref ref = mica_onnx_fresh(n, dtype, rank, dims, &data);
    if (data != NULL)
        memset(data, 0, mica_tensor_bytes(mica_onnx_shape(n, ref)));
    return ref;
}

/* ---- Slices and axes ---- */

/* The least of the numbers that stand for the end of an axis. */
#define FAR_END 1000000000

static mica_onnx_ref slice_once(mica_onnx_importing *n, mica_onnx_ref x, int axis, mica_onnx_range r)
{
    mica_index size = mica_onnx_shape(n, x)->dim[axis];
    mica_slice_range_opts opts = {
        .axis = axis, .start = (mica_index)r.start, .stop = (mica_index)r.stop, .step = (mica_index)r.step};
    if (r.step < 0 && r.start < -size) /* Python would take nothing; ONNX starts with the first */
        opts.start = 0;
    if (r.stop == 0) /* which Mica takes for "through the end" */
        opts.stop = size > 0 ? -size : -1;
    if (r.stop == PTRDIFF_MIN && r.step > 0)
        opts.stop = PTRDIFF_MIN + 1; /* the smallest is MICA_END */
    mica_onnx_check_slice(n->import, x, r, &opts);
    return mica_onnx_op1(n, "slice", x, &opts);
}

/* Backwards, without the first element: no stop says that of every size, but what follows the first is taken to its
 * end. A start before that takes nothing, as in Python. */
static mica_onnx_ref slice_to_second(mica_onnx_importing *n, mica_onnx_ref x, int axis, int64_t start,
                                     int64_t step)
{
    if (start == 0)
        return slice_once(n, x, axis, (mica_onnx_range){0, 0, 1});
    mica_slice_range_opts back = {
        .axis = axis, .start = (mica_index)(start - (start > 0)), .step = (mica_index)step};
    x = slice_once(n, x, axis, (mica_onnx_range){1, INT64_MAX, 1});
    return mica_onnx_op1(n, "slice", x, &back);
}

/* A value of its own that nothing reads: where sizes are larger, a slice has this number (sizes.c). */
static bool skip_number(mica_onnx_importing *n, mica_onnx_ref x)
{
    const mica_onnx_held *from = mica_onnx_held_at(n->import, x);
    mica_onnx_held held = {.shape = from->shape, .known = from->known && !from->learned};
    return mica_onnx_hold(n->import, &held) != 0;
}

mica_onnx_ref mica_onnx_slice(mica_onnx_importing *n, mica_onnx_ref x, int axis, int64_t start, int64_t stop,
                              int64_t step)
{
    if (n->failed)
        return 0;
    mica_index size = mica_onnx_shape(n, x)->dim[axis];
    if (step == 0)
        return mica_onnx_bad(n, "a slice with step 0");
    if (start > size || (stop > size && stop < FAR_END) || mica_onnx_axis_varies(n->import, x, axis))
        mica_onnx_doubt_numbers(n); /* all there is, here or in the twin */
    /* Through the end, whatever the size: exporters write large numbers for it; and in steps sizes are never larger
     * than planned. */
    if (step == 1 && start == 0 && (stop >= FAR_END || (axis > 0 && stop >= size)))
        return stop < FAR_END && !skip_number(n, x) ? 0 : x;
    mica_onnx_doubt_axis(n, x, axis);
    if (step < 0 && stop == 0 && n->import->varies)
        return slice_to_second(n, x, axis, start, step);
    return slice_once(n, x, axis, (mica_onnx_range){start, stop, step});
}

mica_onnx_ref mica_onnx_part(mica_onnx_importing *n, mica_onnx_ref x, int axis, mica_index start,
                             mica_index stop)
{
    if (!n->failed && start == 0 && stop == mica_onnx_shape(n, x)->dim[axis])
        return x;
    return mica_onnx_slice(n, x, axis, start, stop, 1);
}

mica_onnx_ref mica_onnx_join(mica_onnx_importing *n, mica_onnx_ref *refs, int count, int axis)
{
    mica_axis_opts opts = {.axis = axis};
    while (count > 1) {
        int groups = 0;
        for (int i = 0; i < count; i += MICA_OP_OUTS) { /* as many as concat takes, and split gives */
            int each = count - i < MICA_OP_OUTS ? count - i : MICA_OP_OUTS;
            refs[groups++] = each == 1 ? refs[i] : mica_onnx_op(n, "concat", refs + i, each, &opts);
        }
        count = groups;
    }
    return count == 1 ? refs[0] : 0;
}

mica_onnx_ref mica_onnx_drop_axis(mica_onnx_importing *n, mica_onnx_ref x, int axis)
{
    return mica_onnx_op1(n, "squeeze", x, &(mica_axis_opts){.axis = axis});
}

mica_onnx_ref mica_onnx_drop_axes(mica_onnx_importing *n, mica_onnx_ref x, unsigned mask)
{
    for (int k = MICA_MAX_RANK - 1; k >= 0; k--)
        if (mask & (1u << k))
            x = mica_onnx_drop_axis(n, x, k);
    return x;
}

mica_onnx_ref mica_onnx_by_channel(mica_onnx_importing *n, mica_onnx_ref x, int rank)
{
    mica_index dims[MICA_MAX_RANK];
    const mica_tensor *t = mica_onnx_shape(n, x);
    if (x == 0 || rank <= 2)
        return x;
    for (int k = 1; k < rank; k++)
        dims[k - 1] = 1;
    dims[0] = t->rank > 0 ? t->dim[0] : 1;
    return mica_onnx_reshape(n, x, rank - 1, dims);
}

bool mica_onnx_has_shape(mica_onnx_importing *n, mica_onnx_ref x, int rank, const mica_index *dims)
{
    const mica_tensor *t = mica_onnx_shape(n, x);
    bool same = t->rank == rank;
    for (int k = 0; same && k < rank; k++)
        same = t->dim[k] == dims[k];
    return same;
}

mica_onnx_ref mica_onnx_add_axis(mica_onnx_importing *n, mica_onnx_ref x, int axis)
{
    if (mica_onnx_shape(n, x)->rank >= MICA_MAX_RANK)
        return mica_onnx_unsupported(n, "a tensor of %d dimensions: Mica has at most %d", MICA_MAX_RANK + 1,
                                     MICA_MAX_RANK);
    return mica_onnx_op1(n, "unsqueeze", x, &(mica_axis_opts){.axis = axis});
}

mica_onnx_ref mica_onnx_expand(mica_onnx_importing *n, mica_onnx_ref x, int rank, const mica_index *dims)
{
    const mica_tensor *t = mica_onnx_shape(n, x);
    mica_shape_opts opts = {.rank = rank};
    bool same = rank == t->rank, empty = false;
    for (int k = 0; k < rank; k++) {
        int own = k - (rank - t->rank);
        bool follows = own >= 0 && t->dim[own] == dims[k];
        opts.dims[k] = follows ? 0 : dims[k];
        same = same && follows;
        empty = empty || dims[k] == 0;
    }
    if (same)
        return x;
    if (empty)
        return mica_onnx_zeros(n, t->dtype, rank, dims);
    return mica_onnx_op1(n, "broadcast_to", x, &opts);
}

/* ---- Axes and indices ---- */

int mica_onnx_axes(mica_onnx_importing *n, const char *name, int number, mica_onnx_ref x, unsigned *mask)
{
    int64_t axes[MICA_MAX_RANK];
    bool input = number < n->ins && n->in[number] != 0;
    int count = input ? mica_onnx_known_ints(n, n->in[number], name, axes, MICA_MAX_RANK)
                      : mica_onnx_int_list(n, name, axes, MICA_MAX_RANK);
    *mask = 0;
    for (int i = 0; i < count; i++) {
        unsigned bit = 1u << mica_onnx_axis(n, axes[i], x);
        if (*mask & bit)
            (void)mica_onnx_bad(n, "axis %lld is given twice", (long long)axes[i]);
        *mask |= bit;
    }
    return count;
}

mica_onnx_ref mica_onnx_indices(mica_onnx_importing *n, mica_onnx_ref index, mica_onnx_ref x,
                                const mica_wrap_opts *opts)
{
    const mica_tensor *t = mica_onnx_shape(n, index);
    if (t->dtype != MICA_I32 && t->dtype != MICA_I64)
        return mica_onnx_bad(n, "indices are %s: expected int32 or int64", mica_dtype_name(t->dtype));
    bool negative = !mica_onnx_is_known(n, index);
    size_t count = negative ? 0 : mica_tensor_count(t);
    for (size_t i = 0; i < count && !negative; i++)
        negative = (t->dtype == MICA_I32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i]) < 0;
    return negative ? mica_onnx_op2(n, "wrap_indices", index, x, opts) : index;
}
