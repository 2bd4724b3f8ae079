/* Convolution of i32, tap by tap along the rows of y; and what rounding to bytes does to floats. */
#include "ops/integer.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "kernel/int8.h"
#include "ops/contiguous.h"

typedef struct integer_job {
    const mica_int8_kernels *kernels;
    mica_tensor x, w;
    mica_index out[2], stride[2], dilation[2], in_group, out_group; /* channels of a group */
    mica_index channels;                                            /* of y */
} integer_job;

typedef struct integer_work {
    const integer_job *job;
    int32_t *y;
    const int32_t *x, *w;
} integer_work;

/* A row of a plane of y. */
static void run_row(void *data, size_t number, int thread)
{
    (void)thread;
    const integer_work *work = data;
    const integer_job *job = work->job;
    mica_index row = (mica_index)number % job->out[0], plane = (mica_index)number / job->out[0],
               channel = plane % job->channels, image = plane / job->channels;
    mica_index high = job->x.dim[2], wide = job->x.dim[3], taps[2] = {job->w.dim[2], job->w.dim[3]};
    int32_t *y = work->y + (mica_index)number * job->out[1];
    const int32_t *w = work->w + channel * job->in_group * taps[0] * taps[1];
    mica_index first = image * job->x.dim[1] + channel / job->out_group * job->in_group;
    memset(y, 0, (size_t)job->out[1] * sizeof *y);
    for (mica_index c = 0; c < job->in_group; c++)
        for (mica_index t = 0; t < taps[0]; t++)
            for (mica_index u = 0; u < taps[1]; u++, w++)
                job->kernels->tap_i32(
                    y,
                    work->x + ((first + c) * high + row * job->stride[0] + t * job->dilation[0]) * wide +
                        u * job->dilation[1],
                    (size_t)job->stride[1], (size_t)job->out[1], *w);
}

mica_status mica_integer_conv(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                              const mica_tensor *w, const mica_integer_conv_opts *opts)
{
    const char *op = "integer_conv";
    const unsigned only = MICA_DTYPE_BIT(MICA_I32);
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, only}, {"x", x, 0, only}, {"w", w, 0, only}};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    mica_index groups = opts->groups > 0 ? opts->groups : 1;
    integer_job job = {.kernels = MICA_FAMILY(ctx->kernels, int8),
                       .x = *x,
                       .w = *w,
                       .out = {y->dim[2], y->dim[3]},
                       .in_group = w->dim[1],
                       .out_group = w->dim[0] / groups,
                       .channels = w->dim[0]};
    for (int k = 0; k < 2; k++) {
        job.stride[k] = opts->stride[k] > 0 ? opts->stride[k] : 1;
        job.dilation[k] = opts->dilation[k] > 0 ? opts->dilation[k] : 1;
    }
    double sums = (double)mica_tensor_count(y) * (double)(w->dim[1] * w->dim[2] * w->dim[3]);
    mica_count_flops(ctx, 2.0 * sums);
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 3);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    integer_work work = {&job, dense.data[0], dense.data[1], dense.data[2]};
    if (mica_tensor_count(y) > 0)
        mica_parallel_sums(ctx, 4.0 * sums, (size_t)(y->dim[0] * y->dim[1] * y->dim[2]), run_row, &work);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

/* ---- Rounding ---- */

#define BLOCK ((size_t)16384) /* elements of a block of parallel work */

typedef struct error_job {
    const mica_int8_kernels *kernels;
    float *y;
    const float *x;
    size_t count, each; /* elements; of a scale of its own, 0: one for all */
    float scale;
} error_job;

static float scale_of(const float *x, size_t count)
{
    float most = 0.0f;
    for (size_t i = 0; i < count; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most > 0x1p-100f ? most / 127.0f : 0x1p-100f;
}

static void run_error(void *work, size_t block, int thread)
{
    (void)thread;
    const error_job *job = work;
    size_t many = job->each > 0 ? job->each : BLOCK, at = block * many,
           count = mica_least(many, job->count - at);
    float scale = job->each > 0 ? scale_of(job->x + at, count) : job->scale;
    job->kernels->error(job->y + at, job->x + at, count, scale);
}

mica_status mica_quantize_error(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                const mica_quantize_error_opts *opts)
{
    const char *op = "quantize_error";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_check_same_shape(ctx, op, "x", x, "y", y));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 2);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    error_job job = {.kernels = MICA_FAMILY(ctx->kernels, int8),
                     .y = dense.data[0],
                     .x = dense.data[1],
                     .count = mica_tensor_count(x),
                     .scale = opts->scale};
    bool each = opts->scale <= 0.0f && x->rank > 0 && x->dim[0] > 0;
    if (each)
        job.each = job.count / (size_t)x->dim[0];
    else if (job.scale <= 0.0f && job.count > 0)
        job.scale = scale_of(job.x, job.count);
    if (job.count > 0)
        mica_parallel(ctx, mica_div_up(job.count, each ? job.each : BLOCK), run_error, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}
