/* Int8, element by element: from floats and back, other scales, sums of two. */
#include <math.h>

#include "base/parallel.h"
#include "ops/int8.h"
#include "ops/int8_last.h"
#include "tensor/tensor.h"

#define BLOCK ((size_t)16384) /* elements of a block of parallel work */

typedef struct map_job {
    const mica_int8_kernels *kernels;
    void *y;
    const void *a, *b;
    size_t count;
    float factor;
    float factors[2];
    int32_t multiplier[2], limit[2], zero[3];
    int shift;
} map_job;

static size_t in_block(const map_job *job, size_t first) { return mica_least(BLOCK, job->count - first); }

static void quantize_block(void *work, size_t block, int thread)
{
    (void)thread;
    const map_job *job = work;
    size_t at = block * BLOCK;
    job->kernels->quantize((int8_t *)job->y + at, (const float *)job->a + at, in_block(job, at), job->factor);
}

static void dequantize_block(void *work, size_t block, int thread)
{
    (void)thread;
    const map_job *job = work;
    size_t at = block * BLOCK;
    job->kernels->dequantize((float *)job->y + at, (const int8_t *)job->a + at, in_block(job, at),
                             job->factor);
}

static void add_block(void *work, size_t block, int thread)
{
    (void)thread;
    const map_job *job = work;
    size_t at = block * BLOCK;
    job->kernels->add((int8_t *)job->y + at, (const int8_t *)job->a + at, (const int8_t *)job->b + at,
                      in_block(job, at), job->multiplier, job->shift, job->limit);
}

static void affine_quantize_block(void *work, size_t block, int thread)
{
    (void)thread;
    const map_job *job = work;
    size_t at = block * BLOCK;
    job->kernels->affine_quantize((int8_t *)job->y + at, (const float *)job->a + at, in_block(job, at),
                                  job->factor, job->zero[0]);
}

static void affine_dequantize_block(void *work, size_t block, int thread)
{
    (void)thread;
    const map_job *job = work;
    size_t at = block * BLOCK;
    job->kernels->affine_dequantize((float *)job->y + at, (const int8_t *)job->a + at, in_block(job, at),
                                    job->factor, job->zero[0]);
}

static void affine_add_block(void *work, size_t block, int thread)
{
    (void)thread;
    const map_job *job = work;
    size_t at = block * BLOCK;
    job->kernels->affine_add((int8_t *)job->y + at, (const int8_t *)job->a + at, (const int8_t *)job->b + at,
                             in_block(job, at), job->factors, job->zero, job->limit);
}

static void flip_block(void *work, size_t block, int thread)
{
    (void)thread;
    const map_job *job = work;
    size_t at = block * BLOCK, end = at + in_block(job, at);
    uint8_t *y = job->y;
    const uint8_t *x = job->a;
    for (size_t i = at; i < end; i++)
        y[i] = x[i] ^ 0x80;
}

/* There are only 256 results. */
static void rescale_block(void *work, size_t block, int thread)
{
    (void)thread;
    const map_job *job = work;
    int32_t every[256];
    int8_t table[256];
    for (int q = 0; q < 256; q++)
        every[q] = q - 128;
    uint8_t shift = (uint8_t)job->shift;
    job->kernels->finish(
        table, every, 256,
        &(mica_int8_finish){
            .multiplier = job->multiplier, .shift = &shift, .low = job->limit[0], .high = job->limit[1]},
        0);
    size_t at = block * BLOCK, end = at + in_block(job, at);
    int8_t *y = job->y;
    const int8_t *x = job->a;
    for (size_t i = at; i < end; i++)
        y[i] = table[x[i] + 128];
}

#if !defined(MICA_SMALL)
/* Where all have their channels last, elements that belong together still lie at the same places. */
static bool all_channels_last(const mica_arg *args, int count)
{
    for (int k = 0; k < count; k++)
        if (!mica_is_dense_channels_last(args[k].tensor))
            return false;
    return true;
}
#endif

static mica_status run(mica_context *ctx, const char *op, map_job *job, const mica_arg *args, int count,
                       mica_block_fn *fn)
{
    mica_contiguous dense;
    void *scratch;
#if !defined(MICA_SMALL)
    mica_tensor flat[3];
    mica_arg used[3];
    for (int k = 0; k < count && all_channels_last(args, count); k++) {
        flat[k] = mica_tensor_like(args[k].tensor, args[k].tensor->data);
        used[k] = args[k];
        used[k].tensor = &flat[k];
    }
    args = all_channels_last(args, count) ? used : args;
#endif
    mica_contiguous_plan(&dense, args, count);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    job->kernels = MICA_FAMILY(ctx->kernels, int8);
    job->y = dense.data[0];
    job->a = dense.data[1];
    job->b = count > 2 ? dense.data[2] : NULL;
    job->count = mica_tensor_count(args[0].tensor);
    mica_parallel(ctx, mica_div_up(job->count, BLOCK), fn, job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

static mica_status check_scale(mica_context *ctx, const char *op, const mica_int8_scale_opts *opts)
{
    float scale = opts != NULL ? opts->scale : 0.0f;
    if (!(scale > 0.0f) || !isfinite(scale) || !isfinite(1.0f / scale))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: scale is %g: expected a number above 0", op,
                         (double)scale);
    return MICA_OK;
}

mica_status mica_quantize(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                          const mica_int8_scale_opts *opts)
{
    const char *op = "quantize";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, MICA_I8_ONLY}, {"x", x, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_check_same_shape(ctx, op, "x", x, "y", y));
    MICA_TRY(check_scale(ctx, op, opts));
    map_job job = {.factor = 1.0f / opts->scale};
    return run(ctx, op, &job, args, 2, quantize_block);
}

mica_status mica_dequantize(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                            const mica_int8_scale_opts *opts)
{
    const char *op = "dequantize";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, 0, MICA_I8_ONLY}};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_check_same_shape(ctx, op, "x", x, "y", y));
    MICA_TRY(check_scale(ctx, op, opts));
    map_job job = {.factor = opts->scale};
    return run(ctx, op, &job, args, 2, dequantize_block);
}

mica_status mica_int8_rescale(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                              const mica_int8_rescale_opts *opts)
{
    const char *op = "int8_rescale";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, MICA_I8_ONLY}, {"x", x, MICA_ARG_IN_PLACE, MICA_I8_ONLY}};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_check_same_shape(ctx, op, "x", x, "y", y));
    static const mica_int8_rescale_opts none = {0};
    opts = opts != NULL ? opts : &none;
    map_job job = {.multiplier = {opts->multiplier}, .shift = opts->shift};
    MICA_TRY(mica_int8_check_factor(ctx, op, opts->multiplier, opts->shift));
    MICA_TRY(mica_int8_check_limits(ctx, op, opts->low, opts->high, job.limit));
    return run(ctx, op, &job, args, 2, rescale_block);
}

#define MOST_ADD_MULTIPLIER (1 << 21)

mica_status mica_int8_add(mica_context *ctx, const mica_tensor *y, const mica_tensor *a, const mica_tensor *b,
                          const mica_int8_add_opts *opts)
{
    const char *op = "int8_add";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, MICA_I8_ONLY},
                       {"a", a, MICA_ARG_IN_PLACE, MICA_I8_ONLY},
                       {"b", b, MICA_ARG_IN_PLACE, MICA_I8_ONLY}};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(mica_check_same_shape(ctx, op, "a", a, "y", y));
    MICA_TRY(mica_check_same_shape(ctx, op, "b", b, "y", y));
    static const mica_int8_add_opts none = {0};
    opts = opts != NULL ? opts : &none;
    for (int k = 0; k < 2; k++)
        if (opts->multiplier[k] < -MOST_ADD_MULTIPLIER || opts->multiplier[k] > MOST_ADD_MULTIPLIER)
            return mica_fail(ctx, MICA_ERR_ARGUMENT,
                             "%s: multiplier[%d] is %d: expected at most 2^21 in size", op, k,
                             opts->multiplier[k]);
    if (opts->shift < 1 || opts->shift > 30)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: shift is %d: expected 1 to 30", op, opts->shift);
    map_job job = {.multiplier = {opts->multiplier[0], opts->multiplier[1]}, .shift = opts->shift};
    MICA_TRY(mica_int8_check_limits(ctx, op, opts->low, opts->high, job.limit));
    return run(ctx, op, &job, args, 3, add_block);
}

/* ---- With zero points ---- */

static mica_status set_affine(mica_context *ctx, const char *op, map_job *job,
                              const mica_affine_scale_opts *opts)
{
    MICA_TRY(check_scale(ctx, op, opts != NULL ? &(mica_int8_scale_opts){opts->scale} : NULL));
    job->factor = opts->scale;
    job->zero[0] = opts->zero;
    return mica_affine_check_zero(ctx, op, opts->zero);
}

mica_status mica_affine_quantize(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                 const mica_affine_scale_opts *opts)
{
    const char *op = "affine_quantize";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, MICA_I8_ONLY}, {"x", x, 0, 0}};
    map_job job = {.shift = 0};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_check_same_shape(ctx, op, "x", x, "y", y));
    MICA_TRY(set_affine(ctx, op, &job, opts));
    return run(ctx, op, &job, args, 2, affine_quantize_block);
}

mica_status mica_affine_dequantize(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                   const mica_affine_scale_opts *opts)
{
    const char *op = "affine_dequantize";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, 0, MICA_I8_ONLY}};
    map_job job = {.shift = 0};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_check_same_shape(ctx, op, "x", x, "y", y));
    MICA_TRY(set_affine(ctx, op, &job, opts));
    return run(ctx, op, &job, args, 2, affine_dequantize_block);
}

mica_status mica_affine_flip(mica_context *ctx, const mica_tensor *y, const mica_tensor *x)
{
    const char *op = "affine_flip";
    const unsigned bytes = MICA_I8_ONLY | MICA_DTYPE_BIT(MICA_U8);
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, bytes}, {"x", x, MICA_ARG_IN_PLACE, bytes}};
    map_job job = {.shift = 0};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_check_same_shape(ctx, op, "x", x, "y", y));
    if (x->dtype == y->dtype)
        return mica_fail(ctx, MICA_ERR_DTYPE, "%s: x and y are %s: expected u8 and i8, or i8 and u8", op,
                         mica_dtype_name(x->dtype));
    return run(ctx, op, &job, args, 2, flip_block);
}

mica_status mica_affine_add(mica_context *ctx, const mica_tensor *y, const mica_tensor *a,
                            const mica_tensor *b, const mica_affine_add_opts *opts)
{
    const char *op = "affine_add";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, MICA_I8_ONLY},
                       {"a", a, MICA_ARG_IN_PLACE, MICA_I8_ONLY},
                       {"b", b, MICA_ARG_IN_PLACE, MICA_I8_ONLY}};
    static const mica_affine_add_opts none = {0};
    map_job job = {.shift = 0};
    opts = opts != NULL ? opts : &none;
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(mica_check_same_shape(ctx, op, "a", a, "y", y));
    MICA_TRY(mica_check_same_shape(ctx, op, "b", b, "y", y));
    for (int k = 0; k < 3; k++) {
        MICA_TRY(mica_affine_check_zero(ctx, op, opts->zero[k]));
        job.zero[k] = opts->zero[k];
    }
    for (int k = 0; k < 2; k++) {
        if (!isfinite(opts->factor[k]))
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: factor[%d] is %g: expected a number", op, k,
                             (double)opts->factor[k]);
        job.factors[k] = opts->factor[k];
    }
    MICA_TRY(mica_affine_check_limits(ctx, op, opts->low, opts->high, job.limit));
    return run(ctx, op, &job, args, 3, affine_add_block);
}
