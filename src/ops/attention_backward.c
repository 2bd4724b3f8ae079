/* Attention backward: scores are recomputed, tile by tile.
 *
 * A block of parallel work is one key head of one sequence with all query heads that read it. Their queries come in
 * order, in blocks, and so do tiles of keys within one, so that every sum has one order. Where there are fewer such
 * blocks than threads, dk and dv are cut by tiles of keys, and dq, afterwards, by blocks of queries: two products
 * more for each tile, but the same sums in the same order. */
#include "ops/attention.h"

#include <string.h>

#include "base/parallel.h"
#include "tensor/tensor.h"

#define QUERIES MICA_ATTENTION_QUERIES
#define KEYS    MICA_ATTENTION_KEYS

typedef struct backward_job {
    mica_attention_shape shape;
    const mica_attention_kernels *kernels;
    const mica_tensor *dq, *dk, *dv, *dout, *q, *k, *v, *out, *lse;
    char *scratch;
    size_t scratch_each; /* bytes for a thread */
} backward_job;

/* A block of queries of head h against the keys from `key` to end - 1, without its outputs. */
static mica_attention_gradient gradient_of(const backward_job *job, size_t b, size_t h, size_t query,
                                           size_t key, size_t end, int thread)
{
    const mica_attention_shape *s = &job->shape;
    size_t rows = mica_least(QUERIES, s->queries - query), kv_head = h / s->group;
    return (mica_attention_gradient){
        .queries = rows,
        .d = s->d,
        .first_key = key,
        .keys = mica_least(end, mica_attention_reach(s, query + rows)),
        .rule = mica_attention_rule(s, b, h, query),
        .dout = mica_attention_rows(job->dout, b, h, query),
        .q = mica_attention_rows(job->q, b, h, query),
        .k = mica_attention_rows(job->k, b, kv_head, 0),
        .v = mica_attention_rows(job->v, b, kv_head, 0),
        .out = mica_attention_rows(job->out, b, h, query),
        .lse = mica_attention_row(job->lse, b, h, query),
        .lse_stride = job->lse->stride[2],
        .scratch = (void *)(job->scratch + (size_t)thread * job->scratch_each),
    };
}

static void clear_rows(const mica_tensor *t, size_t b, size_t h, size_t begin, size_t end)
{
    for (size_t row = begin; row < end; row++)
        memset(mica_attention_row(t, b, h, row), 0, (size_t)t->dim[3] * sizeof(float));
}

/* Keys from `key` to end - 1 of a key head against all queries: dk and dv, and dq where they are all the keys. */
static void give(const backward_job *job, size_t b, size_t kv_head, size_t key, size_t end, bool with_queries,
                 int thread)
{
    const mica_attention_shape *s = &job->shape;
    clear_rows(job->dk, b, kv_head, key, end);
    clear_rows(job->dv, b, kv_head, key, end);
    for (size_t h = kv_head * s->group; h < (kv_head + 1) * s->group; h++) {
        for (size_t query = 0; query < s->queries; query += QUERIES) {
            mica_attention_gradient g = gradient_of(job, b, h, query, key, end, thread);
            g.dk = mica_attention_rows(job->dk, b, kv_head, 0);
            g.dv = mica_attention_rows(job->dv, b, kv_head, 0);
            if (with_queries)
                g.dq = mica_attention_rows(job->dq, b, h, query);
            if (with_queries || g.keys > key)
                job->kernels->backward(&g);
        }
    }
}

/* One key head: everything. */
static void head_block(void *work, size_t block, int thread)
{
    const backward_job *job = work;
    const mica_attention_shape *s = &job->shape;
    give(job, block / s->kv_heads, block % s->kv_heads, 0, s->keys, true, thread);
}

/* One tile of keys: dk and dv. */
static void key_block(void *work, size_t block, int thread)
{
    const backward_job *job = work;
    const mica_attention_shape *s = &job->shape;
    size_t tiles = mica_div_up(s->keys, KEYS), head = block / tiles, key = block % tiles * KEYS;
    give(job, head / s->kv_heads, head % s->kv_heads, key, mica_least(key + KEYS, s->keys), false, thread);
}

/* One block of queries: dq. */
static void query_block(void *work, size_t block, int thread)
{
    const backward_job *job = work;
    const mica_attention_shape *s = &job->shape;
    size_t tiles = mica_div_up(s->queries, QUERIES), head = block / tiles, query = block % tiles * QUERIES;
    size_t b = head / s->heads, h = head % s->heads;
    mica_attention_gradient g = gradient_of(job, b, h, query, 0, s->keys, thread);
    g.dq = mica_attention_rows(job->dq, b, h, query);
    job->kernels->backward(&g);
}

static void run_backward(mica_context *ctx, backward_job *job)
{
    const mica_attention_shape *s = &job->shape;
    size_t heads = s->batch * s->kv_heads;
    if (heads >= (size_t)ctx->threads) {
        mica_parallel(ctx, heads, head_block, job);
        return;
    }
    mica_parallel(ctx, heads * mica_div_up(s->keys, KEYS), key_block, job);
    mica_parallel(ctx, s->batch * s->heads * mica_div_up(s->queries, QUERIES), query_block, job);
}

static mica_status check_backward(mica_context *ctx, const char *op, const mica_arg *args)
{
    enum { DQ, DK, DV, DOUT, Q, K, V, OUT, LSE };
    const mica_tensor *q = args[Q].tensor, *k = args[K].tensor;
    MICA_TRY(mica_check_same_shape(ctx, op, "dout", args[DOUT].tensor, "q", q));
    MICA_TRY(mica_check_same_shape(ctx, op, "out", args[OUT].tensor, "q", q));
    MICA_TRY(mica_check_same_shape(ctx, op, "dq", args[DQ].tensor, "q", q));
    MICA_TRY(mica_check_same_shape(ctx, op, "dk", args[DK].tensor, "k", k));
    MICA_TRY(mica_check_same_shape(ctx, op, "dv", args[DV].tensor, "k", k));
    return mica_check_shape(ctx, op, "lse", args[LSE].tensor, 3, q->dim, "q", q);
}

mica_status mica_attention_backward(mica_context *ctx, const mica_attention_grads *grads,
                                    const mica_tensor *dout, const mica_attention_saved *saved,
                                    const mica_attention_opts *opts)
{
    const char *op = "attention_backward";
    mica_attention_opts none = {0};
    opts = opts != NULL ? opts : &none;
    if (grads == NULL || saved == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", op, grads == NULL ? "grads" : "saved");
    mica_arg args[] = {{"dq", grads->q, MICA_ARG_OUT, 0},
                       {"dk", grads->k, MICA_ARG_OUT, 0},
                       {"dv", grads->v, MICA_ARG_OUT, 0},
                       {"dout", dout, 0, 0},
                       {"q", saved->q, 0, 0},
                       {"k", saved->k, 0, 0},
                       {"v", saved->v, 0, 0},
                       {"out", saved->out, 0, 0},
                       {"lse", saved->lse, 0, 0},
                       {"mask", opts->mask, MICA_ARG_OPTIONAL, MICA_DTYPES_MASK}};
    MICA_TRY(mica_check_args(ctx, op, args, 10));
    backward_job job = {.kernels = MICA_FAMILY(ctx->kernels, attention)};
    MICA_TRY(mica_attention_check(ctx, op, &job.shape, saved->q, saved->k, saved->v, opts));
    MICA_TRY(check_backward(ctx, op, args));
    mica_count_flops(ctx, 5.0 * mica_attention_flops(&job.shape));
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan_rows(&dense, args, 8);
    job.scratch_each = mica_align_up(mica_attention_backward_floats(job.shape.d) * sizeof(float));
    MICA_START(ctx, op, dense.bytes + (size_t)ctx->threads * job.scratch_each, &scratch);
    job.scratch = mica_contiguous_load(&dense, scratch);
    const mica_tensor **into[] = {&job.dq, &job.dk, &job.dv, &job.dout, &job.q, &job.k, &job.v, &job.out};
    for (int i = 0; i < 8; i++)
        *into[i] = mica_contiguous_tensor(&dense, i);
    job.lse = saved->lse;
    run_backward(ctx, &job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}
