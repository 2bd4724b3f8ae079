/* Filling tensors: constants, ranges, random numbers. */
#include <mica/ops/make.h>

#include <math.h>

#include "base/parallel.h"
#include "ops/check.h"
#include "ops/move.h"

#define BLOCK ((mica_index)16384) /* elements in a block of parallel work */
#define STAGE ((mica_index)512)   /* values made at a time, before they go to their places */

static mica_status check_dst(mica_context *ctx, const char *op, const mica_tensor *dst)
{
    mica_arg arg = {"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY};
    return mica_check_args(ctx, op, &arg, 1);
}

/* ---- Constants ---- */

static mica_status fill(mica_context *ctx, const char *op, const mica_tensor *dst, double value)
{
    MICA_TRY(check_dst(ctx, op, dst));
    MICA_START(ctx, op, 0, NULL);
    int64_t bits = 0; /* of the element, whatever its type */
    MICA_KERNEL(ctx->kernels, convert, run)(&bits, dst->dtype, &value, MICA_F64, 1);
    mica_tensor one = {.data = &bits, .dtype = dst->dtype};
    mica_move(ctx, dst, &one);
    return MICA_OK;
}

mica_status mica_fill(mica_context *ctx, const mica_tensor *dst, double value)
{
    return fill(ctx, "fill", dst, value);
}

mica_status mica_zeros(mica_context *ctx, const mica_tensor *dst) { return fill(ctx, "zeros", dst, 0.0); }

mica_status mica_ones(mica_context *ctx, const mica_tensor *dst) { return fill(ctx, "ones", dst, 1.0); }

/* ---- Values that follow from an element's number ---- */

typedef struct make_job make_job;

/* Makes the values of elements position to position + n - 1. */
typedef void make_fn(const make_job *job, mica_index position, mica_index n, void *values);

struct make_job {
    mica_tensor dst; /* joined */
    mica_index count;
    const mica_kernels *kernels;
    make_fn *make;
    mica_dtype dtype; /* of the values: f32 or f64 */
    bool in_place;    /* they are made where they go: dst is of f32 too, and contiguous */
    double a, b;      /* parameters of make */
    const mica_random *from;
};

static void make_block(void *work, size_t block, int thread)
{
    (void)thread;
    const make_job *job = work;
    mica_index position = (mica_index)block * BLOCK, end = position + BLOCK;
    if (end > job->count)
        end = job->count;
    if (job->in_place) {
        job->make(job, position, end - position, (float *)job->dst.data + position);
        return;
    }
    for (mica_index n; position < end; position += n) {
        double stage[STAGE];
        n = end - position < STAGE ? end - position : STAGE;
        job->make(job, position, n, stage);
        mica_move_run(job->kernels->convert, &job->dst, position, (mica_line){stage, job->dtype, 1}, n);
    }
}

static void run(mica_context *ctx, make_job job, const mica_tensor *dst)
{
    job.dst = mica_join_axes(dst);
    job.count = (mica_index)mica_tensor_count(dst);
    job.kernels = ctx->kernels;
    job.in_place = job.dtype == MICA_F32 && dst->dtype == MICA_F32 && job.dst.rank == 1 &&
                   job.dst.stride[0] == 1;
    mica_parallel(ctx, mica_div_up((size_t)job.count, (size_t)BLOCK), make_block, &job);
}

static void make_range(const make_job *job, mica_index position, mica_index n, void *values)
{
    double *out = values;
    for (mica_index i = 0; i < n; i++)
        out[i] = job->a + (double)(position + i) * job->b;
}

mica_status mica_range(mica_context *ctx, const mica_tensor *dst, double start, double step)
{
    MICA_TRY(check_dst(ctx, "range", dst));
    MICA_START(ctx, "range", 0, NULL);
    run(ctx, (make_job){.make = make_range, .dtype = MICA_F64, .a = start, .b = step}, dst);
    return MICA_OK;
}

mica_status mica_generate(mica_context *ctx, const mica_tensor *dst, mica_generate_fn *function, void *user)
{
    MICA_TRY(check_dst(ctx, "generate", dst));
    if (function == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "generate: function is NULL");
    MICA_START(ctx, "generate", 0, NULL);
    for (mica_iter it = mica_iter_begin(dst, 0, NULL); it.valid; mica_iter_next(&it)) {
        double value = function(it.index, user);
        MICA_KERNEL(ctx->kernels, convert, run)(it.element, dst->dtype, &value, MICA_F64, 1);
    }
    return MICA_OK;
}

/* ---- Random numbers ---- */

static void make_uniform(const make_job *job, mica_index position, mica_index n, void *values)
{
    float *out = values, low = (float)job->a, high = (float)job->b;
    mica_random from = *job->from;
    mica_random_skip(&from, (uint64_t)position);
    MICA_KERNEL(job->kernels, random, uniform)(out, (size_t)n, &from);
    /* Rounding may reach the end, which is out. */
    MICA_KERNEL(job->kernels, random, spread)
    (out, (size_t)n, low, high - low, nextafterf(high, low), low < high);
}

static void make_normal(const make_job *job, mica_index position, mica_index n, void *values)
{
    float *out = values, mean = (float)job->a, deviation = (float)job->b;
    mica_random from = *job->from;
    mica_random_skip(&from, (uint64_t)position);
    MICA_KERNEL(job->kernels, random, normal)(out, (size_t)n, &from);
    MICA_KERNEL(job->kernels, random, spread)(out, (size_t)n, mean, deviation, INFINITY, true);
}

static mica_status random_fill(mica_context *ctx, const char *op, const mica_tensor *dst,
                               const mica_random *from, make_fn *make, double a, double b)
{
    MICA_TRY(check_dst(ctx, op, dst));
    if (from == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: from is NULL", op);
    if (!isfinite(a) || !isfinite(b))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the parameters %g and %g must be finite", op, a, b);
    MICA_START(ctx, op, 0, NULL);
    run(ctx, (make_job){.make = make, .dtype = MICA_F32, .a = a, .b = b, .from = from}, dst);
    return MICA_OK;
}

mica_status mica_uniform(mica_context *ctx, const mica_tensor *dst, const mica_random *from, float low,
                         float high)
{
    return random_fill(ctx, "uniform", dst, from, make_uniform, (double)low, (double)high);
}

mica_status mica_normal(mica_context *ctx, const mica_tensor *dst, const mica_random *from, float mean,
                        float deviation)
{
    return random_fill(ctx, "normal", dst, from, make_normal, (double)mean, (double)deviation);
}

/* ---- First values of weights ---- */

/* What the elements behind the first two sizes of [out, in, kernel...] come to. */
static double kernel_size(const mica_tensor *dst)
{
    double size = 1.0;
    for (int k = 2; k < dst->rank; k++)
        size *= (double)dst->dim[k];
    return size;
}

static double fan_out(const mica_tensor *dst) { return (double)dst->dim[0] * kernel_size(dst); }
static double fan_in(const mica_tensor *dst) { return (double)dst->dim[1] * kernel_size(dst); }

static mica_status check_weights(mica_context *ctx, const char *op, const mica_tensor *dst)
{
    MICA_TRY(check_dst(ctx, op, dst));
    if (dst->rank >= 2)
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_SHAPE, "%s: dst is %s of rank %d, expected weights [out, in, kernel...]",
                     op, MICA_SHAPE(dst), dst->rank);
}

/* Mean 0 and this variance times gain^2. An empty tensor has no fans, and nothing to fill. */
static mica_status spread_uniform(mica_context *ctx, const char *op, const mica_tensor *dst,
                                  const mica_random *from, float gain, double variance)
{
    double bound = mica_tensor_count(dst) > 0 ? (double)gain * sqrt(3.0 * variance) : 0.0;
    return random_fill(ctx, op, dst, from, make_uniform, -bound, bound);
}

static mica_status spread_normal(mica_context *ctx, const char *op, const mica_tensor *dst,
                                 const mica_random *from, float gain, double variance)
{
    double deviation = mica_tensor_count(dst) > 0 ? (double)gain * sqrt(variance) : 0.0;
    return random_fill(ctx, op, dst, from, make_normal, 0.0, deviation);
}

mica_status mica_xavier_uniform(mica_context *ctx, const mica_tensor *dst, const mica_random *from,
                                float gain)
{
    MICA_TRY(check_weights(ctx, "xavier_uniform", dst));
    return spread_uniform(ctx, "xavier_uniform", dst, from, gain, 2.0 / (fan_in(dst) + fan_out(dst)));
}

mica_status mica_xavier_normal(mica_context *ctx, const mica_tensor *dst, const mica_random *from, float gain)
{
    MICA_TRY(check_weights(ctx, "xavier_normal", dst));
    return spread_normal(ctx, "xavier_normal", dst, from, gain, 2.0 / (fan_in(dst) + fan_out(dst)));
}

mica_status mica_he_uniform(mica_context *ctx, const mica_tensor *dst, const mica_random *from, float gain)
{
    MICA_TRY(check_weights(ctx, "he_uniform", dst));
    return spread_uniform(ctx, "he_uniform", dst, from, gain, 2.0 / fan_in(dst));
}

mica_status mica_he_normal(mica_context *ctx, const mica_tensor *dst, const mica_random *from, float gain)
{
    MICA_TRY(check_weights(ctx, "he_normal", dst));
    return spread_normal(ctx, "he_normal", dst, from, gain, 2.0 / fan_in(dst));
}
