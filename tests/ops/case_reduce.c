/* Cases of the reductions. */
#include <math.h>

#include "ops/op_case.h"

/* i[0]: how many axes, i[1..]: which; i[10]: an option of the operation. dst keeps the axes or drops them. */
static void draw_reduce(op_call *c, test_random *r, int low_rank)
{
    mica_index dims[MICA_MAX_RANK], out[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, low_rank, 5, dims), out_rank = 0;
    unsigned mask = (1u << rank) - 1u;
    if (rank > 0 && test_chance(r, 70)) {
        mask = (unsigned)test_int(r, 1, (1 << rank) - 1);
        for (int i = 0; i < rank; i++)
            if (mask & (1u << i))
                c->i[1 + c->i[0]++] = test_chance(r, 50) ? i : i - rank;
    }
    bool keep = test_chance(r, 40);
    for (int i = 0; i < rank; i++) {
        if (!(mask & (1u << i)))
            out[out_rank++] = dims[i];
        else if (keep)
            out[out_rank++] = 1;
    }
    op_tensor(c, 0, MICA_F32, out_rank, out);
    op_tensor(c, 1, MICA_F32, rank, dims);
    c->i[10] = test_int(r, 0, 2);
}

static void draw(op_call *c, test_random *r) { draw_reduce(c, r, 0); }

/* Never without elements to choose from. */
static void draw_choice(op_call *c, test_random *r)
{
    draw_reduce(c, r, 0);
    for (int k = 0; k < 2; k++) {
        mica_tensor t = c->tensor[k];
        for (int i = 0; i < t.rank; i++)
            t.dim[i] = t.dim[i] == 0 ? 1 : t.dim[i];
        op_tensor(c, k, MICA_F32, t.rank, t.dim);
    }
}

static mica_reduce_opts opts_of(const op_call *c)
{
    mica_reduce_opts opts = {.count = (int)c->i[0], .correction = (int)c->i[10]};
    for (int i = 0; i < opts.count; i++)
        opts.axes[i] = (int)c->i[1 + i];
    return opts;
}

static unsigned mask_of(const op_call *c)
{
    unsigned mask = c->i[0] == 0 ? (1u << c->tensor[1].rank) - 1u : 0u;
    for (int i = 0; i < c->i[0]; i++)
        mask |= 1u << (c->i[1 + i] < 0 ? c->i[1 + i] + c->tensor[1].rank : c->i[1 + i]);
    return mask;
}

/* The output that element i of a goes to, and its number among the elements of that output. */
static size_t output_of(const op_call *c, unsigned mask, size_t i, size_t *number)
{
    const mica_tensor *a = &c->tensor[1];
    size_t output = 0, step = 1, number_step = 1;
    *number = 0;
    for (int axis = a->rank - 1; axis >= 0; axis--) {
        size_t size = (size_t)a->dim[axis], position = i % size;
        i /= size;
        if (mask & (1u << axis)) {
            *number += position * number_step;
            number_step *= size;
        } else {
            output += position * step;
            step *= size;
        }
    }
    return output;
}

/* result = visit(result, element, extra[output]) over all elements. */
static void each(const op_call *c, double *const *v, double *result, double start,
                 double (*visit)(double result, double x, double extra), const double *extra)
{
    size_t number;
    for (size_t i = 0; i < op_count(c, 0); i++)
        result[i] = start;
    for (size_t i = 0; i < op_count(c, 1); i++) {
        size_t o = output_of(c, mask_of(c), i, &number);
        result[o] = visit(result[o], v[1][i], extra != NULL ? extra[o] : 0.0);
    }
}

static double n_of(const op_call *c)
{
    double n = 1.0;
    for (int i = 0; i < c->tensor[1].rank; i++)
        if (mask_of(c) & (1u << i))
            n *= (double)c->tensor[1].dim[i];
    return n;
}

static double add(double r, double x, double e) { return (void)e, r + x; }
static double add_abs(double r, double x, double e) { return (void)e, r + fabs(x); }
static double add_square(double r, double x, double e) { return r + (x - e) * (x - e); }
static double times(double r, double x, double e) { return (void)e, r * x; }
static double larger(double r, double x, double e) { return (void)e, isnan(r) || r > x ? r : x; }
static double smaller(double r, double x, double e) { return (void)e, isnan(r) || r < x ? r : x; }
static double larger_abs(double r, double x, double e) { return larger(r, fabs(x), e); }

static void reference_sum(const op_call *c, double *const *v) { each(c, v, v[0], 0.0, add, NULL); }
static void reference_prod(const op_call *c, double *const *v) { each(c, v, v[0], 1.0, times, NULL); }
static void reference_amax(const op_call *c, double *const *v)
{
    each(c, v, v[0], (double)-INFINITY, larger, NULL);
}
static void reference_amin(const op_call *c, double *const *v)
{
    each(c, v, v[0], (double)INFINITY, smaller, NULL);
}
static void reference_mean(const op_call *c, double *const *v)
{
    reference_sum(c, v);
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] /= n_of(c);
}

static void reference_variance(const op_call *c, double *const *v)
{
    static double mean[1 << 20];
    reference_mean(c, v);
    for (size_t i = 0; i < op_count(c, 0); i++)
        mean[i] = v[0][i];
    each(c, v, v[0], 0.0, add_square, mean);
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = n_of(c) > (double)c->i[10] ? v[0][i] / (n_of(c) - (double)c->i[10]) : (double)NAN;
}

static void reference_norm(const op_call *c, double *const *v)
{
    if (c->i[10] == MICA_NORM_L1)
        each(c, v, v[0], 0.0, add_abs, NULL);
    else if (c->i[10] == MICA_NORM_INF)
        each(c, v, v[0], 0.0, larger_abs, NULL);
    else
        each(c, v, v[0], 0.0, add_square, NULL);
    for (size_t i = 0; c->i[10] == MICA_NORM_L2 && i < op_count(c, 0); i++)
        v[0][i] = sqrt(v[0][i]);
}

/* Few distinct numbers, a NaN now and then. */
static void fill_ties(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c, (void)tensor;
    for (size_t i = 0; i < count; i++)
        value[i] = test_chance(r, 1) ? (double)NAN : test_int(r, -5, 5);
}

/* Far from 0 compared with how they vary. */
static void fill_shifted(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c, (void)tensor;
    double shift = test_chance(r, 50) ? 1000.0 : 0.0;
    for (size_t i = 0; i < count; i++)
        value[i] = shift + test_normal(r);
}

static void fill_near_one(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c, (void)tensor;
    for (size_t i = 0; i < count; i++)
        value[i] = (test_chance(r, 50) ? 1.0 : -1.0) * test_uniform(r, 0.9, 1.1);
}

#define REDUCE_CASE(op, draw_function, fill_function, allowed, call) \
    static mica_status run_##op(mica_context *ctx, const op_call *c) \
    {                                                                \
        mica_reduce_opts opts = opts_of(c);                          \
        return call;                                                 \
    }                                                                \
    OP_CASE(op) = {.names = {"dst", "a"},                            \
                   .outs = 1,                                        \
                   .ins = 1,                                         \
                   .any_shape = OP_BIT(1),                           \
                   .draw = draw_function,                            \
                   .fill = fill_function,                            \
                   .run = run_##op,                                  \
                   .reference = reference_##op,                      \
                   .tolerance = allowed}

/* Sums of normal numbers: relative to 1 at least, and some thousand of them at most. */
REDUCE_CASE(sum, draw, NULL, 2e-5, mica_sum(ctx, OP(c, 0), OP(c, 1), &opts));
REDUCE_CASE(mean, draw, NULL, 1e-6, mica_mean(ctx, OP(c, 0), OP(c, 1), c->i[0] == 0 ? NULL : &opts));
REDUCE_CASE(prod, draw, fill_near_one, 1e-7, mica_prod(ctx, OP(c, 0), OP(c, 1), &opts));
REDUCE_CASE(amax, draw_choice, fill_ties, 0.0, mica_amax(ctx, OP(c, 0), OP(c, 1), &opts));
REDUCE_CASE(amin, draw_choice, fill_ties, 0.0, mica_amin(ctx, OP(c, 0), OP(c, 1), &opts));
REDUCE_CASE(variance, draw, fill_shifted, 2e-6, mica_variance(ctx, OP(c, 0), OP(c, 1), &opts));
REDUCE_CASE(norm, draw, NULL, 2e-6, mica_norm(ctx, OP(c, 0), OP(c, 1), (mica_norm_kind)c->i[10], &opts));

/* ---- dot ---- */

static void draw_dot(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK], ones[MICA_MAX_RANK] = {1, 1};
    int rank = op_random_shape(c, r, 0, 4, dims);
    op_tensor(c, 0, MICA_F32, test_int(r, 0, 2), ones);
    op_tensor(c, 1, MICA_F32, rank, dims);
    op_tensor(c, 2, MICA_F32, rank, dims);
}

static mica_status run_dot(mica_context *ctx, const op_call *c)
{
    return mica_dot(ctx, OP(c, 0), OP(c, 1), OP(c, 2));
}

static void reference_dot(const op_call *c, double *const *v)
{
    v[0][0] = 0.0;
    for (size_t i = 0; i < op_count(c, 1); i++)
        v[0][0] += v[1][i] * v[2][i];
}

OP_CASE(dot) = {.names = {"dst", "a", "b"},
                .outs = 1,
                .ins = 2,
                .draw = draw_dot,
                .run = run_dot,
                .reference = reference_dot,
                .tolerance = 2e-5};

/* ---- argmax, argmin ---- */

static void draw_arg(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK], out[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 4, dims), out_rank = 0;
    bool all = rank == 0 || test_chance(r, 25), keep = test_chance(r, 40);
    int axis = all ? 0 : test_int(r, 0, rank - 1);
    c->i[0] = all ? 0 : 1; /* as for reductions, so that mask_of holds */
    c->i[1] = test_chance(r, 50) ? axis : axis - rank;
    for (int i = 0; i < rank; i++) {
        dims[i] = dims[i] == 0 ? 3 : dims[i];
        if (!all && i != axis)
            out[out_rank++] = dims[i];
        else if (keep)
            out[out_rank++] = 1;
    }
    op_tensor(c, 0, test_chance(r, 50) ? MICA_I32 : MICA_I64, out_rank, out);
    op_tensor(c, 1, MICA_F32, rank, dims);
}

static void reference_arg(const op_call *c, double *const *v, bool largest)
{
    static double best[1 << 20];
    each(c, v, best, (double)(largest ? -INFINITY : INFINITY), largest ? larger : smaller, NULL);
    for (size_t i = op_count(c, 1); i-- > 0;) {
        size_t number, o = output_of(c, mask_of(c), i, &number);
        if (v[1][i] == best[o] || (isnan(v[1][i]) && isnan(best[o])))
            v[0][o] = (double)number;
    }
}

static int axis_of(const op_call *c) { return c->i[0] == 0 ? MICA_ALL_AXES : (int)c->i[1]; }

static mica_status run_argmax(mica_context *ctx, const op_call *c)
{
    return mica_argmax(ctx, OP(c, 0), OP(c, 1), axis_of(c));
}
static mica_status run_argmin(mica_context *ctx, const op_call *c)
{
    return mica_argmin(ctx, OP(c, 0), OP(c, 1), axis_of(c));
}
static void reference_argmax(const op_call *c, double *const *v) { reference_arg(c, v, true); }
static void reference_argmin(const op_call *c, double *const *v) { reference_arg(c, v, false); }

#define ARG_CASE(op)                            \
    OP_CASE(op) = {.names = {"dst", "a"},       \
                   .outs = 1,                   \
                   .ins = 1,                    \
                   .any_shape = OP_BIT(1),      \
                   .any_dtype = OP_BIT(1),      \
                   .draw = draw_arg,            \
                   .fill = fill_ties,           \
                   .run = run_##op,             \
                   .reference = reference_##op, \
                   .tolerance = 0.0}
ARG_CASE(argmax);
ARG_CASE(argmin);

/* ---- amax_backward: its gradient is 1 where the index points, 0 elsewhere ---- */

static void draw_amax_backward(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK], out[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 1, 4, dims), axis = test_int(r, 0, rank - 1);
    dims[axis] = dims[axis] == 0 ? 2 : dims[axis];
    c->i[0] = test_chance(r, 50) ? axis : axis - rank;
    op_tensor(c, 0, MICA_F32, rank, dims);
    for (int k = 1; k <= 2; k++) {
        bool keep = test_chance(r, 40);
        int out_rank = 0;
        for (int i = 0; i < rank; i++)
            if (i != axis || keep)
                out[out_rank++] = i == axis ? 1 : dims[i];
        op_tensor(c, k, k == 1 ? MICA_F32 : test_chance(r, 50) ? MICA_I32 : MICA_I64, out_rank, out);
    }
}

static int backward_axis(const op_call *c) { return (int)c->i[0] + (c->i[0] < 0 ? c->tensor[0].rank : 0); }

static void fill_amax_backward(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    int n = (int)c->tensor[0].dim[backward_axis(c)];
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == 2 ? test_int(r, 0, n - 1) : test_normal(r);
}

static mica_status run_amax_backward(mica_context *ctx, const op_call *c)
{
    return mica_amax_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), (int)c->i[0]);
}

static void reference_amax_backward(const op_call *c, double *const *v)
{
    size_t step = 1, n = (size_t)c->tensor[0].dim[backward_axis(c)];
    for (int i = backward_axis(c) + 1; i < c->tensor[0].rank; i++)
        step *= (size_t)c->tensor[0].dim[i];
    for (size_t i = 0; i < op_count(c, 0); i++) {
        size_t line = i / (step * n) * step + i % step;
        v[0][i] = (double)(i / step % n) == v[2][line] ? v[1][line] : 0.0;
    }
}

OP_CASE(amax_backward) = {.names = {"dx", "dy", "index"},
                          .outs = 1,
                          .ins = 2,
                          .any_shape = OP_BIT(0),
                          .axis_option = 1,
                          .draw = draw_amax_backward,
                          .fill = fill_amax_backward,
                          .run = run_amax_backward,
                          .reference = reference_amax_backward,
                          .tolerance = 0.0};
