/* Dropout: checks, then the kernels that read the random stream. */
#include <mica/ops/dropout.h>

#include "base/parallel.h"
#include "ops/contiguous.h"

#define BLOCK          ((size_t)8192)  /* elements in one block of parallel work */
#define BACKWARD_BLOCK ((size_t)16384) /* and in a backward one, where an element is less work */

typedef struct dropout_job {
    const mica_random_kernels *kernels;
    float *out;
    uint8_t *mask;
    const float *in;
    size_t count;
    int32_t kept; /* of MICA_DROPOUT_CHANCES */
    mica_random random;
} dropout_job;

static mica_status check_rate(mica_context *ctx, const char *op, float rate)
{
    if (rate >= 0.0f && rate <= 1.0f)
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: rate is %g, expected 0 to 1", op, (double)rate);
}

/* Of MICA_DROPOUT_CHANCES; none only where the rate is 1. */
static int32_t kept_of(float rate)
{
    int32_t kept = (int32_t)((1.0 - (double)rate) * MICA_DROPOUT_CHANCES + 0.5);
    return kept == 0 && rate < 1.0f ? 1 : kept;
}

static void forward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const dropout_job *job = work;
    size_t begin = block * BLOCK;
    mica_random from = job->random;
    mica_random_skip(&from, begin);
    MICA_KERNEL_OF(job->kernels, random, dropout)
    (job->out + begin, job->mask != NULL ? job->mask + begin : NULL, job->in + begin,
     mica_least(job->count - begin, BLOCK), job->kept, &from);
}

mica_status mica_dropout(mica_context *ctx, const mica_tensor *y, const mica_tensor *mask,
                         const mica_tensor *x, const mica_dropout_opts *opts)
{
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0},
                       {"mask", mask, MICA_ARG_OUT | MICA_ARG_OPTIONAL, MICA_DTYPE_BIT(MICA_U8)},
                       {"x", x, MICA_ARG_IN_PLACE, 0}};
    MICA_TRY(mica_check_args(ctx, "dropout", args, 3));
    if (opts == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "dropout: opts is NULL, but a rate is needed");
    MICA_TRY(check_rate(ctx, "dropout", opts->rate));
    MICA_TRY(mica_check_same_shape(ctx, "dropout", "y", y, "x", x));
    if (mask != NULL)
        MICA_TRY(mica_check_same_shape(ctx, "dropout", "mask", mask, "x", x));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 3);
    MICA_START(ctx, "dropout", dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    dropout_job job = {.kernels = ctx->kernels->random,
                       .out = dense.data[0],
                       .mask = dense.data[1],
                       .in = dense.data[2],
                       .count = mica_tensor_count(x),
                       .kept = kept_of(opts->rate),
                       .random = opts->random};
    mica_parallel(ctx, mica_div_up(job.count, BLOCK), forward_block, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

static void backward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const dropout_job *job = work;
    size_t begin = block * BACKWARD_BLOCK;
    MICA_KERNEL_OF(job->kernels, random, dropout_backward)
    (job->out + begin, job->in + begin, job->mask + begin, mica_least(job->count - begin, BACKWARD_BLOCK),
     job->kept);
}

mica_status mica_dropout_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                  const mica_tensor *mask, float rate)
{
    const char *op = "dropout_backward";
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0},
                       {"dy", dy, MICA_ARG_IN_PLACE, 0},
                       {"mask", mask, 0, MICA_DTYPE_BIT(MICA_U8)}};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(check_rate(ctx, op, rate));
    MICA_TRY(mica_check_same_shape(ctx, op, "dy", dy, "dx", dx));
    MICA_TRY(mica_check_same_shape(ctx, op, "mask", mask, "dx", dx));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 3);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    dropout_job job = {.kernels = ctx->kernels->random,
                       .out = dense.data[0],
                       .in = dense.data[1],
                       .mask = dense.data[2],
                       .count = mica_tensor_count(dx),
                       .kept = kept_of(rate)};
    mica_parallel(ctx, mica_div_up(job.count, BACKWARD_BLOCK), backward_block, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}
