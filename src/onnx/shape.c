/* Shapes: what only moves or names elements, and constants. */
#include <math.h>
#include <string.h>

#include "onnx/moves.h"
#include "onnx/state.h"

static void identity(mica_onnx_importing *n) { mica_onnx_give(n, 0, n->in[0]); }

/* ---- Sizes as numbers ---- */

static void give_sizes(mica_onnx_importing *n, mica_onnx_ref sizes)
{
    if (sizes > 0)
        mica_onnx_held_at(n->import, sizes)->loose = n->import->rounds;
    mica_onnx_give(n, 0, sizes);
}

static void shape(mica_onnx_importing *n)
{
    const mica_tensor *x = mica_onnx_shape(n, n->in[0]);
    int64_t dims[MICA_MAX_RANK], start = mica_onnx_int(n, "start", 0), end = mica_onnx_int(n, "end", x->rank);
    int count = 0;
    start += start < 0 ? x->rank : 0;
    end += end < 0 ? x->rank : 0;
    for (int k = 0; k < x->rank; k++)
        if (k >= start && k < end)
            dims[count++] = x->dim[k];
    give_sizes(n, mica_onnx_vector(n, dims, count));
}

static void size(mica_onnx_importing *n)
{
    void *data;
    mica_onnx_ref ref = mica_onnx_fresh(n, MICA_I64, 0, NULL, &data);
    if (data != NULL)
        *(int64_t *)data = (int64_t)mica_tensor_count(mica_onnx_shape(n, n->in[0]));
    give_sizes(n, ref);
}

/* ---- Another shape ---- */

static void reshape(mica_onnx_importing *n)
{
    int64_t wanted[MICA_MAX_RANK];
    mica_index dims[MICA_MAX_RANK];
    bool zero = mica_onnx_int(n, "allowzero", 0) != 0, empty = false;
    int rank = n->ins > 1 ? mica_onnx_known_ints(n, n->in[1], "shape", wanted, MICA_MAX_RANK)
                          : mica_onnx_int_list(n, "shape", wanted, MICA_MAX_RANK);
    for (int k = 0; k < rank; k++) {
        dims[k] = (mica_index)wanted[k];
        empty = empty || (zero && dims[k] == 0);
    }
    if (rank < 0 && !n->failed)
        (void)mica_onnx_bad(n, "no shape");
    else if (rank >= 0)
        mica_onnx_give(n, 0,
                       empty ? mica_onnx_zeros(n, mica_onnx_shape(n, n->in[0])->dtype, rank, dims)
                             : mica_onnx_reshape(n, n->in[0], rank, dims));
}

static void squeeze(mica_onnx_importing *n)
{
    const mica_tensor *x = mica_onnx_shape(n, n->in[0]);
    unsigned mask;
    if (mica_onnx_axes(n, "axes", 1, n->in[0], &mask) < 0)
        for (int k = 0; k < x->rank; k++)
            mask |= x->dim[k] == 1 ? 1u << k : 0u;
    mica_onnx_give(n, 0, mica_onnx_drop_axes(n, n->in[0], mask));
}

static void unsqueeze(mica_onnx_importing *n)
{
    int64_t axes[MICA_MAX_RANK];
    mica_onnx_ref y = n->in[0];
    int count = n->ins > 1 ? mica_onnx_known_ints(n, n->in[1], "axes", axes, MICA_MAX_RANK)
                           : mica_onnx_int_list(n, "axes", axes, MICA_MAX_RANK);
    int rank = mica_onnx_shape(n, y)->rank + (count > 0 ? count : 0);
    unsigned mask = 0;
    for (int i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank || (mask >> axis & 1u)) {
            (void)mica_onnx_bad(n, "axis %lld of a result of rank %d", (long long)axes[i], rank);
            return;
        }
        mask |= 1u << axis;
    }
    for (int k = 0; k < rank; k++)
        if (mask >> k & 1u)
            y = mica_onnx_add_axis(n, y, k);
    mica_onnx_give(n, 0, y);
}

static void flatten(mica_onnx_importing *n)
{
    const mica_tensor *x = mica_onnx_shape(n, n->in[0]);
    int64_t axis = mica_onnx_int(n, "axis", 1);
    mica_index dims[] = {1, 1};
    axis += axis < 0 ? x->rank : 0;
    if (axis < 0 || axis > x->rank) {
        (void)mica_onnx_bad(n, "axis %lld of a tensor of rank %d", (long long)axis, x->rank);
        return;
    }
    for (int k = 0; k < x->rank; k++)
        dims[k >= axis] *= x->dim[k];
    if (dims[0] == 0 || dims[1] == 0)
        mica_onnx_give(n, 0, mica_onnx_zeros(n, x->dtype, 2, dims));
    else
        mica_onnx_give(n, 0, mica_onnx_reshape(n, n->in[0], 2, dims));
}

static void transpose(mica_onnx_importing *n)
{
    int rank = mica_onnx_shape(n, n->in[0])->rank, axes[MICA_MAX_RANK] = {0};
    int64_t given[MICA_MAX_RANK];
    int count = mica_onnx_int_list(n, "perm", given, MICA_MAX_RANK);
    if (count >= 0 && count != rank) {
        (void)mica_onnx_bad(n, "perm has %d axes, expected %d", count, rank);
        return;
    }
    for (int k = 0; k < rank; k++)
        axes[k] = count < 0 ? rank - 1 - k : mica_onnx_axis(n, given[k], n->in[0]);
    mica_onnx_give(n, 0, mica_onnx_permute(n, n->in[0], axes));
}

static void expand(mica_onnx_importing *n)
{
    const mica_tensor *x = mica_onnx_shape(n, n->in[0]);
    int64_t wanted[MICA_MAX_RANK];
    mica_index dims[MICA_MAX_RANK];
    int count = mica_onnx_known_ints(n, n->in[1], "shape", wanted, MICA_MAX_RANK);
    int rank = count > x->rank ? count : x->rank;
    if (count < 0)
        return;
    for (int k = 0; k < rank; k++) {
        int64_t to = k >= rank - count ? wanted[k - (rank - count)] : 1;
        dims[k] = to != 1 || k < rank - x->rank ? (mica_index)to : x->dim[k - (rank - x->rank)];
    }
    mica_onnx_give(n, 0, mica_onnx_expand(n, n->in[0], rank, dims));
}

/* ---- Parts ---- */

static void concat(mica_onnx_importing *n)
{
    int axis = mica_onnx_axis(n, mica_onnx_int(n, "axis", 1), n->in[0]);
    mica_onnx_give(n, 0, mica_onnx_join(n, n->in, n->ins, axis));
}

/* The sizes of the parts: as given, or all the same but for the last. */
static bool part_sizes(mica_onnx_importing *n, mica_index whole, int64_t *sizes)
{
    int count = n->ins > 1 ? mica_onnx_known_ints(n, n->in[1], "split", sizes, MICA_ONNX_OUTS)
                           : mica_onnx_int_list(n, "split", sizes, MICA_ONNX_OUTS);
    int64_t parts = mica_onnx_int(n, "num_outputs", n->outs), sum = 0;
    if (count < 0) {
        if (parts != n->outs || parts < 1)
            return mica_onnx_bad(n, "%lld parts for %d outputs", (long long)parts, n->outs) != 0;
        int64_t each = (whole + parts - 1) / parts;
        for (int k = 0; k < parts; k++) {
            int64_t rest = whole - k * each;
            sizes[k] = rest < each ? (rest > 0 ? rest : 0) : each;
        }
        count = n->outs;
    }
    for (int k = 0; k < count && sum >= 0; k++)
        sum = sizes[k] >= 0 && sizes[k] <= whole - sum ? sum + sizes[k] : -1;
    if (count != n->outs || sum != whole)
        return mica_onnx_bad(n, "%d parts whose sizes are not those of an axis of %td, expected %d", count,
                             whole, n->outs) != 0;
    return !n->failed;
}

static void split(mica_onnx_importing *n)
{
    int axis = mica_onnx_axis(n, mica_onnx_int(n, "axis", 0), n->in[0]);
    int64_t sizes[MICA_ONNX_OUTS], start = 0;
    if (!part_sizes(n, mica_onnx_shape(n, n->in[0])->dim[axis], sizes))
        return;
    mica_split_opts opts = {.axis = axis, .count = n->outs};
    bool equal = true, empty = false;
    for (int k = 0; k < n->outs; k++) {
        equal = equal && sizes[k] == sizes[0];
        empty = empty || sizes[k] == 0;
    }
    if (n->outs <= MICA_OP_OUTS && !empty) {
        for (int k = 0; k < n->outs && !equal; k++)
            opts.sizes[k] = (mica_index)sizes[k];
        mica_onnx_ref first = mica_onnx_op1(n, "split", n->in[0], &opts);
        for (int k = 0; k < n->outs; k++)
            mica_onnx_give(n, k, mica_onnx_result(n, first, k));
        return;
    }
    for (int k = 0; k < n->outs; start += sizes[k++])
        mica_onnx_give(n, k, mica_onnx_slice(n, n->in[0], axis, start, start + sizes[k], 1));
}

/* Numbers of input `number`, or of an attribute; how many, or -1 where they are absent. */
static int numbers(mica_onnx_importing *n, int number, const char *name, int64_t *out)
{
    if (n->ins > 1)
        return number < n->ins && n->in[number] != 0
                   ? mica_onnx_known_ints(n, n->in[number], name, out, MICA_MAX_RANK)
                   : -1;
    return mica_onnx_int_list(n, name, out, MICA_MAX_RANK);
}

static void slice(mica_onnx_importing *n)
{
    int64_t starts[MICA_MAX_RANK], ends[MICA_MAX_RANK], axes[MICA_MAX_RANK], steps[MICA_MAX_RANK];
    int count = numbers(n, 1, "starts", starts), ended = numbers(n, 2, "ends", ends);
    int with_axes = numbers(n, 3, "axes", axes), with_steps = numbers(n, 4, "steps", steps);
    mica_onnx_ref y = n->in[0];
    if (n->failed)
        return;
    if (count < 0 || ended != count || (with_axes >= 0 && with_axes != count) ||
        (with_steps >= 0 && with_steps != count)) {
        (void)mica_onnx_bad(n, "%d starts, %d ends, %d axes and %d steps", count, ended, with_axes,
                            with_steps);
        return;
    }
    for (int i = 0; i < count; i++)
        y = mica_onnx_slice(n, y, mica_onnx_axis(n, with_axes >= 0 ? axes[i] : i, n->in[0]), starts[i],
                            ends[i], with_steps >= 0 ? steps[i] : 1);
    mica_onnx_give(n, 0, y);
}

/* ---- Padding ---- */

/* The amounts for every axis: those of input 3, where only some are named. */
static bool pad_amounts(mica_onnx_importing *n, int rank, int64_t *before, int64_t *after)
{
    int64_t pads[2 * MICA_MAX_RANK], axes[MICA_MAX_RANK];
    int given = n->ins > 1 ? mica_onnx_known_ints(n, n->in[1], "pads", pads, 2 * MICA_MAX_RANK)
                           : mica_onnx_int_list(n, mica_onnx_find(n, "pads") != NULL ? "pads" : "paddings",
                                                pads, 2 * MICA_MAX_RANK);
    int count = n->ins > 3 && n->in[3] != 0 ? mica_onnx_known_ints(n, n->in[3], "axes", axes, MICA_MAX_RANK)
                                            : -1;
    if (n->failed)
        return false;
    if (given != 2 * (count >= 0 ? count : rank))
        return mica_onnx_bad(n, "%d pads for %d axes", given, count >= 0 ? count : rank) != 0;
    for (int i = 0; i < given / 2; i++) {
        int axis = count >= 0 ? mica_onnx_axis(n, axes[i], n->in[0]) : i;
        before[axis] = pads[i];
        after[axis] = pads[given / 2 + i];
    }
    return !n->failed;
}

static bool pad_mode(mica_onnx_importing *n, mica_pad_mode *mode)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char *name = mica_onnx_text(n, "mode", "constant");
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) {
            *mode = (mica_pad_mode)i;
            return true;
        }
    return mica_onnx_bad(n, "mode \"%s\"", name) != 0;
}

/* What an axis drops is part of it. */
static bool drops_fit(mica_onnx_importing *n, int axis, int64_t before, int64_t after)
{
    mica_index size = mica_onnx_shape(n, n->in[0])->dim[axis];
    int64_t first = before < 0 ? before : 0, last = after < 0 ? after : 0;
    if (first >= -(int64_t)size && last >= -(int64_t)size - first)
        return true;
    return mica_onnx_bad(n, "pads of %lld and %lld drop more than the %td elements of axis %d",
                         (long long)before, (long long)after, size, axis) != 0;
}

/* Amounts below 0 drop elements; the others are added to what is left. */
static void pad(mica_onnx_importing *n)
{
    int rank = mica_onnx_shape(n, n->in[0])->rank;
    int64_t before[MICA_MAX_RANK] = {0}, after[MICA_MAX_RANK] = {0};
    mica_pad_opts opts = {.value = (double)mica_onnx_float(n, "value", 0.0f)};
    mica_onnx_ref y = n->in[0];
    bool pads = false;
    if (!pad_amounts(n, rank, before, after) || !pad_mode(n, &opts.mode))
        return;
    if (n->ins > 2 && n->in[2] != 0 && opts.mode == MICA_PAD_CONSTANT)
        opts.value = mica_onnx_known_number(n, n->in[2], "constant_value");
    for (int k = 0; k < rank; k++) {
        if (!drops_fit(n, k, before[k], after[k]))
            return;
        if (before[k] < 0 || after[k] < 0)
            y = mica_onnx_slice(n, y, k, before[k] < 0 ? -before[k] : 0, after[k] < 0 ? after[k] : INT64_MAX,
                                1);
        opts.before[k] = before[k] > 0 ? (mica_index)before[k] : 0;
        opts.after[k] = after[k] > 0 ? (mica_index)after[k] : 0;
        pads = pads || opts.before[k] > 0 || opts.after[k] > 0;
    }
    mica_onnx_give(n, 0, pads ? mica_onnx_op1(n, "pad", y, &opts) : y);
}

static void tile(mica_onnx_importing *n)
{
    const mica_tensor *x = mica_onnx_shape(n, n->in[0]);
    int64_t repeats[MICA_MAX_RANK];
    mica_tile_opts opts = {.rank = x->rank};
    mica_index dims[MICA_MAX_RANK];
    bool empty = false;
    int count = mica_onnx_known_ints(n, n->in[1], "repeats", repeats, MICA_MAX_RANK);
    if (n->ins > 2 || n->failed || count != x->rank) {
        (void)mica_onnx_bad(n, "%d repeats for %d axes", count, x->rank);
        return;
    }
    for (int k = 0; k < count; k++) {
        opts.repeats[k] = (mica_index)repeats[k];
        if (__builtin_mul_overflow(x->dim[k], opts.repeats[k], &dims[k])) {
            (void)mica_onnx_bad(n, "size %td repeated %lld times", x->dim[k], (long long)repeats[k]);
            return;
        }
        empty = empty || dims[k] == 0;
    }
    mica_onnx_give(n, 0,
                   empty ? mica_onnx_zeros(n, x->dtype, x->rank, dims)
                         : mica_onnx_op1(n, "tile", n->in[0], &opts));
}

/* ---- Constants ---- */

static mica_onnx_ref constant_tensor(mica_onnx_importing *n, mica_onnx_tensor *t)
{
    if (mica_onnx_tensor_data(n->import->model, t) != MICA_OK)
        return mica_onnx_unsupported(n, "%s", mica_error(n->import->ctx));
    return mica_onnx_hold(n->import, &(mica_onnx_held){.shape = t->tensor, .known = true});
}

static void constant(mica_onnx_importing *n)
{
    static const char *const forms[] = {"value", "value_float", "value_floats", "value_int", "value_ints"};
    const mica_onnx_attribute *a = NULL;
    void *data;
    for (int i = 0; i < 5 && a == NULL; i++)
        a = mica_onnx_find(n, forms[i]);
    if (a == NULL) {
        (void)mica_onnx_unsupported(n, "a constant of strings, or a sparse one");
        return;
    }
    bool list = a->kind == MICA_ONNX_FLOATS || a->kind == MICA_ONNX_INTS;
    bool floats = a->kind == MICA_ONNX_FLOAT || a->kind == MICA_ONNX_FLOATS;
    if (a->kind == MICA_ONNX_TENSOR) {
        mica_onnx_give(n, 0, constant_tensor(n, a->t));
        return;
    }
    mica_index count = list ? (mica_index)a->count : 1;
    mica_onnx_ref ref = mica_onnx_fresh(n, floats ? MICA_F32 : MICA_I64, list ? 1 : 0, &count, &data);
    for (mica_index i = 0; data != NULL && i < count; i++) {
        if (floats)
            ((float *)data)[i] = list ? a->floats[i] : a->f;
        else
            ((int64_t *)data)[i] = list ? a->ints[i] : a->i;
    }
    mica_onnx_give(n, 0, ref);
}

static void constant_of_shape(mica_onnx_importing *n)
{
    int64_t wanted[MICA_MAX_RANK];
    mica_index dims[MICA_MAX_RANK];
    const mica_onnx_attribute *a = mica_onnx_find(n, "value");
    int rank = mica_onnx_known_ints(n, n->in[0], "shape", wanted, MICA_MAX_RANK);
    for (int k = 0; k < rank; k++)
        dims[k] = (mica_index)wanted[k];
    if (rank < 0)
        return;
    if (a == NULL || a->kind != MICA_ONNX_TENSOR) {
        mica_onnx_give(n, 0, mica_onnx_zeros(n, MICA_F32, rank, dims));
        return;
    }
    mica_onnx_ref value = constant_tensor(n, a->t);
    mica_onnx_give(n, 0, mica_onnx_expand(n, mica_onnx_reshape(n, value, 0, NULL), rank, dims));
}

/* The numbers of a range: in i64 for integers, so that none is lost. */
static void range(mica_onnx_importing *n)
{
    static const char *const names[] = {"start", "limit", "delta"};
    mica_dtype dtype = mica_onnx_shape(n, n->in[0])->dtype;
    bool floats = mica_onnx_is_float(dtype);
    double real[3] = {0};
    int64_t whole[3] = {0};
    for (int i = 0; i < 3; i++) {
        if (floats)
            real[i] = mica_onnx_known_number(n, n->in[i], names[i]);
        else if (mica_onnx_known_ints(n, mica_onnx_cast(n, n->in[i], MICA_I64), names[i], &whole[i], 1) != 1)
            return;
    }
    if (n->failed)
        return;
    if (floats ? real[2] == 0.0 : whole[2] == 0) {
        (void)mica_onnx_bad(n, "a range with delta 0");
        return;
    }
    if (floats ? fabs(real[2]) != 1.0 : whole[2] != 1 && whole[2] != -1)
        mica_onnx_doubt_numbers(n); /* the last step may be a part of one */
    double steps = floats ? ceil((real[1] - real[0]) / real[2])
                          : ceil(((double)whole[1] - (double)whole[0]) / (double)whole[2]);
    if (!(steps < 1e9)) {
        (void)mica_onnx_unsupported(n, "a range of %g numbers", steps);
        return;
    }
    mica_index count = steps > 0 ? (mica_index)steps : 0;
    void *data;
    mica_onnx_ref ref = mica_onnx_fresh(n, floats ? MICA_F64 : MICA_I64, 1, &count, &data);
    for (mica_index i = 0; data != NULL && i < count; i++) {
        if (floats)
            ((double *)data)[i] = real[0] + (double)i * real[2];
        else
            ((int64_t *)data)[i] = (int64_t)((uint64_t)whole[0] + (uint64_t)i * (uint64_t)whole[2]);
    }
    mica_onnx_give(n, 0, mica_onnx_cast(n, ref, dtype));
}

static void eye_like(mica_onnx_importing *n)
{
    const mica_tensor x = *mica_onnx_shape(n, n->in[0]);
    int64_t k = mica_onnx_int(n, "k", 0);
    const mica_onnx_attribute *a = mica_onnx_find(n, "dtype");
    mica_dtype dtype = a != NULL ? mica_onnx_dtype_of(n, a->i) : x.dtype;
    void *data;
    if (x.rank != 2) {
        (void)mica_onnx_bad(n, "a tensor of rank %d, expected 2", x.rank);
        return;
    }
    mica_onnx_ref ref = mica_onnx_fresh(n, MICA_I8, 2, x.dim, &data);
    for (mica_index i = 0; data != NULL && i < x.dim[0]; i++)
        for (mica_index j = 0; j < x.dim[1]; j++)
            ((int8_t *)data)[i * x.dim[1] + j] = j - i == k;
    mica_onnx_give(n, 0, n->failed ? 0 : mica_onnx_cast(n, ref, dtype));
}

const mica_onnx_operator mica_onnx_shape_operators[] = {{"Identity", 1, identity},
                                                        {"Shape", 1, shape},
                                                        {"Size", 1, size},
                                                        {"Reshape", 1, reshape},
                                                        {"Squeeze", 1, squeeze},
                                                        {"Unsqueeze", 1, unsqueeze},
                                                        {"Flatten", 1, flatten},
                                                        {"Transpose", 1, transpose},
                                                        {"Expand", 8, expand},
                                                        {"Concat", 1, concat},
                                                        {"Split", 1, split},
                                                        {"Slice", 1, slice},
                                                        {"Pad", 1, pad},
                                                        {"Tile", 6, tile},
                                                        {"Constant", 1, constant},
                                                        {"ConstantOfShape", 9, constant_of_shape},
                                                        {"Range", 11, range},
                                                        {"EyeLike", 9, eye_like},
                                                        {NULL, 0, NULL}};
