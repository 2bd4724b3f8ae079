/* Cases of the indexing operations. Tensor 2 is always the index; i[0] the axis, i[1] the size that it
 * indexes. */
#include "ops/op_index.h"

static mica_dtype index_dtype(test_random *r) { return test_chance(r, 50) ? MICA_I32 : MICA_I64; }

static int axis_of(const op_call *c, int whole)
{
    return (int)(c->i[0] < 0 ? c->i[0] + c->tensor[whole].rank : c->i[0]);
}

static void fill_indexed(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == 2 ? test_int(r, 0, (int)c->i[1] - 1) : test_int(r, 0, 50);
}

/* ---- gather and scatter_add ---- */

/* `whole` is indexed, `each` has the index's shape. */
static void draw_elements(op_call *c, test_random *r, int whole, int each, mica_dtype dtype)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 1, 4, dims), axis = test_int(r, 0, rank - 1);
    if (dims[axis] == 0)
        dims[axis] = 1;
    op_tensor(c, whole, dtype, rank, dims);
    c->i[0] = test_chance(r, 50) ? axis : axis - rank;
    c->i[1] = dims[axis];
    for (int k = 0; k < rank; k++)
        if (!c->large && dims[k] > 0 && test_chance(r, 30))
            dims[k] = test_int(r, 0, (int)dims[k]);
    if (!c->large || test_chance(r, 50))
        dims[axis] = test_int(r, 0, 8);
    op_tensor(c, each, dtype, rank, dims);
    op_tensor(c, 2, index_dtype(r), rank, dims);
}

static size_t place_of(const op_call *c, double *const *v, int whole, size_t i)
{
    mica_index index[MICA_MAX_RANK] = {0};
    op_unravel(&c->tensor[2], i, index);
    index[axis_of(c, whole)] = (mica_index)v[2][i];
    return op_ravel(&c->tensor[whole], index);
}

static void draw_gather(op_call *c, test_random *r) { draw_elements(c, r, 1, 0, op_random_dtype(r)); }
static void draw_scatter(op_call *c, test_random *r) { draw_elements(c, r, 0, 1, MICA_F32); }

static mica_status run_gather(mica_context *ctx, const op_call *c)
{
    return mica_gather(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (int)c->i[0]);
}
static mica_status run_scatter_add(mica_context *ctx, const op_call *c)
{
    return mica_scatter_add(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (int)c->i[0]);
}
static mica_status run_gather_backward(mica_context *ctx, const op_call *c)
{
    return mica_gather_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (int)c->i[0]);
}

static void reference_gather(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = v[1][place_of(c, v, 1, i)];
}
static void reference_scatter_add(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 1); i++)
        v[0][place_of(c, v, 0, i)] += v[1][i];
}
static void clear(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = 0;
}
static void reference_gather_backward(const op_call *c, double *const *v)
{
    clear(c, v);
    reference_scatter_add(c, v);
}

OP_CASE(gather) = {.names = {"dst", "src", "index"},
                   .outs = 1,
                   .ins = 2,
                   .any_shape = OP_BIT(1),
                   .any_dtype = OP_BIT(0) | OP_BIT(1),
                   .axis_option = 1,
                   .draw = draw_gather,
                   .fill = fill_indexed,
                   .run = run_gather,
                   .reference = reference_gather};

OP_CASE(scatter_add) = {.names = {"dst", "src", "index"},
                        .outs = 1,
                        .ins = 2,
                        .reads_outs = OP_BIT(0),
                        .any_shape = OP_BIT(0),
                        .axis_option = 1,
                        .draw = draw_scatter,
                        .fill = fill_indexed,
                        .run = run_scatter_add,
                        .reference = reference_scatter_add,
                        .tolerance = 1e-6};

OP_CASE(gather_backward) = {.names = {"dx", "dy", "index"},
                            .outs = 1,
                            .ins = 2,
                            .any_shape = OP_BIT(0),
                            .axis_option = 1,
                            .draw = draw_scatter,
                            .fill = fill_indexed,
                            .run = run_gather_backward,
                            .reference = reference_gather_backward,
                            .tolerance = 1e-6};

/* ---- take and index_add ---- */

/* `table` is indexed; `list` has the index's axes in place of that axis. */
static void draw_slices(op_call *c, test_random *r, int table, int list, mica_dtype dtype)
{
    mica_index dims[MICA_MAX_RANK], index[MICA_MAX_RANK], joined[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 1, 4, dims), axis = test_int(r, 0, rank - 1),
        index_rank = test_int(r, 0, 3);
    if (dims[axis] == 0)
        dims[axis] = 1;
    if (c->large)
        rank = 2, axis = 0, index_rank = 1, dims[0] = 50, dims[1] = 300;
    for (int k = 0; k < index_rank; k++)
        index[k] = c->large ? 400 : test_chance(r, 5) ? 0 : test_int(r, 1, 6);
    for (int k = 0; k < rank - 1 + index_rank; k++)
        joined[k] = k < axis ? dims[k] : k < axis + index_rank ? index[k - axis] : dims[k - index_rank + 1];
    op_tensor(c, table, dtype, rank, dims);
    op_tensor(c, list, dtype, rank - 1 + index_rank, joined);
    op_tensor(c, 2, index_dtype(r), index_rank, index);
    c->i[0] = test_chance(r, 50) ? axis : axis - rank;
    c->i[1] = dims[axis];
}

/* Where element i of the list lies in the table. */
static size_t slot_of(const op_call *c, double *const *v, int table, int list, size_t i)
{
    mica_index at[MICA_MAX_RANK] = {0}, out[MICA_MAX_RANK] = {0};
    int axis = axis_of(c, table), index_rank = c->tensor[2].rank;
    op_unravel(&c->tensor[list], i, at);
    for (int k = 0; k < c->tensor[table].rank; k++)
        out[k] = k < axis ? at[k] : k > axis ? at[k + index_rank - 1] : 0;
    out[axis] = (mica_index)v[2][op_ravel(&c->tensor[2], at + axis)];
    return op_ravel(&c->tensor[table], out);
}

static void draw_take(op_call *c, test_random *r) { draw_slices(c, r, 1, 0, op_random_dtype(r)); }
static void draw_index_add(op_call *c, test_random *r) { draw_slices(c, r, 0, 1, MICA_F32); }

static mica_status run_take(mica_context *ctx, const op_call *c)
{
    return mica_take(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (int)c->i[0]);
}
static mica_status run_index_add(mica_context *ctx, const op_call *c)
{
    return mica_index_add(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (int)c->i[0]);
}
static mica_status run_take_backward(mica_context *ctx, const op_call *c)
{
    return mica_take_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (int)c->i[0]);
}

static void reference_take(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = v[1][slot_of(c, v, 1, 0, i)];
}
static void reference_index_add(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 1); i++)
        v[0][slot_of(c, v, 0, 1, i)] += v[1][i];
}
static void reference_take_backward(const op_call *c, double *const *v)
{
    clear(c, v);
    reference_index_add(c, v);
}

OP_CASE(take) = {.names = {"dst", "src", "index"},
                 .outs = 1,
                 .ins = 2,
                 .any_shape = OP_BIT(1),
                 .any_dtype = OP_BIT(0) | OP_BIT(1),
                 .axis_option = 1,
                 .blocks = OP_BIT(1),
                 .draw = draw_take,
                 .fill = fill_indexed,
                 .run = run_take,
                 .reference = reference_take};

OP_CASE(index_add) = {.names = {"dst", "src", "index"},
                      .outs = 1,
                      .ins = 2,
                      .reads_outs = OP_BIT(0),
                      .any_shape = OP_BIT(0),
                      .axis_option = 1,
                      .draw = draw_index_add,
                      .fill = fill_indexed,
                      .run = run_index_add,
                      .reference = reference_index_add,
                      .tolerance = 1e-6};

OP_CASE(take_backward) = {.names = {"dx", "dy", "index"},
                          .outs = 1,
                          .ins = 2,
                          .any_shape = OP_BIT(0),
                          .axis_option = 1,
                          .draw = draw_index_add,
                          .fill = fill_indexed,
                          .run = run_take_backward,
                          .reference = reference_take_backward,
                          .tolerance = 1e-6};
