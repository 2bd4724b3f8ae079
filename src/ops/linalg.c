/* Matrix products of tensors: shapes, batches and broadcasting around the product of src/ops/gemm.h. */
#include <mica/ops/linalg.h>

#include <assert.h>

#include "base/parallel.h"
#include "ops/typed.h"
#include "ops/activation.h"
#include "ops/check.h"
#include "ops/gemm.h"
#include "ops/gemm_vector.h"
#include "ops/walk.h"

/* A batch of products: one for every position of dst's leading axes. */
typedef struct batch {
    const mica_context *ctx;
    mica_gemm gemm; /* of position 0 */
    int rank;       /* leading axes */
    size_t count;
    mica_index dim[MICA_MAX_RANK];
    mica_index a_stride[MICA_MAX_RANK], b_stride[MICA_MAX_RANK], c_stride[MICA_MAX_RANK];
    mica_index from_stride[MICA_MAX_RANK]; /* of the residual */
    char *scratch;
    size_t each_bytes; /* of scratch for a thread, where there are many products */
    size_t block;      /* products in one block of parallel work */
} batch;

static mica_gemm gemm_at(const batch *w, size_t position)
{
    mica_gemm g = w->gemm;
    for (int i = w->rank - 1; i >= 0; i--) {
        assert(w->dim[i] > 0); /* an empty batch has no positions */
        mica_index at = (mica_index)(position % (size_t)w->dim[i]);
        position /= (size_t)w->dim[i];
        g.a.data += at * w->a_stride[i];
        g.b.data += at * w->b_stride[i];
        g.c += at * w->c_stride[i];
        if (g.from != NULL)
            g.from += at * w->from_stride[i];
    }
    return g;
}

static void batch_block(void *work, size_t block, int thread)
{
    const batch *w = work;
    size_t end = (block + 1) * w->block < w->count ? (block + 1) * w->block : w->count;
    for (size_t position = block * w->block; position < end; position++) {
        mica_gemm g = gemm_at(w, position);
        mica_gemm_run_serial(w->ctx, &g, w->scratch + (size_t)thread * w->each_bytes);
    }
}

/* Leading axes of t as seen from dst: 0 where it is broadcast. */
static void batch_strides(mica_index *stride, const mica_tensor *t, const mica_tensor *dst)
{
    int missing = dst->rank - t->rank;
    for (int i = 0; i < dst->rank - 2; i++)
        stride[i] = i < missing || t->dim[i - missing] == 1 ? 0 : t->stride[i - missing];
}

/* Where b is the same for every position and the rows of a and c simply go on from one to the next, the last
 * leading axis becomes rows of one larger product. */
static void join_rows(batch *w)
{
    while (w->rank > 0) {
        int last = w->rank - 1;
        mica_index rows = (mica_index)w->gemm.m;
        bool joins = w->b_stride[last] == 0 && w->a_stride[last] == rows * w->gemm.a.vector_stride &&
                     w->c_stride[last] == rows * w->gemm.row_stride &&
                     (w->gemm.from == NULL || w->from_stride[last] == rows * w->gemm.from_row_stride);
        if (!joins && w->dim[last] != 1)
            return;
        w->gemm.m *= (size_t)w->dim[last];
        w->count /= (size_t)w->dim[last];
        w->rank--;
    }
}

/* Whether the leading axes of a and b broadcast to those of dst. */
static mica_status check_batches(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                 const mica_tensor *b)
{
    mica_tensor batch_of[3] = {*dst, *a, *b};
    for (int i = 0; i < 3; i++)
        batch_of[i].rank -= 2;
    MICA_TRY(
        mica_check_broadcast(ctx, "matmul", "the batch of a", &batch_of[1], "that of dst", &batch_of[0]));
    return mica_check_broadcast(ctx, "matmul", "the batch of b", &batch_of[2], "that of dst", &batch_of[0]);
}

static mica_status check_matmul(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                const mica_tensor *b, const mica_matmul_opts *opts, uint64_t dtypes)
{
    const char *op = "matmul";
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, dtypes},
                       {"a", a, 0, dtypes},
                       {"b", b, 0, dtypes},
                       {"bias", opts->bias, MICA_ARG_OPTIONAL, 0},
                       {"residual", opts->residual, MICA_ARG_OPTIONAL | MICA_ARG_IN_PLACE, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 5));
    MICA_TRY(mica_check_rank(ctx, op, "dst", dst, 2, MICA_MAX_RANK));
    MICA_TRY(mica_check_rank(ctx, op, "a", a, 2, dst->rank));
    MICA_TRY(mica_check_rank(ctx, op, "b", b, 2, dst->rank));

    mica_index m = a->dim[a->rank - (opts->transpose_a ? 1 : 2)],
               k = a->dim[a->rank - (opts->transpose_a ? 2 : 1)];
    mica_index n = b->dim[b->rank - (opts->transpose_b ? 2 : 1)],
               bk = b->dim[b->rank - (opts->transpose_b ? 1 : 2)];
    MICA_TRY(mica_check_activation(ctx, "matmul", opts->activation));
    if (k != bk)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "matmul: a is %s%s, b is %s%s: %td columns of a against %td rows of b",
                         MICA_SHAPE(a), opts->transpose_a ? " transposed" : "", MICA_SHAPE(b),
                         opts->transpose_b ? " transposed" : "", k, bk);
    if (dst->dim[dst->rank - 2] != m || dst->dim[dst->rank - 1] != n)
        return mica_fail(ctx, MICA_ERR_SHAPE, "matmul: dst is %s: expected [..., %td, %td] for a %s and b %s",
                         MICA_SHAPE(dst), m, n, MICA_SHAPE(a), MICA_SHAPE(b));
    if (dst->rank > 2)
        MICA_TRY(check_batches(ctx, dst, a, b));
    if (opts->residual != NULL) {
        MICA_TRY(mica_check_broadcast(ctx, op, "residual", opts->residual, "dst", dst));
        if (opts->beta != 0.0f)
            return mica_fail(ctx, MICA_ERR_ARGUMENT,
                             "matmul: beta is %g with a residual: only one of them can be used",
                             (double)opts->beta);
    }
    if (opts->bias != NULL) {
        MICA_TRY(mica_check_shape(ctx, op, "bias", opts->bias, 1, &n, "dst", dst));
        if (!mica_tensor_contiguous(opts->bias))
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "matmul: bias %s is not contiguous",
                             MICA_SHAPE(opts->bias));
    }
    return MICA_OK;
}

/* Where rows of dst lie contiguous the activation is part of the product; elsewhere it is a pass of its own. */
static bool finishes_in_product(const mica_tensor *dst) { return dst->stride[dst->rank - 1] == 1; }

/* t's stride along an axis of dst, counted from the last; 0 where it is broadcast. */
static mica_index stride_from_end(const mica_tensor *t, int axis)
{
    return axis >= t->rank || t->dim[t->rank - 1 - axis] == 1 ? 0 : t->stride[t->rank - 1 - axis];
}

static void set_residual(batch *w, const mica_tensor *residual, const mica_tensor *dst)
{
    w->gemm.beta = 1.0f;
    w->gemm.from = residual->data;
    w->gemm.from_row_stride = stride_from_end(residual, 1);
    w->gemm.from_column_stride = stride_from_end(residual, 0);
    batch_strides(w->from_stride, residual, dst);
}

/* Sets every field: clearing a batch first, or returning it by value, takes as long as all of this. */
static void plan_batch(mica_context *ctx, batch *w, const mica_tensor *dst, const mica_tensor *a,
                       const mica_tensor *b, const mica_matmul_opts *opts)
{
    int a_row = a->rank - (opts->transpose_a ? 1 : 2), a_column = a->rank - (opts->transpose_a ? 2 : 1);
    int b_row = b->rank - (opts->transpose_b ? 1 : 2), b_column = b->rank - (opts->transpose_b ? 2 : 1);
    w->ctx = ctx;
    w->rank = dst->rank - 2;
    w->count = 1;
    w->gemm = (mica_gemm){.m = (size_t)a->dim[a_row],
                          .n = (size_t)b->dim[b_column],
                          .k = (size_t)a->dim[a_column],
                          .a = {a->data, a->stride[a_row], a->stride[a_column], NULL, NULL, NULL},
                          .b = {b->data, b->stride[b_column], b->stride[b_row], NULL, NULL, NULL},
                          .c = dst->data,
                          .row_stride = dst->stride[dst->rank - 2],
                          .column_stride = dst->stride[dst->rank - 1],
                          .alpha = opts->alpha != 0.0f ? opts->alpha : 1.0f,
                          .beta = opts->beta,
                          .from = NULL,
                          .from_row_stride = 0,
                          .from_column_stride = 0,
                          .row_bias = NULL,
                          .column_bias = opts->bias != NULL ? opts->bias->data : NULL,
                          .finish = finishes_in_product(dst) ? mica_activation_kernel(ctx, opts->activation)
                                                             : NULL,
                          .finish_params = &opts->slope};
    for (int i = 0; i < w->rank; i++) {
        w->dim[i] = dst->dim[i];
        w->count *= (size_t)dst->dim[i];
    }
    batch_strides(w->a_stride, a, dst);
    batch_strides(w->b_stride, b, dst);
    batch_strides(w->c_stride, dst, dst);
    if (opts->residual != NULL)
        set_residual(w, opts->residual, dst);
    if (w->count > 0)
        join_rows(w);
    w->each_bytes = w->count > 1 ? mica_gemm_each_scratch(ctx, &w->gemm) : 0;
}

static void run_batch(mica_context *ctx, batch *w, bool many)
{
    if (many) {
        w->block = MICA_GEMM_SMALL / 4 / (w->gemm.m * w->gemm.n * w->gemm.k + 1) + 1;
        mica_parallel(ctx, mica_div_up(w->count, w->block), batch_block, w);
        return;
    }
    if (w->rank == 0) {
        mica_gemm_run(ctx, &w->gemm, w->scratch);
        return;
    }
    for (size_t position = 0; position < w->count; position++) {
        mica_gemm g = gemm_at(w, position);
        mica_gemm_run(ctx, &g, w->scratch);
    }
}

/* t with as many axes as dst, repeated along its leading ones; its last two in order. */
static mica_tensor whole_batch(const mica_tensor *t, bool transpose, const mica_tensor *dst)
{
    mica_tensor out = *t;
    int missing = dst->rank - t->rank;
    out.rank = dst->rank;
    for (int k = 0; k < dst->rank; k++) {
        int from = k - missing;
        if (transpose && k >= dst->rank - 2)
            from = k == dst->rank - 1 ? t->rank - 2 : t->rank - 1;
        bool leads = k < dst->rank - 2;
        out.dim[k] = leads ? dst->dim[k] : t->dim[from];
        out.stride[k] = leads && (from < 0 || t->dim[from] == 1) ? 0 : t->stride[from];
    }
    return out;
}

/* In other types than f32: the bare product. */
static mica_status typed_matmul(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                const mica_tensor *b, const mica_matmul_opts *opts)
{
    MICA_TRY(check_matmul(ctx, dst, a, b, opts, MICA_DTYPE_BIT(a->dtype)));
    if ((opts->alpha != 0.0f && opts->alpha != 1.0f) || opts->beta != 0.0f || opts->bias != NULL ||
        opts->residual != NULL || opts->activation != MICA_NO_ACTIVATION)
        return mica_fail(ctx, MICA_ERR_ARGUMENT,
                         "matmul: a is %s: factors, bias, residual and activation are for f32",
                         mica_dtype_name(a->dtype));
    MICA_START(ctx, "matmul", 0, NULL);
    mica_tensor whole_a = whole_batch(a, opts->transpose_a, dst),
                whole_b = whole_batch(b, opts->transpose_b, dst);
    mica_typed_matmul(ctx, dst, &whole_a, &whole_b);
    return MICA_OK;
}

/* Of f32; packed: the panels of b, which is one matrix, or NULL. */
static mica_status float_matmul(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                                const mica_tensor *b, const float *packed, const mica_matmul_opts *opts)
{
    MICA_TRY(check_matmul(ctx, dst, a, b, opts, 0));
    batch w;
    plan_batch(ctx, &w, dst, a, b, opts);
    w.gemm.b.packed = packed;
    mica_count_flops(ctx, 2.0 * (double)mica_tensor_count(dst) * (double)w.gemm.k);
    bool bare = w.count == 1 && opts->residual == NULL && mica_gemm_is_vector(&w.gemm);
    void *scratch;
    MICA_START(ctx, "matmul", bare ? 0 : mica_gemm_batch_scratch(ctx, &w.gemm, w.count), &scratch);

    w.scratch = scratch;
    run_batch(ctx, &w, mica_gemm_many(w.count, w.gemm.m, w.gemm.n, w.gemm.k));
    if (opts->activation != MICA_NO_ACTIVATION && !finishes_in_product(dst))
        mica_map_run(ctx, mica_activation_kernel(ctx, opts->activation), &opts->slope, dst,
                     (const mica_tensor *[]){dst}, 1);
    return MICA_OK;
}

mica_status mica_matmul(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, const mica_tensor *b,
                        const mica_matmul_opts *opts)
{
    static const mica_matmul_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    return mica_typed_folds(a) ? typed_matmul(ctx, dst, a, b, opts)
                               : float_matmul(ctx, dst, a, b, NULL, opts);
}

#if !defined(MICA_SMALL)
mica_status mica_matmul_packed(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                               const mica_tensor *b, const mica_tensor *packed, const mica_matmul_opts *opts)
{
    /* While measuring it counts that there are panels, not where. */
    const float *panels = ctx->measuring ? (const float *)(const void *)packed : packed->data;
    return float_matmul(ctx, dst, a, b, panels, opts);
}

mica_status mica_matmul_pack(mica_context *ctx, const mica_tensor *packed, const mica_tensor *b,
                             bool transpose)
{
    size_t k = (size_t)b->dim[transpose ? 1 : 0], n = (size_t)b->dim[transpose ? 0 : 1];
    mica_gemm_operand from = {.data = b->data,
                              .vector_stride = b->stride[transpose ? 0 : 1],
                              .k_stride = b->stride[transpose ? 1 : 0]};
    MICA_START(ctx, "matmul_pack", 0, NULL);
    mica_gemm_pack(ctx, packed->data, &from, n, k, false);
    return MICA_OK;
}
#endif

mica_status mica_matvec(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, const mica_tensor *x)
{
    const char *op = "matvec";
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"a", a, 0, 0}, {"x", x, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(mica_check_rank(ctx, op, "a", a, 2, 2));
    MICA_TRY(mica_check_shape(ctx, op, "x", x, 1, &a->dim[1], "a", a));
    MICA_TRY(mica_check_shape(ctx, op, "dst", dst, 1, &a->dim[0], "a", a));
    mica_gemm g = {.m = (size_t)a->dim[0],
                   .n = 1,
                   .k = (size_t)a->dim[1],
                   .a = {.data = a->data, .vector_stride = a->stride[0], .k_stride = a->stride[1]},
                   .b = {.data = x->data, .vector_stride = 0, .k_stride = x->stride[0]},
                   .c = dst->data,
                   .row_stride = dst->stride[0],
                   .column_stride = 1,
                   .alpha = 1.0f};
    mica_count_flops(ctx, 2.0 * (double)g.m * (double)g.k);
    void *scratch;
    MICA_START(ctx, op, mica_gemm_scratch(ctx, &g), &scratch);
    mica_gemm_run(ctx, &g, scratch);
    return MICA_OK;
}

mica_status mica_outer(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, const mica_tensor *b)
{
    const char *op = "outer";
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"a", a, 0, 0}, {"b", b, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(mica_check_rank(ctx, op, "dst", dst, 2, 2));
    MICA_TRY(mica_check_shape(ctx, op, "a", a, 1, &dst->dim[0], "dst", dst));
    MICA_TRY(mica_check_shape(ctx, op, "b", b, 1, &dst->dim[1], "dst", dst));
    MICA_START(ctx, op, 0, NULL);
    mica_tensor column = *a; /* [M, 1], which broadcasts along the rows */
    column.rank = 2;
    column.dim[1] = 1;
    column.stride[1] = 0;
    mica_map_run(ctx, MICA_KERNEL(ctx->kernels, map, mul), NULL, dst, (const mica_tensor *[]){&column, b}, 2);
    return MICA_OK;
}
