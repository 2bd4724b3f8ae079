/* Cases of the operations whose indices a net computes: tuples, scatters, caches. */
#include <math.h>

#include "ops/op_index.h"

static mica_dtype index_dtype(test_random *r) { return test_chance(r, 50) ? MICA_I32 : MICA_I64; }

/* i[1]: indices are below. */
static void fill_below(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == 2 ? test_int(r, 0, (int)c->i[1] - 1) : test_int(r, 0, 5);
}

static double combined(long kind, double a, double b)
{
    return kind == MICA_SCATTER_SET   ? b
           : kind == MICA_SCATTER_ADD ? a + b
           : kind == MICA_SCATTER_MUL ? a * b
           : kind == MICA_SCATTER_MIN ? fmin(a, b)
                                      : fmax(a, b);
}

static mica_dtype kind_dtype(test_random *r, long kind)
{
    static const mica_dtype numbers[] = {MICA_F32, MICA_F64, MICA_I64, MICA_I32, MICA_I16};
    return kind == MICA_SCATTER_SET ? op_random_dtype(r) : numbers[test_int(r, 0, 4)];
}

/* ---- wrap_indices: i[0] axis, i[2] tuples, i[3] batch ---- */

static void draw_wrap(op_call *c, test_random *r)
{
    mica_index like[MICA_MAX_RANK], dims[MICA_MAX_RANK];
    int rank = test_int(r, 1, 4), index_rank = op_random_shape(c, r, 1, 3, dims);
    for (int k = 0; k < rank; k++)
        like[k] = test_int(r, 1, 9);
    c->i[2] = test_chance(r, 50);
    c->i[3] = test_int(r, 0, rank - 1);
    c->i[0] = test_int(r, -rank, rank - 1);
    if (c->i[2])
        dims[index_rank - 1] = test_int(r, 1, rank - (int)c->i[3]);
    mica_dtype dtype = index_dtype(r);
    op_tensor(c, 0, dtype, index_rank, dims);
    op_tensor(c, 1, dtype, index_rank, dims);
    op_tensor(c, 2, MICA_F32, rank, like);
}

static void fill_wrap(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c, (void)tensor;
    for (size_t i = 0; i < count; i++)
        value[i] = test_int(r, -9, 9);
}

static mica_status run_wrap(mica_context *ctx, const op_call *c)
{
    return mica_wrap_indices(ctx, OP(c, 0), OP(c, 1), OP(c, 2),
                             &(mica_wrap_opts){(int)c->i[0], c->i[2] != 0, (int)c->i[3]});
}

static void reference_wrap(const op_call *c, double *const *v)
{
    const mica_tensor *index = &c->tensor[1], *like = &c->tensor[2];
    for (size_t i = 0; i < op_count(c, 0); i++) {
        long axis = c->i[2] ? c->i[3] + (long)(i % (size_t)index->dim[index->rank - 1]) : c->i[0];
        v[0][i] = v[1][i] + (v[1][i] < 0 ? (double)like->dim[axis < 0 ? axis + like->rank : axis] : 0.0);
    }
}

OP_CASE(wrap_indices) = {.names = {"dst", "index", "like"},
                         .outs = 1,
                         .ins = 2,
                         .in_place = OP_BIT(1),
                         .any_shape = OP_BIT(2),
                         .any_dtype = OP_BIT(2),
                         .blocks = OP_BIT(2),
                         .draw = draw_wrap,
                         .fill = fill_wrap,
                         .run = run_wrap,
                         .reference = reference_wrap};

/* ---- gather_nd, gather_nd_backward, scatter_nd: i[0] batch axes, i[2] the kind ---- */

/* All axes of `whole` that are indexed have the same size. */
static void draw_tuples(op_call *c, test_random *r, int whole, int each, int batch, mica_dtype dtype)
{
    mica_index dims[MICA_MAX_RANK], index[MICA_MAX_RANK], out[MICA_MAX_RANK];
    int rank = test_int(r, batch + 1, 4), depth = test_int(r, 1, rank - batch), n = 0;
    c->i[0] = batch;
    c->i[1] = test_int(r, 1, 5);
    for (int k = 0; k < rank; k++)
        dims[k] = k >= batch && k < batch + depth ? (mica_index)c->i[1]
                                                  : test_int(r, test_chance(r, 5) ? 0 : 1, 5);
    for (int k = 0; k < batch; k++)
        out[n] = index[n] = dims[k], n++;
    for (int k = test_int(r, 0, 2); k > 0; k--)
        out[n] = index[n] = test_int(r, 1, 5), n++;
    if (c->large && n > batch)
        out[batch] = index[batch] = 30000;
    index[n] = depth;
    op_tensor(c, 2, index_dtype(r), n + 1, index);
    for (int k = batch + depth; k < rank; k++)
        out[n++] = dims[k];
    op_tensor(c, whole, dtype, rank, dims);
    op_tensor(c, each, dtype, n, out);
}

/* Where element i of `each` lies in `whole`. */
static size_t tuple_place(const op_call *c, double *const *v, int whole, int each, size_t i)
{
    const mica_tensor *index = &c->tensor[2], *w = &c->tensor[whole];
    mica_index at[MICA_MAX_RANK] = {0}, place[MICA_MAX_RANK] = {0}, tuple[MICA_MAX_RANK] = {0};
    int batch = (int)c->i[0], depth = (int)index->dim[index->rank - 1], n = index->rank - 1;
    op_unravel(&c->tensor[each], i, at);
    for (int k = 0; k < n; k++)
        tuple[k] = at[k];
    for (int k = 0; k < w->rank; k++) {
        tuple[n] = k - batch;
        place[k] = k < batch           ? at[k]
                   : k < batch + depth ? (mica_index)v[2][op_ravel(index, tuple)]
                                       : at[n + k - batch - depth];
    }
    return op_ravel(w, place);
}

static void draw_gather_nd(op_call *c, test_random *r)
{
    draw_tuples(c, r, 1, 0, test_int(r, 0, 2), op_random_dtype(r));
}
static void draw_gather_nd_backward(op_call *c, test_random *r)
{
    draw_tuples(c, r, 0, 1, test_int(r, 0, 2), MICA_F32);
}
static void draw_scatter_nd(op_call *c, test_random *r)
{
    c->i[2] = test_int(r, 0, MICA_SCATTER_MAX);
    draw_tuples(c, r, 0, 1, 0, kind_dtype(r, c->i[2]));
}

static mica_status run_gather_nd(mica_context *ctx, const op_call *c)
{
    return mica_gather_nd(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (int)c->i[0]);
}
static mica_status run_gather_nd_backward(mica_context *ctx, const op_call *c)
{
    return mica_gather_nd_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (int)c->i[0]);
}
static mica_status run_scatter_nd(mica_context *ctx, const op_call *c)
{
    return mica_scatter_nd(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (mica_scatter_kind)c->i[2]);
}

static void reference_gather_nd(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = v[1][tuple_place(c, v, 1, 0, i)];
}
static void reference_gather_nd_backward(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = 0.0;
    for (size_t i = 0; i < op_count(c, 1); i++)
        v[0][tuple_place(c, v, 0, 1, i)] += v[1][i];
}
static void reference_scatter_nd(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 1); i++) {
        double *place = &v[0][tuple_place(c, v, 0, 1, i)];
        *place = combined(c->i[2], *place, v[1][i]);
    }
}

#define TUPLE_SHAPES (OP_BIT(0) | OP_BIT(1) | OP_BIT(2))

OP_CASE(gather_nd) = {.names = {"dst", "src", "index"},
                      .outs = 1,
                      .ins = 2,
                      .any_shape = TUPLE_SHAPES,
                      .any_dtype = OP_BIT(0) | OP_BIT(1),
                      .draw = draw_gather_nd,
                      .fill = fill_below,
                      .run = run_gather_nd,
                      .reference = reference_gather_nd};

OP_CASE(gather_nd_backward) = {.names = {"dx", "dy", "index"},
                               .outs = 1,
                               .ins = 2,
                               .any_shape = TUPLE_SHAPES,
                               .draw = draw_gather_nd_backward,
                               .fill = fill_below,
                               .run = run_gather_nd_backward,
                               .reference = reference_gather_nd_backward,
                               .tolerance = 1e-6};

/* Many products of numbers up to 5 overflow; f32 holds the sums of large calls exactly. */
static void fill_small(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    fill_below(c, r, tensor, value, count);
    for (size_t i = 0; tensor != 2 && c->i[2] == MICA_SCATTER_MUL && i < count; i++)
        value[i] = test_int(r, 0, 1);
}

OP_CASE(scatter_nd) = {.names = {"dst", "src", "index"},
                       .outs = 1,
                       .ins = 2,
                       .reads_outs = OP_BIT(0),
                       .any_shape = TUPLE_SHAPES,
                       .any_dtype = OP_BIT(0) | OP_BIT(1),
                       .draw = draw_scatter_nd,
                       .fill = fill_small,
                       .run = run_scatter_nd,
                       .reference = reference_scatter_nd,
                       .tolerance = 1e-6};

/* ---- scatter: i[0] axis, i[2] the kind ---- */

static void draw_scatter(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 1, 4, dims), axis = test_int(r, 0, rank - 1);
    if (dims[axis] == 0)
        dims[axis] = 1;
    c->i[2] = test_int(r, 0, MICA_SCATTER_MAX);
    op_tensor(c, 0, kind_dtype(r, c->i[2]), rank, dims);
    c->i[0] = test_chance(r, 50) ? axis : axis - rank;
    c->i[1] = dims[axis];
    for (int k = 0; k < rank; k++)
        if (dims[k] > 0 && test_chance(r, 30))
            dims[k] = test_int(r, 0, (int)dims[k]);
    dims[axis] = test_int(r, 0, 8);
    op_tensor(c, 1, c->tensor[0].dtype, rank, dims);
    op_tensor(c, 2, index_dtype(r), rank, dims);
}

static mica_status run_scatter(mica_context *ctx, const op_call *c)
{
    return mica_scatter(ctx, OP(c, 0), OP(c, 1), OP(c, 2),
                        &(mica_scatter_opts){(int)c->i[0], (mica_scatter_kind)c->i[2]});
}

static void reference_scatter(const op_call *c, double *const *v)
{
    int axis = (int)(c->i[0] < 0 ? c->i[0] + c->tensor[0].rank : c->i[0]);
    for (size_t i = 0; i < op_count(c, 1); i++) {
        mica_index at[MICA_MAX_RANK] = {0};
        op_unravel(&c->tensor[2], i, at);
        at[axis] = (mica_index)v[2][i];
        double *place = &v[0][op_ravel(&c->tensor[0], at)];
        *place = combined(c->i[2], *place, v[1][i]);
    }
}

OP_CASE(scatter) = {.names = {"dst", "src", "index"},
                    .outs = 1,
                    .ins = 2,
                    .reads_outs = OP_BIT(0),
                    .any_shape = OP_BIT(0),
                    .any_dtype = OP_BIT(0) | OP_BIT(1),
                    .axis_option = 1,
                    .draw = draw_scatter,
                    .fill = fill_small,
                    .run = run_scatter,
                    .reference = reference_scatter,
                    .tolerance = 1e-6};

/* ---- tensor_scatter: i[0] axis, i[1] below which positions are, i[2] circular ---- */

static void draw_tensor_scatter(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 2, 4, dims), axis = test_int(r, 1, rank - 1);
    dims[axis] += dims[axis] == 0;
    op_tensor(c, 0, op_random_dtype(r), rank, dims);
    op_tensor(c, 2, index_dtype(r), 1, dims);
    c->absent[2] = test_chance(r, 20);
    c->i[0] = test_chance(r, 50) ? axis : axis - rank;
    c->i[2] = test_chance(r, 50);
    mica_index size = dims[axis];
    dims[axis] = test_int(r, 0, (int)size);
    c->i[1] = c->i[2] ? 3 * size : size - dims[axis] + 1;
    op_tensor(c, 1, c->tensor[0].dtype, rank, dims);
}

static mica_status run_tensor_scatter(mica_context *ctx, const op_call *c)
{
    return mica_tensor_scatter(ctx, OP(c, 0), OP(c, 1), OP(c, 2),
                               &(mica_tensor_scatter_opts){(int)c->i[0], c->i[2] != 0});
}

static void reference_tensor_scatter(const op_call *c, double *const *v)
{
    const mica_tensor *cache = &c->tensor[0];
    int axis = (int)(c->i[0] < 0 ? c->i[0] + cache->rank : c->i[0]);
    for (size_t i = 0; i < op_count(c, 1); i++) {
        mica_index at[MICA_MAX_RANK] = {0};
        op_unravel(&c->tensor[1], i, at);
        at[axis] = (at[axis] + (c->absent[2] ? 0 : (mica_index)v[2][at[0]])) % cache->dim[axis];
        v[0][op_ravel(cache, at)] = v[1][i];
    }
}

OP_CASE(tensor_scatter) = {.names = {"dst", "src", "start"},
                           .outs = 1,
                           .ins = 2,
                           .optional = OP_BIT(2),
                           .reads_outs = OP_BIT(0),
                           .any_shape = OP_BIT(0),
                           .any_dtype = OP_BIT(0) | OP_BIT(1),
                           .draw = draw_tensor_scatter,
                           .fill = fill_below,
                           .run = run_tensor_scatter,
                           .reference = reference_tensor_scatter};
