/* Attention forward. A block of parallel work is 64 queries of one head. */
#include "ops/attention.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "tensor/tensor.h"

#define QUERIES MICA_ATTENTION_QUERIES

/* ---- Shared with backward ---- */

static mica_status check_mask(mica_context *ctx, const char *op, mica_attention_shape *s,
                              const mica_tensor *mask)
{
    s->mask = (mica_tensor){0};
    if (mask == NULL)
        return MICA_OK;
    mica_arg arg = {"mask", mask, 0, MICA_DTYPES_MASK};
    MICA_TRY(mica_check_args(ctx, op, &arg, 1));
    mica_tensor scores = {
        .rank = 4,
        .dim = {(mica_index)s->batch, (mica_index)s->heads, (mica_index)s->queries, (mica_index)s->keys}};
    MICA_TRY(mica_check_broadcast(ctx, op, "mask", mask, "the scores", &scores));
    s->mask = scores;
    s->mask.data = mask->data;
    s->mask.dtype = mask->dtype;
    for (int i = 0; i < mask->rank; i++)
        if (mask->dim[i] != 1)
            s->mask.stride[4 - mask->rank + i] = mask->stride[i];
    return MICA_OK;
}

mica_status mica_attention_check(mica_context *ctx, const char *op, mica_attention_shape *s,
                                 const mica_tensor *q, const mica_tensor *k, const mica_tensor *v,
                                 const mica_attention_opts *opts)
{
    MICA_TRY(mica_check_rank(ctx, op, "q", q, 4, 4));
    MICA_TRY(mica_check_rank(ctx, op, "k", k, 4, 4));
    MICA_TRY(mica_check_same_shape(ctx, op, "v", v, "k", k));
    if (k->dim[0] != q->dim[0] || k->dim[3] != q->dim[3])
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: q is %s, k is %s: expected the same first and last axis",
                         op, MICA_SHAPE(q), MICA_SHAPE(k));
    bool divides = k->dim[1] > 0 ? q->dim[1] % k->dim[1] == 0 : q->dim[1] == 0;
    if (!divides)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: q is %s, k is %s: %td query heads cannot share %td key heads evenly", op,
                         MICA_SHAPE(q), MICA_SHAPE(k), q->dim[1], k->dim[1]);
    *s = (mica_attention_shape){.batch = (size_t)q->dim[0],
                                .heads = (size_t)q->dim[1],
                                .kv_heads = (size_t)k->dim[1],
                                .queries = (size_t)q->dim[2],
                                .keys = (size_t)k->dim[2],
                                .d = (size_t)q->dim[3],
                                .causal = opts->causal};
    s->group = s->kv_heads > 0 ? s->heads / s->kv_heads : 1;
    s->scale = opts->scale != 0.0f ? opts->scale : s->d > 0 ? 1.0f / sqrtf((float)s->d) : 1.0f;
    return check_mask(ctx, op, s, opts->mask);
}

mica_score_rule mica_attention_rule(const mica_attention_shape *s, size_t b, size_t h, size_t query)
{
    mica_score_rule rule = {.scale = s->scale, .visible = (ptrdiff_t)s->keys};
    if (s->causal) {
        rule.visible = (ptrdiff_t)(s->keys + query + 1) - (ptrdiff_t)s->queries;
        rule.step = 1;
    }
    if (s->mask.data == NULL)
        return rule;
    const mica_index *stride = s->mask.stride;
    mica_index at = (mica_index)b * stride[0] + (mica_index)h * stride[1] + (mica_index)query * stride[2];
    rule.mask_row = stride[2];
    rule.mask_column = stride[3];
    if (s->mask.dtype == MICA_F32)
        rule.add = (const float *)s->mask.data + at;
    else
        rule.keep = (const uint8_t *)s->mask.data + at;
    return rule;
}

/* ---- Forward ---- */

typedef struct forward_job {
    mica_attention_shape shape;
    const mica_attention_kernels *kernels;
    const mica_tensor *out, *q, *k, *v, *lse; /* lse or NULL */
    size_t blocks_per_head;
    char *scratch;
    size_t scratch_each; /* bytes for a thread */
} forward_job;

static void forward_block(void *work, size_t block, int thread)
{
    const forward_job *job = work;
    const mica_attention_shape *s = &job->shape;
    size_t head = block / job->blocks_per_head, b = head / s->heads, h = head % s->heads;
    size_t first = block % job->blocks_per_head * QUERIES, kv_head = h / s->group;
    size_t rows = mica_least(QUERIES, s->queries - first);
    mica_attention_block rows_of_head = {
        .queries = rows,
        .d = s->d,
        .keys = mica_attention_reach(s, first + rows),
        .rule = mica_attention_rule(s, b, h, first),
        .out = mica_attention_rows(job->out, b, h, first),
        .q = mica_attention_rows(job->q, b, h, first),
        .k = mica_attention_rows(job->k, b, kv_head, 0),
        .v = mica_attention_rows(job->v, b, kv_head, 0),
        .scratch = (void *)(job->scratch + (size_t)thread * job->scratch_each)};
    if (job->lse != NULL) {
        rows_of_head.lse = mica_attention_row(job->lse, b, h, first);
        rows_of_head.lse_stride = job->lse->stride[2];
    }
    job->kernels->forward(&rows_of_head);
}

mica_status mica_attention(mica_context *ctx, const mica_tensor *out, const mica_tensor *q,
                           const mica_tensor *k, const mica_tensor *v, const mica_attention_opts *opts)
{
    const char *op = "attention";
    mica_attention_opts none = {0};
    opts = opts != NULL ? opts : &none;
    mica_arg args[] = {{"out", out, MICA_ARG_OUT, 0},
                       {"q", q, MICA_ARG_IN_PLACE, 0},
                       {"k", k, 0, 0},
                       {"v", v, 0, 0},
                       {"lse", opts->lse, MICA_ARG_OUT | MICA_ARG_OPTIONAL, 0},
                       {"mask", opts->mask, MICA_ARG_OPTIONAL, MICA_DTYPES_MASK}};
    MICA_TRY(mica_check_args(ctx, op, args, 6));
    forward_job job = {.kernels = MICA_FAMILY(ctx->kernels, attention)};
    MICA_TRY(mica_attention_check(ctx, op, &job.shape, q, k, v, opts));
    MICA_TRY(mica_check_same_shape(ctx, op, "out", out, "q", q));
    if (opts->lse != NULL)
        MICA_TRY(mica_check_shape(ctx, op, "lse", opts->lse, 3, q->dim, "q", q));
    mica_count_flops(ctx, 2.0 * mica_attention_flops(&job.shape));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan_rows(&dense, args, 4);
    job.scratch_each = mica_align_up(mica_attention_floats(job.shape.d) * sizeof(float));
    MICA_START(ctx, op, dense.bytes + (size_t)ctx->threads * job.scratch_each, &scratch);
    job.scratch = mica_contiguous_load(&dense, scratch);
    job.out = mica_contiguous_tensor(&dense, 0);
    job.q = mica_contiguous_tensor(&dense, 1);
    job.k = mica_contiguous_tensor(&dense, 2);
    job.v = mica_contiguous_tensor(&dense, 3);
    job.lse = opts->lse;
    job.blocks_per_head = mica_div_up(job.shape.queries, QUERIES);
    mica_parallel(ctx, job.shape.batch * job.shape.heads * job.blocks_per_head, forward_block, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}
