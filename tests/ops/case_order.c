/* Cases of the operations along an axis and on matrices: top_k, one_hot, cumsum, trilu, reverse_sequence, det. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op_index.h"

static mica_dtype number_dtype(test_random *r)
{
    static const mica_dtype numbers[] = {MICA_F32, MICA_F32, MICA_F64, MICA_I64, MICA_I32, MICA_I16};
    return numbers[test_int(r, 0, 5)];
}

static int draw_axis(op_call *c, test_random *r, int rank)
{
    int axis = test_int(r, 0, rank - 1);
    c->i[0] = test_chance(r, 50) ? axis : axis - rank;
    return axis;
}

static int axis_of(const op_call *c, int tensor)
{
    return (int)(c->i[0] < 0 ? c->i[0] + c->tensor[tensor].rank : c->i[0]);
}

/* ---- top_k: i[0] axis, i[1] smallest, i[2] the last of equal ones ---- */

static void draw_top_k(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 1, 4, dims), axis = draw_axis(c, r, rank);
    op_tensor(c, 2, op_random_dtype(r), rank, dims);
    dims[axis] = test_int(r, 0, c->large ? 1 : (int)dims[axis]);
    op_tensor(c, 0, c->tensor[2].dtype, rank, dims);
    op_tensor(c, 1, test_chance(r, 50) ? MICA_I32 : MICA_I64, rank, dims);
    c->i[1] = test_chance(r, 50);
    c->i[2] = test_chance(r, 30);
}

static mica_status run_top_k(mica_context *ctx, const op_call *c)
{
    return mica_top_k(
        ctx, OP(c, 0), OP(c, 1), OP(c, 2),
        &(mica_top_k_opts){.axis = (int)c->i[0], .smallest = c->i[1] != 0, .last = c->i[2] != 0});
}

/* By choosing the best one that was not taken, again and again. */
static void reference_top_k(const op_call *c, double *const *v)
{
    int axis = axis_of(c, 2);
    mica_index n = c->tensor[2].dim[axis];
    for (size_t i = 0; i < op_count(c, 0); i++) {
        mica_index at[MICA_MAX_RANK] = {0};
        op_unravel(&c->tensor[0], i, at);
        mica_index k = at[axis], best = -1;
        for (mica_index j = 0; j < n; j++) { /* the one that k others come before */
            at[axis] = j;
            double x = v[2][op_ravel(&c->tensor[2], at)];
            mica_index ahead = 0;
            for (mica_index l = 0; l < n; l++) {
                at[axis] = l;
                double y = v[2][op_ravel(&c->tensor[2], at)];
                ahead += y != x ? (c->i[1] ? y < x : y > x) : c->i[2] ? l > j : l < j;
            }
            best = ahead == k ? j : best;
        }
        at[axis] = best;
        v[0][i] = v[2][op_ravel(&c->tensor[2], at)];
        v[1][i] = (double)best;
    }
}

OP_CASE(top_k) = {.names = {"values", "places", "src"},
                  .outs = 2,
                  .ins = 1,
                  .any_shape = OP_BIT(2),
                  .any_dtype = OP_BIT(0) | OP_BIT(2),
                  .axis_option = 1,
                  .draw = draw_top_k,
                  .run = run_top_k,
                  .reference = reference_top_k};

/* ---- one_hot: i[0] the axis of dst ---- */

static void draw_one_hot(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK], own[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 1, 4, dims), axis = draw_axis(c, r, rank), n = 0;
    for (int k = 0; k < rank; k++)
        if (k != axis)
            own[n++] = dims[k];
    mica_dtype dtype = op_random_dtype(r);
    op_tensor(c, 0, dtype, rank, dims);
    op_tensor(c, 1, test_chance(r, 50) ? MICA_I32 : MICA_I64, n, own);
    op_tensor(c, 2, dtype, 1, (mica_index[]){2});
}

static mica_status run_one_hot(mica_context *ctx, const op_call *c)
{
    return mica_one_hot(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (int)c->i[0]);
}

static void reference_one_hot(const op_call *c, double *const *v)
{
    int axis = axis_of(c, 0);
    mica_index size = c->tensor[0].dim[axis];
    for (size_t i = 0; i < op_count(c, 0); i++) {
        mica_index at[MICA_MAX_RANK] = {0}, own[MICA_MAX_RANK] = {0};
        op_unravel(&c->tensor[0], i, at);
        for (int k = 0, n = 0; k < c->tensor[0].rank; k++)
            if (k != axis)
                own[n++] = at[k];
        mica_index hot = (mica_index)v[1][op_ravel(&c->tensor[1], own)];
        v[0][i] = v[2][(hot < 0 ? hot + size : hot) == at[axis]];
    }
}

OP_CASE(one_hot) = {.names = {"dst", "index", "values"},
                    .outs = 1,
                    .ins = 2,
                    .any_shape = OP_BIT(0),
                    .any_dtype = OP_BIT(0) | OP_BIT(2),
                    .axis_option = 1,
                    .draw = draw_one_hot,
                    .run = run_one_hot,
                    .reference = reference_one_hot};

/* ---- cumsum: i[0] axis, i[1] exclusive, i[2] reverse ---- */

static void draw_cumsum(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 1, 4, dims);
    (void)draw_axis(c, r, rank);
    mica_dtype dtype = number_dtype(r);
    op_tensor(c, 0, dtype, rank, dims);
    op_tensor(c, 1, dtype, rank, dims);
    c->i[1] = test_chance(r, 50);
    c->i[2] = test_chance(r, 50);
}

static mica_status run_cumsum(mica_context *ctx, const op_call *c)
{
    return mica_cumsum(ctx, OP(c, 0), OP(c, 1),
                       &(mica_cumsum_opts){(int)c->i[0], c->i[1] != 0, c->i[2] != 0});
}

static void reference_cumsum(const op_call *c, double *const *v)
{
    int axis = axis_of(c, 1);
    for (size_t i = 0; i < op_count(c, 0); i++) {
        mica_index at[MICA_MAX_RANK] = {0};
        op_unravel(&c->tensor[0], i, at);
        mica_index here = at[axis];
        v[0][i] = 0.0;
        for (at[axis] = 0; at[axis] < c->tensor[1].dim[axis]; at[axis]++)
            if (c->i[2] ? at[axis] >= here + c->i[1] : at[axis] <= here - c->i[1])
                v[0][i] += v[1][op_ravel(&c->tensor[1], at)];
    }
}

OP_CASE(cumsum) = {.names = {"dst", "src"},
                   .outs = 1,
                   .ins = 1,
                   .in_place = OP_BIT(1),
                   .any_dtype = OP_BIT(0) | OP_BIT(1),
                   .axis_option = 1,
                   .draw = draw_cumsum,
                   .run = run_cumsum,
                   .reference = reference_cumsum,
                   .tolerance = 1e-6};

/* ---- trilu: i[0] the diagonal, i[1] lower ---- */

static void draw_trilu(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 2, 4, dims);
    mica_dtype dtype = op_random_dtype(r);
    op_tensor(c, 0, dtype, rank, dims);
    op_tensor(c, 1, dtype, rank, dims);
    c->i[0] = test_chance(r, 90) ? test_int(r, -7, 7) : test_chance(r, 50) ? LONG_MAX : LONG_MIN;
    c->i[1] = test_chance(r, 50);
}

static mica_status run_trilu(mica_context *ctx, const op_call *c)
{
    return mica_trilu(ctx, OP(c, 0), OP(c, 1), &(mica_trilu_opts){c->i[0], c->i[1] != 0});
}

static void reference_trilu(const op_call *c, double *const *v)
{
    int rank = c->tensor[0].rank;
    for (size_t i = 0; i < op_count(c, 0); i++) {
        mica_index at[MICA_MAX_RANK] = {0};
        op_unravel(&c->tensor[0], i, at);
        mica_index above = at[rank - 1] - at[rank - 2];
        v[0][i] = (c->i[1] ? above <= c->i[0] : above >= c->i[0]) ? v[1][i] : 0.0;
    }
}

OP_CASE(trilu) = {.names = {"dst", "src"},
                  .outs = 1,
                  .ins = 1,
                  .in_place = OP_BIT(1),
                  .any_dtype = OP_BIT(0) | OP_BIT(1),
                  .draw = draw_trilu,
                  .run = run_trilu,
                  .reference = reference_trilu};

/* ---- reverse_sequence: i[0] time, i[1] batch, i[2] the longest ---- */

static void draw_reverse_sequence(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 2, 4, dims), time = draw_axis(c, r, rank),
        batch = test_int(r, 0, rank - 2);
    batch += batch >= time;
    mica_dtype dtype = op_random_dtype(r);
    op_tensor(c, 0, dtype, rank, dims);
    op_tensor(c, 1, dtype, rank, dims);
    op_tensor(c, 2, test_chance(r, 50) ? MICA_I32 : MICA_I64, 1, &dims[batch]);
    c->i[1] = batch;
    c->i[2] = dims[time];
}

static void fill_reverse_sequence(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value[i] = test_int(r, 0, tensor == 2 ? (int)c->i[2] : 50);
}

static mica_status run_reverse_sequence(mica_context *ctx, const op_call *c)
{
    return mica_reverse_sequence(ctx, OP(c, 0), OP(c, 1), OP(c, 2),
                                 &(mica_reverse_sequence_opts){(int)c->i[0], (int)c->i[1]});
}

static void reference_reverse_sequence(const op_call *c, double *const *v)
{
    int time = axis_of(c, 1);
    for (size_t i = 0; i < op_count(c, 0); i++) {
        mica_index at[MICA_MAX_RANK] = {0};
        op_unravel(&c->tensor[0], i, at);
        mica_index n = (mica_index)v[2][at[c->i[1]]];
        at[time] = at[time] < n ? n - 1 - at[time] : at[time];
        v[0][i] = v[1][op_ravel(&c->tensor[1], at)];
    }
}

OP_CASE(reverse_sequence) = {.names = {"dst", "src", "lengths"},
                             .outs = 1,
                             .ins = 2,
                             .any_dtype = OP_BIT(0) | OP_BIT(1),
                             .draw = draw_reverse_sequence,
                             .fill = fill_reverse_sequence,
                             .run = run_reverse_sequence,
                             .reference = reference_reverse_sequence};

/* ---- det ---- */

/* By its first row. a [n, n] */
static double expanded(const double *a, int n)
{
    double sum = 0.0, minor[36];
    if (n == 0)
        return 1.0;
    for (int column = 0; column < n; column++) {
        double *to = minor;
        for (int i = 1; i < n; i++)
            for (int j = 0; j < n; j++)
                if (j != column)
                    *to++ = a[i * n + j];
        sum += (column % 2 ? -1.0 : 1.0) * a[column] * expanded(minor, n - 1);
    }
    return sum;
}

static void draw_square(op_call *c, test_random *r, int x, int each)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = test_int(r, 0, 2), n = test_int(r, test_chance(r, 5) ? 0 : 1, 4);
    for (int k = 0; k < rank; k++)
        dims[k] = c->large ? 100 : test_int(r, 0, 4);
    dims[rank] = dims[rank + 1] = n;
    op_tensor(c, each, MICA_F32, rank, dims);
    op_tensor(c, x, MICA_F32, rank + 2, dims);
    c->scale = 10.0;
}

static void draw_det(op_call *c, test_random *r) { draw_square(c, r, 1, 0); }

static mica_status run_det(mica_context *ctx, const op_call *c) { return mica_det(ctx, OP(c, 0), OP(c, 1)); }

static void reference_det(const op_call *c, double *const *v)
{
    int n = (int)c->tensor[1].dim[c->tensor[1].rank - 1];
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = expanded(v[1] + i * (size_t)(n * n), n);
}

OP_CASE(det) = {.names = {"dst", "src"},
                .outs = 1,
                .ins = 1,
                .draw = draw_det,
                .run = run_det,
                .reference = reference_det,
                .tolerance = 1e-6};

static void draw_det_backward(op_call *c, test_random *r)
{
    draw_square(c, r, 2, 1);
    op_tensor(c, 0, MICA_F32, c->tensor[2].rank, c->tensor[2].dim);
}

static mica_status run_det_backward(mica_context *ctx, const op_call *c)
{
    return mica_det_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2));
}

/* A determinant is linear in each element. */
static void reference_det_backward(const op_call *c, double *const *v)
{
    int n = (int)c->tensor[2].dim[c->tensor[2].rank - 1];
    for (size_t i = 0; i < op_count(c, 1); i++)
        for (int k = 0; k < n * n; k++) {
            double a[36];
            memcpy(a, v[2] + i * (size_t)(n * n), (size_t)(n * n) * sizeof *a);
            a[k] = 1.0;
            double with = expanded(a, n);
            a[k] = 0.0;
            v[0][i * (size_t)(n * n) + (size_t)k] = v[1][i] * (with - expanded(a, n));
        }
}

OP_CASE(det_backward) = {.names = {"dx", "dy", "x"},
                         .outs = 1,
                         .ins = 2,
                         .draw = draw_det_backward,
                         .run = run_det_backward,
                         .reference = reference_det_backward,
                         .tolerance = 1e-6};
