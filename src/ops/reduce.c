/* Reductions over any set of axes: checks, and what each computes. */
#include <mica/ops/reduce.h>

#include <math.h>

#include "base/parallel.h"
#include "ops/reduce.h"
#include "ops/typed.h"

mica_status mica_reduce_axes(mica_context *ctx, const char *op, const mica_tensor *a, const int *axes,
                             int count, unsigned *mask)
{
    *mask = (1u << a->rank) - 1u;
    if (count == 0)
        return MICA_OK;
    if (count < 0 || count > a->rank)
        return mica_fail(ctx, MICA_ERR_AXIS, "%s: %d axes of a %s, which has rank %d", op, count,
                         MICA_SHAPE(a), a->rank);
    *mask = 0;
    for (int i = 0; i < count; i++) {
        int axis;
        MICA_TRY(mica_check_axis(ctx, op, axes[i], "a", a, &axis));
        if (*mask & (1u << axis))
            return mica_fail(ctx, MICA_ERR_AXIS, "%s: axis %d of a %s is listed twice", op, axis,
                             MICA_SHAPE(a));
        *mask |= 1u << axis;
    }
    return MICA_OK;
}

mica_tensor mica_reduce_part(const mica_tensor *a, unsigned mask)
{
    mica_tensor part = *a;
    part.rank = 0;
    for (int i = 0; i < a->rank; i++) {
        if (!(mask & (1u << i)))
            continue;
        part.dim[part.rank] = a->dim[i];
        part.stride[part.rank++] = a->stride[i];
    }
    return part;
}

mica_status mica_reduce_shape(mica_context *ctx, const char *op, const char *dst_name, const mica_tensor *dst,
                              const char *a_name, const mica_tensor *a, unsigned mask, mica_tensor *kept)
{
    mica_tensor dropped = mica_reduce_part(a, ~mask), held = *a;
    for (int i = 0; i < a->rank; i++)
        if (mask & (1u << i))
            held.dim[i] = 1;
    if (mica_tensor_same_shape(dst, &held)) {
        *kept = mica_reduce_part(dst, ~mask);
        return MICA_OK;
    }
    *kept = *dst;
    if (mica_tensor_same_shape(dst, &dropped))
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s, expected %s or %s for %s %s", op, dst_name,
                     MICA_SHAPE(dst), MICA_SHAPE(&dropped), MICA_SHAPE(&held), a_name, MICA_SHAPE(a));
}

/* Fails if some output of the reduction would have no element to choose. */
static mica_status check_choice(mica_context *ctx, const char *op, const mica_tensor *a, unsigned mask)
{
    mica_tensor reduced = mica_reduce_part(a, mask), kept = mica_reduce_part(a, ~mask);
    if (mica_tensor_count(&reduced) > 0 || mica_tensor_count(&kept) == 0)
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_SHAPE, "%s: a is %s: the axis is empty", op, MICA_SHAPE(a));
}

static mica_status check(mica_context *ctx, const char *op, const mica_tensor *dst, const mica_tensor *a,
                         const mica_reduce_opts *opts, uint64_t dtypes, unsigned *mask, mica_tensor *kept)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, dtypes}, {"a", a, 0, dtypes}};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(
        mica_reduce_axes(ctx, op, a, opts != NULL ? opts->axes : NULL, opts != NULL ? opts->count : 0, mask));
    return mica_reduce_shape(ctx, op, "dst", dst, "a", a, *mask, kept);
}

/* In other types than f32. */
static mica_status fold(mica_context *ctx, const char *op, mica_typed_fold kind, const mica_tensor *dst,
                        const mica_tensor *a, const mica_reduce_opts *opts)
{
    unsigned mask;
    mica_tensor kept;
    MICA_TRY(check(ctx, op, dst, a, opts, MICA_DTYPE_BIT(a->dtype), &mask, &kept));
    if (kind == MICA_FOLD_MAX || kind == MICA_FOLD_MIN)
        MICA_TRY(check_choice(ctx, op, a, mask));
    MICA_START(ctx, op, 0, NULL);
    mica_typed_reduce(ctx, kind, &kept, a, mask);
    return MICA_OK;
}

static mica_status reduce(mica_context *ctx, const char *op, const mica_reduce_program *program,
                          const mica_tensor *dst, const mica_tensor *a, const mica_reduce_opts *opts)
{
    unsigned mask;
    mica_tensor kept;
    MICA_TRY(check(ctx, op, dst, a, opts, 0, &mask, &kept));
    if (program->chooses)
        MICA_TRY(check_choice(ctx, op, a, mask));
    return mica_reduce_run(ctx, op, program, &kept, a, mask);
}

static double finish_mean(const double *acc, double n, double param)
{
    (void)param;
    return acc[0] / n;
}

static double finish_root(const double *acc, double n, double param)
{
    (void)n, (void)param;
    return sqrt(acc[0]);
}

/* acc: sum, sum of (x - s), sum of (x - s)^2, s the mean rounded to f32, which the second sum makes up for. */
static double finish_variance(const double *acc, double n, double correction)
{
    double squares = acc[2] - acc[1] * acc[1] / n;
    if (!(n > correction))
        return (double)NAN;
    return (squares < 0.0 ? 0.0 : squares) / (n - correction);
}

/* One kernel, then a last step. */
static mica_status simple(mica_context *ctx, const char *op, const mica_reduce_kernel *kernel,
                          double (*finish)(const double *, double, double), const mica_tensor *dst,
                          const mica_tensor *a, const mica_reduce_opts *opts)
{
    mica_reduce_program program = {.kernel = {kernel}, .phases = 1, .finish = finish};
    return reduce(ctx, op, &program, dst, a, opts);
}

static mica_status choose(mica_context *ctx, const char *op, const mica_reduce_kernel *kernel,
                          const mica_tensor *dst, const mica_tensor *a, const mica_reduce_opts *opts)
{
    mica_reduce_program program = {.kernel = {kernel}, .phases = 1, .chooses = true};
    return reduce(ctx, op, &program, dst, a, opts);
}

mica_status mica_sum(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                     const mica_reduce_opts *opts)
{
    if (mica_typed_folds(a))
        return fold(ctx, "sum", MICA_FOLD_SUM, dst, a, opts);
    return simple(ctx, "sum", &MICA_KERNEL(ctx->kernels, reduce, sum), NULL, dst, a, opts);
}

mica_status mica_mean(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                      const mica_reduce_opts *opts)
{
    if (mica_typed_folds(a))
        return fold(ctx, "mean", MICA_FOLD_MEAN, dst, a, opts);
    return simple(ctx, "mean", &MICA_KERNEL(ctx->kernels, reduce, sum), finish_mean, dst, a, opts);
}

mica_status mica_prod(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                      const mica_reduce_opts *opts)
{
    if (mica_typed_folds(a))
        return fold(ctx, "prod", MICA_FOLD_PROD, dst, a, opts);
    return simple(ctx, "prod", &MICA_KERNEL(ctx->kernels, reduce, prod), NULL, dst, a, opts);
}

mica_status mica_amax(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                      const mica_reduce_opts *opts)
{
    if (mica_typed_folds(a))
        return fold(ctx, "amax", MICA_FOLD_MAX, dst, a, opts);
    return choose(ctx, "amax", &MICA_KERNEL(ctx->kernels, reduce, max), dst, a, opts);
}

mica_status mica_amin(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                      const mica_reduce_opts *opts)
{
    if (mica_typed_folds(a))
        return fold(ctx, "amin", MICA_FOLD_MIN, dst, a, opts);
    return choose(ctx, "amin", &MICA_KERNEL(ctx->kernels, reduce, min), dst, a, opts);
}

mica_status mica_variance(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                          const mica_reduce_opts *opts)
{
    mica_reduce_program program = {.kernel = {&MICA_KERNEL(ctx->kernels, reduce, sum),
                                              &MICA_KERNEL(ctx->kernels, reduce, sum_deviations),
                                              &MICA_KERNEL(ctx->kernels, reduce, sum_square_deviations)},
                                   .phases = 3,
                                   .finish = finish_variance,
                                   .param = opts != NULL ? opts->correction : 0};
    return reduce(ctx, "variance", &program, dst, a, opts);
}

mica_status mica_norm(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, mica_norm_kind kind,
                      const mica_reduce_opts *opts)
{
    switch (kind) {
    case MICA_NORM_L2:
        return simple(ctx, "norm", &MICA_KERNEL(ctx->kernels, reduce, sum_squares), finish_root, dst, a,
                      opts);
    case MICA_NORM_L1:
        return simple(ctx, "norm", &MICA_KERNEL(ctx->kernels, reduce, sum_abs), NULL, dst, a, opts);
    case MICA_NORM_INF:
        return simple(ctx, "norm", &MICA_KERNEL(ctx->kernels, reduce, max_abs), NULL, dst, a, opts);
    }
    return mica_fail(ctx, MICA_ERR_ARGUMENT, "norm: unknown kind %d", (int)kind);
}

mica_status mica_all_finite(mica_context *ctx, bool *out, const mica_tensor *a)
{
    if (out == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "all_finite: out is NULL");
    float largest = 0.0f;
    mica_tensor dst = mica_0d(&largest);
    mica_reduce_program program = {.kernel = {&MICA_KERNEL(ctx->kernels, reduce, max_abs)}, .phases = 1};
    MICA_TRY(reduce(ctx, "all_finite", &program, &dst, a, NULL));
    if (!ctx->measuring)
        *out = largest < INFINITY;
    return MICA_OK;
}
