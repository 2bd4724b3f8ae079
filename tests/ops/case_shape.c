/* Cases of the operations that rearrange one tensor: dst[i] = src[some index that follows from i]. */
#include "ops/op_index.h"

#define ANY_DTYPE (OP_BIT(0) | OP_BIT(1))

static void draw_src(op_call *c, test_random *r, int low_rank, mica_index *dims)
{
    int rank = op_random_shape(c, r, low_rank, 5, dims);
    op_tensor(c, 1, op_random_dtype(r), rank, dims);
}

static void reference_same(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = v[1][i];
}

/* v[0] from v[1] where `where` turns an index of dst into one of src. */
static void reference_moved(const op_call *c, double *const *v,
                            void (*where)(const op_call *c, mica_index *index))
{
    for (size_t i = 0; i < op_count(c, 0); i++) {
        mica_index index[MICA_MAX_RANK] = {0};
        op_unravel(&c->tensor[0], i, index);
        where(c, index);
        v[0][i] = v[1][op_ravel(&c->tensor[1], index)];
    }
}

/* ---- reshape, flatten, squeeze, unsqueeze: the order stays ---- */

static void draw_reshape(op_call *c, test_random *r)
{
    /* Factors of one product in two orders, so that axes neither join nor split evenly. */
    static const mica_index factors[] = {2, 3, 4, 5, 6, 1, 3, 2};
    mica_index dims[2][MICA_MAX_RANK];
    int rank[2] = {0, 0}, first = test_int(r, 0, 4), used = test_int(r, 0, 4);
    for (int t = 0; t < 2; t++) {
        for (int k = 0; k < used; k++) {
            mica_index factor = factors[first + (t == 0 ? k : used - 1 - k)];
            if (rank[t] > 0 && test_chance(r, 40))
                dims[t][rank[t] - 1] *= factor;
            else
                dims[t][rank[t]++] = factor;
        }
        if (test_chance(r, 20))
            dims[t][rank[t]++] = 1;
    }
    if (c->large) {
        dims[0][0] = 300, dims[0][1] = 400, dims[1][0] = 400, dims[1][1] = 300;
        rank[0] = rank[1] = 2;
    }
    mica_dtype dtype = op_random_dtype(r);
    op_tensor(c, 0, dtype, rank[0], dims[0]);
    op_tensor(c, 1, dtype, rank[1], dims[1]);
}

static mica_status run_reshape(mica_context *ctx, const op_call *c)
{
    return mica_reshape(ctx, OP(c, 0), OP(c, 1));
}

OP_CASE(reshape) = {.names = {"dst", "src"},
                    .outs = 1,
                    .ins = 1,
                    .any_dtype = ANY_DTYPE,
                    .draws = 400,
                    .draw = draw_reshape,
                    .run = run_reshape,
                    .reference = reference_same};

static void draw_flatten(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK], out[MICA_MAX_RANK];
    draw_src(c, r, 1, dims);
    int rank = c->tensor[1].rank, first = test_int(r, 0, rank - 1), last = test_int(r, first, rank - 1),
        at = 0;
    for (int k = 0; k < rank; k++) {
        if (k > first && k <= last)
            out[at - 1] *= dims[k];
        else
            out[at++] = dims[k];
    }
    op_tensor(c, 0, c->tensor[1].dtype, at, out);
    c->i[0] = test_chance(r, 50) ? first : first - rank;
    c->i[1] = test_chance(r, 50) ? last : last - rank;
}

static mica_status run_flatten(mica_context *ctx, const op_call *c)
{
    return mica_flatten(ctx, OP(c, 0), OP(c, 1), (int)c->i[0], (int)c->i[1]);
}

OP_CASE(flatten) = {.names = {"dst", "src"},
                    .outs = 1,
                    .ins = 1,
                    .any_shape = OP_BIT(1), /* a larger axis joined with an empty one still gives 0 */
                    .any_dtype = ANY_DTYPE,
                    .axis_option = 1,
                    .draw = draw_flatten,
                    .run = run_flatten,
                    .reference = reference_same};

/* An axis of size 1 in one of the two tensors, and not in the other. */
static void draw_with_one(op_call *c, test_random *r, int with, int without)
{
    mica_index dims[MICA_MAX_RANK], more[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 5, dims), axis = test_int(r, 0, rank);
    mica_dtype dtype = op_random_dtype(r);
    for (int k = 0; k <= rank; k++)
        more[k] = k < axis ? dims[k] : k == axis ? 1 : dims[k - 1];
    op_tensor(c, without, dtype, rank, dims);
    op_tensor(c, with, dtype, rank + 1, more);
    c->i[0] = test_chance(r, 50) ? axis : axis - rank - 1;
}

static void draw_squeeze(op_call *c, test_random *r) { draw_with_one(c, r, 1, 0); }
static void draw_unsqueeze(op_call *c, test_random *r) { draw_with_one(c, r, 0, 1); }

static mica_status run_squeeze(mica_context *ctx, const op_call *c)
{
    return mica_squeeze(ctx, OP(c, 0), OP(c, 1), (int)c->i[0]);
}
static mica_status run_unsqueeze(mica_context *ctx, const op_call *c)
{
    return mica_unsqueeze(ctx, OP(c, 0), OP(c, 1), (int)c->i[0]);
}

OP_CASE(squeeze) = {.names = {"dst", "src"},
                    .outs = 1,
                    .ins = 1,
                    .any_dtype = ANY_DTYPE,
                    .axis_option = 1,
                    .draw = draw_squeeze,
                    .run = run_squeeze,
                    .reference = reference_same};

OP_CASE(unsqueeze) = {.names = {"dst", "src"},
                      .outs = 1,
                      .ins = 1,
                      .any_dtype = ANY_DTYPE,
                      .axis_option = 1,
                      .draw = draw_unsqueeze,
                      .run = run_unsqueeze,
                      .reference = reference_same};

/* ---- slice, flip ---- */

/* i[0] axis, i[1] start, i[2] step */
static void draw_slice(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    draw_src(c, r, 1, dims);
    int rank = c->tensor[1].rank, axis = test_int(r, 0, rank - 1), size = (int)dims[axis];
    int start = size > 0 ? test_int(r, 0, size - 1) : 0, step = test_int(r, -4, 4);
    int by = step == 0 ? 1 : step, room = size == 0 ? 0
                                          : by > 0  ? (size - 1 - start) / by + 1
                                                    : start / -by + 1;
    dims[axis] = test_chance(r, 80) ? room : test_int(r, 0, room);
    op_tensor(c, 0, c->tensor[1].dtype, rank, dims);
    c->i[0] = test_chance(r, 50) ? axis : axis - rank;
    c->i[1] = test_chance(r, 50) || size == 0 ? start : start - size;
    c->i[2] = step;
}

static mica_status run_slice(mica_context *ctx, const op_call *c)
{
    return mica_slice(ctx, OP(c, 0), OP(c, 1),
                      &(mica_slice_opts){.axis = (int)c->i[0], .start = c->i[1], .step = c->i[2]});
}

static void where_slice(const op_call *c, mica_index *index)
{
    int axis = (int)(c->i[0] < 0 ? c->i[0] + c->tensor[1].rank : c->i[0]);
    mica_index start = c->i[1] < 0 ? c->i[1] + c->tensor[1].dim[axis] : c->i[1];
    index[axis] = start + index[axis] * (c->i[2] == 0 ? 1 : c->i[2]);
}

static void reference_slice(const op_call *c, double *const *v) { reference_moved(c, v, where_slice); }

OP_CASE(slice) = {.names = {"dst", "src"},
                  .outs = 1,
                  .ins = 1,
                  .any_shape = OP_BIT(1),
                  .any_dtype = ANY_DTYPE,
                  .axis_option = 1,
                  .draws = 400,
                  .draw = draw_slice,
                  .run = run_slice,
                  .reference = reference_slice};

static void draw_flip(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    draw_src(c, r, 1, dims);
    op_tensor(c, 0, c->tensor[1].dtype, c->tensor[1].rank, dims);
    c->i[0] = test_int(r, -c->tensor[1].rank, c->tensor[1].rank - 1);
}

static mica_status run_flip(mica_context *ctx, const op_call *c)
{
    return mica_flip(ctx, OP(c, 0), OP(c, 1), (int)c->i[0]);
}

static void where_flip(const op_call *c, mica_index *index)
{
    int axis = (int)(c->i[0] < 0 ? c->i[0] + c->tensor[1].rank : c->i[0]);
    index[axis] = c->tensor[1].dim[axis] - 1 - index[axis];
}

static void reference_flip(const op_call *c, double *const *v) { reference_moved(c, v, where_flip); }

OP_CASE(flip) = {.names = {"dst", "src"},
                 .outs = 1,
                 .ins = 1,
                 .any_dtype = ANY_DTYPE,
                 .axis_option = 1,
                 .draw = draw_flip,
                 .run = run_flip,
                 .reference = reference_flip};

/* ---- transpose, permute, broadcast_to ---- */

/* i[1 + k]: the axis of src that is axis k of dst. */
static void permute_dst(op_call *c)
{
    mica_index dims[MICA_MAX_RANK];
    for (int k = 0; k < c->tensor[1].rank; k++)
        dims[k] = c->tensor[1].dim[c->i[1 + k]];
    op_tensor(c, 0, c->tensor[1].dtype, c->tensor[1].rank, dims);
}

static void draw_permute(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    draw_src(c, r, 0, dims);
    for (int k = 0; k < c->tensor[1].rank; k++) {
        int j = test_int(r, 0, k);
        c->i[1 + k] = c->i[1 + j];
        c->i[1 + j] = k;
    }
    permute_dst(c);
}

static mica_status run_permute(mica_context *ctx, const op_call *c)
{
    int axes[MICA_MAX_RANK];
    for (int k = 0; k < MICA_MAX_RANK; k++)
        axes[k] = (int)c->i[1 + k];
    return mica_permute(ctx, OP(c, 0), OP(c, 1), axes);
}

static void where_permute(const op_call *c, mica_index *index)
{
    mica_index out[MICA_MAX_RANK];
    for (int k = 0; k < c->tensor[1].rank; k++)
        out[c->i[1 + k]] = index[k];
    for (int k = 0; k < c->tensor[1].rank; k++)
        index[k] = out[k];
}

static void reference_permute(const op_call *c, double *const *v) { reference_moved(c, v, where_permute); }

OP_CASE(permute) = {.names = {"dst", "src"},
                    .outs = 1,
                    .ins = 1,
                    .any_dtype = ANY_DTYPE,
                    .draws = 400,
                    .draw = draw_permute,
                    .run = run_permute,
                    .reference = reference_permute};

/* i[0], i[10]: the two axes. */
static void draw_transpose(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    draw_src(c, r, 1, dims);
    int rank = c->tensor[1].rank, a = test_int(r, 0, rank - 1), b = test_int(r, 0, rank - 1);
    for (int k = 0; k < rank; k++)
        c->i[1 + k] = k == a ? b : k == b ? a : k;
    c->i[0] = a;
    c->i[10] = b - (test_chance(r, 50) ? rank : 0);
    permute_dst(c);
}

static mica_status run_transpose(mica_context *ctx, const op_call *c)
{
    return mica_transpose(ctx, OP(c, 0), OP(c, 1), (int)c->i[0], (int)c->i[10]);
}

OP_CASE(transpose) = {.names = {"dst", "src"},
                      .outs = 1,
                      .ins = 1,
                      .any_dtype = ANY_DTYPE,
                      .axis_option = 1,
                      .draw = draw_transpose,
                      .run = run_transpose,
                      .reference = reference_permute};

static void draw_broadcast_to(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK], part[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 5, dims), part_rank = op_random_broadcast(r, rank, dims, part);
    op_tensor(c, 0, op_random_dtype(r), rank, dims);
    op_tensor(c, 1, c->tensor[0].dtype, part_rank, part);
}

static mica_status run_broadcast_to(mica_context *ctx, const op_call *c)
{
    return mica_broadcast_to(ctx, OP(c, 0), OP(c, 1));
}

static void reference_broadcast_to(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = v[1][op_broadcast_index(&c->tensor[1], &c->tensor[0], i)];
}

OP_CASE(broadcast_to) = {.names = {"dst", "src"},
                         .outs = 1,
                         .ins = 1,
                         .any_shape = OP_BIT(0),
                         .any_dtype = ANY_DTYPE,
                         .draw = draw_broadcast_to,
                         .run = run_broadcast_to,
                         .reference = reference_broadcast_to};
