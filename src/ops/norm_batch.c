/* Batch norm: each channel of x [N, C, S] normalised over all samples.
 *
 * Where S is 1, a channel is a column of [N, C] and channels are done many at a time; else a channel is N
 * segments of S elements. */
#include <mica/ops/norm.h>

#include <math.h>

#include "base/parallel.h"
#include "ops/contiguous.h"
#include "ops/norm.h"

#define BLOCK   ((size_t)8192) /* elements in one block of parallel work */
#define COLUMNS 64             /* channels in one block, where they are columns */

typedef struct batch_job {
    const mica_norm_kernels *kernels;
    size_t samples, channels, size, per_block;
    float *y, *mean, *rstd, *running_mean, *running_var;
    const float *x, *gamma, *beta;
    float eps, momentum;
    bool inference;

    float *dx, *dgamma, *dbeta; /* backward; each or NULL */
    const float *dy, *saved_mean, *saved_rstd;
} batch_job;

static float or_else(const float *values, size_t i, float otherwise)
{
    return values != NULL ? values[i] : otherwise;
}

static size_t blocks_of(batch_job *job)
{
    size_t each = job->samples * job->size;
    job->per_block = job->size == 1 ? COLUMNS : (each < BLOCK ? BLOCK / (each + (each == 0)) : 1);
    return mica_div_up(job->channels, job->per_block);
}

static size_t block_end(const batch_job *job, size_t begin)
{
    return mica_least(begin + job->per_block, job->channels);
}

/* ---- Forward ---- */

/* Turns a channel's mean and m2 into what it is normalised with, and keeps what is to be kept. */
static void settle(const batch_job *job, size_t c, float *mean, float m2, float *scale, float *shift)
{
    float count = (float)(job->samples * job->size), variance;
    if (job->inference) {
        *mean = job->running_mean[c];
        variance = job->running_var[c];
    } else {
        variance = count > 0.0f ? m2 / count : 0.0f;
        if (job->running_mean != NULL && count > 0.0f)
            job->running_mean[c] += job->momentum * (*mean - job->running_mean[c]);
        if (job->running_var != NULL && count > 0.0f)
            job->running_var[c] += job->momentum * (m2 / (count - 1.0f) - job->running_var[c]);
    }
    float rstd = 1.0f / sqrtf(variance + job->eps);
    *scale = rstd * or_else(job->gamma, c, 1.0f);
    *shift = or_else(job->beta, c, 0.0f);
    if (job->mean != NULL)
        job->mean[c] = *mean;
    if (job->rstd != NULL)
        job->rstd[c] = rstd;
}

static void forward_channel(const batch_job *job, size_t c)
{
    mica_moments m = {0};
    size_t size = job->size, step = job->channels * size;
    if (!job->inference)
        for (size_t s = 0; s < job->samples; s++)
            job->kernels->moments(&m, job->x + s * step + c * size, size);
    float scale, shift;
    settle(job, c, &m.mean, m.m2, &scale, &shift);
    for (size_t s = 0; s < job->samples; s++) {
        size_t at = s * step + c * size;
        job->kernels->apply(job->y + at, job->x + at, size, m.mean, scale, shift);
    }
}

static void forward_columns(const batch_job *job, size_t first, size_t n)
{
    float mean[COLUMNS] = {0}, m2[COLUMNS] = {0}, scale[COLUMNS], shift[COLUMNS];
    if (!job->inference && job->samples > 0)
        job->kernels->column_moments(mean, m2, job->x + first, job->samples, job->channels, n);
    for (size_t i = 0; i < n; i++)
        settle(job, first + i, &mean[i], m2[i], &scale[i], &shift[i]);
    for (size_t s = 0; s < job->samples; s++) {
        size_t at = s * job->channels + first;
        job->kernels->column_apply(job->y + at, job->x + at, n, mean, scale, shift);
    }
}

static void forward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const batch_job *job = work;
    size_t begin = block * job->per_block, end = block_end(job, begin);
    if (job->size == 1)
        forward_columns(job, begin, end - begin);
    else
        for (size_t c = begin; c < end; c++)
            forward_channel(job, c);
}

/* ---- Backward ---- */

typedef struct slope {
    float by_dy, by_x, constant;
} slope;

/* With h = (x - mean) rstd: dbeta = sum of dy, dgamma = sum of dy h,
 * dx = gamma rstd (dy - dbeta / count - h dgamma / count); without the last two terms where the mean and
 * variance were constants. */
static slope settle_backward(const batch_job *job, size_t c, float sum_dy, float sum_dy_x)
{
    float rstd = job->saved_rstd[c], count = (float)(job->samples * job->size);
    float scale = rstd * or_else(job->gamma, c, 1.0f);
    if (job->dgamma != NULL)
        job->dgamma[c] = sum_dy_x * rstd;
    if (job->dbeta != NULL)
        job->dbeta[c] = sum_dy;
    if (job->inference)
        return (slope){scale, 0.0f, 0.0f};
    return (slope){scale, -scale * rstd * rstd * sum_dy_x / count, -scale * sum_dy / count};
}

static void backward_channel(const batch_job *job, size_t c)
{
    float sums[2] = {0}, mean = job->saved_mean[c];
    size_t size = job->size, step = job->channels * size;
    for (size_t s = 0; s < job->samples; s++) {
        size_t at = s * step + c * size;
        job->kernels->sums(sums, job->dy + at, job->x + at, size, mean);
    }
    slope k = settle_backward(job, c, sums[0], sums[1]);
    for (size_t s = 0; s < job->samples && job->dx != NULL; s++) {
        size_t at = s * step + c * size;
        job->kernels->apply_backward(job->dx + at, job->dy + at, job->x + at, size, mean, k.by_dy, k.by_x,
                                     k.constant);
    }
}

static void backward_columns(const batch_job *job, size_t first, size_t n)
{
    float sum_dy[COLUMNS], sum_dy_x[COLUMNS], by_dy[COLUMNS], by_x[COLUMNS], constant[COLUMNS];
    const float *mean = job->saved_mean + first;
    job->kernels->column_sums(sum_dy, sum_dy_x, job->dy + first, job->x + first, job->samples, job->channels,
                              n, mean);
    for (size_t i = 0; i < n; i++) {
        slope k = settle_backward(job, first + i, sum_dy[i], sum_dy_x[i]);
        by_dy[i] = k.by_dy;
        by_x[i] = k.by_x;
        constant[i] = k.constant;
    }
    for (size_t s = 0; s < job->samples && job->dx != NULL; s++) {
        size_t at = s * job->channels + first;
        job->kernels->column_apply_backward(job->dx + at, job->dy + at, job->x + at, n, mean, by_dy, by_x,
                                            constant);
    }
}

static void backward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const batch_job *job = work;
    size_t begin = block * job->per_block, end = block_end(job, begin);
    if (job->size == 1)
        backward_columns(job, begin, end - begin);
    else
        for (size_t c = begin; c < end; c++)
            backward_channel(job, c);
}

/* ---- Operations ---- */

static mica_status set_shape(mica_context *ctx, const char *op, batch_job *job, const mica_tensor *x)
{
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 2, MICA_MAX_RANK));
    job->kernels = MICA_FAMILY(ctx->kernels, norm);
    job->samples = (size_t)x->dim[0];
    job->channels = (size_t)x->dim[1];
    job->size = 1;
    for (int i = 2; i < x->rank; i++)
        job->size *= (size_t)x->dim[i];
    return MICA_OK;
}

/* Every argument from `first` on that is given is [C]. */
static mica_status check_channels(mica_context *ctx, const char *op, const mica_arg *args, int first, int end,
                                  const mica_tensor *x)
{
    for (int k = first; k < end; k++)
        if (args[k].tensor != NULL)
            MICA_TRY(mica_check_shape(ctx, op, args[k].name, args[k].tensor, 1, x->dim + 1, "x", x));
    return MICA_OK;
}

static mica_status check_running(mica_context *ctx, const batch_job *job, const mica_norm_opts *opts,
                                 const mica_tensor *x)
{
    if (opts->inference && (opts->running_mean == NULL || opts->running_var == NULL))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "batch_norm: %s is NULL, but inference normalizes with it",
                         opts->running_mean == NULL ? "running_mean" : "running_var");
    if (!opts->inference && opts->running_var != NULL && job->samples * job->size == 1)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "batch_norm: x is %s: training needs more than one value in each channel",
                         MICA_SHAPE(x));
    if (!(opts->momentum >= 0.0f && opts->momentum <= 1.0f))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "batch_norm: momentum is %g, expected 0 to 1",
                         (double)opts->momentum);
    return mica_norm_check_eps(ctx, "batch_norm", opts->eps);
}

mica_status mica_batch_norm(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                            const mica_tensor *gamma, const mica_tensor *beta, const mica_norm_opts *opts)
{
    mica_norm_opts none = {0};
    opts = opts != NULL ? opts : &none;
    enum { OUT = MICA_ARG_OUT | MICA_ARG_OPTIONAL, IN = MICA_ARG_OPTIONAL };
    unsigned running = opts->inference ? IN : OUT;
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0},
                       {"x", x, MICA_ARG_IN_PLACE, 0},
                       {"mean", opts->mean, OUT, 0},
                       {"rstd", opts->rstd, OUT, 0},
                       {"running_mean", opts->running_mean, running, 0},
                       {"running_var", opts->running_var, running, 0},
                       {"gamma", gamma, IN, 0},
                       {"beta", beta, IN, 0}};
    MICA_TRY(mica_check_args(ctx, "batch_norm", args, 8));
    batch_job job = {.eps = mica_norm_eps(opts->eps), .inference = opts->inference};
    MICA_TRY(set_shape(ctx, "batch_norm", &job, x));
    MICA_TRY(mica_check_same_shape(ctx, "batch_norm", "y", y, "x", x));
    MICA_TRY(check_channels(ctx, "batch_norm", args, 2, 8, x));
    MICA_TRY(check_running(ctx, &job, opts, x));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 8);
    MICA_START(ctx, "batch_norm", dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    job.momentum = opts->momentum != 0.0f ? opts->momentum : 0.1f;
    job.y = dense.data[0];
    job.x = dense.data[1];
    job.mean = dense.data[2];
    job.rstd = dense.data[3];
    job.running_mean = dense.data[4];
    job.running_var = dense.data[5];
    job.gamma = dense.data[6];
    job.beta = dense.data[7];
    mica_parallel(ctx, blocks_of(&job), forward_block, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_batch_norm_backward(mica_context *ctx, const mica_norm_grads *grads, const mica_tensor *dy,
                                     const mica_tensor *x, const mica_tensor *gamma,
                                     const mica_norm_saved *saved)
{
    const char *op = "batch_norm_backward";
    MICA_TRY(mica_norm_check_structs(ctx, op, grads, saved));
    enum { OUT = MICA_ARG_OUT | MICA_ARG_OPTIONAL };
    mica_arg args[] = {{"dx", grads->x, OUT, 0},       {"dy", dy, MICA_ARG_IN_PLACE, 0},
                       {"x", x, MICA_ARG_IN_PLACE, 0}, {"dgamma", grads->gamma, OUT, 0},
                       {"dbeta", grads->beta, OUT, 0}, {"gamma", gamma, MICA_ARG_OPTIONAL, 0},
                       {"mean", saved->mean, 0, 0},    {"rstd", saved->rstd, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 8));
    batch_job job = {.inference = saved->inference};
    MICA_TRY(set_shape(ctx, op, &job, x));
    MICA_TRY(mica_check_same_shape(ctx, op, "dy", dy, "x", x));
    if (grads->x != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "dx", grads->x, "x", x));
    MICA_TRY(check_channels(ctx, op, args, 3, 8, x));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 8);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    job.dx = dense.data[0];
    job.dy = dense.data[1];
    job.x = dense.data[2];
    job.dgamma = dense.data[3];
    job.dbeta = dense.data[4];
    job.gamma = dense.data[5];
    job.saved_mean = dense.data[6];
    job.saved_rstd = dense.data[7];
    mica_parallel(ctx, blocks_of(&job), backward_block, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}
