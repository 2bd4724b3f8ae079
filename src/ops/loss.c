/* Losses: checks, then kernels over blocks; partial sums are combined in the order of the blocks. */
#include <mica/ops/loss.h>

#include "base/parallel.h"
#include "ops/contiguous.h"
#include "tensor/tensor.h"

#define BLOCK ((size_t)8192) /* elements in one block of parallel work */

static mica_status check_options(mica_context *ctx, const char *op, const mica_loss_opts *opts)
{
    if ((unsigned)opts->reduction > MICA_LOSS_NONE)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: unknown reduction %d", op, (int)opts->reduction);
    if (!(opts->delta >= 0.0f))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: delta is %g, expected more than 0 (or 0 for 1)", op,
                         (double)opts->delta);
    if (!(opts->smoothing >= 0.0f && opts->smoothing <= 1.0f))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: smoothing is %g, expected 0 to 1", op,
                         (double)opts->smoothing);
    return MICA_OK;
}

/* One element for a mean or a sum, else the shape of what the loss is computed of. */
static mica_status check_loss(mica_context *ctx, const char *op, const mica_tensor *loss,
                              mica_loss_reduction reduction, const char *name, const mica_tensor *pred,
                              int rank)
{
    if (loss == NULL)
        return MICA_OK;
    if (reduction == MICA_LOSS_NONE)
        return mica_check_shape(ctx, op, "loss", loss, rank, pred->dim, name, pred);
    if (loss->rank == 0 || (loss->rank == 1 && loss->dim[0] == 1))
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_SHAPE, "%s: loss is %s, expected [] or [1] for a mean or sum over %s %s",
                     op, MICA_SHAPE(loss), name, MICA_SHAPE(pred));
}

/* ---- Element by element ---- */

typedef struct point_job {
    mica_loss_fn *fn;
    float *loss, *grad, *partials;
    const float *pred, *target;
    size_t count;
    float scale, param;
} point_job;

static void point_block(void *work, size_t block, int thread)
{
    (void)thread;
    const point_job *job = work;
    size_t at = block * BLOCK, n = job->count - at < BLOCK ? job->count - at : BLOCK;
    float sum = job->fn(job->loss != NULL ? job->loss + at : NULL, job->grad != NULL ? job->grad + at : NULL,
                        job->pred + at, job->target + at, n, job->scale, job->param);
    if (job->partials != NULL)
        job->partials[block] = sum;
}

static mica_status point_loss(mica_context *ctx, const char *op, mica_loss_fn *fn, const char *pred_name,
                              const mica_tensor *loss, const mica_tensor *grad, const mica_tensor *pred,
                              const mica_tensor *target, const mica_loss_opts *opts)
{
    mica_loss_opts none = {0};
    opts = opts != NULL ? opts : &none;
    enum { OUT = MICA_ARG_OUT | MICA_ARG_OPTIONAL };
    mica_arg args[] = {{"loss", loss, OUT, 0},
                       {"grad", grad, OUT, 0},
                       {pred_name, pred, MICA_ARG_IN_PLACE, 0},
                       {"target", target, MICA_ARG_IN_PLACE, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 4));
    MICA_TRY(check_options(ctx, op, opts));
    MICA_TRY(mica_check_same_shape(ctx, op, "target", target, pred_name, pred));
    if (grad != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "grad", grad, pred_name, pred));
    MICA_TRY(check_loss(ctx, op, loss, opts->reduction, pred_name, pred, pred->rank));

    bool reduces = opts->reduction != MICA_LOSS_NONE;
    point_job job = {.fn = fn, .count = mica_tensor_count(pred), .scale = 1.0f};
    size_t blocks = mica_div_up(job.count, BLOCK);
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 4);
    MICA_START(ctx, op, dense.bytes + (reduces ? blocks * sizeof(float) : 0), &scratch);
    void *rest = mica_contiguous_load(&dense, scratch);
    job.loss = reduces ? NULL : dense.data[0];
    job.partials = reduces ? rest : NULL;
    job.grad = dense.data[1];
    job.pred = dense.data[2];
    job.target = dense.data[3];
    job.param = opts->delta != 0.0f ? opts->delta : 1.0f;
    if (opts->reduction == MICA_LOSS_MEAN)
        job.scale = 1.0f / (float)job.count;
    mica_parallel(ctx, blocks, point_block, &job);
    if (reduces && loss != NULL) {
        double sum = 0.0;
        for (size_t b = 0; b < blocks; b++)
            sum += (double)job.partials[b];
        *(float *)dense.data[0] = (float)(opts->reduction == MICA_LOSS_MEAN ? sum / (double)job.count : sum);
    }
    mica_contiguous_store(&dense);
    return MICA_OK;
}

#define POINT_LOSS(name, pred)                                                                          \
    mica_status mica_##name##_loss(mica_context *ctx, const mica_tensor *loss, const mica_tensor *grad, \
                                   const mica_tensor *pred, const mica_tensor *target,                  \
                                   const mica_loss_opts *opts)                                          \
    {                                                                                                   \
        return point_loss(ctx, #name "_loss", MICA_KERNEL(ctx->kernels, loss, name), #pred, loss, grad, \
                          pred, target, opts);                                                          \
    }
POINT_LOSS(mse, pred)
POINT_LOSS(l1, pred)
POINT_LOSS(huber, pred)
POINT_LOSS(bce, pred)
POINT_LOSS(bce_logits, logits)

/* ---- Row by row ---- */

typedef void rows_fn(const mica_class_rows *rows, size_t begin, size_t end);

typedef struct class_job {
    mica_class_rows rows;
    rows_fn *fn;
    size_t count, per_block;
    const float *weights; /* of the classes, [n]; NULL: none */
    const float *target;  /* as given, [rows, n]; NULL: labels */
    float *weighed;       /* [rows, n] the targets times the weights: rows.target */
    float smoothing;
} class_job;

static int64_t label_at(const mica_class_rows *rows, size_t row)
{
    return rows->labels32 != NULL ? rows->labels32[row] : rows->labels64[row];
}

/* What a row sums up over: its smoothed target, times the weights of the classes. */
static void weigh_row(const class_job *job, size_t row)
{
    size_t n = job->rows.n;
    float *out = job->weighed + row * n, even = job->smoothing / (float)n;
    const float *target = job->target != NULL ? job->target + row * n : NULL;
    int64_t label = target == NULL ? label_at(&job->rows, row) : -1;
    for (size_t j = 0; j < n; j++) {
        float t = target != NULL ? target[j] : (int64_t)j == label ? 1.0f : 0.0f;
        out[j] = job->weights[j] * (t * (1.0f - job->smoothing) + even);
    }
}

static void class_block(void *work, size_t block, int thread)
{
    (void)thread;
    const class_job *job = work;
    size_t begin = block * job->per_block, end = begin + job->per_block;
    end = end < job->count ? end : job->count;
    for (size_t row = begin; job->weights != NULL && row < end; row++)
        weigh_row(job, row);
    job->fn(&job->rows, begin, end);
}

/* Looks at every label before anything is written. Counts the rows that are not ignored, or adds up the weights of
 * their classes. */
static mica_status check_labels(mica_context *ctx, const char *op, const class_job *job, double *counted)
{
    const mica_class_rows *rows = &job->rows;
    size_t ignored = 0, classes = rows->n;
    double weights = 0.0;
    for (size_t row = 0; row < job->count; row++) {
        int64_t label = label_at(rows, row);
        if (rows->ignore && label == rows->ignore_index)
            ignored++;
        else if (label < 0 || label >= (int64_t)classes)
            return mica_fail(ctx, MICA_ERR_INDEX, "%s: target %zu is class %lld, but there are %zu classes",
                             op, row, (long long)label, classes);
        else if (job->weights != NULL)
            weights += (double)job->weights[label];
    }
    *counted = job->weights != NULL ? weights : (double)(job->count - ignored);
    return MICA_OK;
}

static mica_status check_classes(mica_context *ctx, const char *op, const char *pred_name,
                                 const mica_tensor *loss, const mica_tensor *grad, const mica_tensor *pred,
                                 const mica_tensor *target, const mica_loss_opts *opts)
{
    MICA_TRY(check_options(ctx, op, opts));
    MICA_TRY(mica_check_rank(ctx, op, pred_name, pred, 1, MICA_MAX_RANK));
    bool labels = target->dtype != MICA_F32;
    MICA_TRY(mica_check_shape(ctx, op, "target", target, pred->rank - (labels ? 1 : 0), pred->dim, pred_name,
                              pred));
    if (grad != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "grad", grad, pred_name, pred));
    MICA_TRY(check_loss(ctx, op, loss, opts->reduction, pred_name, pred, pred->rank - 1));
    if (pred->dim[pred->rank - 1] == 0)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s: the class axis is empty", op, pred_name,
                         MICA_SHAPE(pred));
    if (opts->class_weights != NULL)
        MICA_TRY(mica_check_shape(ctx, op, "class_weights", opts->class_weights, 1,
                                  &pred->dim[pred->rank - 1], pred_name, pred));
    if (pred->dim[pred->rank - 1] > INT32_MAX)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s: too many classes", op, pred_name,
                         MICA_SHAPE(pred));
    return MICA_OK;
}

/* The loss itself from those of the rows. In four sums, as one would be a chain of additions that wait for
 * each other. */
static float reduce_rows(const float *loss, size_t count, mica_loss_reduction reduction, double counted)
{
    double sums[4] = {0};
    size_t row = 0;
    for (; row + 4 <= count; row += 4)
        for (size_t k = 0; k < 4; k++)
            sums[k] += (double)loss[row + k];
    for (; row < count; row++)
        sums[0] += (double)loss[row];
    double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    return (float)(reduction == MICA_LOSS_MEAN ? sum / counted : sum);
}

static mica_status class_loss(mica_context *ctx, const char *op, rows_fn *fn, const char *pred_name,
                              const mica_tensor *loss, const mica_tensor *grad, const mica_tensor *pred,
                              const mica_tensor *target, const mica_loss_opts *opts)
{
    mica_loss_opts none = {0};
    opts = opts != NULL ? opts : &none;
    enum { OUT = MICA_ARG_OUT | MICA_ARG_OPTIONAL };
    mica_arg args[] = {{"loss", loss, OUT, 0},
                       {"grad", grad, OUT, 0},
                       {pred_name, pred, MICA_ARG_IN_PLACE, 0},
                       {"target", target, 0, MICA_DTYPES_INDEX | MICA_DTYPE_BIT(MICA_F32)},
                       {"class_weights", opts->class_weights, MICA_ARG_OPTIONAL, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 5));
    MICA_TRY(check_classes(ctx, op, pred_name, loss, grad, pred, target, opts));
    size_t n = (size_t)pred->dim[pred->rank - 1];
    class_job job = {.fn = fn, .count = mica_tensor_count(pred) / n, .smoothing = opts->smoothing};
    bool weighs = opts->class_weights != NULL;
    job.per_block = n < BLOCK ? BLOCK / n : 1;
    bool own_loss = opts->reduction != MICA_LOSS_NONE || loss == NULL; /* of the rows, in scratch */
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 5);
    size_t losses = own_loss ? job.count : 0, weighed = weighs ? job.count * n : 0;
    MICA_START(ctx, op, dense.bytes + (losses + weighed) * sizeof(float), &scratch);
    float *rest = mica_contiguous_load(&dense, scratch);
    job.weights = dense.data[4];
    job.weighed = weighs ? rest + losses : NULL;
    job.target = target->dtype == MICA_F32 ? dense.data[3] : NULL;
    job.rows = (mica_class_rows){.loss = own_loss ? rest : dense.data[0],
                                 .grad = dense.data[1],
                                 .pred = dense.data[2],
                                 .labels32 = target->dtype == MICA_I32 ? dense.data[3] : NULL,
                                 .labels64 = target->dtype == MICA_I64 ? dense.data[3] : NULL,
                                 .target = weighs ? job.weighed : job.target,
                                 .n = n,
                                 .scale = 1.0f,
                                 .smoothing = weighs ? 0.0f : opts->smoothing, /* it is in the weighed ones */
                                 .ignore = opts->ignore,
                                 .ignore_index = opts->ignore_index};
    double counted = (double)job.count;
    if (job.target == NULL)
        MICA_TRY(check_labels(ctx, op, &job, &counted));
    if (opts->reduction == MICA_LOSS_MEAN && counted > 0.0)
        job.rows.scale = 1.0f / (float)counted;
    mica_parallel(ctx, mica_div_up(job.count, job.per_block), class_block, &job);
    if (opts->reduction != MICA_LOSS_NONE && loss != NULL)
        *(float *)dense.data[0] = reduce_rows(job.rows.loss, job.count, opts->reduction, counted);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_cross_entropy(mica_context *ctx, const mica_tensor *loss, const mica_tensor *grad,
                               const mica_tensor *logits, const mica_tensor *target,
                               const mica_loss_opts *opts)
{
    return class_loss(ctx, "cross_entropy", MICA_KERNEL(ctx->kernels, loss, cross_entropy), "logits", loss,
                      grad, logits, target, opts);
}

mica_status mica_cross_entropy_probs(mica_context *ctx, const mica_tensor *loss, const mica_tensor *grad,
                                     const mica_tensor *pred, const mica_tensor *target,
                                     const mica_loss_opts *opts)
{
    return class_loss(ctx, "cross_entropy_probs", MICA_KERNEL(ctx->kernels, loss, cross_entropy_probs),
                      "pred", loss, grad, pred, target, opts);
}
