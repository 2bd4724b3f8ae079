/* Attention backward: scores computed again, tile by tile.
 *
 * With p = e^(s - lse) and delta = sum of dout * out of each query:
 *
 *     dv = p' dout     dp = dout v'     ds = p (dp - delta) scale     dq = ds k     dk = ds' q
 *
 * A block of parallel work is one key head of one sequence with all query heads that read it; tiles of keys
 * come in order, and so do tiles of queries within one, so that every sum has one order. Where there are fewer
 * such blocks than threads, dk and dv are cut by tiles of keys, and dq, afterwards, by tiles of queries: two
 * products more for each tile, but the same sums in the same order. Scratch for each thread:
 *
 *   [ k, transposed: D x 64 | v, transposed: D x 64 | dk: 64 x D | dv: 64 x D | s: 64 x 64 | dp: 64 x 64
 *   | lse: 64 | delta: 64 ]
 */
#include "ops/attention.h"

#include <string.h>

#include "base/parallel.h"
#include "tensor/tensor.h"

#define QUERIES MICA_ATTENTION_QUERIES
#define KEYS    MICA_ATTENTION_KEYS

typedef struct backward_job {
    mica_attention_shape shape;
    const mica_kernels *kernels;
    const mica_tensor *dq, *dk, *dv, *dout, *q, *k, *v, *out, *lse;
    char *scratch;
    size_t scratch_each; /* bytes for a thread */
} backward_job;

typedef struct backward_tiles {
    float *k, *v, *dk, *dv, *s, *dp, *lse, *delta;
} backward_tiles;

static size_t backward_floats(size_t d) { return 4 * KEYS * d + 2 * QUERIES * KEYS + 2 * QUERIES; }

static backward_tiles lay_out(void *scratch, size_t d)
{
    backward_tiles t = {.k = scratch};
    t.v = t.k + KEYS * d;
    t.dk = t.v + KEYS * d;
    t.dv = t.dk + KEYS * d;
    t.s = t.dv + KEYS * d;
    t.dp = t.s + QUERIES * KEYS;
    t.lse = t.dp + QUERIES * KEYS;
    t.delta = t.lse + QUERIES;
    return t;
}

/* p and ds of a tile, in t->s and t->dp. */
static void score_tile(const backward_job *job, const backward_tiles *t, size_t b, size_t h, size_t query,
                       size_t rows, size_t key, size_t n)
{
    const mica_attention_kernels *kernels = job->kernels->attention;
    size_t d = job->shape.d, width = mica_least(KEYS, (n + 15) / 16 * 16);
    ptrdiff_t stride = (ptrdiff_t)KEYS;
    mica_matrix q = {mica_attention_row(job->q, b, h, query), job->q->stride[2], 1};
    mica_matrix dout = {mica_attention_row(job->dout, b, h, query), job->dout->stride[2], 1};
    const float *out = mica_attention_row(job->out, b, h, query);
    const float *lse = mica_attention_row(job->lse, b, h, query);
    for (size_t i = 0; i < rows; i++) {
        mica_index row = (mica_index)i;
        t->lse[i] = lse[row * job->lse->stride[2]];
        t->delta[i] = kernels->dot(dout.data + row * dout.row, out + row * job->out->stride[2], d);
    }
    kernels->product(t->s, stride, &q, t->k, stride, rows, width, d, false);
    kernels->product(t->dp, stride, &dout, t->v, stride, rows, width, d, false);
    mica_score_rule rule = mica_attention_rule(&job->shape, b, h, query, key);
    kernels->scores(t->s, stride, rows, n, &rule);
    kernels->softmax_backward(t->s, t->dp, stride, rows, n, t->lse, t->delta, job->shape.scale);
}

/* dv += p' dout and dk += ds' q of a tile. */
static void give_to_keys(const backward_job *job, const backward_tiles *t, size_t b, size_t h, size_t query,
                         size_t rows, size_t n)
{
    const mica_attention_kernels *kernels = job->kernels->attention;
    size_t d = job->shape.d;
    mica_matrix p_turned = {t->s, 1, (ptrdiff_t)KEYS}, ds_turned = {t->dp, 1, (ptrdiff_t)KEYS};
    kernels->product(t->dv, (ptrdiff_t)d, &p_turned, mica_attention_row(job->dout, b, h, query),
                     job->dout->stride[2], n, d, rows, true);
    kernels->product(t->dk, (ptrdiff_t)d, &ds_turned, mica_attention_row(job->q, b, h, query),
                     job->q->stride[2], n, d, rows, true);
}

/* dq += ds k of a tile. */
static void give_to_queries(const backward_job *job, const backward_tiles *t, size_t b, size_t h,
                            size_t query, size_t rows, size_t key, size_t n)
{
    mica_matrix ds = {t->dp, (ptrdiff_t)KEYS, 1};
    job->kernels->attention->product(mica_attention_row(job->dq, b, h, query), job->dq->stride[2], &ds,
                                     mica_attention_row(job->k, b, h / job->shape.group, key),
                                     job->k->stride[2], rows, job->shape.d, n, true);
}

static void clear_queries(const backward_job *job, size_t b, size_t h, size_t begin, size_t end)
{
    for (size_t row = begin; row < end; row++)
        memset(mica_attention_row(job->dq, b, h, row), 0, job->shape.d * sizeof(float));
}

static void turn_keys(const backward_job *job, const backward_tiles *t, size_t b, size_t kv_head, size_t key,
                      size_t n)
{
    const mica_gemm_kernels *gemm = job->kernels->gemm;
    size_t d = job->shape.d;
    gemm->pack(t->k, KEYS, mica_attention_row(job->k, b, kv_head, key), job->k->stride[2], 1, n, d);
    gemm->pack(t->v, KEYS, mica_attention_row(job->v, b, kv_head, key), job->v->stride[2], 1, n, d);
}

static void store_keys(const backward_job *job, const backward_tiles *t, size_t b, size_t kv_head, size_t key,
                       size_t n)
{
    size_t d = job->shape.d;
    for (size_t j = 0; j < n; j++) {
        memcpy(mica_attention_row(job->dk, b, kv_head, key + j), t->dk + j * d, d * sizeof(float));
        memcpy(mica_attention_row(job->dv, b, kv_head, key + j), t->dv + j * d, d * sizeof(float));
    }
}

/* A tile of keys against all queries: its dk and dv, and, unless they are left for later, parts of dq. */
static void key_tile(const backward_job *job, const backward_tiles *t, size_t b, size_t kv_head, size_t key,
                     bool with_queries)
{
    const mica_attention_shape *s = &job->shape;
    size_t n = mica_least(KEYS, s->keys - key), first = kv_head * s->group;
    turn_keys(job, t, b, kv_head, key, n);
    memset(t->dk, 0, KEYS * s->d * sizeof(float));
    memset(t->dv, 0, KEYS * s->d * sizeof(float));
    for (size_t h = first; h < first + s->group; h++) {
        for (size_t query = 0; query < s->queries; query += QUERIES) {
            size_t rows = mica_least(QUERIES, s->queries - query);
            if (mica_attention_reach(s, query + rows) <= key)
                continue;
            score_tile(job, t, b, h, query, rows, key, n);
            give_to_keys(job, t, b, h, query, rows, n);
            if (with_queries)
                give_to_queries(job, t, b, h, query, rows, key, n);
        }
    }
    store_keys(job, t, b, kv_head, key, n);
}

/* One key head: everything. */
static void head_block(void *work, size_t block, int thread)
{
    const backward_job *job = work;
    const mica_attention_shape *s = &job->shape;
    backward_tiles t = lay_out(job->scratch + (size_t)thread * job->scratch_each, s->d);
    size_t b = block / s->kv_heads, kv_head = block % s->kv_heads, first = kv_head * s->group;
    for (size_t h = first; h < first + s->group; h++)
        clear_queries(job, b, h, 0, s->queries);
    for (size_t key = 0; key < s->keys; key += KEYS)
        key_tile(job, &t, b, kv_head, key, true);
}

/* One tile of keys: dk and dv. */
static void key_block(void *work, size_t block, int thread)
{
    const backward_job *job = work;
    const mica_attention_shape *s = &job->shape;
    backward_tiles t = lay_out(job->scratch + (size_t)thread * job->scratch_each, s->d);
    size_t tiles = mica_div_up(s->keys, KEYS), head = block / tiles;
    key_tile(job, &t, head / s->kv_heads, head % s->kv_heads, block % tiles * KEYS, false);
}

/* One tile of queries: dq. */
static void query_block(void *work, size_t block, int thread)
{
    const backward_job *job = work;
    const mica_attention_shape *s = &job->shape;
    backward_tiles t = lay_out(job->scratch + (size_t)thread * job->scratch_each, s->d);
    size_t tiles = mica_div_up(s->queries, QUERIES), head = block / tiles, query = block % tiles * QUERIES;
    size_t b = head / s->heads, h = head % s->heads, rows = mica_least(QUERIES, s->queries - query);
    size_t reach = mica_attention_reach(s, query + rows);
    clear_queries(job, b, h, query, query + rows);
    for (size_t key = 0; key < reach; key += KEYS) {
        size_t n = mica_least(KEYS, s->keys - key);
        turn_keys(job, &t, b, h / s->group, key, n);
        score_tile(job, &t, b, h, query, rows, key, n);
        give_to_queries(job, &t, b, h, query, rows, key, n);
    }
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
    backward_job job = {.kernels = ctx->kernels};
    MICA_TRY(mica_attention_check(ctx, op, &job.shape, saved->q, saved->k, saved->v, opts));
    MICA_TRY(check_backward(ctx, op, args));
    mica_count_flops(ctx, 5.0 * mica_attention_flops(&job.shape));
    mica_dense dense;
    void *scratch;
    mica_dense_plan_rows(&dense, args, 8);
    job.scratch_each = mica_align_up(backward_floats(job.shape.d) * sizeof(float));
    MICA_START(ctx, op, dense.bytes + (size_t)ctx->threads * job.scratch_each, &scratch);
    job.scratch = mica_dense_load(&dense, scratch);
    const mica_tensor **into[] = {&job.dq, &job.dk, &job.dv, &job.dout, &job.q, &job.k, &job.v, &job.out};
    for (int i = 0; i < 8; i++)
        *into[i] = mica_dense_tensor(&dense, i);
    job.lse = saved->lse;
    run_backward(ctx, &job);
    mica_dense_store(&dense);
    return MICA_OK;
}
