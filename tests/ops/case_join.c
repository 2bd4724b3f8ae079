/* Cases of concat, split, stack, tile and padding. */
#include "ops/op_index.h"

/* ---- concat, split, stack: always of three parts ---- */

#define PARTS 3

/* The whole is tensor `whole`, the parts are the three from `first` on. i[0]: the axis. */
static void draw_parts(op_call *c, test_random *r, int whole, int first)
{
    mica_index dims[MICA_MAX_RANK], total = 0;
    int rank = op_random_shape(c, r, 1, 5, dims), axis = test_int(r, 0, rank - 1);
    mica_dtype dtype = op_random_dtype(r);
    mica_index size = dims[axis];
    for (int p = 0; p < PARTS; p++) {
        dims[axis] = test_chance(r, 10) ? 0 : size > 20 ? size / (p + 1) : test_int(r, 1, 5);
        total += dims[axis];
        op_tensor(c, first + p, dtype, rank, dims);
    }
    dims[axis] = total;
    op_tensor(c, whole, dtype, rank, dims);
    c->i[0] = test_chance(r, 50) ? axis : axis - rank;
}

static int axis_of(const op_call *c, int tensor)
{
    return (int)(c->i[0] < 0 ? c->i[0] + c->tensor[tensor].rank : c->i[0]);
}

/* Calls `pair` with each element of the parts and its place in the whole. */
static void each_part(const op_call *c, double *whole_value, double *const *v, int whole, int first,
                      bool join)
{
    mica_index start = 0;
    int axis = axis_of(c, whole);
    for (int p = 0; p < PARTS; p++) {
        const mica_tensor *part = &c->tensor[first + p];
        for (size_t i = 0; i < op_count(c, first + p); i++) {
            mica_index index[MICA_MAX_RANK] = {0};
            op_unravel(part, i, index);
            index[axis] += start;
            double *place = &whole_value[op_ravel(&c->tensor[whole], index)], *mine = &v[first + p][i];
            if (join)
                *place = *mine;
            else
                *mine = *place;
        }
        start += part->dim[axis];
    }
}

static void draw_concat(op_call *c, test_random *r) { draw_parts(c, r, 0, 1); }
static void draw_split(op_call *c, test_random *r) { draw_parts(c, r, PARTS, 0); }

static mica_status run_concat(mica_context *ctx, const op_call *c)
{
    return mica_concat(ctx, OP(c, 0), (const mica_tensor *[]){OP(c, 1), OP(c, 2), OP(c, 3)}, PARTS,
                       (int)c->i[0]);
}
static mica_status run_split(mica_context *ctx, const op_call *c)
{
    return mica_split(ctx, (const mica_tensor *[]){OP(c, 0), OP(c, 1), OP(c, 2)}, PARTS, OP(c, 3),
                      (int)c->i[0]);
}
static void reference_concat(const op_call *c, double *const *v) { each_part(c, v[0], v, 0, 1, true); }
static void reference_split(const op_call *c, double *const *v)
{
    each_part(c, v[PARTS], v, PARTS, 0, false);
}

OP_CASE(concat) = {.names = {"dst", "srcs[0]", "srcs[1]", "srcs[2]"},
                   .outs = 1,
                   .ins = PARTS,
                   .any_dtype = 15,
                   .axis_option = 1,
                   .draw = draw_concat,
                   .run = run_concat,
                   .reference = reference_concat};

OP_CASE(split) = {.names = {"dsts[0]", "dsts[1]", "dsts[2]", "src"},
                  .outs = PARTS,
                  .ins = 1,
                  .any_dtype = 15,
                  .axis_option = 1,
                  .draw = draw_split,
                  .run = run_split,
                  .reference = reference_split};

static void draw_stack(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK], more[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 5, dims), axis = test_int(r, 0, rank);
    mica_dtype dtype = op_random_dtype(r);
    for (int k = 0; k <= rank; k++)
        more[k] = k < axis ? dims[k] : k == axis ? PARTS : dims[k - 1];
    op_tensor(c, 0, dtype, rank + 1, more);
    for (int p = 0; p < PARTS; p++)
        op_tensor(c, 1 + p, dtype, rank, dims);
    c->i[0] = test_chance(r, 50) ? axis : axis - rank - 1;
}

static mica_status run_stack(mica_context *ctx, const op_call *c)
{
    return mica_stack(ctx, OP(c, 0), (const mica_tensor *[]){OP(c, 1), OP(c, 2), OP(c, 3)}, PARTS,
                      (int)c->i[0]);
}

static void reference_stack(const op_call *c, double *const *v)
{
    int axis = axis_of(c, 0);
    for (size_t i = 0; i < op_count(c, 0); i++) {
        mica_index index[MICA_MAX_RANK] = {0};
        op_unravel(&c->tensor[0], i, index);
        mica_index part = index[axis];
        for (int k = axis; k + 1 < c->tensor[0].rank; k++)
            index[k] = index[k + 1];
        v[0][i] = v[1 + part][op_ravel(&c->tensor[1], index)];
    }
}

OP_CASE(stack) = {.names = {"dst", "srcs[0]", "srcs[1]", "srcs[2]"},
                  .outs = 1,
                  .ins = PARTS,
                  .any_dtype = 15,
                  .axis_option = 1,
                  .draw = draw_stack,
                  .run = run_stack,
                  .reference = reference_stack};

/* ---- tile ---- */

static void draw_tiling(op_call *c, test_random *r, int large, int small, mica_dtype dtype)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = test_chance(r, 10) ? MICA_MAX_RANK : test_int(r, 0, 4), dropped = 0;
    for (int k = 0; k < rank; k++)
        dims[k] = test_chance(r, 4) ? 0 : test_int(r, 1, rank > 4 ? 2 : 4);
    if (c->large)
        rank = 2, dims[0] = 20, dims[1] = test_int(r, 300, 500);
    if (rank > 0 && test_chance(r, 20))
        dropped = test_int(r, 0, rank);
    op_tensor(c, small, dtype, rank - dropped, dims + dropped);
    for (int k = 0; k < rank; k++) {
        mica_index size = k < dropped ? 1 : dims[k],
                   times = test_chance(r, 4) ? 0 : test_int(r, 1, rank > 4 ? 2 : 4);
        dims[k] = size * times;
    }
    op_tensor(c, large, dtype, rank, dims);
}

/* Where element i of the large tensor comes from in the small one. */
static size_t tiled_from(const mica_tensor *small, const mica_tensor *large, size_t i)
{
    mica_index index[MICA_MAX_RANK] = {0};
    int dropped = large->rank - small->rank;
    op_unravel(large, i, index);
    for (int k = 0; k < small->rank; k++)
        index[k] = index[k + dropped] % small->dim[k];
    return op_ravel(small, index);
}

static void draw_tile(op_call *c, test_random *r) { draw_tiling(c, r, 0, 1, op_random_dtype(r)); }
static void draw_tile_backward(op_call *c, test_random *r) { draw_tiling(c, r, 1, 0, MICA_F32); }
static mica_status run_tile(mica_context *ctx, const op_call *c)
{
    return mica_tile(ctx, OP(c, 0), OP(c, 1));
}
static mica_status run_tile_backward(mica_context *ctx, const op_call *c)
{
    return mica_tile_backward(ctx, OP(c, 0), OP(c, 1));
}

static void reference_tile(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = v[1][tiled_from(&c->tensor[1], &c->tensor[0], i)];
}

static void reference_tile_backward(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = 0;
    for (size_t i = 0; i < op_count(c, 1); i++)
        v[0][tiled_from(&c->tensor[0], &c->tensor[1], i)] += v[1][i];
}

OP_CASE(tile) = {.names = {"dst", "src"},
                 .outs = 1,
                 .ins = 1,
                 .any_shape = OP_BIT(0) | OP_BIT(1),
                 .any_dtype = OP_BIT(0) | OP_BIT(1),
                 .draw = draw_tile,
                 .run = run_tile,
                 .reference = reference_tile};

OP_CASE(tile_backward) = {.names = {"dx", "dy"},
                          .outs = 1,
                          .ins = 1,
                          .any_shape = OP_BIT(0) | OP_BIT(1),
                          .draw = draw_tile_backward,
                          .run = run_tile_backward,
                          .reference = reference_tile_backward,
                          .tolerance = 1e-5};

/* ---- pad ---- */

/* i[k], i[8 + k]: before and after along axis k; i[16]: the mode; f[0]: the value. */
static void draw_padding(op_call *c, test_random *r, int padded, int plain, mica_dtype dtype)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 4, dims);
    op_tensor(c, plain, dtype, rank, dims);
    c->i[16] = test_int(r, MICA_PAD_CONSTANT, MICA_PAD_WRAP);
    c->f[0] = test_int(r, 0, 9);
    for (int k = 0; k < rank; k++) {
        int most = c->i[16] == MICA_PAD_REFLECT && dims[k] <= 4 ? (int)dims[k] - 1 : 4;
        if (c->i[16] != MICA_PAD_CONSTANT && dims[k] == 0)
            most = 0;
        bool none = test_chance(r, 30);
        c->i[k] = none ? 0 : test_int(r, 0, most);
        c->i[8 + k] = none ? 0 : test_int(r, 0, most);
        dims[k] += c->i[k] + c->i[8 + k];
    }
    op_tensor(c, padded, dtype, rank, dims);
}

static mica_pad_opts pad_opts(const op_call *c)
{
    mica_pad_opts opts = {.mode = (mica_pad_mode)c->i[16], .value = c->f[0]};
    for (int k = 0; k < MICA_MAX_RANK; k++)
        opts.before[k] = c->i[k], opts.after[k] = c->i[8 + k];
    return opts;
}

/* Where element i of the padded tensor comes from in the plain one; SIZE_MAX: nowhere. */
static size_t padded_from(const op_call *c, const mica_tensor *plain, const mica_tensor *padded, size_t i)
{
    mica_index index[MICA_MAX_RANK] = {0};
    op_unravel(padded, i, index);
    for (int k = 0; k < plain->rank; k++) {
        index[k] -= c->i[k];
        bool outside = index[k] < 0 || index[k] >= plain->dim[k];
        if (outside && c->i[16] == MICA_PAD_CONSTANT)
            return SIZE_MAX;
        if (outside && c->i[16] == MICA_PAD_EDGE)
            index[k] = index[k] < 0 ? 0 : plain->dim[k] - 1;
        if (outside && c->i[16] == MICA_PAD_WRAP)
            index[k] = (index[k] + 4 * plain->dim[k]) % plain->dim[k];
        if (index[k] < 0)
            index[k] = -index[k];
        if (index[k] >= plain->dim[k])
            index[k] = 2 * plain->dim[k] - 2 - index[k];
    }
    return op_ravel(plain, index);
}

static void draw_pad(op_call *c, test_random *r) { draw_padding(c, r, 0, 1, op_random_dtype(r)); }
static void draw_pad_backward(op_call *c, test_random *r) { draw_padding(c, r, 1, 0, MICA_F32); }
static void draw_unpad(op_call *c, test_random *r) { draw_padding(c, r, 1, 0, op_random_dtype(r)); }

#define RUN_PAD(op)                                                  \
    static mica_status run_##op(mica_context *ctx, const op_call *c) \
    {                                                                \
        mica_pad_opts opts = pad_opts(c);                            \
        return mica_##op(ctx, OP(c, 0), OP(c, 1), &opts);            \
    }
RUN_PAD(pad)
RUN_PAD(pad_backward)
RUN_PAD(unpad)

static void reference_pad(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++) {
        size_t from = padded_from(c, &c->tensor[1], &c->tensor[0], i);
        v[0][i] = from == SIZE_MAX ? c->f[0] : v[1][from];
    }
}

static void reference_pad_backward(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = 0;
    for (size_t i = 0; i < op_count(c, 1); i++) {
        size_t from = padded_from(c, &c->tensor[0], &c->tensor[1], i);
        if (from != SIZE_MAX)
            v[0][from] += v[1][i];
    }
}

static void reference_unpad(const op_call *c, double *const *v)
{
    op_call constant = *c;
    constant.i[16] = MICA_PAD_CONSTANT;
    reference_pad_backward(&constant, v);
}

OP_CASE(pad) = {.names = {"dst", "src"},
                .outs = 1,
                .ins = 1,
                .any_dtype = OP_BIT(0) | OP_BIT(1),
                .draws = 400,
                .draw = draw_pad,
                .run = run_pad,
                .reference = reference_pad};

OP_CASE(pad_backward) = {.names = {"dx", "dy"},
                         .outs = 1,
                         .ins = 1,
                         .draw = draw_pad_backward,
                         .run = run_pad_backward,
                         .reference = reference_pad_backward,
                         .tolerance = 1e-5};

OP_CASE(unpad) = {.names = {"dst", "src"},
                  .outs = 1,
                  .ins = 1,
                  .any_dtype = OP_BIT(0) | OP_BIT(1),
                  .draw = draw_unpad,
                  .run = run_unpad,
                  .reference = reference_unpad};
