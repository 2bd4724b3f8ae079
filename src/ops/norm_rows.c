/* Layer and RMS norm: rows of n elements, each normalised over itself. */
#include <mica/ops/norm.h>

#include <string.h>

#include "base/parallel.h"
#include "ops/contiguous.h"
#include "ops/norm.h"

#define BLOCK          ((size_t)8192)  /* elements in one block of parallel work */
#define BACKWARD_BLOCK ((size_t)16384) /* and in a backward one, which keeps partial sums */
#define MOST_PARTIALS  ((size_t)32)    /* backward: blocks at most, so that scratch stays small */
#define COLUMNS        ((size_t)1024)  /* of dgamma and dbeta combined at a time */

/* x as [rows, n]. */
typedef struct rows_shape {
    int lead; /* leading axes */
    size_t rows, n;
} rows_shape;

static mica_status split_rows(mica_context *ctx, const char *op, rows_shape *out, const mica_tensor *x,
                              int axes)
{
    if (axes < 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: axes is %d, expected 1 or more", op, axes);
    axes = axes == 0 ? 1 : axes;
    MICA_TRY(mica_check_rank(ctx, op, "x", x, axes, MICA_MAX_RANK));
    *out = (rows_shape){x->rank - axes, 1, 1};
    for (int i = 0; i < x->rank; i++)
        *(i < out->lead ? &out->rows : &out->n) *= (size_t)x->dim[i];
    return MICA_OK;
}

/* gamma-like tensors have the normalised axes, mean-like ones the others. Both may be NULL. */
static mica_status check_inner(mica_context *ctx, const char *op, const char *name, const mica_tensor *t,
                               const rows_shape *s, const mica_tensor *x)
{
    if (t == NULL)
        return MICA_OK;
    return mica_check_shape(ctx, op, name, t, x->rank - s->lead, x->dim + s->lead, "x", x);
}

static mica_status check_outer(mica_context *ctx, const char *op, const char *name, const mica_tensor *t,
                               const rows_shape *s, const mica_tensor *x)
{
    if (t == NULL)
        return MICA_OK;
    return mica_check_shape(ctx, op, name, t, s->lead, x->dim, "x", x);
}

/* ---- Forward ---- */

typedef struct forward_job {
    mica_norm_rows rows;
    const mica_norm_kernels *kernels;
    size_t count, per_block;
} forward_job;

static void forward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const forward_job *job = work;
    size_t begin = block * job->per_block, end = begin + job->per_block;
    job->kernels->rows(&job->rows, begin, end < job->count ? end : job->count);
}

static mica_status check_forward(mica_context *ctx, const char *op, const rows_shape *s, const mica_arg *args)
{
    enum { Y, MEAN, RSTD, SUM, X, RESIDUAL, GAMMA, BETA };
    const mica_tensor *x = args[X].tensor, *residual = args[RESIDUAL].tensor, *sum = args[SUM].tensor;
    MICA_TRY(mica_check_same_shape(ctx, op, "y", args[Y].tensor, "x", x));
    MICA_TRY(check_inner(ctx, op, "gamma", args[GAMMA].tensor, s, x));
    MICA_TRY(check_inner(ctx, op, "beta", args[BETA].tensor, s, x));
    MICA_TRY(check_outer(ctx, op, "mean", args[MEAN].tensor, s, x));
    MICA_TRY(check_outer(ctx, op, "rstd", args[RSTD].tensor, s, x));
    if (residual != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "residual", residual, "x", x));
    if (sum != NULL && residual == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: sum %s is given, but there is no residual to add", op,
                         MICA_SHAPE(sum));
    if (sum != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "sum", sum, "x", x));
    return MICA_OK;
}

static mica_status forward(mica_context *ctx, const char *op, bool centred, const mica_tensor *y,
                           const mica_tensor *x, const mica_tensor *gamma, const mica_tensor *beta,
                           const mica_norm_opts *opts)
{
    mica_norm_opts none = {0};
    opts = opts != NULL ? opts : &none;
    enum { OUT = MICA_ARG_OUT | MICA_ARG_OPTIONAL, IN = MICA_ARG_OPTIONAL };
    mica_arg args[] = {
        {"y", y, MICA_ARG_OUT, 0},      {"mean", centred ? opts->mean : NULL, OUT, 0},
        {"rstd", opts->rstd, OUT, 0},   {"sum", opts->sum, OUT, 0},
        {"x", x, MICA_ARG_IN_PLACE, 0}, {"residual", opts->residual, IN | MICA_ARG_IN_PLACE, 0},
        {"gamma", gamma, IN, 0},        {"beta", beta, IN, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 8));
    rows_shape s;
    MICA_TRY(split_rows(ctx, op, &s, x, opts->axes));
    MICA_TRY(check_forward(ctx, op, &s, args));
    MICA_TRY(mica_norm_check_eps(ctx, op, opts->eps));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 8);
    MICA_START(ctx, op, dense.bytes, &scratch);
    mica_contiguous_load(&dense, scratch);
    forward_job job = {.kernels = MICA_FAMILY(ctx->kernels, norm), .count = s.rows};
    job.rows = (mica_norm_rows){.y = dense.data[0],
                                .mean = dense.data[1],
                                .rstd = dense.data[2],
                                .sum = dense.data[3],
                                .x = dense.data[4],
                                .residual = dense.data[5],
                                .gamma = dense.data[6],
                                .beta = dense.data[7],
                                .n = s.n,
                                .eps = mica_norm_eps(opts->eps),
                                .centred = centred};
    job.per_block = s.n < BLOCK ? BLOCK / (s.n + (s.n == 0)) : 1;
    mica_parallel(ctx, mica_div_up(s.rows, job.per_block), forward_block, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_layer_norm(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                            const mica_tensor *gamma, const mica_tensor *beta, const mica_norm_opts *opts)
{
    return forward(ctx, "layer_norm", true, y, x, gamma, beta, opts);
}

mica_status mica_rms_norm(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                          const mica_tensor *gamma, const mica_norm_opts *opts)
{
    return forward(ctx, "rms_norm", false, y, x, gamma, NULL, opts);
}

/* ---- Backward ---- */

/* Scratch: [blocks][dgamma n, dbeta n], where there is more than one block. */
typedef struct backward_job {
    mica_norm_rows_backward rows;
    const mica_norm_kernels *kernels;
    size_t count, per_block, blocks;
    float *dgamma, *dbeta; /* or NULL */
    float *partials;       /* NULL with one block: rows add to dgamma and dbeta themselves */
} backward_job;

static void backward_block(void *work, size_t block, int thread)
{
    (void)thread;
    const backward_job *job = work;
    size_t begin = block * job->per_block, end = begin + job->per_block, n = job->rows.n;
    mica_norm_rows_backward rows = job->rows;
    float *own = job->partials != NULL ? job->partials + block * 2 * n : NULL;
    rows.dgamma = job->dgamma != NULL && own != NULL ? own : job->dgamma;
    rows.dbeta = job->dbeta != NULL && own != NULL ? own + n : job->dbeta;
    if (rows.dgamma != NULL)
        memset(rows.dgamma, 0, n * sizeof(float));
    if (rows.dbeta != NULL)
        memset(rows.dbeta, 0, n * sizeof(float));
    job->kernels->rows_backward(&rows, begin, end < job->count ? end : job->count);
}

/* Adds the blocks' partial sums of some columns, in the order of the blocks. */
static void combine_block(void *work, size_t block, int thread)
{
    (void)thread;
    const backward_job *job = work;
    size_t first = block * COLUMNS, n = job->rows.n, width = n - first < COLUMNS ? n - first : COLUMNS;
    float *into[] = {job->dgamma, job->dbeta};
    for (size_t k = 0; k < 2; k++) {
        if (into[k] == NULL)
            continue;
        memcpy(into[k] + first, job->partials + k * n + first, width * sizeof(float));
        for (size_t b = 1; b < job->blocks; b++)
            job->kernels->add(into[k] + first, job->partials + (2 * b + k) * n + first, width);
    }
}

static mica_status check_backward(mica_context *ctx, const char *op, rows_shape *s, const mica_arg *args)
{
    enum { DX, DGAMMA, DBETA, DY, X, GAMMA, MEAN, RSTD };
    const mica_tensor *x = args[X].tensor;
    int axes = x->rank - args[RSTD].tensor->rank;
    if (axes < 1)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: rstd is %s, expected the leading axes of x %s", op,
                         MICA_SHAPE(args[RSTD].tensor), MICA_SHAPE(x));
    MICA_TRY(split_rows(ctx, op, s, x, axes));
    MICA_TRY(check_outer(ctx, op, "rstd", args[RSTD].tensor, s, x));
    MICA_TRY(check_outer(ctx, op, "mean", args[MEAN].tensor, s, x));
    MICA_TRY(mica_check_same_shape(ctx, op, "dy", args[DY].tensor, "x", x));
    if (args[DX].tensor != NULL)
        MICA_TRY(mica_check_same_shape(ctx, op, "dx", args[DX].tensor, "x", x));
    MICA_TRY(check_inner(ctx, op, "gamma", args[GAMMA].tensor, s, x));
    MICA_TRY(check_inner(ctx, op, "dgamma", args[DGAMMA].tensor, s, x));
    return check_inner(ctx, op, "dbeta", args[DBETA].tensor, s, x);
}

static void run_backward(mica_context *ctx, backward_job *job)
{
    if (job->count == 0) {
        if (job->dgamma != NULL)
            memset(job->dgamma, 0, job->rows.n * sizeof(float));
        if (job->dbeta != NULL)
            memset(job->dbeta, 0, job->rows.n * sizeof(float));
        return;
    }
    mica_parallel(ctx, job->blocks, backward_block, job);
    if (job->partials != NULL)
        mica_parallel(ctx, mica_div_up(job->rows.n, COLUMNS), combine_block, job);
}

static mica_status backward(mica_context *ctx, const char *op, bool centred, const mica_norm_grads *grads,
                            const mica_tensor *dy, const mica_tensor *x, const mica_tensor *gamma,
                            const mica_norm_saved *saved)
{
    MICA_TRY(mica_norm_check_structs(ctx, op, grads, saved));
    enum { OUT = MICA_ARG_OUT | MICA_ARG_OPTIONAL };
    mica_arg args[] = {{"dx", grads->x, OUT, 0},
                       {"dgamma", grads->gamma, OUT, 0},
                       {"dbeta", centred ? grads->beta : NULL, OUT, 0},
                       {"dy", dy, MICA_ARG_IN_PLACE, 0},
                       {"x", x, MICA_ARG_IN_PLACE, 0},
                       {"gamma", gamma, MICA_ARG_OPTIONAL, 0},
                       {"mean", centred ? saved->mean : NULL, centred ? 0 : MICA_ARG_OPTIONAL, 0},
                       {"rstd", saved->rstd, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 8));
    rows_shape s;
    MICA_TRY(check_backward(ctx, op, &s, args));

    backward_job job = {.kernels = MICA_FAMILY(ctx->kernels, norm), .count = s.rows};
    size_t by_size = mica_div_up(BACKWARD_BLOCK, s.n + (s.n == 0)),
           by_count = mica_div_up(s.rows, MOST_PARTIALS);
    job.per_block = by_size > by_count ? by_size : by_count;
    job.blocks = mica_div_up(s.rows, job.per_block);
    bool partials = job.blocks > 1 && (args[1].tensor != NULL || args[2].tensor != NULL);
    /* Fewer rows may be cut into more blocks: 64 into 32 of two, 65 into 22 of three. */
    size_t most_blocks = mica_least(mica_div_up(s.rows, by_size), MOST_PARTIALS);
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 8);
    MICA_START(ctx, op, dense.bytes + (partials ? most_blocks * 2 * s.n * sizeof(float) : 0), &scratch);
    void *rest = mica_contiguous_load(&dense, scratch);
    job.partials = partials ? rest : NULL;
    job.dgamma = dense.data[1];
    job.dbeta = dense.data[2];
    job.rows = (mica_norm_rows_backward){.dx = dense.data[0],
                                         .dy = dense.data[3],
                                         .x = dense.data[4],
                                         .gamma = dense.data[5],
                                         .mean = dense.data[6],
                                         .rstd = dense.data[7],
                                         .n = s.n};
    if (s.n > 0)
        run_backward(ctx, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}

mica_status mica_layer_norm_backward(mica_context *ctx, const mica_norm_grads *grads, const mica_tensor *dy,
                                     const mica_tensor *x, const mica_tensor *gamma,
                                     const mica_norm_saved *saved)
{
    return backward(ctx, "layer_norm_backward", true, grads, dy, x, gamma, saved);
}

mica_status mica_rms_norm_backward(mica_context *ctx, const mica_norm_grads *grads, const mica_tensor *dy,
                                   const mica_tensor *x, const mica_tensor *gamma,
                                   const mica_norm_saved *saved)
{
    return backward(ctx, "rms_norm_backward", false, grads, dy, x, gamma, saved);
}
