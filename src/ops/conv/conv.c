/* The public convolutions: which image is which. src/ops/conv/conv.h has the idea. */
#include "ops/conv/conv.h"

#include "base/parallel.h"
#include "ops/activation.h"
#include "ops/conv/prepare.h"

/* An operation by name. */
typedef struct kind {
    const char *op;
    int dims;
    enum { PLAIN, TRANSPOSED, MEAN } way;
    mica_status (*run)(mica_context *ctx, const mica_conv *conv); /* forward */
} kind;

static bool is_transposed(const kind *k) { return k->way == TRANSPOSED; }

static const mica_conv2d_opts defaults;

#define TENSORS(...) ((const mica_tensor *const[]){__VA_ARGS__})

/* Checks a forward convolution of dst, x, w and bias, and takes it apart. */
static mica_status open_forward(mica_context *ctx, mica_conv *conv, const kind *k,
                                const mica_tensor *const *tensors, const mica_conv2d_opts *opts)
{
    mica_conv_call call = {
        .op = k->op,
        .dims = k->dims,
        .transposed = is_transposed(k),
        .args = {{"dst", tensors[0], MICA_ARG_OUT, 0},
                 {"x", tensors[1], 0, 0},
                 {"w", tensors[2], 0, 0},
                 {"bias", tensors[3], MICA_ARG_OPTIONAL, 0}},
        .count = 4,
        .wide = is_transposed(k) ? 0 : 1,
        .narrow = is_transposed(k) ? 1 : 0,
        .weight = 2,
        .bias = tensors[3] != NULL ? 3 : 0,
        .mean = k->way == MEAN,
        .opts = opts != NULL ? opts : &defaults,
    };
    MICA_TRY(mica_conv_check(ctx, conv, &call));
    MICA_TRY(mica_check_activation(ctx, k->op, call.opts->activation));
    conv->activation = call.opts->activation;
    conv->finish = mica_activation_kernel(ctx, call.opts->activation);
    conv->slope = call.opts->slope;
    return MICA_OK;
}

static mica_status forward(mica_context *ctx, const kind *k, const mica_tensor *const *tensors,
                           const mica_conv2d_opts *opts)
{
    mica_conv conv;
    MICA_TRY(open_forward(ctx, &conv, k, tensors, opts));
    return k->run(ctx, &conv);
}

mica_status mica_conv2d_max_pool(mica_context *ctx, const mica_tensor *dst, const mica_tensor *indices,
                                 const mica_conv_pool_args *args)
{
    const mica_conv2d_opts *opts = args->conv;
    mica_conv_call call = {
        .op = "conv2d_max_pool",
        .dims = 2,
        .args = {{"dst", dst, MICA_ARG_OUT, 0},
                 {"x", args->x, 0, 0},
                 {"w", args->w, 0, 0},
                 {"bias", args->bias, MICA_ARG_OPTIONAL, 0}},
        .count = 4,
        .wide = 1,
        .narrow = 0,
        .weight = 2,
        .bias = args->bias != NULL ? 3 : 0,
        .pool = args->pool,
        .opts = opts,
    };
    mica_conv conv;
    MICA_TRY(mica_conv_check(ctx, &conv, &call));
    if (indices != NULL)
        MICA_TRY(mica_check_same_shape(ctx, call.op, "indices", indices, "dst", dst));
    conv.finish = mica_activation_kernel(ctx, opts->activation);
    conv.slope = opts->slope;
    conv.pool = args->pool;
    conv.picks = indices != NULL ? indices->data : NULL;
    return mica_conv_pool(ctx, &conv);
}

/* dx: y = w x is linear in x, so its gradient is the transposed map of dy, which is the other convolution. */
static mica_status backward_input(mica_context *ctx, const kind *k, const mica_tensor *const *tensors,
                                  const mica_conv2d_opts *opts)
{
    mica_conv_call call = {
        .op = k->op,
        .dims = k->dims,
        .transposed = is_transposed(k),
        .args = {{"dx", tensors[0], MICA_ARG_OUT, 0}, {"dy", tensors[1], 0, 0}, {"w", tensors[2], 0, 0}},
        .count = 3,
        .wide = is_transposed(k) ? 1 : 0,
        .narrow = is_transposed(k) ? 0 : 1,
        .weight = 2,
        .opts = opts != NULL ? opts : &defaults,
    };
    mica_conv conv;
    MICA_TRY(mica_conv_check(ctx, &conv, &call));
    return is_transposed(k) ? mica_conv_narrow(ctx, &conv) : mica_conv_wide(ctx, &conv);
}

/* dw[o, c, t] = sum over images and narrow positions i of narrow[o, i]
 * wide[c, i stride - pad + t dilation] */
static mica_status backward_weight(mica_context *ctx, const kind *k, const mica_tensor *const *tensors,
                                   const mica_conv2d_opts *opts)
{
    mica_conv_call call = {
        .op = k->op,
        .dims = k->dims,
        .transposed = is_transposed(k),
        .args = {{"dw", tensors[0], MICA_ARG_OUT, 0}, {"dy", tensors[1], 0, 0}, {"x", tensors[2], 0, 0}},
        .count = 3,
        .wide = is_transposed(k) ? 1 : 2,
        .narrow = is_transposed(k) ? 2 : 1,
        .weight = 0,
        .opts = opts != NULL ? opts : &defaults,
    };
    mica_conv conv;
    MICA_TRY(mica_conv_check(ctx, &conv, &call));
    return mica_conv_weight(ctx, &conv);
}

/* ---- Gradient by bias ---- */

typedef struct bias_job {
    const mica_kernels *kernels;
    mica_conv_planes dy;
    size_t images, rows, columns;
    float *db;
    ptrdiff_t db_stride;
    bool accumulate;
} bias_job;

/* db[c] = sum over images and pixels of dy, in double precision from row to row. */
static void bias_channel(void *work, size_t channel, int thread)
{
    (void)thread;
    const bias_job *job = work;
    double sum = 0.0;
    for (size_t n = 0; n < job->images; n++) {
        const float *plane = job->dy.data + (ptrdiff_t)n * job->dy.image_stride +
                             (ptrdiff_t)channel * job->dy.channel_stride;
        for (size_t i = 0; i < job->rows; i++)
            sum += MICA_KERNEL(job->kernels, conv, sum)(plane + (ptrdiff_t)i * job->dy.row_stride,
                                                        job->dy.column_stride, job->columns);
    }
    float *place = job->db + (ptrdiff_t)channel * job->db_stride;
    *place = (float)(job->accumulate ? (double)*place + sum : sum);
}

static mica_status backward_bias(mica_context *ctx, const kind *k, const mica_tensor *const *tensors,
                                 const mica_conv2d_opts *opts)
{
    const mica_tensor *db = tensors[0], *dy = tensors[1];
    mica_arg args[] = {{"db", db, MICA_ARG_OUT, 0}, {"dy", dy, 0, 0}};
    MICA_TRY(mica_check_args(ctx, k->op, args, 2));
    MICA_TRY(mica_check_rank(ctx, k->op, "dy", dy, k->dims + 2, k->dims + 2));
    MICA_TRY(mica_check_shape(ctx, k->op, "db", db, 1, &dy->dim[1], "dy", dy));
    MICA_START(ctx, k->op, 0, NULL);

    bias_job job = {.kernels = ctx->kernels,
                    .dy = {dy->data, dy->stride[0], dy->stride[1], k->dims == 2 ? dy->stride[2] : 0,
                           dy->stride[k->dims + 1]},
                    .images = (size_t)dy->dim[0],
                    .rows = k->dims == 2 ? (size_t)dy->dim[2] : 1,
                    .columns = (size_t)dy->dim[k->dims + 1],
                    .db = db->data,
                    .db_stride = db->stride[0],
                    .accumulate = opts != NULL && opts->accumulate};
    ptrdiff_t stride;
    if (mica_conv_pixel_stride(&stride, job.rows, job.columns, job.dy.row_stride, job.dy.column_stride)) {
        job.columns *= job.rows;
        job.rows = 1;
        job.dy.column_stride = stride;
    }
    /* Reading bounds it: about eight multiply-adds an element. */
    mica_parallel_sums(ctx, 8.0 * (double)mica_tensor_count(dy), (size_t)db->dim[0], bias_channel, &job);
    return MICA_OK;
}

/* ---- Public: two dimensions ---- */

mica_status mica_conv2d(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x, const mica_tensor *w,
                        const mica_tensor *bias, const mica_conv2d_opts *opts)
{
    static const kind k = {"conv2d", 2, PLAIN, mica_conv_narrow};
    return forward(ctx, &k, TENSORS(dst, x, w, bias), opts);
}

#if !defined(MICA_SMALL)
mica_status mica_conv2d_cost(mica_context *ctx, double *nanoseconds, const mica_tensor *dst,
                             const mica_tensor *x, const mica_tensor *w, const mica_conv2d_opts *opts)
{
    static const kind k = {"conv2d", 2, PLAIN, mica_conv_narrow};
    mica_conv conv;
    bool measuring = ctx->measuring;
    double flops = ctx->flops;
    ctx->measuring = true; /* tensors may be without data */
    mica_status status = open_forward(ctx, &conv, &k, TENSORS(dst, x, w, NULL), opts);
    ctx->measuring = measuring;
    ctx->flops = flops;
    MICA_TRY(status);
    if (ctx->prepares) {
        *nanoseconds = mica_conv_prepared_cost(ctx, &conv);
        return MICA_OK;
    }
    mica_conv_product p = mica_conv_narrow_product(ctx, &conv);
    mica_conv_product_plan(ctx, &p);
    *nanoseconds = mica_conv_cost(ctx, &p);
    return MICA_OK;
}
#endif

mica_status mica_conv2d_mean(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                             const mica_tensor *w, const mica_tensor *bias, const mica_conv2d_opts *opts)
{
    static const kind k = {"conv2d_mean", 2, MEAN, mica_conv_mean};
    return forward(ctx, &k, TENSORS(dst, x, w, bias), opts);
}

mica_status mica_conv2d_backward_input(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                       const mica_tensor *w, const mica_conv2d_opts *opts)
{
    return backward_input(ctx, &(kind){.op = "conv2d_backward_input", .dims = 2, .way = PLAIN},
                          TENSORS(dx, dy, w), opts);
}

mica_status mica_conv2d_backward_weight(mica_context *ctx, const mica_tensor *dw, const mica_tensor *dy,
                                        const mica_tensor *x, const mica_conv2d_opts *opts)
{
    return backward_weight(ctx, &(kind){.op = "conv2d_backward_weight", .dims = 2, .way = PLAIN},
                           TENSORS(dw, dy, x), opts);
}

mica_status mica_conv2d_backward_bias(mica_context *ctx, const mica_tensor *db, const mica_tensor *dy,
                                      const mica_conv2d_opts *opts)
{
    return backward_bias(ctx, &(kind){.op = "conv2d_backward_bias", .dims = 2, .way = PLAIN}, TENSORS(db, dy),
                         opts);
}

mica_status mica_conv_transpose2d(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                  const mica_tensor *w, const mica_tensor *bias, const mica_conv2d_opts *opts)
{
    static const kind k = {"conv_transpose2d", 2, TRANSPOSED, mica_conv_wide};
    return forward(ctx, &k, TENSORS(dst, x, w, bias), opts);
}

mica_status mica_conv_transpose2d_backward_input(mica_context *ctx, const mica_tensor *dx,
                                                 const mica_tensor *dy, const mica_tensor *w,
                                                 const mica_conv2d_opts *opts)
{
    return backward_input(ctx, &(kind){.op = "conv_transpose2d_backward_input", .dims = 2, .way = TRANSPOSED},
                          TENSORS(dx, dy, w), opts);
}

mica_status mica_conv_transpose2d_backward_weight(mica_context *ctx, const mica_tensor *dw,
                                                  const mica_tensor *dy, const mica_tensor *x,
                                                  const mica_conv2d_opts *opts)
{
    return backward_weight(ctx,
                           &(kind){.op = "conv_transpose2d_backward_weight", .dims = 2, .way = TRANSPOSED},
                           TENSORS(dw, dy, x), opts);
}

/* ---- Public: one dimension ---- */

static mica_conv2d_opts widen(const mica_conv1d_opts *opts)
{
    if (opts == NULL)
        return defaults;
    return (mica_conv2d_opts){.stride = {0, opts->stride},
                              .pad = {0, opts->pad},
                              .dilation = {0, opts->dilation},
                              .groups = opts->groups,
                              .output_pad = {0, opts->output_pad},
                              .accumulate = opts->accumulate,
                              .activation = opts->activation,
                              .slope = opts->slope};
}

mica_status mica_conv1d(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x, const mica_tensor *w,
                        const mica_tensor *bias, const mica_conv1d_opts *opts)
{
    mica_conv2d_opts wide = widen(opts);
    static const kind k = {"conv1d", 1, PLAIN, mica_conv_narrow};
    return forward(ctx, &k, TENSORS(dst, x, w, bias), &wide);
}

mica_status mica_conv1d_mean(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                             const mica_tensor *w, const mica_tensor *bias, const mica_conv1d_opts *opts)
{
    mica_conv2d_opts wide = widen(opts);
    static const kind k = {"conv1d_mean", 1, MEAN, mica_conv_mean};
    return forward(ctx, &k, TENSORS(dst, x, w, bias), &wide);
}

mica_status mica_conv1d_backward_input(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                       const mica_tensor *w, const mica_conv1d_opts *opts)
{
    mica_conv2d_opts wide = widen(opts);
    return backward_input(ctx, &(kind){.op = "conv1d_backward_input", .dims = 1, .way = PLAIN},
                          TENSORS(dx, dy, w), &wide);
}

mica_status mica_conv1d_backward_weight(mica_context *ctx, const mica_tensor *dw, const mica_tensor *dy,
                                        const mica_tensor *x, const mica_conv1d_opts *opts)
{
    mica_conv2d_opts wide = widen(opts);
    return backward_weight(ctx, &(kind){.op = "conv1d_backward_weight", .dims = 1, .way = PLAIN},
                           TENSORS(dw, dy, x), &wide);
}

mica_status mica_conv1d_backward_bias(mica_context *ctx, const mica_tensor *db, const mica_tensor *dy,
                                      const mica_conv1d_opts *opts)
{
    mica_conv2d_opts wide = widen(opts);
    return backward_bias(ctx, &(kind){.op = "conv1d_backward_bias", .dims = 1, .way = PLAIN}, TENSORS(db, dy),
                         &wide);
}

mica_status mica_conv_transpose1d(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                  const mica_tensor *w, const mica_tensor *bias, const mica_conv1d_opts *opts)
{
    mica_conv2d_opts wide = widen(opts);
    static const kind k = {"conv_transpose1d", 1, TRANSPOSED, mica_conv_wide};
    return forward(ctx, &k, TENSORS(dst, x, w, bias), &wide);
}

mica_status mica_conv_transpose1d_backward_input(mica_context *ctx, const mica_tensor *dx,
                                                 const mica_tensor *dy, const mica_tensor *w,
                                                 const mica_conv1d_opts *opts)
{
    mica_conv2d_opts wide = widen(opts);
    return backward_input(ctx, &(kind){.op = "conv_transpose1d_backward_input", .dims = 1, .way = TRANSPOSED},
                          TENSORS(dx, dy, w), &wide);
}

mica_status mica_conv_transpose1d_backward_weight(mica_context *ctx, const mica_tensor *dw,
                                                  const mica_tensor *dy, const mica_tensor *x,
                                                  const mica_conv1d_opts *opts)
{
    mica_conv2d_opts wide = widen(opts);
    return backward_weight(ctx,
                           &(kind){.op = "conv_transpose1d_backward_weight", .dims = 1, .way = TRANSPOSED},
                           TENSORS(dw, dy, x), &wide);
}
