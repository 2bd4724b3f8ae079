/* Elements and slices by index: scatter, and gather_nd and scatter_nd, whose indices come in tuples.
 *
 * Each tuple names a slice of `whole`, which lies the same way at every index; one walk over it serves them all, moved
 * to each tuple's place. */
#include <string.h>

#include "base/parallel.h"
#include "ops/combine.h"
#include "ops/index.h"
#include "ops/move.h"
#include "ops/walk.h"

/* Slices in one block of parallel work have about as many elements. */
#define BLOCK ((size_t)16384)

static int64_t index_at(const mica_tensor *index, mica_index offset)
{
    const void *p = mica_element(index, offset);
    return index->dtype == MICA_I32 ? *(const int32_t *)p : *(const int64_t *)p;
}

/* ---- Indices that count from the end ---- */

mica_status mica_wrap_indices(mica_context *ctx, const mica_tensor *dst, const mica_tensor *index,
                              const mica_tensor *like, const mica_wrap_opts *opts)
{
    static const mica_wrap_opts first = {.axis = 0};
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_INDEX},
                       {"index", index, MICA_ARG_IN_PLACE, MICA_DTYPES_INDEX},
                       {"like", like, 0, MICA_DTYPES_ALL}};
    MICA_TRY(mica_check_args(ctx, "wrap_indices", args, 3));
    MICA_TRY(mica_check_same_shape(ctx, "wrap_indices", "dst", dst, "index", index));
    opts = opts != NULL ? opts : &first;
    int axis = opts->batch;
    if (!opts->tuples)
        MICA_TRY(mica_check_axis(ctx, "wrap_indices", opts->axis, "like", like, &axis));
    else if (index->rank == 0 || axis < 0 || index->dim[index->rank - 1] > like->rank - axis)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "wrap_indices: index is %s: its tuples are not of axes of like %s",
                         MICA_SHAPE(index), MICA_SHAPE(like));
    if (dst->dtype != index->dtype)
        return mica_fail(ctx, MICA_ERR_DTYPE, "wrap_indices: dst %s is %s, index %s is %s: expected the same",
                         MICA_SHAPE(dst), mica_dtype_name(dst->dtype), MICA_SHAPE(index),
                         mica_dtype_name(index->dtype));
    MICA_START(ctx, "wrap_indices", 0, NULL);
    mica_iter from = mica_iter_begin(index, 0, NULL);
    for (mica_iter to = mica_iter_begin(dst, 0, NULL); to.valid; mica_iter_next(&to), mica_iter_next(&from)) {
        mica_index size = like->dim[opts->tuples ? axis + to.index[index->rank - 1] : axis];
        int64_t i = index->dtype == MICA_I32 ? *(int32_t *)from.element : *(int64_t *)from.element;
        i += i < 0 ? (int64_t)size : 0;
        if (dst->dtype == MICA_I32)
            *(int32_t *)to.element = (int32_t)i;
        else
            *(int64_t *)to.element = i;
    }
    return MICA_OK;
}

/* ---- Tuples ---- */

typedef struct nd_job {
    const mica_tensor *index, *whole, *each;
    int batch, depth;
    size_t tuples;
    mica_walk slice; /* operand 0: of what is written, 1: of what is read */
    mica_combine_fn *combine;
    bool gathers; /* `each` is written; otherwise `whole` */
    size_t per_block;
} nd_job;

/* Where tuple number t lies in index, whole and each; false if it names no place. */
static bool locate(const nd_job *job, size_t t, mica_index *whole, mica_index *each)
{
    const mica_tensor *index = job->index;
    mica_index at = 0;
    *whole = *each = 0;
    for (int k = index->rank - 2; k >= 0; k--) {
        mica_index i = (mica_index)(t % (size_t)index->dim[k]);
        t /= (size_t)index->dim[k];
        at += i * index->stride[k];
        *each += i * job->each->stride[k];
        *whole += k < job->batch ? i * job->whole->stride[k] : 0;
    }
    for (int j = 0; j < job->depth; j++) {
        int64_t i = index_at(index, at + j * index->stride[index->rank - 1]);
        if (i < 0 || i >= job->whole->dim[job->batch + j])
            return false;
        *whole += (mica_index)i * job->whole->stride[job->batch + j];
    }
    return true;
}

static void move_slice(const nd_job *job, char *to, const char *from)
{
    const mica_walk *w = &job->slice;
    int last = w->rank - 1;
    mica_walk_place c = {{0}};
    for (size_t i = 0; i < w->count; i += (size_t)w->dim[last]) {
        job->combine(to + mica_offset_bytes(w->dtype[0], mica_walk_offset(w, &c, 0)), w->stride[0][last],
                     from + mica_offset_bytes(w->dtype[1], mica_walk_offset(w, &c, 1)), w->stride[1][last],
                     w->dim[last]);
        mica_walk_advance(w, &c, w->dim[last]);
    }
}

static void run_tuples(const nd_job *job, size_t begin, size_t end)
{
    for (size_t t = begin; t < end; t++) {
        mica_index whole, each;
        (void)locate(job, t, &whole, &each);
        char *there = job->slice.data[job->gathers ? 1 : 0] + mica_offset_bytes(job->whole->dtype, whole);
        char *here = job->slice.data[job->gathers ? 0 : 1] + mica_offset_bytes(job->each->dtype, each);
        move_slice(job, job->gathers ? here : there, job->gathers ? there : here);
    }
}

static void tuple_block(void *work, size_t block, int thread)
{
    (void)thread;
    const nd_job *job = work;
    run_tuples(job, block * job->per_block, mica_least((block + 1) * job->per_block, job->tuples));
}

/* index [B..., I..., K], whole [B..., K axes..., S...], each [B..., I..., S...] */
static mica_status check_tuples(mica_context *ctx, const char *op, nd_job *job, const char *whole_name,
                                const char *each_name)
{
    const mica_tensor *index = job->index, *whole = job->whole;
    bool fits = index->rank > 0 && job->batch >= 0 && job->batch < index->rank && job->batch <= whole->rank &&
                index->dim[index->rank - 1] <= whole->rank - job->batch;
    for (int k = 0; fits && k < job->batch; k++)
        fits = index->dim[k] == whole->dim[k];
    job->depth = fits ? (int)index->dim[index->rank - 1] : 0;
    int rank = index->rank - 1 + whole->rank - job->batch - job->depth;
    if (!fits || rank > MICA_MAX_RANK)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: index is %s, whose tuples, with %d batch axes, do not fit %s %s", op,
                         MICA_SHAPE(index), job->batch, whole_name, MICA_SHAPE(whole));
    mica_index dims[MICA_MAX_RANK];
    for (int k = 0; k < rank; k++)
        dims[k] = k < index->rank - 1 ? index->dim[k] : whole->dim[whole->rank - rank + k];
    return mica_check_shape(ctx, op, each_name, job->each, rank, dims, "index", index);
}

/* The axes of t from `first` on. */
static mica_tensor axes_from(const mica_tensor *t, int first)
{
    mica_tensor out = {.data = t->data, .dtype = t->dtype, .rank = t->rank - first};
    for (int k = 0; k < out.rank; k++) {
        out.dim[k] = t->dim[first + k];
        out.stride[k] = t->stride[first + k];
    }
    return out;
}

/* Every tuple names a place; what is to be done is set up. */
static mica_status prepare_tuples(mica_context *ctx, const char *op, nd_job *job, const char *whole_name)
{
    const mica_tensor *index = job->index;
    mica_tensor of_whole = axes_from(job->whole, job->batch + job->depth),
                of_each = axes_from(job->each, index->rank - 1);
    job->tuples = 1;
    for (int k = 0; k < index->rank - 1; k++)
        job->tuples *= (size_t)index->dim[k];
    for (size_t t = 0; t < job->tuples; t++) {
        mica_index whole, each;
        if (!locate(job, t, &whole, &each))
            return mica_fail(ctx, MICA_ERR_INDEX, "%s: tuple %zu of index %s names no place of %s %s", op, t,
                             MICA_SHAPE(index), whole_name, MICA_SHAPE(job->whole));
    }
    mica_walk_init(
        &job->slice,
        (const mica_tensor *[]){job->gathers ? &of_each : &of_whole, job->gathers ? &of_whole : &of_each}, 2);
    size_t elements = job->slice.count > 0 ? job->slice.count : 1;
    job->per_block = elements < BLOCK ? BLOCK / elements : 1;
    return MICA_OK;
}

mica_status mica_gather_nd(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                           const mica_tensor *index, int batch)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY},
                       {"src", src, 0, MICA_DTYPES_ANY},
                       {"index", index, 0, MICA_DTYPES_INDEX}};
    nd_job job = {.index = index, .whole = src, .each = dst, .batch = batch, .gathers = true};
    MICA_TRY(mica_check_args(ctx, "gather_nd", args, 3));
    MICA_TRY(check_tuples(ctx, "gather_nd", &job, "src", "dst"));
    MICA_TRY(mica_check_combine(ctx, "gather_nd", MICA_SCATTER_SET, dst, src));
    MICA_START(ctx, "gather_nd", 0, NULL);
    MICA_TRY(prepare_tuples(ctx, "gather_nd", &job, "src"));
    job.combine = mica_combine_for(MICA_SCATTER_SET, dst->dtype);
    if (job.slice.count > 0)
        mica_parallel(ctx, mica_div_up(job.tuples, job.per_block), tuple_block, &job);
    return MICA_OK;
}

mica_status mica_gather_nd_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                    const mica_tensor *index, int batch)
{
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, 0, 0}, {"index", index, 0, MICA_DTYPES_INDEX}};
    nd_job job = {.index = index, .whole = dx, .each = dy, .batch = batch};
    MICA_TRY(mica_check_args(ctx, "gather_nd_backward", args, 3));
    MICA_TRY(check_tuples(ctx, "gather_nd_backward", &job, "dx", "dy"));
    MICA_START(ctx, "gather_nd_backward", 0, NULL);
    MICA_TRY(prepare_tuples(ctx, "gather_nd_backward", &job, "dx"));
    float zero = 0.0f;
    mica_tensor none = mica_0d(&zero);
    mica_move(ctx, dx, &none);
    job.combine = mica_combine_for(MICA_SCATTER_ADD, MICA_F32);
    run_tuples(&job, 0, job.tuples);
    return MICA_OK;
}

mica_status mica_scatter_nd(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                            const mica_tensor *index, mica_scatter_kind kind)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY},
                       {"src", src, 0, MICA_DTYPES_ANY},
                       {"index", index, 0, MICA_DTYPES_INDEX}};
    nd_job job = {.index = index, .whole = dst, .each = src};
    MICA_TRY(mica_check_args(ctx, "scatter_nd", args, 3));
    MICA_TRY(check_tuples(ctx, "scatter_nd", &job, "dst", "src"));
    MICA_TRY(mica_check_combine(ctx, "scatter_nd", kind, dst, src));
    MICA_START(ctx, "scatter_nd", 0, NULL);
    MICA_TRY(prepare_tuples(ctx, "scatter_nd", &job, "dst"));
    job.combine = mica_combine_for(kind, dst->dtype);
    run_tuples(&job, 0, job.tuples);
    return MICA_OK;
}

/* ---- Elements ---- */

mica_status mica_scatter(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                         const mica_tensor *index, const mica_scatter_opts *opts)
{
    static const mica_scatter_opts first = {.axis = 0};
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY},
                       {"src", src, 0, MICA_DTYPES_ANY},
                       {"index", index, 0, MICA_DTYPES_INDEX}};
    int axis;
    opts = opts != NULL ? opts : &first;
    MICA_TRY(mica_check_args(ctx, "scatter", args, 3));
    MICA_TRY(mica_check_axis(ctx, "scatter", opts->axis, "dst", dst, &axis));
    bool fits = index->rank == dst->rank;
    for (int k = 0; fits && k < index->rank; k++)
        fits = k == axis || index->dim[k] <= dst->dim[k];
    if (!fits)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "scatter: index is %s, which does not fit into dst %s along axes other than %d",
                         MICA_SHAPE(index), MICA_SHAPE(dst), axis);
    MICA_TRY(mica_check_same_shape(ctx, "scatter", "src", src, "index", index));
    MICA_TRY(mica_check_combine(ctx, "scatter", opts->kind, dst, src));
    MICA_START(ctx, "scatter", 0, NULL);
    MICA_TRY(mica_check_indices(ctx, "scatter", index, dst, "dst", axis));
    mica_combine_fn *combine = mica_combine_for(opts->kind, dst->dtype);
    mica_iter from = mica_iter_begin(src, 0, NULL);
    for (mica_iter at = mica_iter_begin(index, 0, NULL); at.valid;
         mica_iter_next(&at), mica_iter_next(&from)) {
        int64_t place = index->dtype == MICA_I32 ? *(int32_t *)at.element : *(int64_t *)at.element;
        mica_index offset = (mica_index)place * dst->stride[axis];
        for (int k = 0; k < dst->rank; k++)
            offset += k == axis ? 0 : at.index[k] * dst->stride[k];
        combine(mica_element(dst, offset), 1, from.element, 1, 1);
    }
    return MICA_OK;
}
