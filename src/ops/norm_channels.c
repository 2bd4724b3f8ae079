/* Group and instance norm: channels of each sample, in groups.
 *
 * x is [N, C, S]: N samples of C channels of S elements each, whatever axes S has. A unit of work is one
 * group of one sample; its C / groups channels lie one behind the other. */
#include <mica/ops/norm.h>

#include <assert.h>
#include <math.h>

#include "base/parallel.h"
#include "ops/contiguous.h"
#include "ops/norm.h"

#define BLOCK ((size_t)8192) /* elements in one block of parallel work */

typedef struct group_job {
    const mica_norm_kernels *kernels;
    size_t samples, channels, size, groups, per_block;
    float *y, *mean, *rstd; /* forward; mean and rstd [N, groups] or NULL */
    const float *x, *gamma, *beta;
    float eps;

    float *dx, *dgamma, *dbeta; /* backward; each or NULL */
    const float *dy, *saved_mean, *saved_rstd;
    float *sums; /* scratch [N, C, 2]: the sums of dy and of dy (x - mean) of each channel */
} group_job;

static size_t units_of(group_job *job)
{
    assert(job->groups > 0);
    size_t each = job->channels / job->groups * job->size;
    job->per_block = each < BLOCK ? BLOCK / (each + (each == 0)) : 1;
    return job->samples * job->groups;
}

static void forward_unit(const group_job *job, size_t unit)
{
    size_t width = job->channels / job->groups, first = unit * width, n = width * job->size;
    mica_moments m = {0};
    job->kernels->moments(&m, job->x + first * job->size, n);
    float rstd = 1.0f / sqrtf((n > 0 ? m.m2 / (float)n : 0.0f) + job->eps);
    for (size_t k = first; k < first + width; k++) {
        size_t c = k % job->channels;
        job->kernels->apply(job->y + k * job->size, job->x + k * job->size, job->size, m.mean,
                            job->gamma != NULL ? rstd * job->gamma[c] : rstd,
                            job->beta != NULL ? job->beta[c] : 0.0f);
    }
    if (job->mean != NULL)
        job->mean[unit] = m.mean;
    if (job->rstd != NULL)
        job->rstd[unit] = rstd;
}

static void forward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const group_job *job = work;
    size_t units = job->samples * job->groups, begin = block * job->per_block, end = begin + job->per_block;
    for (size_t unit = begin; unit < end && unit < units; unit++)
        forward_unit(job, unit);
}

/* With g = gamma dy and h = (x - mean) rstd over the group's elements:
 * dx = rstd (g - mean of g - h * mean of (g h)). */
static void backward_unit(const group_job *job, size_t unit)
{
    size_t width = job->channels / job->groups, first = unit * width, n = width * job->size;
    float mean = job->saved_mean[unit], rstd = job->saved_rstd[unit], sum_g = 0.0f, sum_gh = 0.0f;
    for (size_t k = first; k < first + width; k++) {
        float *sums = job->sums + 2 * k, gamma = job->gamma != NULL ? job->gamma[k % job->channels] : 1.0f;
        sums[0] = sums[1] = 0.0f;
        job->kernels->sums(sums, job->dy + k * job->size, job->x + k * job->size, job->size, mean);
        sum_g += gamma * sums[0];
        sum_gh += gamma * sums[1] * rstd;
    }
    if (job->dx == NULL || n == 0)
        return;
    float mean_g = sum_g / (float)n, mean_gh = sum_gh / (float)n;
    for (size_t k = first; k < first + width; k++) {
        float gamma = job->gamma != NULL ? job->gamma[k % job->channels] : 1.0f;
        job->kernels->apply_backward(job->dx + k * job->size, job->dy + k * job->size, job->x + k * job->size,
                                     job->size, mean, rstd * gamma, -rstd * rstd * mean_gh, -rstd * mean_g);
    }
}

static void backward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const group_job *job = work;
    size_t units = job->samples * job->groups, begin = block * job->per_block, end = begin + job->per_block;
    for (size_t unit = begin; unit < end && unit < units; unit++)
        backward_unit(job, unit);
}

/* dgamma = sum of dy h over samples, dbeta = sum of dy. */
static void combine_samples(const group_job *job)
{
    size_t width = job->channels / job->groups;
    for (size_t c = 0; c < job->channels; c++) {
        float dgamma = 0.0f, dbeta = 0.0f;
        for (size_t s = 0; s < job->samples; s++) {
            const float *sums = job->sums + 2 * (s * job->channels + c);
            dbeta += sums[0];
            dgamma += sums[1] * job->saved_rstd[s * job->groups + c / width];
        }
        if (job->dgamma != NULL)
            job->dgamma[c] = dgamma;
        if (job->dbeta != NULL)
            job->dbeta[c] = dbeta;
    }
}

/* ---- Checks ---- */

static mica_status set_shape(mica_context *ctx, const char *op, group_job *job, const mica_tensor *x,
                             size_t groups)
{
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 2, MICA_MAX_RANK));
    job->kernels = MICA_FAMILY(ctx->kernels, norm);
    job->samples = (size_t)x->dim[0];
    job->channels = (size_t)x->dim[1];
    job->size = 1;
    for (int i = 2; i < x->rank; i++)
        job->size *= (size_t)x->dim[i];
    job->groups = groups;
    return MICA_OK;
}

static mica_status check_optional(mica_context *ctx, const char *op, const char *name, const mica_tensor *t,
                                  int rank, const mica_index *dims, const mica_tensor *x)
{
    return t == NULL ? MICA_OK : mica_check_shape(ctx, op, name, t, rank, dims, "x", x);
}

/* ---- Operations ---- */

/* groups 0: one for each channel. */
static mica_status forward(mica_context *ctx, const char *op, size_t groups, const mica_tensor *y,
                           const mica_tensor *x, const mica_tensor *gamma, const mica_tensor *beta,
                           const mica_norm_opts *opts)
{
    enum { OUT = MICA_ARG_OUT | MICA_ARG_OPTIONAL, IN = MICA_ARG_OPTIONAL };
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0},    {"mean", opts->mean, OUT, 0},
                       {"rstd", opts->rstd, OUT, 0}, {"x", x, MICA_ARG_IN_PLACE, 0},
                       {"gamma", gamma, IN, 0},      {"beta", beta, IN, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 6));
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 2, MICA_MAX_RANK));
    size_t instances = x->dim[1] > 0 ? (size_t)x->dim[1] : 1;
    group_job job = {.eps = mica_norm_eps(opts->eps)};
    MICA_TRY(set_shape(ctx, op, &job, x, groups == 0 ? instances : groups));
    MICA_TRY(mica_norm_check_eps(ctx, op, opts->eps));
    MICA_TRY(mica_check_same_shape(ctx, op, "y", y, "x", x));
    if (job.channels % job.groups != 0)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: x is %s: %zu channels cannot be divided into %zu groups",
                         op, MICA_SHAPE(x), job.channels, job.groups);
    mica_index stats[2] = {x->dim[0], groups == 0 ? x->dim[1] : (mica_index)groups};
    MICA_TRY(check_optional(ctx, op, "gamma", gamma, 1, x->dim + 1, x));
    MICA_TRY(check_optional(ctx, op, "beta", beta, 1, x->dim + 1, x));
    MICA_TRY(check_optional(ctx, op, "mean", opts->mean, 2, stats, x));
    MICA_TRY(check_optional(ctx, op, "rstd", opts->rstd, 2, stats, x));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 6);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    job.y = dense.data[0];
    job.mean = dense.data[1];
    job.rstd = dense.data[2];
    job.x = dense.data[3];
    job.gamma = dense.data[4];
    job.beta = dense.data[5];
    size_t units = groups == 0 && job.channels == 0 ? 0 : units_of(&job);
    mica_parallel(ctx, units > 0 ? mica_div_up(units, job.per_block) : 0, forward_block, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_group_norm(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                            const mica_tensor *gamma, const mica_tensor *beta, const mica_norm_opts *opts)
{
    mica_norm_opts none = {0};
    opts = opts != NULL ? opts : &none;
    if (opts->groups < 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "group_norm: groups is %d, expected 1 or more",
                         opts->groups);
    return forward(ctx, "group_norm", opts->groups == 0 ? 1 : (size_t)opts->groups, y, x, gamma, beta, opts);
}

mica_status mica_instance_norm(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                               const mica_tensor *gamma, const mica_tensor *beta, const mica_norm_opts *opts)
{
    mica_norm_opts none = {0};
    return forward(ctx, "instance_norm", 0, y, x, gamma, beta, opts != NULL ? opts : &none);
}

static mica_status check_backward(mica_context *ctx, const char *op, bool instances, group_job *job,
                                  const mica_arg *args)
{
    enum { DX, DGAMMA, DBETA, DY, X, GAMMA, MEAN, RSTD };
    const mica_tensor *x = args[X].tensor, *mean = args[MEAN].tensor;
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 2, MICA_MAX_RANK));
    MICA_TRY(mica_check_rank(ctx, op, "mean", mean, 2, 2));
    mica_index stats[2] = {x->dim[0], instances ? x->dim[1] : mean->dim[1]};
    size_t groups = stats[1] > 0 ? (size_t)stats[1] : (size_t)(x->dim[1] == 0);
    MICA_TRY(set_shape(ctx, op, job, x, groups));
    MICA_TRY(mica_check_same_shape(ctx, op, "dy", args[DY].tensor, "x", x));
    if (groups == 0 || job->channels % groups != 0)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: mean is %s, x is %s: %zu channels cannot be divided into %zu groups", op,
                         MICA_SHAPE(mean), MICA_SHAPE(x), job->channels, groups);
    MICA_TRY(mica_check_shape(ctx, op, "mean", mean, 2, stats, "x", x));
    MICA_TRY(mica_check_shape(ctx, op, "rstd", args[RSTD].tensor, 2, stats, "x", x));
    if (args[DX].tensor != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "dx", args[DX].tensor, "x", x));
    MICA_TRY(check_optional(ctx, op, "gamma", args[GAMMA].tensor, 1, x->dim + 1, x));
    MICA_TRY(check_optional(ctx, op, "dgamma", args[DGAMMA].tensor, 1, x->dim + 1, x));
    return check_optional(ctx, op, "dbeta", args[DBETA].tensor, 1, x->dim + 1, x);
}

static mica_status backward(mica_context *ctx, const char *op, bool instances, const mica_norm_grads *grads,
                            const mica_tensor *dy, const mica_tensor *x, const mica_tensor *gamma,
                            const mica_norm_saved *saved)
{
    MICA_TRY(mica_norm_check_structs(ctx, op, grads, saved));
    enum { OUT = MICA_ARG_OUT | MICA_ARG_OPTIONAL };
    mica_arg args[] = {{"dx", grads->x, OUT, 0},       {"dgamma", grads->gamma, OUT, 0},
                       {"dbeta", grads->beta, OUT, 0}, {"dy", dy, MICA_ARG_IN_PLACE, 0},
                       {"x", x, MICA_ARG_IN_PLACE, 0}, {"gamma", gamma, MICA_ARG_OPTIONAL, 0},
                       {"mean", saved->mean, 0, 0},    {"rstd", saved->rstd, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 8));
    group_job job = {0};
    MICA_TRY(check_backward(ctx, op, instances, &job, args));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 8);
    MICA_START(ctx, op, dense.bytes + job.samples * job.channels * 2 * sizeof(float), &scratch);
    job.sums = mica_contiguous_load(&dense, scratch);
    job.dx = dense.data[0];
    job.dgamma = dense.data[1];
    job.dbeta = dense.data[2];
    job.dy = dense.data[3];
    job.x = dense.data[4];
    job.gamma = dense.data[5];
    job.saved_mean = dense.data[6];
    job.saved_rstd = dense.data[7];
    size_t units = job.channels > 0 ? units_of(&job) : 0;
    mica_parallel(ctx, units > 0 ? mica_div_up(units, job.per_block) : 0, backward_block, &job);
    combine_samples(&job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_group_norm_backward(mica_context *ctx, const mica_norm_grads *grads, const mica_tensor *dy,
                                     const mica_tensor *x, const mica_tensor *gamma,
                                     const mica_norm_saved *saved)
{
    return backward(ctx, "group_norm_backward", false, grads, dy, x, gamma, saved);
}

mica_status mica_instance_norm_backward(mica_context *ctx, const mica_norm_grads *grads,
                                        const mica_tensor *dy, const mica_tensor *x, const mica_tensor *gamma,
                                        const mica_norm_saved *saved)
{
    return backward(ctx, "instance_norm_backward", true, grads, dy, x, gamma, saved);
}
